"""The options of the formats that are built in."""

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
class Csv:
    """CSV files.

    Args:
        delimiter: one character between fields.
        quote: the character around fields that contain a delimiter.
        header: whether the first line names the columns; without it the schema's names count, in order.
        null_values: the texts that mean null.
        encoding: of the text, a name that Python knows; a byte order mark is left out.
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


@dataclass(frozen=True, kw_only=True)
class Text:
    """Text files: a row a line, with one column.

    Args:
        encoding: of the text, a name that Python knows; a byte order mark is left out.
    """

    name: str = field(default="text", init=False)
    encoding: str = "utf-8"
