"""Reader of CSV files."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as kinds

from actors.file_errors import EmptyFile, UnreadableFile, one_line
from actors.formats.fitting_columns import require_fitting
from actors.formats.limits import row_bytes, too_long
from actors.formats.options import Csv
from actors.formats.signatures import is_another, json_format
from actors.formats.template import ReadRequest
from actors.formats.text.content import TextContent
from actors.formats.text.csv_records import CsvRecords, QuoteFault, has_byte, present
from actors.formats.text.csv_types import CsvTypes, looks_like_values
from actors.formats.text.csv_values import CsvValues
from actors.formats.text.lines import Text
from actors.formats.text.rows import OpenedText, RecordReader, large_blocks
from actors.objects.object_file import ObjectFile
from actors.schemas.chosen_columns import missing_columns
from actors.schemas.column_names import NameRule, renamed_columns, source_names, unique_names
from actors.schemas.conform import Timestamps, lost_digits, require_common_column
from actors.schemas.merged_schema import DOUBTFUL_HEADER
from actors.schemas.safe_types import suggested_schema
from actors.settings import MIB, ReadLimits

_HEADER_BYTES = 64 * 1024
_ROW = re.compile(r"Row #(\d+): ")
_COLUMN = re.compile(r"In CSV column #(\d+): ")
_FIELDS = re.compile(r"Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_LINE_END = re.compile(rb"\r\n|\n|\r")
# Excel reads the delimiter from such a first line.
_DELIMITER_LINE = re.compile(rb'"?sep=(.)"?\s*\Z', re.IGNORECASE)
_LINE_FEED, _CARRIAGE_RETURN = 10, 13
_COUNTED_BYTES = 1 << 16
_LINE_ENDS = b"\r\n"
_BLANK = (b"", b"\r", b"\n")
_DELIMITERS = ",;\t|"


class CsvReader(RecordReader):
    """Reads CSV files; see `FileReader`.

    Empty lines are not rows.  A field may contain line ends if it is quoted.

    Args:
        format: the options of the format.
        limits: the limits of one file.
        timestamps: the treatment of digits below microseconds.
        names: the rule that matches the columns of a file with the columns of its source.  `exact` is for sources that
            were declared under the reading rules 1: they read quoted text as null, and find no faults of quotes.
    """

    def __init__(
        self,
        format: Csv,
        limits: ReadLimits = ReadLimits(),
        timestamps: Timestamps = "exact",
        names: NameRule = "any_case",
    ) -> None:
        super().__init__(limits, timestamps, names)
        self._format = format
        self._is_old = names == "exact"
        self._records = CsvRecords(
            format.delimiter,
            format.quote,
            format.escape,
            format.comment,
            finds_faults=not self._is_old,
            max_bytes=limits.max_record_bytes,
        )
        self._last: _Parser | None = None

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        names, content = self._text(file, None)
        if not names:
            raise EmptyFile("the file is empty and has no schema")
        unique, types = unique_names(names), CsvTypes(self._format)
        parser = self._made_parser(unique, None)
        first_block = next(large_blocks(content, parser, 8 * MIB, self._limits), memoryview(b""))
        try:
            found = parser.types(first_block, unique)
            self._require_a_record(first_block, parser, found.values())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            reason = parser.reason(error) + _preamble_remedy(names)
        else:
            schema = suggested_schema(pa.schema([found[name] for name in unique]))
            is_doubtful = self._format.header and looks_like_values(names, schema, types)
            return schema.with_metadata({DOUBTFUL_HEADER: b"true"}) if is_doubtful else schema
        raise UnreadableFile(reason)

    @staticmethod
    def _require_a_record(block: Text, parser: _Parser, fields: Iterable[pa.Field]) -> None:
        """Refuses a file without one record of as many fields as the header has: its schema would be of a foreign file.

        Raises:
            pa.ArrowInvalid: the error of the first record.
        """
        if all(kinds.is_null(field.type) for field in fields):
            first = block[: parser.first_end(block) or len(block)]
            if parser.is_row(bytes(first)):
                parser.require_fields(block)

    def _open(self, request: ReadRequest) -> OpenedText | None:
        schema = request.schema
        require_fitting(self._format, schema)
        names, content = self._text(request.file, schema, request.offset.anchor_byte)
        if not names:
            return None
        given = source_names(names, schema.names, self._names)
        self._require_header(names, given, schema)
        parser = self._parser(given, schema, every_column=request.every_column)
        return OpenedText(content, parser, renamed_columns(names, given))

    def _require_header(self, names: Sequence[str], given: list[str], schema: pa.Schema) -> None:
        try:
            require_common_column(given, schema)
        except UnreadableFile as error:
            reason = f"its first line is not a header of this source: {error.reason}"
        else:
            return
        others = [each for each in _DELIMITERS if each in names[0] and each != self._format.delimiter]
        if len(names) == 1 and others:
            reason += f"; the name of its only column contains {others[0]!r}: declare Csv(delimiter={others[0]!r})"
        raise UnreadableFile(reason)

    def _parser(self, names: list[str], schema: pa.Schema, *, every_column: bool) -> _Parser:
        """A parser; mostly that of the last file, which had the same columns."""
        parser = self._last
        if every_column or parser is None or not parser.fits(names, schema):
            parser = self._made_parser(names, schema, every_column=every_column)
        if not every_column:
            self._last = parser
        return parser

    def _made_parser(self, names: list[str], schema: pa.Schema | None, *, every_column: bool = False) -> _Parser:
        return _Parser(
            self._format,
            self._records,
            names,
            schema,
            self._limits,
            self._timestamps,
            infer_others=every_column,
            is_old=self._is_old,
        )

    def _text(self, file: ObjectFile, schema: pa.Schema | None, start: int = 0) -> tuple[list[str], TextContent]:
        """The names of the columns of the file, in its order, and the text behind them, or from a byte.

        An empty file has no names.
        """
        content = TextContent(file, self._limits, self._format.encoding, declared="CSV")
        record, begin, end = self._first_record(content)
        if self._format.header and (found := json_format(record)) is not None:
            raise is_another(found, "CSV")
        names = self._fields(record)
        if self._format.header:
            start = start or end
        elif names:
            start = start or begin
            names = [f"f{index}" for index in range(len(names))] if schema is None else schema.names
        if not content.seek(start):
            content = TextContent(file, self._limits, self._format.encoding, start)
        return names, content

    def _first_record(self, content: TextContent) -> tuple[bytes, int, int]:
        """The first record, which has one field for each column, its start, and the position behind it.

        Raises:
            UnreadableFile: the record has too many columns, or is too long; or the first line names another delimiter.
        """
        text, start = b"", content.position
        most_bytes = self._limits.max_record_bytes
        while True:
            # As much again as was searched: the whole search takes time in proportion to the length of the record.
            chunk = content.read(max(_HEADER_BYTES, len(text)))
            text += chunk
            begin = self._begin(text, is_end=not chunk)
            end = 0 if begin is None else self._records.first_end(memoryview(text)[begin:])
            if begin is not None:
                record = text[begin : begin + end] if end else text[begin:]
                if record.count(self._format.delimiter.encode()) >= self._limits.max_columns:
                    raise UnreadableFile(
                        f"it has more than {self._limits.max_columns} columns (ReadLimits.max_columns)"
                    )
                if end or not chunk:
                    return record, start + begin, start + begin + len(record)
            if len(text) > most_bytes:
                raise too_long(most_bytes)

    def _begin(self, text: bytes, *, is_end: bool) -> int | None:
        """The position of the first record; None if the text does not show it yet."""
        position = 0
        for _ in range(self._format.skip_rows):
            if (position := _behind_line(text, position, is_end=is_end)) < 0:
                return None
        while True:
            position = len(text) - len(text[position:].lstrip(_LINE_ENDS))
            head = text[position : position + 8]
            is_comment = self._records.is_comment(head)
            if not is_comment and not (head.lstrip(b'"')[:4].lower() == b"sep=" and not self._is_old):
                return position if head or is_end else None
            if (behind := _behind_line(text, position, is_end=is_end)) < 0:
                return None
            if not is_comment:
                named = _DELIMITER_LINE.match(text[position:behind])
                if named is None:
                    return position
                if named[1] != self._format.delimiter.encode():
                    delimiter = named[1].decode("latin-1")
                    raise UnreadableFile(f"its first line names a delimiter: declare Csv(delimiter={delimiter!r})")
            position = behind

    def _fields(self, record: bytes) -> list[str]:
        if self._format.header and not self._is_old:
            self._require_text(record)
        line = bytes(self._records.plain(record)).decode("utf-8", "replace").replace("\0", "")
        if not line.strip("\r\n") and record.strip(_LINE_ENDS):
            raise UnreadableFile("the first line cannot be read: a quoted field is not closed")
        quoting = {"quoting": csv.QUOTE_NONE} if self._format.quote is None else {"quotechar": self._format.quote}
        try:
            return next(csv.reader([line], delimiter=self._format.delimiter, **quoting), [])
        except csv.Error as error:
            reason = f"the first line cannot be read: {one_line(error)}"
        raise UnreadableFile(reason)

    def _require_text(self, header: bytes) -> None:
        """Refuses a header that is not text: its bytes would be names of columns for ever."""
        if _CONTROL.search(header.replace(self._format.delimiter.encode(), b"")):
            raise UnreadableFile("its first line has control characters: it is not CSV; leave it out with pattern=...")
        try:
            header.decode()
        except UnicodeDecodeError as error:
            position = error.start
        else:
            return
        raise UnreadableFile(
            f"its first line is not UTF-8 at byte {position}; for a file of another encoding, declare "
            'Csv(encoding="...")'
        )


class _Parser:
    """A `RecordParser`.  Without a schema it reads no rows, but finds the types of the columns.

    It has no state but `others`, which change only with `infer_others`: without, many files and threads may share it.

    Args:
        infer_others: True to infer the types of extra columns.
        is_old: see `CsvValues`.
    """

    def __init__(
        self,
        format: Csv,
        records: CsvRecords,
        names: Sequence[str],
        schema: pa.Schema | None,
        limits: ReadLimits,
        timestamps: Timestamps,
        *,
        infer_others: bool = False,
        is_old: bool = False,
    ) -> None:
        self._format, self._names, self._schema, self._records = format, names, schema, records
        self.first_end, self.last_end, self.ends = records.first_end, records.last_end, records.ends
        fields = [pa.field(name, pa.int64()) for name in names] if schema is None else schema
        # A row of one character is a null in every column of the schema.
        self.most_records = max(1, limits.max_batch_bytes // max(1, row_bytes(fields)))
        known = {*names} if schema is None else {*schema.names}
        self.others = tuple(pa.field(name, pa.null()) for name in dict.fromkeys(names) if name not in known)
        self.missing = () if schema is None else missing_columns(schema, names)
        self._untyped = [field.name for field in self.others] if infer_others else []
        self._types = CsvTypes(format)
        self._special = {each for each in (format.escape, format.comment) if each is not None}
        self._signs = "".join({*self._special, format.quote or "", "x", "X"})
        self._values = None if schema is None else CsvValues(format, names, schema, timestamps, is_old=is_old)

    def fits(self, names: Sequence[str], schema: pa.Schema) -> bool:
        """True if it is the parser for these columns."""
        return schema is self._schema and names == self._names

    def is_row(self, record: bytes) -> bool:
        return bool(record.strip(_LINE_ENDS)) and not self._records.is_comment(record)

    def types(self, text: Text, names: Sequence[str]) -> dict[str, pa.Field]:
        """The types of columns in whole records, without the bad ones.

        Raises:
            pa.ArrowInvalid: the records cannot be read.
        """
        plain = self._records.plain(text)
        if _is_blank(plain):
            return {name: pa.field(name, pa.null()) for name in names}
        return dict(self._types.of_text(plain, self._names, names, skips=True))

    def require_fields(self, text: Text) -> None:
        """Refuses records of which each has another number of fields than the file has columns.

        Raises:
            pa.ArrowInvalid: the error of the first one.
        """
        plain = self._records.plain(text)
        if not _is_blank(plain) and not self._types.count(plain, self._names):
            self._types.of_text(plain, self._names, self._names[:1], skips=False)

    def parse(self, text: Text) -> pa.Table:
        assert self._schema is not None and self._values is not None
        plain, signs = text, present(text, self._signs)
        if not signs.isdisjoint(self._special):
            self._require_no_fault(text)
            plain = self._records.plain(text)
        if _is_blank(plain):
            return self._schema.empty_table()
        try:
            has_quote, has_hexadecimal = self._format.quote in signs, not signs.isdisjoint("xX")
            table = self._values.read(plain, has_quote=has_quote, has_hexadecimal=has_hexadecimal)
        except (pa.ArrowInvalid, UnreadableFile):
            self._require_no_fault(text)
            raise
        if has_quote and self._records.finds_faults and plain is text and not self._is_simple(text, table):
            self._require_no_fault(text)
        if self._untyped:
            self._infer_others(plain)
        return table

    def _require_no_fault(self, text: Text) -> None:
        if (fault := self._records.first_fault(text)) is not None:
            raise UnreadableFile(_reason_of(fault, self._format))

    def _is_simple(self, text: Text, table: pa.Table) -> bool:
        """True if the values show that no quoted field has a fault.

        Then no value has a line end or a quote, so that each record is a line in which each quote opens or closes a
        field.  A last line without a line end is looked at.  A value that is not text has neither sign.
        """
        assert self._values is not None
        if text[-1] not in _LINE_ENDS:
            last = bytes(text[_start_of_last_line(text) :])
            if self._records.has_quote(last) and self._records.first_fault(last) is not None:
                return False
        if self.others and not self._is_of_lines(text, table.num_rows):
            return False
        signs = f"\n\r{self._format.quote or ''}"
        return not any(_has_value(table.column(name), signs) for name in self._values.texts)

    @staticmethod
    def _is_of_lines(text: Text, num_rows: int) -> bool:
        """True if each line is a record."""
        content = np.frombuffer(text, np.uint8)
        lines = _count(content, _LINE_FEED) + (content[-1] != _LINE_FEED)
        return lines == num_rows and (not has_byte(text, "\r") or _all_before_feeds(content))

    def _infer_others(self, text: Text) -> None:
        found = self._types.of_text(text, self._names, self._untyped, skips=False)
        self.others = tuple(found.get(field.name, field) for field in self.others)
        self._untyped = [name for name in self._untyped if kinds.is_null(found[name].type)]

    def faults(self, records: Sequence[bytes]) -> dict[int, str]:
        assert self._values is not None
        # The reason is the reason of the record alone: the text behind it may be in another block.
        alone = ((index, self._records.fault_of(record)) for index, record in enumerate(records))
        reasons = {index: _reason_of(fault, self._format) for index, fault in alone if fault is not None}
        rest = [index for index in range(len(records)) if index not in reasons]
        plain = self._records.plain(b"".join(records[index] for index in rest))
        errors = self._values.unfit(plain, len(rest))
        return reasons | {rest[number]: self.reason(pa.ArrowInvalid(error)) for number, error in errors.items()}

    def reason(self, error: Exception) -> str:
        if isinstance(error, UnreadableFile):
            return error.reason
        text = str(error)
        reason = _COLUMN.sub(lambda match: f"column {self._name(int(match[1]))}: ", _ROW.sub("", one_line(error)))
        if "invalid UTF8" in text:
            return f'{reason}; for a file of another encoding, declare Csv(encoding="...")'
        if (fields := _FIELDS.search(text)) and fields[2] == "1":
            others = [
                each
                for each in _DELIMITERS
                if each != self._format.delimiter and fields[3].count(each) == int(fields[1]) - 1
            ]
            if others:
                return f"{reason}; for fields between {others[0]!r}, declare Csv(delimiter={others[0]!r})"
        if fields and int(fields[2]) == int(fields[1]) + 1 and fields[3].rstrip().endswith(self._format.delimiter):
            return f"{reason}; the line ends with a delimiter, and the header does not: correct one of them"
        return lost_digits(reason)

    def _name(self, index: int) -> str:
        return self._names[index] if index < len(self._names) else f"number {index + 1}"


def _preamble_remedy(names: Sequence[str]) -> str:
    """The option for a file whose first line may not be its header."""
    if names[0].startswith("#"):
        return '; for lines that begin with "#" and are not rows, declare Csv(comment="#")'
    return "; for lines before the header, declare Csv(skip_rows=...)" if len(names) == 1 else ""


def _reason_of(fault: QuoteFault, format: Csv) -> str:
    if fault.kind == "open":
        return "a quoted field is not closed; for quotes as plain characters, declare Csv(quote=None)"
    reason = "a quoted field has text behind its closing quote; for quotes"
    if fault.is_escaped and format.escape is None:
        return reason + ' behind a backslash, declare Csv(escape="\\\\")'
    return f"{reason} as plain characters, declare Csv(quote=None)"


def _behind_line(text: bytes, position: int, *, is_end: bool) -> int:
    """The position behind a line; -1 if the text does not show its end yet."""
    found = _LINE_END.search(text, position)
    if found is None or (found[0] == b"\r" and found.end() == len(text)):
        return len(text) if is_end else -1
    return found.end()


def _is_blank(text: Text) -> bool:
    return text[:1] in _BLANK and not bytes(text).strip(_LINE_ENDS)


def _all_before_feeds(content: npt.NDArray[np.uint8]) -> bool:
    """True if a line feed follows each carriage return, and a carriage return precedes each line feed."""
    returns, feeds = content == _CARRIAGE_RETURN, content == _LINE_FEED
    return bool((returns[:-1] == feeds[1:]).all() and not feeds[0] and not returns[-1])


def _start_of_last_line(text: Text) -> int:
    end = len(text) - 1
    while end > 0:
        start = max(0, end - _HEADER_BYTES)
        if (at := bytes(text[start:end]).rfind(b"\n")) >= 0:
            return start + at + 1
        end = start
    return 0


def _has_value(column: pa.ChunkedArray, signs: str) -> bool:
    """True if a text of a column has one of some ASCII characters."""
    for chunk in column.chunks:
        _, offsets, values = chunk.buffers()
        if not len(chunk) or values is None:
            continue
        first, last = (np.frombuffer(offsets, np.int32)[chunk.offset + index] for index in (0, len(chunk)))
        content = values.slice(first, last - first)
        if present(content, signs):
            return True
    return False


def _count(content: npt.NDArray[np.uint8], byte: int) -> int:
    """The number of bytes of a value, by pieces that fit into the cache."""
    return sum(
        int(np.count_nonzero(content[start : start + _COUNTED_BYTES] == byte))
        for start in range(0, len(content), _COUNTED_BYTES)
    )
