"""A client that sends bytes of its own choice."""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import ssl
import struct
from types import TracebackType
from typing import Self

from tests.slackwater.plugins.serve.served_sql import HOST

SSL_REQUEST = struct.pack("!II", 8, 80877103)


def framed(kind: bytes, body: bytes) -> bytes:
    """A message with its length."""
    return kind + struct.pack("!I", len(body) + 4) + body


def startup(**parameters: str) -> bytes:
    """The first message of a session."""
    texts = {"user": "ann", "database": "slackwater", **parameters}
    body = b"".join(part.encode() + b"\0" for item in texts.items() for part in item)
    return framed(b"", struct.pack("!I", 196608) + body + b"\0")


class RawClient:
    """A connection.  Every wait ends with an error after a minute."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.socket.close()

    def send(self, data: bytes) -> Self:
        self.socket.sendall(data)
        return self

    def start_tls(self) -> Self:
        """Asks for TLS and performs the handshake, without a look at the certificate."""
        self.send(SSL_REQUEST)
        assert self.exactly(1) == b"S"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.socket = context.wrap_socket(self.socket)
        return self

    def exactly(self, nbytes: int) -> bytes:
        received = b""
        while len(received) < nbytes:
            part = self.socket.recv(nbytes - len(received))
            if not part:
                raise EOFError(received)
            received += part
        return received

    def message(self) -> tuple[bytes, bytes]:
        """The type and the body of the next message."""
        kind = self.exactly(1)
        return kind, self.exactly(struct.unpack("!I", self.exactly(4))[0] - 4)

    def until(self, last: bytes) -> list[tuple[bytes, bytes]]:
        """The messages up to one of a type, or up to an error."""
        received = [self.message()]
        while received[-1][0] not in (last, b"E"):
            received.append(self.message())
        return received

    def rest(self) -> bytes:
        """The bytes that the server sends until it closes the connection."""
        parts = []
        try:
            while part := self.socket.recv(65_536):
                parts.append(part)
        except ConnectionError:
            pass
        return b"".join(parts)

    def send_nonce(self, *, header: bytes = b"n,,", mechanism: bytes = b"SCRAM-SHA-256", bare: bytes = b"") -> bytes:
        """Sends the first message of SCRAM, after the server has asked for it.  Returns its bare part."""
        kind, body = self.message()
        assert kind == b"R" and body[4:] == b"SCRAM-SHA-256\0\0", (kind, body)
        bare = bare or b"n=,r=abcdefgh"
        first = header + bare
        self.send(framed(b"p", mechanism + b"\0" + struct.pack("!I", len(first)) + first))
        return bare

    def send_proof(self, bare: bytes, challenge: bytes, password: str) -> None:
        """Sends the last message of SCRAM."""
        fields = dict(part.split(b"=", 1) for part in challenge.split(b","))
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(fields[b"s"]), int(fields[b"i"]))
        without_proof = b"c=biws,r=" + fields[b"r"]
        key = hmac.digest(salted, b"Client Key", "sha256")
        signed = b",".join((bare, challenge, without_proof))
        signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        proof = base64.b64encode(bytes(one ^ other for one, other in zip(key, signature, strict=True)))
        self.send(framed(b"p", without_proof + b",p=" + proof))

    def log_in(self, password: str) -> tuple[bytes, bytes]:
        """Sends everything up to the proof.  Returns the answer to it."""
        self.send(startup())
        bare = self.send_nonce()
        kind, body = self.message()
        assert kind == b"R", (kind, body)
        self.send_proof(bare, body[4:], password)
        return self.message()
