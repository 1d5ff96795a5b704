"""Values of CSV fields: the options of Arrow's reader, and the forms of values that it does not read."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.types as kinds

from actors.file_errors import UnreadableFile, one_line
from actors.formats.options import Csv
from actors.formats.text.lines import Text
from actors.formats.time_format import TimeFormat
from actors.schemas.conform import Timestamps, conform
from actors.settings import MIB

OLD_NULLS = ("", "NA", "NULL", "null", "NaN", "nan")
"""The texts that sources of the reading rules 1 read as null."""
# A block that fits into the cache of a processor is parsed faster.
_BLOCK_BYTES = MIB
# Arrow reads hexadecimal text as an integer, also of too many digits.
_HEXADECIMAL = r"^\s*0[xX]"
_SHOWN_CHARACTERS = 80


class CsvValues:
    """Reads the values of whole records without escapes and comments.

    Args:
        format: the options of the format.
        names: the names of the columns, in the order of the file.
        schema: the wanted columns and their types.
        timestamps: the treatment of digits below microseconds.
        is_old: True for a source of the reading rules 1, where quoted text may be null.
    """

    def __init__(
        self, format: Csv, names: Sequence[str], schema: pa.Schema, timestamps: Timestamps, *, is_old: bool
    ) -> None:
        self._format, self._names, self._schema, self._timestamps = format, names, schema, timestamps
        self._is_old = is_old
        self._date = None if format.date_format is None else TimeFormat.of_date("date_format", format.date_format)
        self._time = (
            None if format.timestamp_format is None else TimeFormat.of_time("timestamp_format", format.timestamp_format)
        )
        self._parsing = parse_options(format)
        self._as_text = {field.name for field in schema if self._is_read_as_text(field)}
        self._integers = [
            field.name for field in schema if kinds.is_integer(field.type) and field.name not in self._as_text
        ]
        self._options = self._convert_options(schema.names, self._as_text, are_quoted_null=is_old)
        self._has_times = any(map(kinds.is_timestamp, schema.types))
        self._is_checked = any(kinds.is_decimal(kind) for kind in schema.types)
        self.texts = [field.name for field in schema if is_textual(field.type)]
        """The columns whose values are the texts of the file."""

    def read(self, text: Text, *, has_quote: bool, has_hexadecimal: bool) -> pa.Table:
        """The values of records.

        Args:
            has_quote: False if the text has no quote.
            has_hexadecimal: False if the text has no `x` and no `X`.

        Raises:
            pa.ArrowInvalid, UnreadableFile: a value does not fit, or a record has another number of fields.
        """
        try:
            return self._typed(read_text(text, self._names, self._parsing, self._options), text, has_hexadecimal)
        except (pa.ArrowInvalid, UnreadableFile):
            if self._is_old or not (has_quote or self._has_times):
                raise
            table = self._read_with_quoted_nulls(text, has_hexadecimal)
            if table is None:
                raise
            return table

    def _read_with_quoted_nulls(self, text: Text, has_hexadecimal: bool) -> pa.Table | None:
        """The values, if a quoted null marker in a column of another type than text is a null; None if others are bad.

        Times are read as text: Arrow refuses more than six digits of a second, also if they are zero.
        """
        texts = [field.name for field in self._schema if is_textual(field.type)]
        others = [field.name for field in self._schema if not is_textual(field.type)]
        if not others:
            return None
        as_text = self._as_text | {field.name for field in self._schema if kinds.is_timestamp(field.type)}
        try:
            columns: dict[str, pa.ChunkedArray] = {}
            for names, are_quoted_null in ((texts, False), (others, True)):
                if names:
                    options = self._convert_options(names, as_text, are_quoted_null=are_quoted_null)
                    table = read_text(text, self._names, self._parsing, options)
                    columns |= dict(zip(names, table.columns, strict=True))
            return self._typed(pa.table({name: columns[name] for name in self._schema.names}), text, has_hexadecimal)
        except (pa.ArrowInvalid, UnreadableFile):
            return None

    def _typed(self, table: pa.Table, text: Text, has_hexadecimal: bool) -> pa.Table:
        if has_hexadecimal and self._integers and not self._is_old:
            self._require_decimal_integers(text)
        for name in self._as_text:
            index = table.schema.get_field_index(name)
            column = self._in_form(table.column(index), self._schema.field(name))
            table = table.set_column(index, name, column)
        if not self._is_checked and table.schema.equals(self._schema):
            # Arrow's reader has checked the encoding of texts.
            return table
        return conform(table, self._schema, parse_text=True, timestamps=self._timestamps)

    def _require_decimal_integers(self, text: Text) -> None:
        content = bytes(text)
        if b"0x" not in content and b"0X" not in content:
            return
        options = self._convert_options(self._integers, set(self._integers), are_quoted_null=False)
        table = read_text(text, self._names, self._parsing, options)
        for name in self._integers:
            column = table.column(name)
            wrong = column.filter(pc.match_substring_regex(column, _HEXADECIMAL).fill_null(False))
            if len(wrong):
                value = one_line(wrong[0].as_py(), _SHOWN_CHARACTERS)
                raise UnreadableFile(f"column {name}: {value!r} is hexadecimal text, not an integer; declare a string")

    def _convert_options(
        self, names: Sequence[str], as_text: set[str], *, are_quoted_null: bool
    ) -> arrow_csv.ConvertOptions:
        types = {name: pa.string() if name in as_text else self._schema.field(name).type for name in names}
        return convert_options(
            self._format,
            self._is_old,
            include_columns=list(names),
            include_missing_columns=True,
            column_types=types,
            quoted_strings_can_be_null=are_quoted_null,
        )

    def _is_read_as_text(self, field: pa.Field) -> bool:
        """Arrow refuses an instant without a zone, and digits below microseconds; `conform` takes them."""
        kind = field.type
        if kinds.is_timestamp(kind):
            return kind.tz is not None or self._timestamps == "truncate" or self._time is not None
        if kinds.is_date(kind):
            return self._date is not None
        return self._format.thousands is not None and is_number(kind)

    def _in_form(self, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        """A column of text in the form that `conform` reads, or in its type."""
        try:
            if is_number(field.type):
                return self._numbers(column).cast(field.type)
            form = self._date if kinds.is_date(field.type) else self._time
            if form is None:
                return column
            return pa.chunked_array([form.iso(chunk) for chunk in column.chunks], pa.string())
        except UnreadableFile as error:
            reason = f"column {field.name}: {error.reason}"
        except pa.ArrowInvalid as error:
            reason = f"column {field.name}: {one_line(error)}"
        raise UnreadableFile(reason)

    def _numbers(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Numbers without their separators."""
        assert self._format.thousands is not None
        is_form = pc.match_substring_regex(column, number_form(self._format))
        if not pc.all(is_form, min_count=0).as_py():
            value = one_line(column.filter(pc.invert(is_form))[0].as_py(), _SHOWN_CHARACTERS)
            example = f"1{self._format.thousands}234{self._format.decimal}5"
            raise UnreadableFile(f"{value!r} is not a number of the form {example}")
        return plain_numbers(column, self._format)


