"""Schema of a source by its first files, before a run; unreadable files, and the columns of each file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import pyarrow as pa

from actors.file_errors import EmptyFile, ObjectChanged, ObjectVanished, UnreadableFile
from actors.files import FileVersion, time_of
from actors.reading.source_reader import SourceReader
from actors.settings import FetchSettings
from actors.sources.source import SourceDefinition
from actors.sources.source_schema import SAMPLE_FILES, SchemaSample
from state.tables.fingerprint import version_fingerprints


class ShownSchema(NamedTuple):
    """Schema of a source, by its first files.

    Args:
        schema: the schema that a run would give the source; None if no file shows one.
        gets: the number of GETs.
        faults: the path and the reason of each file that cannot be read, one line each.
        columns: the path of a file → the names of its columns.
    """

    schema: pa.Schema | None
    gets: int
    faults: tuple[str, ...]
    columns: dict[str, list[str]]


def shown_schema(source: SourceDefinition, settings: FetchSettings, files: Iterable[FileVersion]) -> ShownSchema:
    """Infers the schema from the first files, eight at a time, until one of them shows a schema.

    Args:
        source: the source of the files.
        files: the files in the order of the listing; read only as far as needed.

    Raises:
        StorageError: the store cannot be reached.
    """
    reader, waiting, gets = SourceReader(source, None, settings), iter(files), 0
    faults, columns = list[str](), dict[str, list[str]]()
    while first := list(islice(waiting, SAMPLE_FILES)):
        sample = SchemaSample(source, 0)
        for file in first:
            opened = reader.open(file)
            shown: pa.Schema | None = None
            try:
                shown = opened.infer_schema()
            except (EmptyFile, ObjectChanged, ObjectVanished):
                pass  # such a file ends nothing, and shows nothing
            except UnreadableFile as error:
                faults.append(f"{file.path}: {error}")
            else:
                columns[file.path] = shown.names
            sample.add(file.path, shown)
            opened.settle()
            gets += opened.take_cost()[0]
        if sample.shows_something:
            return ShownSchema(sample.schema(), gets, tuple(faults), columns)
    return ShownSchema(None, gets, tuple(faults), columns)


def listed_files(source: str, rows: pa.RecordBatch) -> Iterator[FileVersion]:
    """The files of a page of a listing, see `LISTED`."""
    versions = version_fingerprints(rows["etag"], rows["size"], rows["modified_us"])
    for version, row in zip(versions, rows.to_pylist(), strict=True):
        yield FileVersion(source, row["path"], version, row["etag"], row["size"], time_of(row["modified_us"]))
