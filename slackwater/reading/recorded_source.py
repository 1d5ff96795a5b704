"""A source as the catalog has it, with the rows that one epoch's ledger says were ingested."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from actors.files import FileVersion
from actors.sources.source import SourceDefinition
from slackwater.reading.tables.file_table import read_files
from state.location import Location
from state.store.store import StateStore
from state.tables.fingerprint import version_fingerprint
from state.tables.records import CatalogSource
from state.tables.tables import REMOVED_STATUSES
from state.upkeep.quarantine import bad_records, is_message


@dataclass(frozen=True)
class IngestedFile:
    """The first records of one version of a file.

    Args:
        file: the version.
        rows: how many, good and bad.
        bad: the positions of those that are quarantined, in order.
        rows_bad: how many the ledger says those are.
        is_whole: whether there are no more in the file.
        epoch: the one that ingested all of them; None if there were several.
    """

    file: FileVersion
    rows: int
    bad: tuple[int, ...] = ()
    rows_bad: int = 0
    is_whole: bool = True
    epoch: int | None = None

    @property
    def good(self) -> int:
        """How many rows of it the views hold."""
        return self.rows - len(self.bad)


@dataclass(frozen=True)
class RecordedSource:
    """Where a source is, how it is read, and what was read of it.

    Args:
        definition: with its schema.
        files: those of which at least one record was read, in the order of their paths.
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
    """The definition that a source was read by.

    Args:
        source: the catalog's.
        known: places with the options that open them.
        root: its options open the sources on the same kind of store, as in a pipeline.
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
    """The sources with the files that the ledger and the queues of one version of the store say were read."""
    files = read_files(store, state_version)
    is_removed = pc.is_in(files["status"], value_set=pa.array(REMOVED_STATUSES))
    was_read = pc.greater(pc.fill_null(files["rows_read"], 0), 0)
    files = files.filter(pc.and_(was_read, pc.invert(is_removed))).sort_by("path")
    found = {}
    for definition in definitions:
        own = files.filter(pc.equal(files["source"], definition.name)).to_pylist()
        records = bad_records(store, definition.name, state_version=state_version)
        bad = _positions(records.filter(pc.invert(is_message(records))))
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
    version = version_fingerprint(row["etag"], row["size"], row["last_modified"])
    return IngestedFile(
        FileVersion(version=version, **fields),
        row["rows_read"],
        bad=bad.get((row["path"], version), ()),
        rows_bad=row["rows_bad"] or 0,
        is_whole=row["status"] == "done",
        epoch=row["first_epoch"] if row["first_epoch"] == row["done_epoch"] else None,
    )
