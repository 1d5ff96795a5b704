"""Messages of Protocol Buffers, as ORC has them at its ends: https://protobuf.dev/programming-guides/encoding/"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from actors.file_errors import UnreadableFile
from actors.formats.compressed import Bytes

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}
_MOST_VARINT_BYTES = 10


@dataclass(frozen=True)
class Field:
    """A field of a message.

    Args:
        value: its value as a number, or as bytes.
        raw: the field as it is written, with its number.
    """

    number: int
    value: int | memoryview
    raw: memoryview

    @property
    def integer(self) -> int:
        """Its value; 0 if it is none."""
        return self.value if isinstance(self.value, int) else 0

    @property
    def message(self) -> memoryview:
        """Its bytes; none if it has a number."""
        return memoryview(b"") if isinstance(self.value, int) else self.value


def fields(content: Bytes) -> Iterator[Field]:
    """Yields the fields of a message.

    Raises:
        UnreadableFile: it is none.
    """
    content, at = memoryview(content).cast("B"), 0
    while at < len(content):
        start = at
        key, at = varint(content, at)
        kind = key & 7
        value: int | memoryview
        if kind == _VARINT:
            value, at = varint(content, at)
        else:
            nbytes = _FIXED.get(kind, -1)
            if kind == _BYTES:
                nbytes, at = varint(content, at)
            if not 0 <= nbytes <= len(content) - at:
                raise UnreadableFile("not an ORC file: its footer is damaged")
            value, at = content[at : at + nbytes], at + nbytes
        yield Field(key >> 3, value, content[start:at])


def varint(content: memoryview, at: int) -> tuple[int, int]:
    """An unsigned number of variable length, and the position behind it."""
    number = 0
    for position, byte in enumerate(content[at : at + _MOST_VARINT_BYTES]):
        number |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return number, at + position + 1
    raise UnreadableFile("damaged ORC file: a number has no end")


def packed(field: Field) -> list[int]:
    """The numbers of a repeated field, packed or not."""
    if isinstance(field.value, int):
        return [field.value]
    numbers, at = [], 0
    while at < len(field.value):
        number, at = varint(field.value, at)
        numbers.append(number)
    return numbers


def written(number: int, value: int | bytes) -> bytes:
    """A field as it is written."""
    if isinstance(value, int):
        return _written(number << 3 | _VARINT) + _written(value)
    return _written(number << 3 | _BYTES) + _written(len(value)) + value


def _written(number: int) -> bytes:
    content = bytearray()
    while number >= 0x80:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    content.append(number)
    return bytes(content)
