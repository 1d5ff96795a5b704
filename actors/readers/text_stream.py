"""Text files as streams, decompressed if their content says so."""

from __future__ import annotations

import pyarrow as pa

from actors.object_file import ObjectFile

_SIGNATURES = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"))


def text_stream(file: ObjectFile) -> pa.NativeFile:
    """The text of the file from its start."""
    start = file.head(4)
    for signature, codec in _SIGNATURES:
        if start.startswith(signature):
            return pa.CompressedInputStream(file.stream(), codec)
    return file.stream()
