"""Options of the built-in formats."""

from __future__ import annotations

from dataclasses import dataclass, field

from actors.formats.option_checks import require_character, require_different, require_encoding, require_texts
from actors.formats.time_format import TimeFormat
from state.errors import SettingsError

CONTROLS = "".join(map(chr, [*range(1, 9), *range(0x1C, 0x20)]))
"""Delimiters that Hive and mainframes write between fields."""
_OF_THOUSANDS = "\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}\N{RIGHT SINGLE QUOTATION MARK}"


@dataclass(frozen=True, kw_only=True)
class Parquet:
    """Parquet files."""

    name: str = field(default="parquet", init=False)


@dataclass(frozen=True, kw_only=True)
class Avro:
    """Avro files, with any codec of the specification."""

    name: str = field(default="avro", init=False)


@dataclass(frozen=True, kw_only=True)
class Orc:
    """ORC files."""

    name: str = field(default="orc", init=False)


@dataclass(frozen=True, kw_only=True)
class Csv:
    """CSV files.

    Args:
        delimiter: the character between fields.
        quote: the character around fields that contain a delimiter; None if a quote is a plain character.
        escape: the character that makes a following quote part of a quoted field, as a doubled quote does: a backslash
            for files of Spark's writer.
        header: True if the first line names the columns; otherwise the names of the schema count, in order.
        skip_rows: the number of lines before the header, or before the first row.
        comment: the character that begins a line without a row.
        null_values: the unquoted texts that are read as null; None for the empty text alone.  Quoted text is never null
            in a column of text.
        true_values: the texts that are read as true; empty for `true` in lower, upper or title case, and 1.
        false_values: the texts that are read as false, as `true_values`; give both, or neither.
        decimal: the character before the fraction of a number.
        thousands: the character between groups of three digits of a number.
        date_format: the form of dates, as in Python's `strptime`, for example `"%d.%m.%Y"`; None for ISO 8601.
        timestamp_format: the form of times, for example `"%d.%m.%Y %H:%M"`; None for ISO 8601.
        encoding: the encoding of the text, by its name in Python; a byte order mark is skipped.

    Raises:
        SettingsError: an option is not valid.
    """

    name: str = field(default="csv", init=False)
    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    header: bool = True
    skip_rows: int = 0
    comment: str | None = None
    null_values: tuple[str, ...] | None = None
    true_values: tuple[str, ...] = ()
    false_values: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str | None = None
    date_format: str | None = None
    timestamp_format: str | None = None
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        characters = {name: getattr(self, name) for name in ("delimiter", "quote", "escape", "comment")}
        for name, character in characters.items():
            if character is not None or name == "delimiter":
                require_character(f"Csv({name}", character, CONTROLS if name == "delimiter" else "")
        require_different("Csv", **characters)
        if self.escape is not None and self.quote is None:
            raise SettingsError("Csv(escape) is for quoted fields: give a quote, too")
        if not isinstance(self.header, bool):
            raise SettingsError(f"Csv(header={self.header!r}): give True or False")
        if not isinstance(self.skip_rows, int) or isinstance(self.skip_rows, bool) or self.skip_rows < 0:
            raise SettingsError(f"Csv(skip_rows={self.skip_rows!r}): give a number of lines, 0 or more")
        self._check_values()
        require_encoding("Csv(encoding", self.encoding)

    def _check_values(self) -> None:
        for name in ("null_values", "true_values", "false_values"):
            if (texts := getattr(self, name)) is not None:
                object.__setattr__(self, name, require_texts(f"Csv({name}", texts))
        if bool(self.true_values) != bool(self.false_values):
            raise SettingsError("Csv(true_values, false_values): give both, or neither")
        if twice := {*self.true_values} & {*self.false_values}:
            raise SettingsError(f"Csv(true_values, false_values): {min(twice)!r} is in both: remove it from one")
        require_character("Csv(decimal", self.decimal)
        if self.thousands is not None:
            require_character("Csv(thousands", self.thousands, _OF_THOUSANDS)
        require_different("Csv", decimal=self.decimal, thousands=self.thousands)
        for name, character in (("decimal", self.decimal), ("thousands", self.thousands)):
            if character is not None and (character.isalnum() or character in "+-"):
                raise SettingsError(f"Csv({name}={character!r}): give a character that is not part of a number")
            if character == self.delimiter and self.quote is None:
                raise SettingsError(f"Csv({name}={character!r}) is the delimiter, too: such files need a quote")
        if self.date_format is not None:
            TimeFormat.of_date("Csv(date_format", self.date_format)
        if self.timestamp_format is not None:
            TimeFormat.of_time("Csv(timestamp_format", self.timestamp_format)


@dataclass(frozen=True, kw_only=True)
class Json:
    """JSON files: objects, one a line or over any lines, or arrays of objects.

    Args:
        raw: the name of a column with the JSON text of each record; a field of this name is not read.  None without
            such a column.
    """

    name: str = field(default="json", init=False)
    raw: str | None = None

    def __post_init__(self) -> None:
        if self.raw is not None and (not isinstance(self.raw, str) or not self.raw.strip()):
            raise SettingsError(f"Json(raw={self.raw!r}): give the name of a column, or None")


DEBEZIUM_DELETED = "__op = 'd'"
"""SQL condition: a change in Debezium's envelope is a deletion."""


@dataclass(frozen=True, kw_only=True)
class Debezium:
    """Changes of a table in Debezium's envelope, as newline-delimited JSON: one change a line.

    A row has the columns of the table, from `after`, or from `before` for a deletion.  Those of the envelope have the
    names `__op`, `__ts_ms`, and `__source_lsn` and the like for the fields of `source`; a declared schema names those
    that are wanted.  With a `key`, the source has the last row of each key, without the deletions (`__op = 'd'`):

        pipeline.source("orders", url, format=Debezium(), key=Key("id", order_by="__source_lsn"))
    """

    name: str = field(default="debezium", init=False)


@dataclass(frozen=True, kw_only=True)
class Text:
    """Text files: one row a line, with one column.

    Args:
        encoding: the encoding of the text, by its name in Python; a byte order mark is skipped.
    """

    name: str = field(default="text", init=False)
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        require_encoding("Text(encoding", self.encoding)
