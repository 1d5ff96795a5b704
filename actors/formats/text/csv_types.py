"""Types that the texts of CSV columns suggest: the narrowest type that keeps every value of the sample."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from actors.file_errors import UnreadableFile
from actors.formats.options import Csv
from actors.formats.text.csv_values import (
    convert_options,
    is_number,
    is_textual,
    number_form,
    parse_options,
    plain_numbers,
    read_text,
)
from actors.formats.text.lines import Text
from actors.formats.time_format import TimeFormat
from actors.schemas.conform import conform

_INTEGER = r"^\s*-?(0|[1-9]\d*)\s*$"
_NUMBER = r"^\s*-?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$"
_NUMBER_OR_WORD = rf"{_NUMBER}|^\s*([nN]a[nN]|-?[iI]nf(inity)?)\s*$"
_BOOLEAN = r"^(true|True|TRUE|false|False|FALSE)$"
_DATE = r"^\d{4}-\d{2}-\d{2}$"
_TIME = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}(:?\d{2}(:?\d{2}(\.\d{1,9})?)?)?( ?(Z|[+-]\d{2}(:?\d{2})?))?)?$"
_HAS_ZONE = r"\d ?(Z|[+-]\d{2}(:?\d{2})?)$"
_HAS_CLOCK = r"[ T]\d"
# Of a code, too: the sample below it may have no leading zero.
_DIGITS = re.compile(r"\s*[-+]?\d[\d.,]*\s*")
_FIRST_LOOK_ROWS = 64
_INT64_DIGITS, _WIDE_DIGITS, _MAX_DIGITS = 18, 20, 38


class CsvTypes:
    """Finds the types of columns.

        only digits, without leading zeros      bigint, decimal(20, 0), decimal(38, 0), or text beyond
        other numbers                           double; text if it has an integer that no bigint holds, or overflows
        true and false                          boolean
        ISO 8601, or the given form             date, timestamp_ntz, or timestamp if a value has a zone
        no value                                null
        anything else                           string

    Args:
        format: the options of the format.
    """

    def __init__(self, format: Csv) -> None:
        self._format = format
        self._date = None if format.date_format is None else TimeFormat.of_date("date_format", format.date_format)
        self._time = (
            None if format.timestamp_format is None else TimeFormat.of_time("timestamp_format", format.timestamp_format)
        )

    def of_text(
        self, text: Text, names: Sequence[str], wanted: Sequence[str], *, skips: bool
    ) -> Mapping[str, pa.Field]:
        """The type of each wanted column.

        Args:
            text: whole records without faults, escapes and comments.
            names: the names of the columns, in the order of the file.
            skips: True to leave records of another number of fields out.

        Raises:
            pa.ArrowInvalid: a record has another number of fields.
        """
        skip = {"invalid_row_handler": lambda row: "skip"} if skips else {}
        options = convert_options(
            self._format,
            False,
            include_columns=list(wanted),
            column_types={name: pa.binary() for name in wanted},
            quoted_strings_can_be_null=True,
        )
        table = read_text(text, names, parse_options(self._format, **skip), options)
        return {name: pa.field(name, self._type(column)) for name, column in zip(wanted, table.columns, strict=True)}

    def count(self, text: Text, names: Sequence[str]) -> int:
        """The number of records with as many fields as there are names."""
        parsing = parse_options(self._format, invalid_row_handler=lambda row: "skip")
        options = convert_options(self._format, False, include_columns=list(names[:1]))
        return int(read_text(text, names, parsing, options).num_rows)

    def of_word(self, word: str) -> pa.DataType:
        """The type that a single text suggests."""
        return self._type(pa.chunked_array([[word.encode()]]))

    def _type(self, column: pa.ChunkedArray) -> pa.DataType:
        values = column.drop_null()
        if not len(values):
            return pa.null()
        try:
            values = values.cast(pa.string())
        except pa.ArrowInvalid:
            return pa.string()
        return self._type_of(values, values.slice(0, _FIRST_LOOK_ROWS))

    def _type_of(self, values: pa.ChunkedArray, first: pa.ChunkedArray) -> pa.DataType:
        if self._format.true_values:
            words = pa.array([*self._format.true_values, *self._format.false_values])
            if pc.all(pc.is_in(values, words)).as_py():
                return pa.bool_()
        elif _match(first, _BOOLEAN) and _match(values, _BOOLEAN):
            return pa.bool_()
        if kind := self._number(values, first):
            return kind
        return self._day_or_time(values, first)

    def _number(self, values: pa.ChunkedArray, first: pa.ChunkedArray) -> pa.DataType | None:
        format = self._format
        if format.thousands is not None or format.decimal != ".":
            form = number_form(format)
            if not (_match(first, form) and _match(values, form)):
                return None
            values = plain_numbers(values, format)
            first = values.slice(0, _FIRST_LOOK_ROWS)
        if _match(first, _INTEGER) and _match(values, _INTEGER):
            return _integer(values)
        if not (_match(first, _NUMBER_OR_WORD) and _match(values, _NUMBER_OR_WORD)):
            return None
        is_number = pc.match_substring_regex(values, _NUMBER)
        numbers = values.filter(is_number)
        if not len(numbers):
            return pa.float64() if pc.all(pc.equal(values, "NaN")).as_py() else None
        integers = numbers.filter(pc.match_substring_regex(numbers, _INTEGER))
        if len(integers) and _integer(integers) != pa.int64():
            return None
        is_finite = pc.all(pc.is_finite(pc.utf8_trim_whitespace(numbers).cast(pa.float64()))).as_py()
        return pa.float64() if is_finite else None

    def _day_or_time(self, values: pa.ChunkedArray, first: pa.ChunkedArray) -> pa.DataType:
        try:
            if self._date is not None:
                if self._date.matches(first) and self._date.matches(values):
                    _iso(self._date, values).cast(pa.date32())
                    return pa.date32()
            elif _match(first, _DATE) and _match(values, _DATE):
                values.cast(pa.date32())
                return pa.date32()
            if self._time is not None:
                if not (self._time.matches(first) and self._time.matches(values)):
                    return pa.string()
                values, has_zone = _iso(self._time, values), self._time.has_zone
            elif _match(first, _TIME) and _match(values, _TIME):
                has_clock = pc.match_substring_regex(values, _HAS_CLOCK)
                if self._date is not None and not pc.all(has_clock).as_py():
                    return pa.string()
                has_zone = pc.any(pc.match_substring_regex(values.filter(has_clock), _HAS_ZONE)).as_py()
            else:
                return pa.string()
            kind = pa.timestamp("us", "UTC" if has_zone else None)
            table = pa.table({"value": values})
            conform(table, pa.schema([("value", kind)]), parse_text=True, timestamps="truncate")
        except (pa.ArrowInvalid, UnreadableFile):
            return pa.string()
        return kind


def looks_like_values(names: Sequence[str], schema: pa.Schema, types: CsvTypes) -> bool:
    """True if the first line of a file may be a row: every value in a column of another type than text fits its type.

    Args:
        names: the fields of the first line.
        schema: the types of the columns below it.
    """
    pairs = [
        (name, field.type)
        for name, field in zip(names, schema, strict=True)
        if name and not is_textual(field.type) and not kinds.is_null(field.type)
    ]
    return bool(pairs) and all(
        _is_of_kind(types.of_word(name), kind) or (is_number(kind) and _DIGITS.fullmatch(name)) for name, kind in pairs
    )


def _is_of_kind(word: pa.DataType, kind: pa.DataType) -> bool:
    tests = (
        lambda each: kinds.is_integer(each) or kinds.is_floating(each) or kinds.is_decimal(each),
        kinds.is_temporal,
        kinds.is_boolean,
    )
    return any(test(word) and test(kind) for test in tests)


def _iso(form: TimeFormat, values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([form.iso(chunk) for chunk in values.chunks], pa.string())


def _match(values: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, pattern)).as_py())


def _integer(values: pa.ChunkedArray) -> pa.DataType:
    """The narrowest exact type of integers; text beyond 38 digits."""
    texts = pc.utf8_trim_whitespace(values)
    digits = pc.max(pc.utf8_length(pc.utf8_ltrim(texts, "-"))).as_py()
    if digits <= _INT64_DIGITS:
        return pa.int64()
    try:
        texts.cast(pa.int64())
        return pa.int64()
    except pa.ArrowInvalid:
        pass
    if digits <= _WIDE_DIGITS:
        return pa.decimal128(_WIDE_DIGITS, 0)
    return pa.decimal128(_MAX_DIGITS, 0) if digits <= _MAX_DIGITS else pa.string()
