"""A stream that shows somebody what is read from it, before the reader gets it."""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa

Watch = Callable[[pa.NativeFile, int, int], None]


def watched(stream: pa.NativeFile, watch: Watch) -> pa.NativeFile:
    """The same content.

    Args:
        stream: seekable.
        watch: gets each part as a stream of its own, with its start and end; what it raises, the reader's call raises.
    """
    return pa.PythonFile(_Watched(stream, watch), mode="r")


class _Watched(io.RawIOBase):
    """What Arrow needs of a Python file."""

    def __init__(self, stream: pa.NativeFile, watch: Watch) -> None:
        self._stream, self._watch = stream, watch

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self._stream.tell())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._stream.seek(offset, whence))

    def size(self) -> int:
        return int(self._stream.size())

    def read(self, nbytes: int | None = -1) -> bytes:
        start = self.tell()
        content: bytes = self._stream.read(None if nbytes is None or nbytes < 0 else nbytes)
        self._watch(pa.BufferReader(content), start, start + len(content))
        return content
