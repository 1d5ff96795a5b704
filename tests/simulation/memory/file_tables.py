"""The rows about files at one version of the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from actors.files import FileKey, PathKey
from tests.simulation.memory.memory_disk import MemoryDisk, MemoryVersion, Row, Tables


@dataclass(frozen=True)
class FileTables:
    """The rows about files at one version of the store, by key.

    Args:
        ledger: finished file versions.
        queue: listed file versions that are not finished; it has the keys of the ledger.
        seen: the known version of each path, by `path_fingerprint`.
        quarantine: bad records, and messages that are not events.
        list_state: the last listings of the sources.
        catalog: the pipeline, its sources and views.
    """

    ledger: Mapping[bytes, Row]
    queue: Mapping[bytes, Row]
    seen: Mapping[bytes, Row]
    quarantine: Mapping[bytes, Row]
    list_state: Mapping[bytes, Row]
    catalog: Mapping[bytes, Row]

    @classmethod
    def of(cls, version: MemoryVersion | None) -> FileTables:
        """The rows at a version; no rows for None."""
        tables: Tables = {} if version is None else version.tables
        names = ("ledger", "queue", "seen", "quarantine", "list_state", "catalog")
        return cls(*(tables.get(name, {}) for name in names))

    @classmethod
    def latest(cls, disk: MemoryDisk) -> FileTables:
        """The rows at the last version of the store."""
        return cls.of(disk.versions.get(disk.latest))

    @property
    def has_vanished(self) -> bool:
        """True if a file version vanished before a row of it was read."""
        return any(_has_vanished(row) for row in self.ledger.values())

    def offsets(self) -> Iterator[tuple[Row, int]]:
        """The rows of ledger and queue, each with the number of its records that were read."""
        for row in self.ledger.values():
            yield row, row["rows_read"]
        for row in self.queue.values():
            yield row, row["row_offset"]

    def paths_noted_deleted(self) -> set[PathKey]:
        """The paths of which a row of the ledger says that the object is deleted."""
        return {path_of(row) for row in self.ledger.values() if row["deleted_epoch"] is not None or _has_vanished(row)}

    def must_be_listed(self, source: str) -> bool:
        """True if a restart lists a source, and so finds again what messages have told."""
        return all(row["queue"] is None for row in self.list_state.values() if row["source"] == source)

    def stopped_views(self) -> dict[str, Row]:
        """The catalog's rows of the views that are maintained no longer, by name."""
        return {row["name"]: row for row in self.catalog.values() if row["stopped_epoch"] is not None}

    def identities(self) -> dict[str, str]:
        """The identities of the views of the catalog, by name."""
        return {row["name"]: row["identity"] for row in self.catalog.values() if row["kind"] == "view"}

    def statuses(self) -> dict[str, tuple[str, ...]]:
        """`source/path` → the statuses of its finished versions, in the order of their last epochs."""
        statuses: dict[str, tuple[str, ...]] = {}
        for row in sorted(self.ledger.values(), key=lambda row: int(row["done_epoch"])):
            name = "/".join(path_of(row))
            statuses[name] = (*statuses.get(name, ()), row["status"])
        return dict(sorted(statuses.items()))


def path_of(row: Row) -> PathKey:
    """The object of a row."""
    return row["source"], row["path"]


def file_of(row: Row) -> FileKey:
    """The file version of a row."""
    return row["source"], row["path"], row["version"]


def _has_vanished(row: Row) -> bool:
    return row["status"] == "vanished" and not row["rows_read"]
