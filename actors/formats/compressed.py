"""Blocks of compressed bytes, decompressed up to a limit: a small block may hide gigabytes."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping

import pyarrow as pa

from actors.file_errors import UnreadableFile, one_line

Bytes = bytes | memoryview

_MOST_LZMA_BYTES = 256 << 20  # the memory of a decoder of xz, which the file chooses
_MOST_LENGTH_BYTES = 5
_LEAST_MATCH = 4


def decompressed(codec: str, content: Bytes, most_bytes: int) -> Bytes:
    """The content of a compressed block.

    Args:
        codec: one of `CODECS`.
        most_bytes: the limit for the content, in bytes.

    Raises:
        UnreadableFile: the block is damaged, or has more bytes.
    """
    try:
        plain = CODECS[codec](content, most_bytes)
    except pa.ArrowMemoryError:
        raise  # not an error of the file
    except (pa.ArrowException, OSError, EOFError, ValueError, IndexError, zlib.error, lzma.LZMAError) as error:
        reason = f"a block cannot be decompressed by {codec}: {one_line(error)}"
    else:
        if len(plain) > most_bytes:
            raise _too_much(most_bytes)
        return plain
    raise UnreadableFile(reason)


def _too_much(most_bytes: int) -> UnreadableFile:
    return UnreadableFile(f"a block becomes more than {most_bytes} bytes (ReadLimits.max_batch_bytes)")


def _null(content: Bytes, most_bytes: int) -> Bytes:
    return content


def _deflate(content: Bytes, most_bytes: int) -> Bytes:
    decoder = zlib.decompressobj(-zlib.MAX_WBITS)
    return _whole(decoder.decompress(content, most_bytes + 1), decoder.eof, most_bytes)


def _bzip2(content: Bytes, most_bytes: int) -> Bytes:
    decoder = bz2.BZ2Decompressor()
    return _whole(decoder.decompress(content, most_bytes + 1), decoder.eof, most_bytes)


def _xz(content: Bytes, most_bytes: int) -> Bytes:
    decoder = lzma.LZMADecompressor(memlimit=_MOST_LZMA_BYTES)
    return _whole(decoder.decompress(content, most_bytes + 1), decoder.eof, most_bytes)


def _whole(plain: bytes, is_over: bool, most_bytes: int) -> bytes:
    if not is_over and len(plain) <= most_bytes:
        raise EOFError("it ends too early")
    return plain


def _zstd(content: Bytes, most_bytes: int) -> Bytes:
    stream = pa.CompressedInputStream(pa.BufferReader(content), "zstd")
    return memoryview(stream.read_buffer(most_bytes + 1)).cast("B")


def _snappy(content: Bytes, most_bytes: int) -> Bytes:
    size = 0
    for position, byte in enumerate(content[:_MOST_LENGTH_BYTES]):
        size |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            break
    if size > most_bytes:
        raise _too_much(most_bytes)
    return memoryview(pa.Codec("snappy").decompress(content, size)).cast("B")


def _lz4(content: Bytes, most_bytes: int) -> Bytes:
    size = _lz4_size(content, most_bytes)
    return memoryview(pa.Codec("lz4_raw").decompress(content, size)).cast("B") if size else b""


def _lz4_size(content: Bytes, most_bytes: int) -> int:
    """The size of a block of LZ4, which does not show it: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md"""
    position = size = 0

    def extended(length: int) -> int:
        nonlocal position
        if length == 15:
            while (more := content[position]) == 255:
                length += more
                position += 1
            length += more
            position += 1
        return length

    while position < len(content):
        token = content[position]
        position += 1
        literals = extended(token >> 4)
        position += literals
        size += literals
        if position < len(content):
            position += 2
            size += extended(token & 15) + _LEAST_MATCH
        if size > most_bytes:
            raise _too_much(most_bytes)
    return size


CODECS: Mapping[str, Callable[[Bytes, int], Bytes]] = {
    "null": _null,
    "deflate": _deflate,
    "snappy": _snappy,
    "zstandard": _zstd,
    "bzip2": _bzip2,
    "xz": _xz,
    "lz4": _lz4,
}
"""The codecs, as Avro names them, and the raw LZ4 of ORC."""
