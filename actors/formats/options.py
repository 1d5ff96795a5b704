"""Options of the built-in formats."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


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
        quote: the character around fields that contain a delimiter.
        header: True if the first line names the columns; otherwise the names of the schema count, in order.
        null_values: the texts that stand for null.
        encoding: the encoding of the text, by its name in Python; a byte order mark is skipped.
    """

    name: str = field(default="csv", init=False)
    delimiter: str = ","
    quote: str = '"'
    header: bool = True
    null_values: tuple[str, ...] = ("", "NA", "NULL", "null", "NaN", "nan")
    encoding: str = "utf-8"


@dataclass(frozen=True, kw_only=True)
class Json:
    """Newline-delimited JSON files: one object a line."""

    name: str = field(default="json", init=False)


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
