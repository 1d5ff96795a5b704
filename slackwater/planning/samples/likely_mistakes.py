"""Likely mistakes of a declaration: its options compared with a few of its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from actors.files import FileVersion
from actors.formats.options import Csv, Debezium, Json, Text
from actors.formats.signatures import binary_format
from actors.objects.object_store import ObjectStore
from actors.schemas.column_names import names_text
from actors.schemas.path_columns import path_values
from actors.settings import FetchSettings
from actors.sources.source import SourceDefinition
from actors.sources.source_schema import SAMPLE_FILES
from slackwater.planning.samples.csv_format import csv_format
from slackwater.planning.samples.sample import Sample, sample_of
from slackwater.planning.shown_schema import shown_schema

_MOST_NOTES = 3
# `quote` is left out: files need not contain the declared quote.  So is `date_format`: a sample has few dates.
_JUDGED = "delimiter", "header", "skip_rows", "comment", "escape", "decimal", "encoding"


def without_files(source: SourceDefinition, listed: int) -> str:
    """The note about a source without a file to read.

    Args:
        listed: the number of names below the URL, of which none is read.
    """
    url, pattern = source.location.url, source.pattern
    if "*" in url or "?" in url:
        return f'the URL {url} has a wildcard: give the directory as url=, and the rest as pattern="**/*.csv"'
    if not listed:
        return f"nothing is below {url} yet: check the URL, or wait for its first file"
    names = "name" if listed == 1 else "names"
    if pattern == "**":
        return f"all {listed:,} {names} below {url} are hidden: names with _ or . in front, or unfinished files"
    return f"none of the {listed:,} {names} below {url} matches pattern={pattern!r}"


class Look(NamedTuple):
    """A comparison of a source with its first files.

    Args:
        schema: the schema that a run would take from the files; None if no file shows one.
        notes: the likely mistakes, one line each.
        gets: the number of GETs.
    """

    schema: pa.Schema | None
    notes: tuple[str, ...]
    gets: int


def look_at(source: SourceDefinition, settings: FetchSettings, files: Sequence[FileVersion]) -> Look:
    """Opens the first files of a source, eight at a time, until one of them shows a schema.

    Raises:
        StorageError: the store cannot be reached.
    """
    shown = shown_schema(source, settings, files)
    notes, gets = [*_first(shown.faults), *_first(column_notes(source, shown.columns))], shown.gets
    if isinstance(source.format, Csv):
        store, samples = ObjectStore(source.location, requests=settings.requests), list[Sample | str]()
        for file in files[:SAMPLE_FILES]:
            content = store.open(file)
            samples.append(sample_of(content))
            content.settle()
            gets += content.requests
        notes += csv_notes(source.format, samples)
    return Look(shown.schema, tuple(notes), gets)


def _first(notes: Sequence[str]) -> list[str]:
    """The first notes, and the number of the others."""
    more = len(notes) - _MOST_NOTES
    return [*notes[:_MOST_NOTES], *([f"and {more:,} more of the opened files"] if more > 0 else [])]


def csv_notes(format: Csv, samples: Iterable[Sample | str]) -> list[str]:
    """Notes about options that do not suit the files, one for each set of options."""
    paths = dict[str, list[str]]()
    for sample in samples:
        if isinstance(sample, str) or binary_format(sample.head):
            continue
        suited = csv_format(sample)
        if suited is None or isinstance(suited, str):
            continue
        wrong = [name for name in _JUDGED if getattr(suited, name) != getattr(format, name)]
        if wrong:
            options = ", ".join(f"{name}={getattr(suited, name)!r}" for name in wrong)
            paths.setdefault(options, []).append(sample.path)
    return [
        f"{of_files} like Csv({options}); check the options of the format"
        for options, found in paths.items()
        for of_files in [f"{found[0]} looks" if len(found) == 1 else f"{found[0]} and {len(found) - 1} more look"]
    ]


def column_notes(source: SourceDefinition, shown: Mapping[str, Sequence[str]]) -> list[str]:
    """Notes about columns that differ between files, or from the declared ones.

    JSON and text are skipped: a JSON record may omit any field, and a line of text has no fields.

    Args:
        shown: the path of a file → the names of its columns.
    """
    if not shown or isinstance(source.format, (Json, Debezium, Text)):
        return []
    first = next(iter(shown))
    wanted = list(shown[first]) if source.schema is None else source.schema.names
    known, whose = {name.lower() for name in wanted}, first if source.schema is None else "the declared schema"
    outcome = (
        'a run quarantines it; correct the file, or declare Schema(evolution="lenient")'
        if source.evolution == "strict"
        else "its rows have null there"
    )
    notes = []
    for path, names in shown.items():
        own = {name.lower() for name in [*names, *path_values(path)]}
        lacks = [name for name in wanted if name.lower() not in own]
        adds = [name for name in names if name.lower() not in known]
        if lacks:
            also = f", and has {names_text(adds)}" if adds else ""
            notes.append(f"{path} lacks {names_text(lacks)} of {whose}{also}: {outcome}")
    return notes
