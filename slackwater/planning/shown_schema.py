"""Schema of a source by its first files, as a run would take it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import pyarrow as pa

from actors.file_errors import EmptyFile, ObjectChanged, ObjectVanished, UnreadableFile
from actors.files import FileVersion
from actors.reading.source_reader import SourceReader
from actors.settings import FetchSettings
from actors.sources.source import SourceDefinition
from actors.sources.source_schema import SAMPLE_FILES, SchemaSample


def shown_schema(
    source: SourceDefinition, settings: FetchSettings, files: Iterable[FileVersion]
) -> tuple[pa.Schema | None, int]:
    """Infers the schema from the first files, eight at a time, until one of them shows a schema.

    Args:
        source: the source of the files.
        files: the files in the order of the listing; read only as far as needed.

    Returns:
        The schema, None if no file shows one; and the number of GETs that this took.

    Raises:
        StorageError: the store cannot be reached.
    """
    reader, waiting, gets = SourceReader(source, None, settings), iter(files), 0
    while first := list(islice(waiting, SAMPLE_FILES)):
        sample = SchemaSample(source, 0)
        for file in first:
            shown, cost = _shown(reader, file)
            sample.add(file.path, shown)
            gets += cost
        if sample.shows_something:
            return sample.schema(), gets
    return None, gets


def _shown(reader: SourceReader, file: FileVersion) -> tuple[pa.Schema | None, int]:
    opened = reader.open(file)
    shown: pa.Schema | None
    try:
        shown = opened.infer_schema()
    except (EmptyFile, ObjectChanged, ObjectVanished, UnreadableFile):
        shown = None
    opened.settle()
    return shown, opened.take_cost()[0]
