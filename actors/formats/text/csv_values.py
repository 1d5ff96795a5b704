"""Values of CSV fields: the options of Arrow's reader, and the forms of values that it does not read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
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
_ROW_CHARACTERS = 100
# Characters outside of these are in no value of the type; the values within them are tried one by one.
_TIME_CHARACTERS = r"^[-+ 0-9:.TZtz]*$"
_CHARACTERS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (kinds.is_integer, r"^([-+]?\d*|0[xX][0-9a-fA-F]*)$"),
    (kinds.is_floating, r"^[-+0-9eE.,]*$|^[-+]?(?i:nan|inf)"),
    (kinds.is_decimal, r"^[-+0-9eE.,]*$"),
    (kinds.is_date, r"^[-0-9]*$"),
    (kinds.is_timestamp, _TIME_CHARACTERS),
)
_INTEGER = re.compile(r"\s*-?0*\d+\s*")
_MOST_DIGITS = 400
_BOOLEANS = ("1", "0", "true", "false", "True", "False", "TRUE", "FALSE")


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

    def unfit(self, text: Text, num_records: int) -> dict[int, str]:
        """Index → the error of Arrow, for records that certainly do not fit, in a time that is linear in their number.

        A record has another number of fields, or a value of characters that its type does not have.

        Args:
            text: whole records, none of them empty.
        """
        refused: list[arrow_csv.InvalidRow] = []

        def skip(row: arrow_csv.InvalidRow) -> str:
            refused.append(row)
            return "skip"

        given = frozenset(self._names)
        fields = [field for field in self._schema if field.name in given]
        options = convert_options(
            self._format,
            self._is_old,
            include_columns=[field.name for field in fields],
            column_types={field.name: pa.binary() for field in fields},
            quoted_strings_can_be_null=True,
        )
        parsing = parse_options(self._format, invalid_row_handler=skip)
        try:
            # One block: a second attempt would report rows again.
            table = _read_blocks(text, self._names, parsing, options, len(text) + 1)
        except pa.ArrowInvalid:
            return {}
        if len(refused) + table.num_rows != num_records or any(row.number is None for row in refused):
            return {}
        errors = {row.number - 1: _field_error(row) for row in refused}
        rest = np.delete(np.arange(num_records), [*errors])
        columns = dict(zip((field.name for field in fields), table.columns, strict=True))
        numbers = {name: number for number, name in enumerate(self._names)}
        for field in fields:
            kind = pa.string() if field.name in self._as_text else field.type
            column = f"In CSV column #{numbers[field.name]}: "
            for index, error in unfit_values(columns[field.name], kind, self._format).items():
                errors.setdefault(int(rest[index]), column + error)
        # Arrow converts all columns before the texts get their forms.
        for field in fields:
            if field.name in self._as_text and (form := self._form(field)) is not None:
                for index, value in _unlike(columns[field.name], form.pattern).items():
                    errors.setdefault(int(rest[index]), f"column {field.name}: {form.refusal(value)}")
        return errors

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
        for index, field in enumerate(self._schema):
            if field.name in self._as_text:
                table = table.set_column(index, field.name, self._in_form(table.column(index), field))
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

    def _form(self, field: pa.Field) -> _Form | None:
        """The form of the texts of a column that Arrow reads as text; None for texts of any form."""
        if is_number(field.type):
            example = f"1{self._format.thousands}234{self._format.decimal}5"
            return _Form(number_form(self._format), f"a number of the form {example}")
        form = self._date if kinds.is_date(field.type) else self._time
        if form is not None:
            return _Form(form.pattern, f"a text of the form {form.text!r}")
        if self._is_old:
            return None
        return _Form(_TIME_CHARACTERS, "a time of ISO 8601; for another form, declare Csv(timestamp_format=...)")

    def _in_form(self, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        """A column of text in the form that `conform` reads, or in its type."""
        if (form := self._form(field)) is not None:
            for value in _unlike(column, form.pattern).values():
                raise UnreadableFile(f"column {field.name}: {form.refusal(value)}")
        try:
            if is_number(field.type):
                return plain_numbers(column, self._format).cast(field.type)
            time = self._date if kinds.is_date(field.type) else self._time
            if time is None:
                return column
            return pa.chunked_array([time.iso(chunk) for chunk in column.chunks], pa.string())
        except UnreadableFile as error:
            reason = f"column {field.name}: {error.reason}"
        except pa.ArrowInvalid as error:
            reason = f"column {field.name}: {one_line(error)}"
        raise UnreadableFile(reason)


class _Form(NamedTuple):
    """The form of the texts of a column.

    Args:
        pattern: a regular expression; spaces around a text do not count.
        name: the form in words.
    """

    pattern: str
    name: str

    def refusal(self, value: str) -> str:
        """The reason against a text of another form."""
        return f"{one_line(value, _SHOWN_CHARACTERS)!r} is not {self.name}"


def unfit_values(column: pa.ChunkedArray, kind: pa.DataType, format: Csv) -> dict[int, str]:
    """Index → the error of Arrow, for texts that are certainly not values of a type.

    Args:
        column: the bytes of the texts.
    """
    if kinds.is_string(kind):
        bad = (index for index, value in enumerate(column.to_pylist()) if not _is_utf8(value))
        return dict.fromkeys(bad, f"CSV conversion error to {kind}: invalid UTF8 data")
    if kinds.is_boolean(kind):
        words = [*format.true_values, *format.false_values] or _BOOLEANS
        pattern = "^(" + "|".join(map(re.escape, words)) + ")$"
    else:
        pattern = next((pattern for is_kind, pattern in _CHARACTERS if is_kind(kind)), "")
    bad_values = _unlike(column, pattern)
    if kinds.is_integer(kind):
        bad_values |= _too_large(column, kind)
    if kinds.is_decimal(kind):
        return {
            index: f"The string '{value}' is not a valid decimal{kind.bit_width} number"
            for index, value in bad_values.items()
        }
    return {index: f"CSV conversion error to {kind}: invalid value '{value}'" for index, value in bad_values.items()}


def _unlike(column: pa.ChunkedArray, pattern: str) -> dict[int, str]:
    """Index → text, for texts that a regular expression does not match."""
    try:
        texts = column.cast(pa.string())
    except pa.ArrowInvalid:
        return {}  # not UTF-8, which is found elsewhere
    is_unlike = pc.invert(pc.match_substring_regex(pc.utf8_trim_whitespace(texts), pattern)).fill_null(False)
    return _at(texts, is_unlike)


def _too_large(column: pa.ChunkedArray, kind: pa.DataType) -> dict[int, str]:
    """Index → text, for decimal integers that a type does not hold."""
    most = 2 ** (kind.bit_width - (1 if kinds.is_signed_integer(kind) else 0)) - 1
    try:
        texts = column.cast(pa.string())
    except pa.ArrowInvalid:
        return {}
    long = _at(texts, pc.greater_equal(pc.utf8_length(texts), len(str(most))).fill_null(False))
    numbers = ((index, text) for index, text in long.items() if _INTEGER.fullmatch(text))
    least = -most - 1 if kinds.is_signed_integer(kind) else 0
    return {index: text for index, text in numbers if len(text) > _MOST_DIGITS or not least <= int(text) <= most}


def _at(texts: pa.ChunkedArray, is_wanted: pa.ChunkedArray) -> dict[int, str]:
    indices = np.flatnonzero(is_wanted.to_numpy())
    return dict(zip(indices.tolist(), texts.take(pa.array(indices)).to_pylist(), strict=True))


def _is_utf8(value: bytes | None) -> bool:
    if value is None or value.isascii():
        return True
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _field_error(row: arrow_csv.InvalidRow) -> str:
    shown = row.text if len(row.text) <= _ROW_CHARACTERS else f"{row.text[: _ROW_CHARACTERS - 4]} ..."
    return f"CSV parse error: Expected {row.expected_columns} columns, got {row.actual_columns}: {shown}"


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
