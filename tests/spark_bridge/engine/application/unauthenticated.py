"""A stranger at a port of Spark: it sends a message without authentication."""

from __future__ import annotations

import socket
import struct

_REQUEST, _REFUSED = 3, "Expected SaslMessage"


def is_refused(host: str, port: int) -> bool:
    """Whether a process refuses a message of a stranger before it makes an object of it."""
    body = b"\0" * 4
    message = struct.pack(">bqi", _REQUEST, 7, len(body)) + body
    with socket.create_connection((host, port), timeout=30) as connection:
        connection.sendall(struct.pack(">q", len(message) + 8) + message)
        return _REFUSED in connection.recv(65_536).decode("utf-8", "replace")
