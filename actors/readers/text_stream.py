"""Text files as streams, decompressed if their content says so."""

from __future__ import annotations

import io

import pyarrow as pa

from actors.object_file import ObjectFile
from actors.readers.expansion import Expansion
from actors.settings import ReadLimits

_SIGNATURES = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"))


def text_stream(file: ObjectFile, limits: ReadLimits) -> pa.NativeFile:
    """The text of the file from its start; a read that takes it above `max_expansion` raises `UnreadableFile`."""
    start = file.head(4)
    for signature, codec in _SIGNATURES:
        if start.startswith(signature):
            text = pa.CompressedInputStream(file.stream(), codec)
            return pa.PythonFile(_Counted(text, Expansion(file.size, limits)), mode="r")
    return file.stream()


class _Counted(io.RawIOBase):
    """What Arrow needs of a Python file."""

    def __init__(self, stream: pa.NativeFile, expansion: Expansion) -> None:
        self._stream, self._expansion = stream, expansion

    def readable(self) -> bool:
        return True

    def read(self, nbytes: int | None = -1) -> bytes:
        content: bytes = self._stream.read(None if nbytes is None or nbytes < 0 else nbytes)
        self._expansion.add(len(content))
        return content
