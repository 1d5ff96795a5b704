"""Reader of JSON files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.types as kinds
import structlog

from actors.file_errors import EmptyFile, UnreadableFile
from actors.formats.limits import row_bytes, too_long
from actors.formats.options import Json
from actors.formats.pieces import pieces
from actors.formats.salvage import with_a_record
from actors.formats.signatures import HEAD_BYTES, delimited_format, is_another
from actors.formats.template import Reader, ReadRequest
from actors.formats.text.content import TextContent, chunks
from actors.formats.text.json_names import AmbiguousNames, FileNames, absent_names, names_of
from actors.formats.text.json_records import begins_with_array, records
from actors.formats.text.json_rows import Found, JsonRows, blank_bytes
from actors.formats.text.json_schema import JsonShape, shape_of
from actors.formats.text.json_text import reason_of
from actors.formats.text.json_values import JsonColumns
from actors.formats.text.lines import Text
from actors.objects.object_file import ObjectFile
from actors.rows import Rows
from actors.schemas.chosen_columns import without_columns
from actors.schemas.column_names import NameRule
from actors.schemas.conform import Timestamps, conform, lost_digits
from actors.schemas.safe_types import suggested_schema
from actors.settings import MIB, ReadLimits
from state.errors import SchemaError

_log = structlog.get_logger(actor="fetch")
_HEAD_BYTES = 64 * 1024
_RECORDS_LOOKED_AT = 100
_UNEXPECTED = "unexpected field"
_REMEDIES = (
    (re.compile(r"to int\d+, couldn't parse:-?\d{19,20}$"), "declare the column as decimal(20, 0)"),
    (re.compile(r"to int\d+, couldn't parse:-?\d{21,38}$"), "declare the column as decimal(38, 0)"),
    (re.compile(r"to int\d+, couldn't parse:-?\d+$"), "declare the column as a wider type, or as a string"),
    (re.compile(r"to int\d+, couldn't parse:"), "declare the column as double or decimal"),
    (re.compile(r"to decimal\S+ \S+: .* requires scale"), "declare the column with a larger scale"),
    (re.compile(r"\) changed from .* to"), "declare the column as a string for the JSON text of its values"),
)
"""Faults of a record, and the declaration that reads it."""


class JsonReader(Reader):
    """Reads JSON files; see `FileReader` and `json_records`.

    Args:
        limits, timestamps, names: see `Reader`.
        format: the options of the format.
    """

    def __init__(
        self,
        limits: ReadLimits = ReadLimits(),
        timestamps: Timestamps = "exact",
        names: NameRule = "any_case",
        format: Json = Json(),
    ) -> None:
        super().__init__(limits, timestamps, names)
        self._raw = format.raw

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        try:
            shape = self._first_shape(file)
        except UnreadableFile:
            if (found := delimited_format(self._head(file)[0][:HEAD_BYTES])) is None:
                raise
            another = is_another(found, "JSON")
        else:
            if mixed := shape.of_several_kinds:
                names = ", ".join(mixed)
                _log.warning("fields with values of several kinds are strings", path=file.path, columns=names)
            return self._suggested(shape.fields(self._timestamps))
        raise another

    def _first_shape(self, file: ObjectFile) -> JsonShape:
        if not file.size:
            raise EmptyFile("the file is empty and has no schema")
        content = self._content(file)
        return shape_of(self._first_records(content, 8 * MIB).texts(), self._limits, content.cpu.require)

    def _suggested(self, fields: list[pa.Field]) -> pa.Schema:
        if self._raw is not None:
            fields = [*(field for field in fields if field.name != self._raw), pa.field(self._raw, pa.string())]
        if not fields:
            raise EmptyFile("the file is empty and has no schema")
        return suggested_schema(pa.schema(fields))

    def _rows(self, request: ReadRequest) -> Iterator[Rows]:
        return with_a_record(self._read(request), partial(self.infer_schema, request.file))

    def _read(self, request: ReadRequest) -> Iterator[Rows]:
        file, anchor = request.file, request.offset.anchor_byte
        if not file.size:
            return
        content = self._content(file, anchor)
        parser = _Parser(
            request, self._limits, self._timestamps, self._names, self._raw, self._head, content.cpu.require
        )
        # The first bytes may be a byte order mark.
        is_start = anchor <= self._content(file).position if anchor else True
        of_array = None if is_start else begins_with_array(self._head(file)[0])
        rows = JsonRows(content, parser, self._limits, of_array=of_array, is_start=is_start)
        parts = rows.parts(request.offset, request.piece_bytes)
        try:
            # All columns are parsed: each of them makes a record good or bad.
            yield from content.cpu.pausing(pieces(parts, request.piece_bytes, request.columns))
        except AmbiguousNames as error:
            reason = str(error)
        else:
            return
        raise UnreadableFile(reason)

    def _content(self, file: ObjectFile, start: int = 0) -> TextContent:
        return TextContent(file, self._limits, start=start, declared="JSON")

    def _head(self, file: ObjectFile) -> tuple[bytes, bool]:
        """The first bytes of the text, up to the begin of a value at least; True if they are the whole text."""
        content, text = self._content(file), b""
        while len(text) < _HEAD_BYTES or begins_with_array(text) is None:
            chunk = content.read(max(_HEAD_BYTES, len(text)))
            if not chunk:
                return text, True
            text = _without_blanks(text + chunk, self._limits)
        return text, False

    def _first_records(self, content: TextContent, block_bytes: int) -> Found:
        """The records at the begin of a file: of its first block that ends a record.

        Raises:
            UnreadableFile: the content is damaged, or a record is too long.
        """
        text = b""
        for chunk, is_last in chunks(content, block_bytes):
            text = _without_blanks(text + chunk, self._limits)
            of_array = begins_with_array(text) or False
            shown = records(
                text,
                is_start=True,
                is_last=is_last,
                of_array=of_array,
                require_time=content.cpu.require,
                most_bad=self._limits.max_bad_records,
            )
            if len(shown.starts):
                return Found(text, shown.starts, shown.ends)
            if shown.error is not None:
                raise UnreadableFile(shown.error.reason, 1)
            if len(text) > self._limits.max_record_bytes:
                raise too_long(self._limits.max_record_bytes)
        raise EmptyFile("the file is empty and has no schema")


def _without_blanks(text: bytes, limits: ReadLimits) -> bytes:
    """A text from its last blank line on, if it is white space.

    Raises:
        UnreadableFile: that line is too long.
    """
    if begins_with_array(text) is None:
        text = text[blank_bytes(memoryview(text)) :]
        if len(text) > limits.max_record_bytes:
            raise too_long(limits.max_record_bytes)
    return text


class _Parser:
    """A `JsonParser`.

    Args:
        request: the request for the rows of a file.
        raw: the column with the JSON text of each record; None without one.
        head: the first bytes of the text of a file, and True if they are the whole text.
        require_time: ends the reading of a file that takes too long.
    """

    def __init__(
        self,
        request: ReadRequest,
        limits: ReadLimits,
        timestamps: Timestamps,
        names: NameRule,
        raw: str | None,
        head: Callable[[ObjectFile], tuple[bytes, bool]],
        require_time: Callable[[], None],
    ) -> None:
        self._file, self._head, self._require_time = request.file, head, require_time
        self._schema, self._limits, self._timestamps, self._rule = request.schema, limits, timestamps, names
        self._every_column, self._is_strict, self._is_looked = request.every_column, True, False
        self._others: tuple[pa.Field, ...] = ()
        raw = raw if raw in request.schema.names else None
        if raw is not None and request.schema.field(raw).type != pa.string():
            raise SchemaError(f"column {raw}: Json(raw={raw!r}) is the JSON text of the record; declare it as a string")
        self._raw, self._content = raw, without_columns(request.schema, () if raw is None else (raw,))
        self._names: FileNames | None = None
        self._columns = JsonColumns(self._content, timestamps)
        self._absent: frozenset[str] | None = None
        self.needs_bounds = raw is not None and raw in request.wanted.names
        # A row of three characters is a null in every column.
        self.most_records = max(1, limits.max_batch_bytes // max(1, row_bytes(request.schema)))

    def parse(self, text: Text) -> pa.Table:
        return self._with_raw(self._conformed(text), None)

    def parse_found(self, found: Found) -> pa.Table:
        return self._with_raw(self._conformed(found.whole), found)

    def reason(self, error: Exception) -> str:
        reason = lost_digits(reason_of(error))
        remedy = next((remedy for fault, remedy in _REMEDIES if fault.search(reason)), None)
        return reason if remedy is None else f"{reason}; {remedy}"

    def completed(self, rows: Rows) -> Rows:
        others, renamed = self._others, self._names.renamed if self._names else ()
        missing: tuple[str, ...] = ()
        if not rows.first_row and self._absent:
            missing = tuple(name for name in self._content.names if name in self._absent)
        self._absent = frozenset()
        is_plain = not (others or renamed or missing)
        return rows if is_plain else replace(rows, others=others, renamed=renamed, missing=missing)

    def _with_raw(self, table: pa.Table, found: Found | None) -> pa.Table:
        if self._raw is None:
            return table
        texts = pa.nulls(table.num_rows, pa.string()) if found is None else pa.array(found.texts(), pa.binary())
        if len(texts) != table.num_rows:
            raise UnreadableFile(f"{len(texts)} records are {table.num_rows} rows")
        if not self._content.names:
            return pa.Table.from_arrays([texts.cast(pa.string())], schema=self._schema)
        return table.add_column(
            self._schema.names.index(self._raw), self._schema.field(self._raw), texts.cast(pa.string())
        )

    def _conformed(self, text: Text) -> pa.Table:
        table = self._looked_at(text)
        if not self._content.names:
            return table
        table = self._names.merged(table) if self._names else table
        if self._absent is None or self._absent:
            self._note_absent(table, bytes(text))
        return conform(table, self._content, parse_text=True, timestamps=self._timestamps, names=self._rule)

    def _note_absent(self, table: pa.Table, text: bytes) -> None:
        """Notes the columns that no record of the text has, nor any text before it since the last `completed`."""
        if not table.num_rows:
            return
        noted = table.column_names if self._absent is None else self._absent
        empty = [name for name in noted if table.column(name).null_count == table.num_rows]
        spellings = {name: self._names.spellings(name) if self._names else [name] for name in empty}
        self._absent = absent_names(spellings, text) if empty else frozenset()

    def _looked_at(self, text: Text) -> pa.Table:
        """The rows of whole records; extra columns are noted."""
        if self._is_strict and self._columns.are_of_arrow:
            try:
                return self._columns.parse(text, "error")
            except pa.ArrowInvalid as error:
                # Arrow reports at no cost that extra columns exist; their names and types cost a parse.
                if _UNEXPECTED not in str(error):
                    raise
        if not self._is_looked:
            self._look_at_head()
        if self._every_column:
            self._look_at_all(bytes(text))
        return self._columns.parse(text)

    def _look_at_head(self) -> None:
        """Finds how the file spells the columns of the source, and its extra columns."""
        self._is_looked, self._is_strict = True, self._every_column
        head, is_whole = self._head(self._file)
        of_array = begins_with_array(head) or False
        shown = records(head, is_start=True, is_last=is_whole, of_array=of_array, require_time=self._require_time)
        found = Found(head, shown.starts, shown.ends).between(0, _RECORDS_LOOKED_AT)
        names = names_of(found.texts(), self._limits, self._require_time)
        self._names = FileNames(self._content, self._rule, names)
        self._columns = JsonColumns(pa.schema(self._names.in_file()), self._timestamps)
        self._others = tuple(pa.field(name, pa.null()) for name in self._names.others)

    def _look_at_all(self, text: bytes) -> None:
        """Finds the extra columns of all records of a text, with their types."""
        require_time = self._require_time
        shown = records(text, is_start=True, is_last=True, of_array=False, require_time=require_time, are_good=True)
        texts = Found(text, shown.starts, shown.ends).texts()
        known = self._names.of_source if self._names else frozenset(self._content.names)
        unknown = [name for name in names_of(texts, self._limits, require_time, within=False) if name not in known]
        # An extra field may be inside a struct: Arrow would then report it for every block.
        self._is_strict = bool(unknown)
        found = shape_of(texts, self._limits, require_time).fields(self._timestamps) if unknown else []
        others = {field.name: field for field in self._others} | dict.fromkeys(unknown)
        typed = others | {
            field.name: field for field in found if field.name in others and not kinds.is_null(field.type)
        }
        self._others = tuple(typed[name] or pa.field(name, pa.null()) for name in others)
