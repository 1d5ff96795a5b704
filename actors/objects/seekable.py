"""A place to read at, as Arrow wants files."""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa

Bytes = bytes | memoryview


def seekable(size: int, read_at: Callable[[int, int], Bytes]) -> pa.NativeFile:
    """A file over `read_at(start, nbytes)`, at its start; what that raises, the reader's call raises.

    Args:
        size: bytes; nothing behind them is asked for.
        read_at: its answer is not copied; it may be shorter only where the file ends.
    """
    return pa.PythonFile(_Seekable(size, read_at), mode="r")


class _Seekable(io.RawIOBase):
    """What Arrow needs of a Python file."""

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
