"""A source as the catalog records it, with the rows that were ingested by one epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from actors.files import FileVersion
from actors.sources.source import SourceDefinition
from slackwater.reading.tables.file_table import VERSION_COLUMNS, read_files
from state.location import Location
from state.store.store import StateStore
from state.tables.records import CatalogSource
from state.tables.tables import REMOVED_STATUSES
from state.upkeep.quarantine import bad_records, has_no_row


@dataclass(frozen=True)
class IngestedFile:
    """The ingested records of one file version: its first `rows`.

    Args:
        rows: the number of records, good and bad.
        bad: the positions of the quarantined records, in order.
        rows_bad: the number of quarantined records by the ledger.
        is_whole: True if the file has no more records.
        epoch: the epoch that ingested all of them; None for several epochs.
        first: the position of the first record that a history reads.
    """

    file: FileVersion
    rows: int
    bad: tuple[int, ...] = ()
    rows_bad: int = 0
    is_whole: bool = True
    epoch: int | None = None
    first: int = 0

    @property
    def good(self) -> int:
        """The number of its rows in the views."""
        return self.rows - len(self.bad)


@dataclass(frozen=True)
class RecordedSource:
    """A source, and the files of it that were ingested.

    Args:
        definition: the definition, with its schema.
        files: the files with at least one ingested record, by path.
    """

    definition: SourceDefinition
    files: tuple[IngestedFile, ...]

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def schema(self) -> pa.Schema:
        assert self.definition.schema is not None, "a view over a source without a schema does not exist"
        return self.definition.schema


def recorded_definition(source: CatalogSource, known: Iterable[Location], root: Location) -> SourceDefinition:
    """The definition of a source, with storage options.

    Args:
        source: the source in the catalog.
        known: locations with their storage options.
        root: the root; its options count for sources on the same kind of store, as in a pipeline.
    """
    recorded = SourceDefinition.of_json(source.name, source.definition)
    location = recorded.location
    if location.scheme == root.scheme:
        location = replace(location, storage_options=root.storage_options)
    location = next((each for each in known if each.url == location.url), location)
    schema = None if source.schema is None else pa.ipc.read_schema(pa.py_buffer(source.schema))
    return replace(recorded, location=location, schema=schema)


def recorded_sources(
    definitions: Iterable[SourceDefinition], store: StateStore, state_version: int
) -> dict[str, RecordedSource]:
    """The sources with their ingested files, by ledger and queue of one version of the store."""
    files = read_files(store, state_version, columns=VERSION_COLUMNS)
    is_removed = pc.is_in(files["status"], value_set=pa.array(REMOVED_STATUSES))
    was_read = pc.greater(pc.fill_null(files["rows_read"], 0), 0)
    files = files.filter(pc.and_(was_read, pc.invert(is_removed))).sort_by("path")
    found = {}
    for definition in definitions:
        own = files.filter(pc.equal(files["source"], definition.name)).to_pylist()
        records = bad_records(store, definition.name, state_version=state_version)
        bad = _positions(records.filter(pc.invert(has_no_row(records))))
        found[definition.name] = RecordedSource(definition, tuple(_ingested(row, bad) for row in own))
    return found


def _positions(records: pa.Table) -> Mapping[tuple[str, bytes], tuple[int, ...]]:
    """Path and version of each file → the positions of its bad records."""
    positions: dict[tuple[str, bytes], list[int]] = {}
    columns = (records[name].to_pylist() for name in ("path", "version", "row"))
    for path, version, row in zip(*columns, strict=True):
        positions.setdefault((path, version), []).append(row)
    return {file: tuple(sorted(rows)) for file, rows in positions.items()}


def _ingested(row: Mapping[str, Any], bad: Mapping[tuple[str, bytes], tuple[int, ...]]) -> IngestedFile:
    fields = {name: row[name] for name in ("source", "path", "etag", "size", "last_modified")}
    version = row["version"]
    return IngestedFile(
        FileVersion(version=version, **fields),
        row["rows_read"],
        bad=bad.get((row["path"], version), ()),
        rows_bad=row["rows_bad"] or 0,
        is_whole=row["status"] == "done",
        epoch=row["first_epoch"] if row["first_epoch"] == row["done_epoch"] else None,
    )
