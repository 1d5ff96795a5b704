"""Page headers of a Parquet file: they show the memory that Arrow allocates before it decodes.

A header is a `PageHeader` of `parquet.thrift` (apache/parquet-format).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from actors.formats.parquet.thrift import Compact

_WINDOW_BYTES = 4 * 1024
_MOST_HEADER_BYTES = 16 * 1024 * 1024  # as in Arrow
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
            reader = Compact(content)
            return reader.struct(), reader.position
        except IndexError:
            if window >= min(_MOST_HEADER_BYTES, end - start):
                return None
            window *= 8
        except (ValueError, RecursionError):
            return None


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
