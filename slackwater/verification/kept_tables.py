"""Earlier rows of a static table: its files hold the present rows only, the root stores the rows of each epoch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from actors.formats.options import Parquet
from actors.objects.object_store import ObjectStore
from slackwater.reading.recorded_source import IngestedFile, RecordedSource
from slackwater.reading.view import View
from slackwater.tables.static_table import FILE
from state.location import Location
from state.tables.records import EpochRecord
from state.tables.stored_rows import stored_rows_name


def with_stored_rows(source: RecordedSource, root: Location, record: EpochRecord, scratch: Path) -> RecordedSource:
    """A static table with a file of the rows that the root stores at an epoch, in place of its present files.

    Args:
        root: that has it.
        scratch: an empty directory for the file.
    """
    rows = View(root, record.views[stored_rows_name(source.name)], (), record.epoch).to_arrow()
    location = Location(str(scratch))
    pq.write_table(rows, location.path / FILE)
    file = ObjectStore(location).find(source.name, FILE)
    assert file is not None, "it was just written"
    definition = replace(source.definition, location=location, format=Parquet())
    return RecordedSource(definition, (IngestedFile(file, rows.num_rows),) if rows.num_rows else ())
