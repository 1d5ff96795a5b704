"""Rows of a JSON text, block by block, and the bad records among them.

A block of lines is parsed at once, as if each line ended a record: if that succeeds, it is so, since Arrow reads whole
values only.  Otherwise, and for arrays, `json_records` finds the records first.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from actors.file_errors import UnreadableFile
from actors.formats.limits import too_long
from actors.formats.salvage import RAW_BYTES, WRONG, too_many_bad
from actors.formats.text.content import TextContent, chunks
from actors.formats.text.json_records import Records, begins_with_array, records
from actors.formats.text.lines import Text, first_line_end, last_line_end
from actors.rows import BadRecord, Offset, Rows
from actors.settings import ReadLimits

_ROW = re.compile(r" in row (\d+)$")
_VALUE = re.compile(r"couldn't parse:(.+)$")
_MOST_WRONG_GUESSES = 3
_FEW = 16
"""The records among which a value is searched, and the parts of a larger number of records."""
_FIRST_BYTES = 64
_LEAST_BLANK_BYTES = 4096


class Found(NamedTuple):
    """Records of a text, one behind the other.

    Args:
        text: the text.
        starts, ends: the bounds of each record.
    """

    text: bytes
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    @property
    def num_records(self) -> int:
        return len(self.starts)

    @property
    def whole(self) -> memoryview:
        """The text from the first record to the last."""
        bounds = (int(self.starts[0]), int(self.ends[-1])) if self.num_records else (0, 0)
        return memoryview(self.text)[slice(*bounds)]

    @property
    def span_lines(self) -> bool:
        """True if a record is on more than one line."""
        line_ends = np.flatnonzero(np.frombuffer(self.text, np.uint8) == ord("\n"))
        return bool((np.searchsorted(line_ends, self.starts) != np.searchsorted(line_ends, self.ends)).any())

    def between(self, start: int, end: int) -> Found:
        """The records from `start` (inclusive) to `end` (exclusive)."""
        return Found(self.text, self.starts[start:end], self.ends[start:end])

    def without(self, indices: Iterable[int]) -> Found:
        """The other records, apart."""
        keep = np.ones(self.num_records, np.bool_)
        keep[list(indices)] = False
        return Found(self.text, self.starts[keep], self.ends[keep]).apart()

    def apart(self) -> Found:
        """The same records with a line end between two of them, and nothing else."""
        lengths = self.ends - self.starts
        ends = np.cumsum(lengths + 1) - 1
        return Found(b"\n".join(self.texts()), ends - lengths, ends)

    def texts(self) -> list[bytes]:
        """The text of each record."""
        return [self.text[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]

    def containing(self, content: bytes) -> int | None:
        """The index of the first record with a content; None without one."""
        position = self.text.find(content, int(self.starts[0]), int(self.ends[-1]))
        return None if position < 0 else int(np.searchsorted(self.starts, position, side="right")) - 1


class JsonParser(Protocol):
    """The parser of records of JSON."""

    @property
    def most_records(self) -> int:
        """The largest number of records that are parsed at once."""
        ...

    @property
    def needs_bounds(self) -> bool:
        """True if only `parse_found` can parse the records."""
        ...

    def parse(self, text: Text) -> pa.Table:
        """The rows of a text of whole records; raises `WRONG` for a bad record."""
        ...

    def parse_found(self, found: Found) -> pa.Table:
        """As `parse`, for records with nothing but white space between them."""
        ...

    def reason(self, error: Exception) -> str:
        """The reason of an error of `parse` for a single record."""
        ...

    def completed(self, rows: Rows) -> Rows:
        """The rows, with the extra and the renamed columns that the parser has seen in the file."""
        ...


class JsonRows:
    """The rows of one file.

    Args:
        content: the text of the file, at the anchor of the offset.
        of_array: True for a file that begins with an array; None if the text shows it.
        is_start: True if the content is at the start of the file.
    """

    def __init__(
        self,
        content: TextContent,
        parser: JsonParser,
        limits: ReadLimits,
        *,
        of_array: bool | None,
        is_start: bool,
    ) -> None:
        self._content, self._parser, self._limits = content, parser, limits
        self._of_array, self._is_start = of_array, is_start
        self._by_lines = not of_array and not parser.needs_bounds
        self._row = self._num_bad = 0

    def parts(self, offset: Offset, block_bytes: int) -> Iterator[Rows]:
        """Yields the rows of each block that lie at or behind the offset.

        Raises:
            UnreadableFile: a record is too long, too many records are bad, or an array is not closed.
        """
        self._row, position = offset.anchor_row, self._content.position
        most_bytes = self._limits.max_record_bytes
        rest, least_bytes = memoryview(b""), 0
        for chunk, is_last in chunks(self._content, min(block_bytes, most_bytes)):
            while True:
                # Of lines, only a line that is in two chunks is copied.
                is_line_cut = self._by_lines and rest and not least_bytes and self._of_array is not None
                cut = (first_line_end(chunk) if is_line_cut else 0) or len(chunk)
                text, chunk = memoryview(b"".join((rest, chunk[:cut]))) if rest else chunk[:cut], chunk[cut:]
                ends_file = is_last and not chunk
                if self._is_decided(text, ends_file) and (ends_file or len(text) >= min(least_bytes, most_bytes)):
                    # Only a position in the file saves reading; a position in decompressed text does not.
                    anchor = Offset(self._row, self._row, position) if self._content.is_as_stored else Offset()
                    end = yield from self._from_row(offset.row, anchor, self._block(text, is_last=ends_file))
                    end += blank_bytes(text[end:])
                    position, rest = position + end, text[end:]
                    self._is_start = self._is_start and not end
                    if not ends_file and len(rest) > most_bytes:
                        raise too_long(most_bytes)
                    # The search for the end of a record goes on when it has doubled: it takes linear time.
                    least_bytes = 0 if self._by_lines and end else 2 * len(rest)
                else:
                    blank = blank_bytes(text) if self._of_array is None else 0
                    position, rest = position + blank, text[blank:]
                    if self._of_array is None and len(rest) > most_bytes:
                        raise too_long(most_bytes)
                if not chunk:
                    break

    def _is_decided(self, text: memoryview, is_last: bool) -> bool:
        """True if the text shows whether the file begins with an array."""
        if self._of_array is None:
            of_array = begins_with_array(bytes(text[:_FIRST_BYTES]))
            of_array = begins_with_array(bytes(text)) if of_array is None else of_array
            self._of_array = False if of_array is None and is_last else of_array
            self._by_lines = self._by_lines and not self._of_array
        return self._of_array is not None

    def _from_row(
        self, first_row: int, anchor: Offset, block: Generator[Rows, None, int]
    ) -> Generator[Rows, None, int]:
        """Yields the rows of a block from `first_row` of the file on; returns the return value of the block."""
        while True:
            try:
                rows = next(block)
            except StopIteration as stop:
                return int(stop.value)
            if rows.end_row > first_row:
                rows = rows.between(first_row, rows.end_row) if first_row > rows.first_row else rows
                yield replace(self._parser.completed(rows), anchor=anchor)

    def _block(self, text: memoryview, *, is_last: bool) -> Generator[Rows, None, int]:
        """Yields the rows of a text; returns the position behind its last record."""
        if self._by_lines:
            end = len(text) if is_last else last_line_end(text)
            if end and (table := self._of_lines(text[:end])) is not None:
                yield self._next_rows(table)
                return end
        content = bytes(text)
        found = self._found(content, is_last=is_last, are_good=True)
        count = 0
        for run in () if found.faults else self._runs(content, found, 0):
            if (table := self._parsed(run)) is None:
                break
            yield self._next_rows(table)
            count += run.num_records
        if count < len(found.starts):
            found = self._found(content, is_last=is_last, are_good=False)
            for run in self._runs(content, found, count):
                faults = {index - count: reason for index, reason in found.faults.items()}
                count += run.num_records
                yield self._salvaged(run, faults)
        if found.error is not None:
            raise UnreadableFile(found.error.reason, self._row + 1)
        if self._by_lines:
            self._by_lines = not Found(content, found.starts, found.ends).span_lines
        return found.end

    def _next_rows(self, table: pa.Table, bad: tuple[BadRecord, ...] = ()) -> Rows:
        rows = Rows(table, self._row, bad)
        self._row = rows.end_row
        return rows

    def _of_lines(self, text: memoryview) -> pa.Table | None:
        """The rows of a text that ends with a line; None if a record is bad, or goes on in the next line."""
        if len(text) // 2 >= self._parser.most_records:
            content = bytes(text)
            if content.count(b"{") + content.count(b"null") > self._parser.most_records:
                return None
        try:
            return self._parser.parse(text)
        except pa.ArrowMemoryError:
            raise  # not an error of the file
        except WRONG:
            return None

    def _found(self, text: bytes, *, is_last: bool, are_good: bool) -> Records:
        return records(
            text,
            is_start=self._is_start,
            is_last=is_last,
            of_array=bool(self._of_array),
            are_good=are_good,
            require_time=self._content.cpu.require,
            most_bad=self._limits.max_bad_records,
        )

    def _runs(self, text: bytes, all_records: Records, first: int) -> Iterator[Found]:
        """Yields the records from an index on, at most `most_records` at a time."""
        most, found = self._parser.most_records, Found(text, all_records.starts, all_records.ends)
        for start in range(first, found.num_records, most):
            self._content.cpu.require()
            run = found.between(start, start + most)
            yield run.apart() if self._of_array else run

    def _parsed(self, run: Found) -> pa.Table | None:
        try:
            return self._table(run)
        except pa.ArrowMemoryError:
            raise  # not an error of the file
        except WRONG:
            return None

    def _table(self, run: Found) -> pa.Table:
        table = self._parser.parse_found(run) if self._parser.needs_bounds else self._parser.parse(run.whole)
        if table.num_rows != run.num_records:
            raise UnreadableFile(f"{run.num_records} records are {table.num_rows} rows")
        return table

    def _salvaged(self, run: Found, faults: Mapping[int, str]) -> Rows:
        """The rows of records of which at least one is bad.

        Arrow reports the row of most errors: the search takes a few parses for each bad record, and not their number
        times the logarithm of the number of records.

        Args:
            faults: index → reason, for records that are bad in any case.
        """
        reasons = {index: reason for index, reason in faults.items() if 0 <= index < run.num_records}
        most_bad = self._limits.max_bad_records - self._num_bad
        if len(reasons) > most_bad:
            one_more, reason = list(reasons.items())[most_bad]
            raise too_many_bad(self._limits.max_bad_records, reason, self._row + one_more)
        bounds = [-1, *reasons, run.num_records]
        unsearched = [(start + 1, end) for start, end in pairwise(bounds)][::-1]
        guesses = _MOST_WRONG_GUESSES
        while unsearched:
            start, end = unsearched.pop()
            if start == end:
                continue
            self._content.cpu.require()
            part = run.between(start, end)
            try:
                self._table(part)
            except pa.ArrowMemoryError:
                raise  # not an error of the file
            except WRONG as error:
                if end - start == 1:
                    reasons[start] = self._parser.reason(error)
                    if len(reasons) > most_bad:
                        raise too_many_bad(self._limits.max_bad_records, reasons[start], self._row + start) from None
                elif (index := _bad_row(part, error)) is not None:
                    # Arrow stops there: together, the parses of the records behind take linear time.
                    at = start + index
                    unsearched += [(at + 1, end), (start, at), (at, at + 1)]
                elif end - start <= _FEW and guesses and (index := _bad_value(part, error)) is not None:
                    at = start + index
                    unsearched += [(at + 1, end), (start, at), (at, at + 1)]
                else:
                    step = max(1, -(-(end - start) // _FEW))
                    unsearched += [(at, min(at + step, end)) for at in range(start, end, step)][::-1]
            else:
                # A wrong guess costs a parse of the other records.
                guesses -= end - start == 1
        self._num_bad += len(reasons)
        bad = tuple(
            BadRecord(self._row + index, run.between(index, index + 1).texts()[0][:RAW_BYTES], reasons[index])
            for index in sorted(reasons)
        )
        return self._next_rows(self._table(run.without(reasons)), bad)


def blank_bytes(text: memoryview) -> int:
    """The position of the last line end of the white space at the begin of a text; 0 without one, or if it is short."""
    if len(text) < _LEAST_BLANK_BYTES or text[0] not in b" \t\r\n":
        return 0
    content = bytes(text)
    spaces = len(content) - len(content.lstrip(b" \t\r\n"))
    return max(0, content.rfind(b"\n", 0, spaces))


def _bad_row(part: Found, error: Exception) -> int | None:
    """The index of the bad record at which a parser stopped; None if its error does not contain it."""
    if isinstance(error, UnreadableFile):
        index = None if error.row is None else error.row - 1
    else:
        index = int(row[1]) if (row := _ROW.search(str(error))) is not None else None
    return index if index is not None and 0 <= index < part.num_records else None


def _bad_value(part: Found, error: Exception) -> int | None:
    """The index of the first record with the value of which an error is; it may have the value elsewhere."""
    value = _VALUE.search(str(error))
    return None if value is None else part.containing(value[1].encode())