def number_form(format: Csv) -> str:
    """The regular expression of numbers with groups of three digits, or without."""
    decimal, thousands = re.escape(format.decimal), re.escape(format.thousands or "")
    return rf"^\s*-?(\d+|\d{{1,3}}({thousands}\d{{3}})+)({decimal}\d*)?([eE][+-]?\d+)?\s*$"


def plain_numbers(column: pa.ChunkedArray, format: Csv) -> pa.ChunkedArray:
    """Numbers of the format's form, with a point and without separators of thousands."""
    column = pc.utf8_trim_whitespace(column)
    if format.thousands is not None:
        column = pc.replace_substring(column, format.thousands, "")
    return column if format.decimal == "." else pc.replace_substring(column, format.decimal, ".")


def is_number(kind: pa.DataType) -> bool:
    """True for integers, floating point numbers and decimals."""
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def is_textual(kind: pa.DataType) -> bool:
    """True for a type whose values are the bytes of the file."""
    return bool(kinds.is_string(kind) or kinds.is_binary(kind))


def parse_options(format: Csv, **options: object) -> arrow_csv.ParseOptions:
    """The options of Arrow's parser."""
    return arrow_csv.ParseOptions(
        delimiter=format.delimiter, quote_char=format.quote or False, newlines_in_values=True, **options
    )


def convert_options(format: Csv, is_old: bool, **options: object) -> arrow_csv.ConvertOptions:
    """The options of Arrow's conversion."""
    nulls = format.null_values
    if nulls is None:
        nulls = OLD_NULLS if is_old else ("",)
    if format.true_values:
        options |= {"true_values": list(format.true_values), "false_values": list(format.false_values)}
    return arrow_csv.ConvertOptions(
        null_values=list(nulls), strings_can_be_null=True, decimal_point=format.decimal, **options
    )


def read_text(
    text: Text, names: Sequence[str], parsing: arrow_csv.ParseOptions, options: arrow_csv.ConvertOptions
) -> pa.Table:
    """The table that Arrow reads."""
    try:
        return _read_blocks(text, names, parsing, options, _BLOCK_BYTES)
    except pa.ArrowInvalid as error:
        if "straddl" not in str(error):
            raise
    return _read_blocks(text, names, parsing, options, len(text) + 1)


def _read_blocks(
    text: Text,
    names: Sequence[str],
    parsing: arrow_csv.ParseOptions,
    options: arrow_csv.ConvertOptions,
    block_bytes: int,
) -> pa.Table:
    reading = arrow_csv.ReadOptions(use_threads=False, block_size=block_bytes, column_names=list(names))
    return arrow_csv.read_csv(pa.BufferReader(text), reading, parsing, options)
