"""The tail of an ORC file: its postscript and its footer.  https://orc.apache.org/specification/ORCv1/"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from actors.file_errors import UnreadableFile
from actors.formats.compressed import Bytes, decompressed
from actors.formats.orc.wire import Field, fields, packed, written
from actors.objects.object_file import ObjectFile
from actors.objects.ranges import Range
from actors.settings import ReadLimits

_MAGIC = b"ORC"
_CODECS = {0: "null", 1: "deflate", 2: "snappy", 4: "lz4", 5: "zstandard"}
_MOST_CHUNK_BYTES = 1 << 23
_CHUNK_HEAD_BYTES = 3
_STATISTICS = 7
_POSTSCRIPT_MAGIC = 8000
_GUESSED_BYTES = 16 * 1024
_LIST, _MAP, _STRUCT, _DECIMAL = 10, 11, 12, 14
_TEXTS = (7, 8, 16, 17)
_NUM_KINDS = 19
_MOST_PRECISION = 38


@dataclass(frozen=True)
class OrcType:
    """A column of a file, or a part of one.

    Args:
        kind: its kind, as a number of the format.
        children: the numbers of the columns within it.
        names: the names of the fields of a struct.
    """

    kind: int
    children: Sequence[int]
    names: Sequence[str]

    @property
    def is_repeated(self) -> bool:
        """True for lists and maps."""
        return self.kind in (_LIST, _MAP)

    @property
    def is_text(self) -> bool:
        """True for text and bytes."""
        return self.kind in _TEXTS

    @property
    def is_decimal(self) -> bool:
        """True for decimals."""
        return self.kind == _DECIMAL


@dataclass(frozen=True)
class StripeInfo:
    """A stripe, as the footer tells it.

    Args:
        start: the position of its first byte in the file.
        index_bytes, data_bytes, footer_bytes: the sizes of its parts.
        num_rows: the number of its rows.
        raw: the message of the footer.
    """

    start: int
    index_bytes: int
    data_bytes: int
    footer_bytes: int
    num_rows: int
    raw: bytes

    @property
    def end(self) -> int:
        return self.start + self.index_bytes + self.data_bytes + self.footer_bytes

    @property
    def range(self) -> Range:
        return self.start, self.end

    @property
    def footer(self) -> Range:
        return self.end - self.footer_bytes, self.end


class OrcTail:
    """What the end of a file tells of it.

    Args:
        limits: the limits of the reader.

    Raises:
        UnreadableFile: it is no ORC file, or exceeds a limit.
    """

    def __init__(self, file: ObjectFile, limits: ReadLimits) -> None:
        if not file.size:
            raise UnreadableFile("the file is empty; an ORC file has at least a footer")
        self._limits = limits
        self.nbytes = file.size
        last_start = max(0, file.size - file.settings.footer_bytes)
        last = file.fetch([(last_start, file.size)]).read_at(last_start, file.size - last_start)
        self._postscript = self._read_postscript(file, memoryview(last).cast("B"))
        end = file.size - 1 - len(self._postscript)
        footer_bytes, metadata_bytes = self._lengths
        self.start = end - footer_bytes - metadata_bytes
        """The position behind the stripes."""
        if self.start < len(_MAGIC) or footer_bytes > limits.max_record_bytes:
            raise UnreadableFile(f"not an ORC file: its footer has {footer_bytes} bytes")
        footer_start = end - footer_bytes
        if footer_start >= last_start:
            stored: Bytes = memoryview(last)[footer_start - last_start : end - last_start]
        else:
            stored = file.fetch([(footer_start, end)]).read_at(footer_start, footer_bytes)
        self._fields = [
            each for each in fields(self.plain(stored, limits.max_record_bytes)) if each.number != _STATISTICS
        ]
        self.types = [_type(each.message) for each in self._fields if each.number == 4]
        self.stripes = [self._stripe(each.message) for each in self._fields if each.number == 3]
        self._check_types()

    def plain(self, content: Bytes, most_bytes: int) -> Bytes:
        """The content of a stream.

        Args:
            content: the stream as it is stored.
            most_bytes: the limit for its content, in bytes.

        Raises:
            UnreadableFile: the stream is damaged, or has more bytes.
        """
        if self.codec == "null":
            return content
        content, at, plain = memoryview(content).cast("B"), 0, bytearray()
        while at + _CHUNK_HEAD_BYTES <= len(content):
            head = int.from_bytes(content[at : at + _CHUNK_HEAD_BYTES], "little")
            at += _CHUNK_HEAD_BYTES
            chunk = content[at : at + (head >> 1)]
            at += head >> 1
            plain += chunk if head & 1 else decompressed(self.codec, chunk, self._block_bytes)
            if len(plain) > most_bytes:
                raise UnreadableFile(f"a stream becomes more than {most_bytes} bytes (ReadLimits.max_batch_bytes)")
        if at != len(content):
            raise UnreadableFile("damaged ORC file: a stream ends early")
        return bytes(plain)

    def of(self, stripe: StripeInfo | None) -> bytes:
        """The tail of a file with one of the stripes, or none, at the same place, and without statistics."""
        kept = b"".join(each.raw for each in self._fields if each.number not in (3, 6))
        footer = kept
        if stripe is not None:
            footer += written(3, stripe.raw) + written(6, stripe.num_rows)
        if self.codec != "null":
            parts = [footer[at : at + self._block_bytes] for at in range(0, len(footer), self._block_bytes)]
            footer = b"".join((len(part) << 1 | 1).to_bytes(_CHUNK_HEAD_BYTES, "little") + part for part in parts)
        changed = {1: written(1, len(footer)), 5: b"", 7: b""}
        postscript = b"".join(changed.get(each.number, bytes(each.raw)) for each in fields(self._postscript))
        if self._is_hive_0_11:
            postscript += written(_POSTSCRIPT_MAGIC, _MAGIC)
        # Arrow asks for the last bytes before it knows how many it needs.
        return bytes(_GUESSED_BYTES) + footer + postscript + bytes([len(postscript)])

    def _read_postscript(self, file: ObjectFile, last: memoryview) -> memoryview:
        nbytes = last[-1]
        if nbytes >= len(last):
            raise UnreadableFile("not an ORC file: its end is not that of one")
        postscript = last[-1 - nbytes : -1]
        try:
            found = {each.number: each for each in fields(postscript)}
        except UnreadableFile:
            found = {}
        magic = bytes(found[_POSTSCRIPT_MAGIC].message) if _POSTSCRIPT_MAGIC in found else None
        # Hive 0.11 wrote the magic only at the start of a file.
        self._is_hive_0_11 = magic is None and 1 in found and file.head(len(_MAGIC)) == _MAGIC
        if not self._is_hive_0_11 and (magic != _MAGIC or 1 not in found):
            raise UnreadableFile("not an ORC file: its end is not that of one")
        none = Field(0, 0, memoryview(b""))
        self._lengths = found[1].integer, found.get(5, none).integer
        number = found.get(2, none).integer
        if number not in _CODECS:
            raise UnreadableFile(
                f"its codec has the number {number}, and is not known; write it with zlib, snappy, lz4 or zstd"
            )
        self.codec = _CODECS[number]
        self._block_bytes = found.get(3, none).integer or 256 * 1024
        if self._block_bytes > _MOST_CHUNK_BYTES:
            raise UnreadableFile(f"not an ORC file: it has blocks of {self._block_bytes} bytes")
        return postscript

    def _stripe(self, message: memoryview) -> StripeInfo:
        found = {each.number: each.integer for each in fields(message)}
        start, index_bytes, data_bytes, footer_bytes, num_rows = (found.get(number, 0) for number in range(1, 6))
        stripe = StripeInfo(start, index_bytes, data_bytes, footer_bytes, num_rows, bytes(message))
        if stripe.end > self.start or stripe.footer_bytes > self._limits.max_record_bytes:
            raise UnreadableFile(f"damaged ORC file: a stripe lies outside of its {self.nbytes} bytes")
        if stripe.num_rows >= 1 << 62:
            raise UnreadableFile(f"damaged ORC file: a stripe claims {stripe.num_rows} rows")
        return stripe

    def _check_types(self) -> None:
        """Refuses a schema that is no tree, or is too large."""
        if not self.types or self.types[0].kind != _STRUCT:
            raise UnreadableFile("its schema is not that of records")
        num_columns = sum(each.kind != _STRUCT or not each.children for each in self.types)
        if num_columns > self._limits.max_columns:
            raise UnreadableFile(
                f"it has {num_columns} columns, more than {self._limits.max_columns} (ReadLimits.max_columns)"
            )
        depths = {0: 0}
        for number, each in enumerate(self.types):
            depth = depths.get(number)
            if depth is None or any(not number < child < len(self.types) or child in depths for child in each.children):
                raise UnreadableFile("damaged ORC file: its schema is no tree")
            if depth > self._limits.max_nesting:
                raise UnreadableFile(
                    f"its schema has more than {self._limits.max_nesting} levels (ReadLimits.max_nesting)"
                )
            if each.kind == _STRUCT and len(each.names) != len(each.children):
                raise UnreadableFile("damaged ORC file: its schema has fields without names")
            if len(each.children) != {_LIST: 1, _MAP: 2}.get(each.kind, len(each.children)):
                raise UnreadableFile("damaged ORC file: its schema has a list without elements")
            depths.update(dict.fromkeys(each.children, depth + 1))


def _type(message: memoryview) -> OrcType:
    kind, children, names = 0, [], []
    precision = scale = 0
    for each in fields(message):
        if each.number == 1:
            kind = each.integer
        elif each.number == 2:
            children += packed(each)
        elif each.number == 3:
            names.append(_name(each.message))
        elif each.number == 5:
            precision = each.integer
        elif each.number == 6:
            scale = each.integer
    # Arrow ends the process when it is asked for such a decimal.
    if kind >= _NUM_KINDS or (kind == _DECIMAL and max(precision, scale) > _MOST_PRECISION):
        raise UnreadableFile(f"damaged ORC file: its schema has a column of kind {kind} ({precision}, {scale})")
    return OrcType(kind, children, names)


def _name(content: memoryview) -> str:
    try:
        return bytes(content).decode()
    except UnicodeDecodeError as error:
        reason = f"a name in its schema is not UTF-8: {error}"
    raise UnreadableFile(reason)
