"""Rows of a text file: a block of whole records is parsed at once; a block with a bad record by binary search."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from actors.file_errors import UnreadableFile
from actors.formats.limits import too_long
from actors.formats.pieces import pieces
from actors.formats.salvage import RAW_BYTES, WRONG, salvaged
from actors.formats.template import Reader, ReadRequest
from actors.formats.text.content import TextContent, chunks
from actors.formats.text.lines import Text, most_line_ends
from actors.rows import BadRecord, Offset, Rows
from actors.settings import ReadLimits

_FIRST_LOOK_BYTES = 4096
# A larger block is cut.
_LARGE_BLOCKS = 4


class RecordParser(Protocol):
    """The records of a text format."""

    @property
    def most_records(self) -> int:
        """The largest number of records that are parsed at once."""
        ...

    def last_end(self, text: Text) -> int:
        """The position behind the last complete record of a text that begins with a record; 0 without one."""
        ...

    def first_end(self, text: Text) -> int:
        """The position behind the first record of a text; 0 if it is not complete."""
        ...

    def ends(self, text: Text) -> npt.NDArray[np.int64]:
        """The positions behind each complete record."""
        ...

    def is_row(self, record: bytes) -> bool:
        """True if a record is a row, good or bad; False for an empty line."""
        ...

    def parse(self, text: Text) -> pa.Table:
        """The rows of whole records, in the schema of the source; raises `WRONG` for a bad record."""
        ...

    def faults(self, records: Sequence[bytes]) -> Mapping[int, str]:
        """Index → reason, for records that are bad for certain and are found together.  Others may be bad, too."""
        ...

    @property
    def others(self) -> tuple[pa.Field, ...]:
        """The extra columns of the records so far, as far as they were looked for."""
        ...

    @property
    def missing(self) -> tuple[str, ...]:
        """See `Rows.missing`."""
        ...

    def reason(self, error: Exception) -> str:
        """The reason of an error of `parse` for a single record."""
        ...


class OpenedText(NamedTuple):
    """The text of a file, and the parser of its records; `renamed` as in `Rows`."""

    content: TextContent
    parser: RecordParser
    renamed: tuple[tuple[str, str], ...] = ()


class RecordReader(Reader):
    """The template of the readers of text: a block of whole records is a table."""

    @abstractmethod
    def _open(self, request: ReadRequest) -> OpenedText | None:
        """Opens the text from the row `request.offset.anchor_row`; None for a file without a record.

        Raises:
            UnreadableFile: the file is damaged, or exceeds the limits.
            SchemaError: the format has no such columns.
        """

    def _rows(self, request: ReadRequest) -> Iterator[Rows]:
        if (opened := self._open(request)) is not None:
            content, parser, renamed = opened
            parts = _parts(content, parser, request.offset, request.piece_bytes, self._limits)
            if renamed:
                parts = (replace(rows, renamed=renamed) for rows in parts)
            # All columns are parsed: each of them makes a record good or bad.
            yield from content.cpu.pausing(pieces(parts, request.piece_bytes, request.columns))


def _parts(
    content: TextContent, parser: RecordParser, offset: Offset, block_bytes: int, limits: ReadLimits
) -> Iterator[Rows]:
    """Yields the rows of each block that lie at or behind the offset."""
    row, num_bad = offset.anchor_row, 0
    position = content.position
    for block in whole_records(content, parser, block_bytes, limits):
        # Only a position in the file saves reading; a position in decompressed text does not.
        anchor = Offset(row, row, position) if content.is_as_stored else Offset()
        for text in _at_most(block, parser, block_bytes):
            rows = _parsed(text, parser, row, num_bad, limits, content)
            num_bad += len(rows.bad)
            row = rows.end_row
            if row > offset.row:
                if offset.row > rows.first_row:
                    rows = rows.between(offset.row, row)
                yield Rows(rows.table, rows.first_row, rows.bad, anchor, parser.others, parser.missing)
        position += len(block)


def whole_records(
    content: TextContent, parser: RecordParser, block_bytes: int, limits: ReadLimits
) -> Iterator[memoryview]:
    """Yields the text in whole records, about `block_bytes` at a time.

    Only a record that begins in one part and ends in another is copied.

    Raises:
        UnreadableFile: a record is longer than `max_record_bytes`.
    """
    begun = _BegunRecord(parser, limits.max_record_bytes)
    for chunk, is_last in chunks(content, min(block_bytes, limits.max_record_bytes)):
        if begun:
            if (ended := begun.grow(chunk)) is None:
                continue
            block, chunk = ended
            yield block
        # The last record may lack a line end.
        end = len(chunk) if is_last else parser.last_end(chunk)
        if end:
            yield chunk[:end]
        begun.begin(chunk[end:])
    if begun:
        yield begun.text()


class _BegunRecord:
    """A record whose end has not come yet.

    It is searched for its end only when it has doubled: the whole search takes time in proportion to its length.

    Args:
        parser: the parser, which finds the end.
        most_bytes: the limit of its length.
    """

    def __init__(self, parser: RecordParser, most_bytes: int) -> None:
        self._parser, self._most_bytes = parser, most_bytes
        self._parts: list[Text] = []
        self._nbytes = self._searched = 0

    def __bool__(self) -> bool:
        return self._nbytes > 0

    def begin(self, text: Text) -> None:
        """Begins with the end of a chunk, which has no complete record."""
        self._parts, self._nbytes, self._searched = [bytes(text)], len(text), len(text)

    def text(self) -> memoryview:
        """Everything since the record began."""
        return memoryview(b"".join(self._parts))

    def grow(self, chunk: memoryview) -> tuple[memoryview, memoryview] | None:
        """The whole record and the text behind it; None if it has no end yet, as far as it was searched.

        Args:
            chunk: the text behind the text so far.

        Raises:
            UnreadableFile: the record is too long.
        """
        nbytes = self._nbytes + len(chunk)
        if nbytes >= 2 * self._searched or nbytes > self._most_bytes:
            if (ended := self._search(chunk)) is not None:
                return ended
            if nbytes > self._most_bytes:
                raise too_long(self._most_bytes)
            self._searched = nbytes
        self._parts.append(chunk)
        self._nbytes = nbytes
        return None

    def _search(self, chunk: memoryview) -> tuple[memoryview, memoryview] | None:
        begun = b"".join(self._parts)
        look = max(_FIRST_LOOK_BYTES, len(begun))
        while True:
            text = memoryview(begun + chunk[:look])
            if end := self._parser.first_end(text):
                rest = chunk[end - len(begun) :] if end >= len(begun) else memoryview(begun[end:] + bytes(chunk))
                return text[:end], rest
            if look >= len(chunk):
                return None
            look *= 8


def large_blocks(
    content: TextContent, parser: RecordParser, block_bytes: int, limits: ReadLimits
) -> Iterator[memoryview]:
    """Yields the text in whole records, at least `block_bytes` at a time but for the last block.

    Raises:
        UnreadableFile: as `whole_records`, behind the earlier records.
    """
    together: list[memoryview] = []
    try:
        for block in whole_records(content, parser, block_bytes, limits):
            together.append(block)
            if sum(map(len, together)) >= block_bytes:
                yield memoryview(b"".join(together))
                together = []
    except UnreadableFile:
        if together:
            yield memoryview(b"".join(together))
        raise
    if together:
        yield memoryview(b"".join(together))


def _at_most(block: memoryview, parser: RecordParser, block_bytes: int) -> Iterator[memoryview]:
    """Yields a block in runs of at most `most_records` records; nearly always in one.

    A quoted field that is not closed makes a block of the whole text that was searched for its end: it is cut as well.
    """
    most_bytes = _LARGE_BLOCKS * block_bytes
    # Each record except the last ends with a line.
    if len(block) <= most_bytes and (
        len(block) // 2 < parser.most_records or most_line_ends(block) < parser.most_records
    ):
        yield block
        return
    ends = parser.ends(block)
    start = number = 0
    while start < len(block):
        within = int(np.searchsorted(ends, start + max(block_bytes, 1), "right"))
        last = min(max(within, number + 1), number + parser.most_records)
        end = int(ends[last - 1]) if last <= len(ends) else len(block)
        yield block[start:end]
        start, number = end, last


def _parsed(
    block: memoryview,
    parser: RecordParser,
    first_row: int,
    bad_before: int,
    limits: ReadLimits,
    content: TextContent,
) -> Rows:
    try:
        return Rows(parser.parse(block), first_row)
    except pa.ArrowMemoryError:
        raise  # not an error of the file
    except WRONG:
        pass
    texts = _record_texts(bytes(block), parser)
    reasons = parser.faults(texts)
    faults = [BadRecord(first_row + index, _raw(texts[index])[:RAW_BYTES], reasons[index]) for index in sorted(reasons)]
    records = _TextRecords([text for index, text in enumerate(texts) if index not in reasons], parser)
    return salvaged(records, first_row, parser.reason, bad_before, limits, content.cpu.require, faults)


def _record_texts(block: bytes, parser: RecordParser) -> list[bytes]:
    """The text of each record that is a row."""
    ends = [int(end) for end in parser.ends(block)]
    if not ends or ends[-1] < len(block):
        ends.append(len(block))
    texts = (block[start:end] for start, end in zip([0, *ends], ends, strict=False))
    return [text for text in texts if parser.is_row(text)]


def _raw(text: bytes) -> bytes:
    return text.rstrip(b"\r\n")


class _TextRecords:
    """See `Records`."""

    def __init__(self, texts: Sequence[bytes], parser: RecordParser) -> None:
        self._texts, self._parser = texts, parser

    def __len__(self) -> int:
        return len(self._texts)

    def parse(self, start: int, end: int) -> pa.Table:
        return self._parser.parse(memoryview(b"".join(self._texts[start:end])))

    def raw(self, index: int) -> bytes:
        return _raw(self._texts[index])
