"""What a source is: where its files are, how they are named, found and read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Union

import pyarrow as pa

from state.location import Location


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
    """

    name: str = field(default="csv", init=False)
    delimiter: str = ","
    quote: str = '"'
    header: bool = True
    null_values: tuple[str, ...] = ("", "NA", "NULL", "null", "NaN", "nan")


@dataclass(frozen=True, kw_only=True)
class Json:
    """Newline-delimited JSON files: one object a line."""

    name: str = field(default="json", init=False)


Format = Union[Parquet, Csv, Json]
FORMATS: dict[str, type[Parquet] | type[Csv] | type[Json]] = {"parquet": Parquet, "csv": Csv, "json": Json}


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Discovery by listing the prefix again and again.

    Args:
        interval_s: seconds from the end of one listing to the start of the next.
    """

    interval_s: float = 10.0


@dataclass(frozen=True, kw_only=True)
class SourceDefinition:
    """One source of a pipeline.  `schema` is None until it is given or taken from the first file."""

    name: str
    location: Location
    format: Format
    pattern: str = "**"
    schema: pa.Schema | None = None
    discovery: Listing = Listing()

    def to_json(self) -> str:
        """What must stay equal over the life of a root, without secrets."""
        return json.dumps(
            {"url": self.location.url, "format": asdict(self.format), "pattern": self.pattern}, sort_keys=True
        )
