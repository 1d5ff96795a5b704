"""The formats by name, and their readers."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from actors.formats.options import Csv, Json, Parquet, Text
from actors.formats.parquet.parquet_reader import ParquetReader
from actors.formats.reader import CustomFormat, FileReader
from actors.formats.text.csv import CsvReader
from actors.formats.text.json import JsonReader
from actors.formats.text.text_reader import TextReader
from actors.settings import ReadLimits
from state.errors import SettingsError

Format = Parquet | Csv | Json | Text | CustomFormat
FORMATS: dict[str, type[Parquet] | type[Csv] | type[Json] | type[Text]] = {
    "parquet": Parquet,
    "csv": Csv,
    "json": Json,
    "text": Text,
}
_ENTRY_POINTS = "slackwater.formats"


def format_type(name: str) -> Any:
    """The class of the format of a name, ours or an entry point's.

    Raises:
        SettingsError: nobody knows it.
    """
    if name in FORMATS:
        return FORMATS[name]
    others = {each.name: each for each in entry_points(group=_ENTRY_POINTS)}
    if name not in others:
        raise SettingsError(f"format {name!r} is not known; there are {', '.join([*FORMATS, *others])}")
    return others[name].load()


def reader_for(format: Format, limits: ReadLimits = ReadLimits()) -> FileReader:
    """The reader of a format."""
    if isinstance(format, Parquet):
        return ParquetReader(limits)
    if isinstance(format, Csv):
        return CsvReader(format, limits)
    if isinstance(format, Text):
        return TextReader(format, limits)
    if isinstance(format, Json):
        return JsonReader(limits)
    return format.reader(limits)
