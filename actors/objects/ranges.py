"""Byte ranges of an object: the plan of its requests, and the file that Arrow reads through them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable

import pyarrow as pa

Range = tuple[int, int]
"""Bytes of an object, from the first (inclusive) to the second (exclusive)."""


def range_plan(wanted: Iterable[Range], *, max_gap_bytes: int, max_span_bytes: int) -> list[Range]:
    """Ranges that contain all wanted bytes, each byte at most once, in order.

    No plan with the same limits has fewer ranges: each begins at the first byte that the ones before lack, and is as
    long as it may be.

    Args:
        wanted: the wanted ranges, in any order; they may overlap.
        max_gap_bytes: the most unwanted bytes between two wanted ones that are read and not skipped.
        max_span_bytes: the most bytes of a range.
    """
    plan: list[Range] = []
    for start, end in sorted(each for each in wanted if each[0] < each[1]):
        if plan:
            first, last = plan[-1]
            start = max(start, last)
            if start < end and start - last <= max_gap_bytes and first + max_span_bytes > start:
                last = min(end, first + max_span_bytes)
                plan[-1] = (first, last)
                start = last
        while start < end:
            last = min(end, start + max_span_bytes)
            plan.append((start, last))
            start = last
    return plan


Bytes = bytes | memoryview


def seekable(size: int, read_at: Callable[[int, int], Bytes]) -> pa.NativeFile:
    """A file over `read_at(start, nbytes)`, at its start; reading it raises the errors of `read_at`.

    Args:
        size: the size of the file, in bytes; no byte behind it is asked for.
        read_at: gives bytes, which are not copied; it may give fewer only at the end of the file.
    """
    return pa.PythonFile(_Seekable(size, read_at), mode="r")


class _Seekable(io.RawIOBase):
    """The methods of a Python file that Arrow needs."""

    def __init__(self, size: int, read_at: Callable[[int, int], Bytes]) -> None:
        self._size, self._read_at, self._position = size, read_at, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def size(self) -> int:
        return self._size

    def read(self, nbytes: int | None = -1) -> Bytes:
        rest = max(0, self._size - self._position)
        content = self._read_at(self._position, rest if nbytes is None or nbytes < 0 else min(nbytes, rest))
        self._position += len(content)
        return content
