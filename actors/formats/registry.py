"""Registry of the formats: by name, and the reader of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

from actors.formats.avro.avro_reader import AvroReader
from actors.formats.options import Avro, Csv, Debezium, Json, Orc, Parquet, Text
from actors.formats.orc.orc_reader import OrcReader
from actors.formats.parquet.parquet_reader import ParquetReader
from actors.formats.reader import CustomFormat, FileReader
from actors.formats.text.csv import CsvReader
from actors.formats.text.debezium import DebeziumReader
from actors.formats.text.json import JsonReader
from actors.formats.text.text_reader import TextReader
from actors.schemas.column_names import NameRule
from actors.schemas.conform import Timestamps
from actors.settings import ReadLimits
from state.errors import SettingsError

BuiltIn = Parquet | Csv | Json | Debezium | Avro | Orc | Text
Format = BuiltIn | CustomFormat
FORMATS: dict[str, type[BuiltIn]] = {
    "parquet": Parquet,
    "csv": Csv,
    "json": Json,
    "debezium": Debezium,
    "avro": Avro,
    "orc": Orc,
    "text": Text,
}
_ALIASES = {"jsonl": "json", "ndjson": "json"}
_READERS: Mapping[type, Callable[[Any, ReadLimits, Timestamps, NameRule], FileReader]] = {
    Parquet: lambda _, *rules: ParquetReader(*rules),
    Csv: CsvReader,
    Json: lambda format, limits, timestamps, names: JsonReader(limits, timestamps, names, format),
    Debezium: lambda _, *rules: DebeziumReader(*rules),
    Avro: lambda _, *rules: AvroReader(*rules),
    Orc: lambda _, *rules: OrcReader(*rules),
    Text: lambda format, limits, *_: TextReader(format, limits),
}
_EXCEL = ("excel", "xlsx", "xls", "xlsm", "xlsb")
_ENTRY_POINTS = "slackwater.formats"
# Packages may have had them before they were built in, and roots may name those.
_OF_PACKAGES_FIRST = ("avro", "orc")


def format_type(name: str) -> Any:
    """The options class of a format, built in or of an entry point; `jsonl` and `ndjson` are `json`.

    Raises:
        SettingsError: no format has this name.
    """
    name = _ALIASES.get(name, name)
    if name in FORMATS and name not in _OF_PACKAGES_FIRST:
        return FORMATS[name]
    others = {each.name: each for each in entry_points(group=_ENTRY_POINTS)}
    if name in others:
        return others[name].load()
    if name.lower() in _EXCEL:
        raise SettingsError("Excel is not read: save each sheet of a workbook as CSV")
    if name not in FORMATS:
        raise SettingsError(f"format {name!r} is not known; the known formats are {', '.join([*FORMATS, *others])}")
    return FORMATS[name]


def is_built_in(format: Format) -> bool:
    """False for a format of a third party."""
    return type(format) in _READERS


def reader_for(
    format: Format,
    limits: ReadLimits = ReadLimits(),
    timestamps: Timestamps = "exact",
    names: NameRule = "any_case",
) -> FileReader:
    """The reader of a format.

    Args:
        format: the options of the format.
        limits: the limits of one file.
        timestamps: the treatment of digits below microseconds; the reader of a third party has its own.
        names: the rule that matches the columns of a file with the columns of its source; the reader of a third
            party has its own.
    """
    make = _READERS.get(type(format))
    if make is None:
        return format.reader(limits)  # type: ignore[union-attr]
    return make(format, limits, timestamps, names)
