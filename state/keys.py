"""Ordered binary keys: comparing the bytes compares the tuples.

Each part is a tag byte and its value; the encoding is that of FoundationDB's tuple layer, with integers of a fixed
eight bytes.  None sorts before everything; parts at one position are of one type.
"""

from __future__ import annotations

import struct
from typing import Union

from state.errors import ProtocolError

KeyPart = Union[None, bytes, int, str]

_NONE, _BYTES, _INT, _TEXT = b"\x01", b"\x02", b"\x03", b"\x04"
_SIGN = 1 << 63
_UINT64 = struct.Struct(">Q")


def _escaped(value: bytes) -> bytes:
    return value.replace(b"\x00", b"\x00\xff") + b"\x00"


def _encode_part(part: KeyPart) -> bytes:
    if isinstance(part, str):
        return _TEXT + _escaped(part.encode())
    if isinstance(part, bytes):
        return _BYTES + _escaped(part)
    if part is None:
        return _NONE
    if isinstance(part, bool) or not isinstance(part, int) or not -_SIGN <= part < _SIGN:
        raise ProtocolError(f"{part!r} cannot be part of a key: only text, bytes, 64-bit integers and None can")
    return _INT + _UINT64.pack(part + _SIGN)


def encode_key(*parts: KeyPart) -> bytes:
    """Bytes that sort as the tuple of `parts` does.

    Raises:
        ProtocolError: a part is of another type, or an integer needs more than 64 bits.
    """
    return b"".join([_encode_part(part) for part in parts])


def decode_key(key: bytes) -> tuple[KeyPart, ...]:
    """The parts that `encode_key` was given.

    Raises:
        ProtocolError: the bytes are not such a key.
    """
    parts: list[KeyPart] = []
    at = 0
    while at < len(key):
        tag = key[at : at + 1]
        at += 1
        if tag == _NONE:
            parts.append(None)
        elif tag == _INT and at + 8 <= len(key):
            parts.append(int(_UINT64.unpack_from(key, at)[0]) - _SIGN)
            at += 8
        elif tag in (_BYTES, _TEXT):
            value, at = _unescaped(key, at)
            parts.append(value.decode() if tag == _TEXT else value)
        else:
            raise ProtocolError(f"{key!r} is not a key: byte {at - 1} starts no part")
    return tuple(parts)


def _unescaped(key: bytes, start: int) -> tuple[bytes, int]:
    end = start
    while True:
        end = key.find(b"\x00", end)
        if end < 0:
            raise ProtocolError(f"{key!r} is not a key: the part at byte {start} does not end")
        if key[end + 1 : end + 2] != b"\xff":
            return key[start:end].replace(b"\x00\xff", b"\x00"), end + 1
        end += 2
