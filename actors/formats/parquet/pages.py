"""Page headers of a Parquet file: they tell the memory that Arrow allocates before it decodes.

The headers are structs of Thrift's compact protocol; the fields are those of `PageHeader` in `parquet.thrift`
(apache/parquet-format).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

_WINDOW_BYTES = 4 * 1024
_MOST_HEADER_BYTES = 16 * 1024 * 1024  # as in Arrow
_BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(3, 13)
_BOOLEANS = (1, 2)
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 0, 2, 3


@dataclass(frozen=True)
class Page:
    """One page, as described by its header.

    Args:
        num_bytes: its decompressed size, in bytes.
        num_values: the values of a data page, including nulls; 0 for a dictionary.
        is_dictionary: True for the dictionary of the chunk.
    """

    num_bytes: int
    num_values: int
    is_dictionary: bool


def pages(stream: pa.NativeFile, start: int, end: int, num_values: int) -> Iterator[Page]:
    """Yields the pages of a column chunk up to the first unreadable header; the decoder reports that one.

    Args:
        stream: a stream over the file.
        start: the start of the chunk in the file.
        end: the end of the chunk.
        num_values: the number of values of the chunk.
    """
    return PageWalk(start, end, num_values).pages(stream, end)


class PageWalk:
    """A walk from page to page through a column chunk that may be fetched only in part.

    Args:
        start: the start of the chunk in the file.
        end: the end of the chunk.
        num_values: the number of values of the chunk.
    """

    def __init__(self, start: int, end: int, num_values: int) -> None:
        self._next, self._end, self._values_left = start, end, num_values

    def pages(self, stream: pa.NativeFile, available_end: int) -> Iterator[Page]:
        """Yields the next pages with a readable header.

        Args:
            stream: a stream over the file.
            available_end: the end of the fetched part of the chunk.
        """
        while self._next < min(available_end, self._end) and self._values_left > 0:
            header = _header(stream, self._next, min(available_end, self._end))
            if header is None:
                return
            fields, header_bytes = header
            kind, num_bytes, stored_bytes = (_number(fields.get(field)) for field in (1, 2, 3))
            described = fields.get({_DATA_PAGE: 5, _DATA_PAGE_V2: 8}.get(kind, 0))
            values = _number(described.get(1)) if isinstance(described, dict) else 0
            self._next = self._next + header_bytes + stored_bytes if stored_bytes >= 0 else self._end
            self._values_left -= max(0, values)
            yield Page(num_bytes, values, kind == _DICTIONARY_PAGE)


def _header(stream: pa.NativeFile, start: int, end: int) -> tuple[dict[int, object], int] | None:
    window = _WINDOW_BYTES
    while True:
        stream.seek(start)
        content = stream.read(min(window, end - start))
        try:
            reader = _Compact(content)
            return reader.struct(), reader.position
        except IndexError:
            if window >= min(_MOST_HEADER_BYTES, end - start):
                return None
            window *= 8
        except (ValueError, RecursionError):
            return None


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


class _Compact:
    """Decoder of Thrift's compact protocol.  `IndexError` at the end of the bytes, `ValueError` for others."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.position = 0

    def struct(self) -> dict[int, object]:
        """The fields of a struct by their ids; only numbers and structs are kept."""
        fields: dict[int, object] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else _zigzag(self._varint())
            fields[number] = self._value(head & 15)
        return fields

    def _value(self, kind: int) -> object:
        if kind in (_I16, _I32, _I64):
            return _zigzag(self._varint())
        if kind == _STRUCT:
            return self.struct()
        if kind in _BOOLEANS:
            return None  # the value is in the kind
        if kind == _BYTE:
            self._skip(1)
        elif kind == _DOUBLE:
            self._skip(8)
        elif kind == _BINARY:
            self._skip(self._varint())
        elif kind in (_LIST, _SET):
            head = self._byte()
            for _ in range(head >> 4 if head >> 4 < 15 else self._varint()):
                self._element(head & 15)
        elif kind == _MAP:
            size = self._varint()
            kinds = self._byte() if size else 0
            for _ in range(size):
                self._element(kinds >> 4)
                self._element(kinds & 15)
        else:
            raise ValueError(f"{kind} is not a valid kind of value")
        return None

    def _element(self, kind: int) -> None:
        if kind in _BOOLEANS:
            self._skip(1)
        else:
            self._value(kind)

    def _byte(self) -> int:
        value = self._content[self.position]
        self.position += 1
        return value

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number has too many bytes")

    def _skip(self, nbytes: int) -> None:
        self.position += nbytes
        if self.position > len(self._content):
            raise IndexError


def _zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)
