"""The container of an Avro file: its header and its blocks.  https://avro.apache.org/docs/1.12.0/specification/"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from actors.file_errors import UnreadableFile, one_line
from actors.formats.compressed import CODECS, Bytes, decompressed
from actors.objects.object_file import ObjectFile
from actors.settings import ReadLimits

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_CHECKSUM_BYTES = 4
_MOST_LONG_BYTES = 10
_FIRST_LOOK_BYTES = 64 * 1024
_CODECS = tuple(name for name in CODECS if name != "lz4")


class _EndsEarly(Exception):
    """The bytes end within a value."""


@dataclass(frozen=True)
class Block:
    """A block of records, as it is stored.

    Args:
        start: the position of its first byte in the file.
        num_records: the number of its records, as it claims it.
        data_start: the position of its data.
        data_bytes: the size of its data.
    """

    start: int
    num_records: int
    data_start: int
    data_bytes: int


class AvroContainer:
    """The header of a file, and access to its blocks.

    Args:
        limits: the limits of the reader.

    Raises:
        UnreadableFile: the file has no header of Avro, or a codec that is not known.
    """

    def __init__(self, file: ObjectFile, limits: ReadLimits) -> None:
        if not file.size:
            raise UnreadableFile("the file is empty; an Avro file has at least a header")
        self._file, self._limits = file, limits
        self._stream = file.stream()
        metadata, self._sync, self._first_block = self._header()
        self.schema = metadata.get("avro.schema", b"")
        """The schema, as JSON."""
        self._codec = metadata.get("avro.codec", b"null").decode("utf-8", "replace")
        self.is_compressed = self._codec != "null"
        if self._codec not in _CODECS:
            raise UnreadableFile(
                f"its codec {one_line(self._codec, 60)!r} is not known; write it with one of {', '.join(_CODECS)}"
            )

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Yields the blocks from a position, which is that of a block; 0 for the first one.

        Raises:
            UnreadableFile: the file ends early, or a block has no sense.
        """
        position = start or self._first_block
        while position < self._file.size:
            head = self._read(position, min(2 * _MOST_LONG_BYTES, self._file.size - position))
            try:
                num_records, at = _long(head, 0)
                data_bytes, at = _long(head, at)
            except _EndsEarly:
                raise self._damaged(position, "the file ends within it") from None
            block = Block(position, num_records, position + at, data_bytes)
            if num_records < 0 or data_bytes < 0:
                raise self._damaged(position, f"it claims {num_records} records in {data_bytes} bytes")
            position = block.data_start + data_bytes + _SYNC_BYTES
            if position > self._file.size:
                raise self._damaged(block.start, "the file ends within it")
            if data_bytes > self._limits.max_batch_bytes:
                raise self._damaged(
                    block.start,
                    f"it has {data_bytes} bytes, more than {self._limits.max_batch_bytes} (ReadLimits.max_batch_bytes)",
                )
            yield block

    def data(self, block: Block) -> Bytes:
        """The decompressed records of a block.

        Raises:
            UnreadableFile: the block is damaged, or becomes too much.
        """
        stored = self._read(block.data_start, block.data_bytes + _SYNC_BYTES)
        if stored[block.data_bytes :] != self._sync:
            raise self._damaged(block.start, "it does not end with the marker of the file")
        end = block.data_bytes - (_CHECKSUM_BYTES if self._codec == "snappy" else 0)
        try:
            data = decompressed(self._codec, stored[: max(0, end)], self._limits.max_batch_bytes)
        except UnreadableFile as error:
            reason = error.reason
        else:
            if end == block.data_bytes or zlib.crc32(data).to_bytes(_CHECKSUM_BYTES) == stored[end : block.data_bytes]:
                return data
            reason = "its checksum does not fit"
        raise self._damaged(block.start, reason)

    def _damaged(self, position: int, reason: str) -> UnreadableFile:
        return UnreadableFile(f"damaged Avro file, in the block at byte {position}: {reason}")

    def _header(self) -> tuple[dict[str, bytes], bytes, int]:
        nbytes = min(_FIRST_LOOK_BYTES, self._file.size)
        while True:
            head = self._read(0, nbytes)
            if bytes(head[: len(_MAGIC)]) != _MAGIC:
                raise UnreadableFile("not an Avro file: it does not begin with the mark of one")
            try:
                return _parsed_header(head)
            except _EndsEarly:
                if nbytes == self._file.size:
                    raise UnreadableFile(
                        "not an Avro file: its header is damaged, or the file ends within it"
                    ) from None
            if nbytes > self._limits.max_record_bytes:
                raise UnreadableFile(
                    f"its header has more than {self._limits.max_record_bytes} bytes (ReadLimits.max_record_bytes)"
                )
            nbytes = min(8 * nbytes, self._file.size)

    def _read(self, start: int, nbytes: int) -> memoryview:
        try:
            self._stream.seek(start)
            return memoryview(self._stream.read_buffer(nbytes)).cast("B")
        except pa.ArrowMemoryError:
            raise  # not an error of the file
        except (pa.ArrowException, OSError) as error:
            reason = one_line(error)
        raise UnreadableFile(reason)


def _parsed_header(head: memoryview) -> tuple[dict[str, bytes], bytes, int]:
    """The metadata, the sync marker, and the position of the first block."""
    metadata: dict[str, bytes] = {}
    at = len(_MAGIC)
    while True:
        num_pairs, at = _long(head, at)
        if not num_pairs:
            break
        if num_pairs < 0:
            num_pairs, (_, at) = -num_pairs, _long(head, at)
        # Each pair takes two bytes or more: a wrong number ends with the bytes.
        for _ in range(num_pairs):
            name, at = _bytes(head, at)
            value, at = _bytes(head, at)
            metadata[name.decode("utf-8", "replace")] = value
    end = at + _SYNC_BYTES
    if end > len(head):
        raise _EndsEarly
    return metadata, bytes(head[at:end]), end


def _bytes(content: memoryview, at: int) -> tuple[bytes, int]:
    nbytes, at = _long(content, at)
    if not 0 <= nbytes <= len(content) - at:
        raise _EndsEarly
    return bytes(content[at : at + nbytes]), at + nbytes


def _long(content: memoryview, at: int) -> tuple[int, int]:
    """A number of variable length, and the position behind it."""
    number = 0
    for position, byte in enumerate(content[at : at + _MOST_LONG_BYTES]):
        number |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at + position + 1
    raise _EndsEarly
