"""The rows of a text file: blocks of whole records are parsed at once, and one with a bad record by halves."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from actors.file_errors import UnreadableFile
from actors.formats.salvage import WRONG, salvaged
from actors.formats.text.content import TextContent
from actors.formats.text.lines import Text
from actors.rows import Offset, Rows
from actors.settings import ReadLimits

_FIRST_LOOK_BYTES = 4096


class RecordParser(Protocol):
    """What records of a format are."""

    @property
    def most_records(self) -> int:
        """How many records may be parsed at once."""
        ...

    def last_end(self, text: Text) -> int:
        """Behind the last complete record of a text that begins with one; 0 if there is none."""
        ...

    def ends(self, text: Text) -> npt.NDArray[np.int64]:
        """Behind each complete record."""
        ...

    def is_row(self, record: bytes) -> bool:
        """Whether a record is a row, good or bad, and not just an empty line."""
        ...

    def parse(self, text: Text) -> pa.Table:
        """The rows of whole records, in the schema of the source; an error of `WRONG` if they do not fit."""
        ...

    @property
    def others(self) -> tuple[pa.Field, ...]:
        """Columns of what was parsed so far that the schema does not have, as far as they were looked for."""
        ...

    def reason(self, error: Exception) -> str:
        """What to say of an error of `parse` over a single record."""
        ...


def read_rows(
    content: TextContent,
    parser: RecordParser,
    offset: Offset,
    piece_bytes: int,
    limits: ReadLimits,
    columns: Collection[str] | None,
) -> Iterator[Rows]:
    """Yields the rows from an offset on.

    Args:
        content: begins with the row `offset.anchor_row`.
        parser: of the format.
        offset: the first row that is wanted.
        piece_bytes: about how much text is parsed at once.
        limits: `max_record_bytes` and `max_bad_records` count.
        columns: the others are parsed, since they decide whether a record is a row, and left out; None for all.

    Raises:
        UnreadableFile: from here on the file cannot be read.
    """
    together: list[Rows] = []
    nbytes = 0
    try:
        for part in _parts(content, parser, offset, piece_bytes, limits):
            table = part.table if columns is None else part.table.select(_in_order(part.table, columns))
            together.append(replace(part, table=table))
            nbytes += part.table.nbytes
            if nbytes >= piece_bytes:
                yield from Rows.joined(together).cut(piece_bytes)
                together, nbytes = [], 0
    except UnreadableFile:
        if together:
            yield from Rows.joined(together).cut(piece_bytes)
        raise
    if together:
        yield from Rows.joined(together).cut(piece_bytes)


def _parts(
    content: TextContent, parser: RecordParser, offset: Offset, block_bytes: int, limits: ReadLimits
) -> Iterator[Rows]:
    """Yields what each block has of the rows from an offset on."""
    row, num_bad = offset.anchor_row, 0
    position = content.position
    for block in whole_records(content, parser, block_bytes, limits):
        # Only a position in the file, not one in what is made of it, saves reading.
        anchor = Offset(row, row, position) if content.is_as_stored else Offset()
        for text in _at_most(block, parser):
            rows = _parsed(text, parser, row, num_bad, limits)
            num_bad += len(rows.bad)
            row = rows.end_row
            if row > offset.row:
                yield replace(rows.between(offset.row, row), anchor=anchor, others=parser.others)
        position += len(block)


def _in_order(table: pa.Table, columns: Collection[str]) -> list[str]:
    return [name for name in table.column_names if name in columns]


def whole_records(
    content: TextContent, parser: RecordParser, block_bytes: int, limits: ReadLimits
) -> Iterator[memoryview]:
    """Yields the text in whole records, about `block_bytes` at a time.

    Nothing is copied but a record that begins in one part and ends in another.

    Raises:
        UnreadableFile: a record is longer than is allowed.
    """
    most_bytes = limits.max_record_bytes
    begun = b""
    for chunk, is_last in _chunks(content, min(block_bytes, most_bytes)):
        if begun:
            rest = _rest_of_record(begun, chunk, parser)
            begun += chunk[:rest]
            if rest == len(chunk) and not parser.last_end(memoryview(begun)):
                if len(begun) > most_bytes:
                    raise UnreadableFile(f"a line is longer than {most_bytes} bytes (ReadLimits.max_record_bytes)")
                continue
            yield memoryview(begun)
            chunk = chunk[rest:]
        # The last record needs no end.
        end = len(chunk) if is_last else parser.last_end(chunk)
        if end:
            yield chunk[:end]
        begun = bytes(chunk[end:])
    if begun:
        yield memoryview(begun)


def large_blocks(
    content: TextContent, parser: RecordParser, block_bytes: int, limits: ReadLimits
) -> Iterator[memoryview]:
    """Yields the text in whole records, at least `block_bytes` at a time unless there is no more of it.

    Raises:
        UnreadableFile: as `whole_records`, behind what comes before.
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


def _chunks(content: TextContent, nbytes: int) -> Iterator[tuple[memoryview, bool]]:
    """Yields the text in parts, each with whether it is the last."""
    chunk = content.read(nbytes)
    while chunk:
        try:
            following = content.read(nbytes)
        except UnreadableFile:
            yield chunk, False
            raise
        yield chunk, not following
        chunk = following


def _rest_of_record(begun: bytes, chunk: memoryview, parser: RecordParser) -> int:
    """How much of a chunk belongs to the record that has begun before it."""
    nbytes = _FIRST_LOOK_BYTES
    while True:
        ends = parser.ends(memoryview(begun + chunk[:nbytes]))
        if len(ends):
            return int(ends[0]) - len(begun)
        if nbytes >= len(chunk):
            return len(chunk)
        nbytes *= 8


def _at_most(block: memoryview, parser: RecordParser) -> Iterator[memoryview]:
    """Yields a block in runs of as many records as may be parsed at once; nearly always in one."""
    ends = () if len(block) // 2 < parser.most_records else parser.ends(block)
    start = 0
    for end in [*(int(end) for end in ends[parser.most_records - 1 :: parser.most_records]), len(block)]:
        if end > start:
            yield block[start:end]
        start = end


def _parsed(block: memoryview, parser: RecordParser, first_row: int, bad_before: int, limits: ReadLimits) -> Rows:
    try:
        return Rows(parser.parse(block), first_row)
    except pa.ArrowMemoryError:
        raise  # says nothing about the file
    except WRONG:
        pass
    return salvaged(_TextRecords(block, parser), first_row, parser.reason, bad_before, limits)


class _TextRecords:
    """See `Records`."""

    def __init__(self, block: memoryview, parser: RecordParser) -> None:
        self._block, self._parser = bytes(block), parser
        ends = [int(end) for end in parser.ends(block)]
        if not ends or ends[-1] < len(block):
            ends.append(len(block))
        self._bounds = [
            (start, end) for start, end in zip([0, *ends], ends, strict=False) if parser.is_row(self._block[start:end])
        ]

    def __len__(self) -> int:
        return len(self._bounds)

    def parse(self, start: int, end: int) -> pa.Table:
        text = self._block[self._bounds[start][0] : self._bounds[end - 1][1]] if end > start else b""
        return self._parser.parse(memoryview(text))

    def raw(self, index: int) -> bytes:
        start, end = self._bounds[index]
        return self._block[start:end].rstrip(b"\r\n")
