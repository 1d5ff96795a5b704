"""Ordered binary keys: comparing the bytes compares the tuples.

Each part is a tag byte and its value; the encoding follows FoundationDB's tuple layer, with integers of a fixed
eight bytes.  Parts at one position are of one type, or None, which sorts before everything.

* A float sorts as the number: -0.0 is encoded and decoded as 0.0; every NaN is one key, after infinity.
* A time sorts as the moment, in UTC, to the microsecond, in any time zone.
* False sorts before True; a bool is not an integer.
"""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime, timedelta

from state.errors import ProtocolError

KeyPart = None | bool | bytes | datetime | float | int | str

_NONE, _BYTES, _INT, _TEXT, _FLOAT, _TIME, _FALSE, _TRUE = (bytes([tag]) for tag in range(1, 9))
_SIGN = 1 << 63
_ALL_BITS = (1 << 64) - 1
_UINT64 = struct.Struct(">Q")
_DOUBLE = struct.Struct(">d")
_NAN_BITS = 0x7FF8 << 48
_SECOND_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def encode_key(*parts: KeyPart) -> bytes:
    """Bytes that sort as the tuple of `parts`.

    Raises:
        ProtocolError: a part is of another type, an integer needs more than 64 bits, or a time has no zone.
    """
    return b"".join([_encode_part(part) for part in parts])


def decode_key(key: bytes) -> tuple[KeyPart, ...]:
    """The parts of a key, as they were given to `encode_key`.

    Raises:
        ProtocolError: the bytes are not a valid key.
    """
    parts: list[KeyPart] = []
    at = 0
    while at < len(key):
        tag = key[at : at + 1]
        at += 1
        if tag == _NONE:
            parts.append(None)
        elif tag in (_FALSE, _TRUE):
            parts.append(tag == _TRUE)
        elif tag in (_BYTES, _TEXT):
            value, at = _unescaped(key, at)
            parts.append(_text(key, value) if tag == _TEXT else value)
        elif tag in (_INT, _FLOAT, _TIME) and at + 8 <= len(key):
            (ordered,) = _UINT64.unpack_from(key, at)
            parts.append(_number(key, tag, ordered))
            at += 8
        else:
            raise ProtocolError(f"{key!r} is not a valid key: byte {at - 1} is not a valid tag")
    return tuple(parts)


def _encode_part(part: KeyPart) -> bytes:
    match part:
        case str():
            return _TEXT + _escaped(part.encode())
        case bytes():
            return _BYTES + _escaped(part)
        case None:
            return _NONE
        case bool():  # before int, of which it is a subclass
            return _TRUE if part else _FALSE
        case int() if -_SIGN <= part < _SIGN:
            return _INT + _UINT64.pack(part + _SIGN)
        case float():
            return _FLOAT + _UINT64.pack(_ordered_bits(part))
        case datetime() if part.tzinfo is not None:
            return _TIME + _UINT64.pack((part - _SECOND_ZERO) // _MICROSECOND + _SIGN)
    raise ProtocolError(
        f"{part!r} is not a valid part of a key: give text, bytes, a 64-bit integer, a float, a bool, a time with a "
        "zone, or None"
    )


def _text(key: bytes, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ProtocolError(f"{key!r} is not a valid key: a text is not UTF-8") from None


def _number(key: bytes, tag: bytes, ordered: int) -> int | float | datetime:
    if tag == _INT:
        return ordered - _SIGN
    if tag == _TIME:
        try:
            return _SECOND_ZERO + (ordered - _SIGN) * _MICROSECOND
        except OverflowError:
            raise ProtocolError(f"{key!r} is not a valid key: a time is outside of the calendar") from None
    bits = ordered ^ _SIGN if ordered & _SIGN else ordered ^ _ALL_BITS
    value: float = _DOUBLE.unpack(_UINT64.pack(bits))[0]
    return value


def _ordered_bits(value: float) -> int:
    """The bits of a float as an unsigned number that sorts as the float: the bits of a negative one are inverted."""
    if math.isnan(value):
        return _NAN_BITS | _SIGN
    bits: int = _UINT64.unpack(_DOUBLE.pack(value + 0.0))[0]  # -0.0 + 0.0 is 0.0
    return bits ^ _ALL_BITS if bits & _SIGN else bits | _SIGN


def _escaped(value: bytes) -> bytes:
    return value.replace(b"\x00", b"\x00\xff") + b"\x00"


def _unescaped(key: bytes, start: int) -> tuple[bytes, int]:
    end = start
    while True:
        end = key.find(b"\x00", end)
        if end < 0:
            raise ProtocolError(f"{key!r} is not a valid key: the part at byte {start} does not end")
        if key[end + 1 : end + 2] != b"\xff":
            return key[start:end].replace(b"\x00\xff", b"\x00"), end + 1
        end += 2
