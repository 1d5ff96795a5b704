"""Frames between a front and its worker: a kind, the number of a session, and a body."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

HEADER = struct.Struct("!cII")
LARGEST_TO_WORKER = 256 << 20
LARGEST_TO_FRONT = 1 << 20

# To the worker.
START, OPEN, MESSAGES, MORE, INTERRUPT, STOP, CLOSE, REQUEST = (bytes([code]) for code in b"SOMNIXCQ")
# To the front.
READY, FAILED, PART, LAST, FATAL = (bytes([code]) for code in b"rfple")


class BrokenFrameError(Exception):
    """The other side violates the protocol of frames."""


@dataclass(frozen=True)
class Frame:
    """One frame.

    Args:
        kind: one byte, a constant of this module.
        session: the number of the session; 0 for the worker itself.
    """

    kind: bytes
    session: int
    body: bytes


def packed(kind: bytes, session: int, body: bytes = b"") -> bytes:
    """The bytes of a frame."""
    return HEADER.pack(kind, session, len(body)) + body


def receive(connection: socket.socket, largest: int) -> Frame | None:
    """The next frame of a blocking socket; None at its end.

    Raises:
        BrokenFrameError: the frame is larger than `largest` bytes, or the socket ends inside it.
        TimeoutError: the socket has a timeout, and it is over.
    """
    header = _exactly(connection, HEADER.size)
    if not header:
        return None
    kind, session, size = HEADER.unpack(header)
    if size > largest:
        raise BrokenFrameError(f"a frame of {size:,} bytes; the limit is {largest:,}")
    body = _exactly(connection, size)
    if len(body) != size:
        raise BrokenFrameError("the socket ended inside a frame")
    return Frame(kind, session, body)


def _exactly(connection: socket.socket, size: int) -> bytes:
    """`size` bytes; fewer than that only at the end of the socket."""
    received = bytearray(size)
    view, count = memoryview(received), 0
    while count < size:
        part = connection.recv_into(view[count:], size - count)
        if not part:
            return bytes(received[:count])
        count += part
    return bytes(received)
