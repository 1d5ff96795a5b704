"""Compressed text as streams: by Arrow, and by Python where Arrow lacks the format or the tolerance."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from actors.file_errors import UnreadableFile, one_line
from actors.formats.signatures import XZ_MAGIC
from actors.objects.object_file import ObjectFile

# https://www.rfc-editor.org/rfc/rfc1952, rfc8878, the bzip2 format of its first block, and LZ4's frame format
_SIGNATURES = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bz2"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (XZ_MAGIC, "xz"),
)
_BZIP2_STARTS = (b"1AY&SY", b"\x17rE8P\x90")  # of a block, and of the end
_READ_BYTES = 1 << 16
_MOST_XZ_BYTES = 256 << 20
"""The memory of a decoder of xz, which the file chooses; `xz -9` takes 65 MiB."""


class TextStream(Protocol):
    """The text of a file, from its start."""

    def read_buffer(self, nbytes: int) -> bytes | pa.Buffer:
        """The next bytes, at most `nbytes`; empty only at the end.

        Raises:
            UnreadableFile: the content is damaged.
            StorageError: as `ObjectFile.stream`.
        """
        ...


def compression_of(head: bytes) -> str | None:
    """The compression of a content by its first ten bytes; None without one."""
    for signature, codec in _SIGNATURES:
        if head.startswith(signature) and (codec != "bz2" or head[4:10] in _BZIP2_STARTS):
            return codec
    return None


def plain_stream(file: ObjectFile, codec: str | None, stored: pa.NativeFile | None) -> TextStream:
    """The stream of a file, decompressed.

    Args:
        codec: the compression of the file, see `compression_of`.
        stored: the stream of a file without compression.
    """
    if codec == "xz":
        return _Streams(file.stream(), _xz_decoder)
    if codec == "gzip":
        return _Gzip(file)
    return _ByArrow(stored or pa.CompressedInputStream(file.stream(), codec))


class _ByArrow:
    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream

    def read_buffer(self, nbytes: int) -> pa.Buffer:
        try:
            return self._stream.read_buffer(nbytes)
        except pa.ArrowMemoryError:
            raise  # not an error of the file
        except (pa.ArrowException, OSError) as error:
            reason = one_line(error)
        raise UnreadableFile(reason)


class _Gzip:
    """Gzip by Arrow, and from the first error on by Python, which accepts the zeros that tapes leave at the end."""

    def __init__(self, file: ObjectFile) -> None:
        self._file, self._nbytes = file, 0
        self._by_arrow = _ByArrow(pa.CompressedInputStream(file.stream(), "gzip"))
        self._by_python: _Streams | None = None

    def read_buffer(self, nbytes: int) -> bytes | pa.Buffer:
        if self._by_python is not None:
            return self._by_python.read_buffer(nbytes)
        try:
            content = self._by_arrow.read_buffer(nbytes)
        except UnreadableFile:
            if not self._has_zero_at_its_end():
                raise
            self._by_python = _Streams(self._file.stream(), _ZlibDecoder)
            self._skip(self._by_python)
            return self.read_buffer(nbytes)
        self._nbytes += len(content)
        return content

    def _has_zero_at_its_end(self) -> bool:
        stream = self._file.stream()
        stream.seek(self._file.size - 1)
        return bytes(stream.read_buffer(1)) == b"\0"

    def _skip(self, stream: _Streams) -> None:
        left = self._nbytes
        while left and (content := stream.read_buffer(min(left, _READ_BYTES))):
            left -= len(content)


class _Decoder(Protocol):
    """A decoder of one stream, with the interface of `lzma.LZMADecompressor`."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _ZlibDecoder:
    """A decoder of gzip that keeps the input which `zlib` did not need yet."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def needs_input(self) -> bool:
        return not self._decoder.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._decoder.decompress(self._decoder.unconsumed_tail + data, max_length)


class _Streams:
    """Compressed streams one behind the other; zeros between and behind them are padding."""

    def __init__(self, stored: pa.NativeFile, new_decoder: Callable[[], _Decoder]) -> None:
        self._stored, self._new_decoder = stored, new_decoder
        self._decoder = new_decoder()
        self._ahead = b""

    def read_buffer(self, nbytes: int) -> bytes:
        while not self._decoder.eof or self._begin_next():
            content = self._decompressed(nbytes)
            if content:
                return content
        return b""

    def _begin_next(self) -> bool:
        """Begins the next stream; False at the end of the file."""
        self._ahead = self._decoder.unused_data.lstrip(b"\0")
        while not self._ahead and (content := self._next_bytes()):
            self._ahead = content.lstrip(b"\0")
        if self._ahead:
            self._decoder = self._new_decoder()
        return bool(self._ahead)

    def _decompressed(self, nbytes: int) -> bytes:
        content, self._ahead = self._ahead, b""
        if self._decoder.needs_input and not content:
            content = self._next_bytes()
            if not content:
                raise UnreadableFile("its compressed content ends early")
        try:
            return self._decoder.decompress(content, nbytes)
        except (zlib.error, lzma.LZMAError, EOFError) as error:
            reason = one_line(error)
        raise UnreadableFile(reason)

    def _next_bytes(self) -> bytes:
        return bytes(self._stored.read_buffer(_READ_BYTES))


def _xz_decoder() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_MOST_XZ_BYTES)
