"""Differences between the bucket and the store."""

from __future__ import annotations

from collections.abc import Set

from actors.files import PathKey
from state.tables.fingerprint import path_fingerprint
from state.tables.tables import REMOVED_STATUSES
from tests.simulation.memory.file_tables import FileTables, path_of
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.world.bucket import Bucket


class Backlog:
    """Differences between the bucket and the store that a run must resolve before a story ends.

    `closed` names the sources that are not listed to their end; their objects do not count.

    Args:
        disk: the disk of the store.
        bucket: the files.
        removes: whether the rows of files that are deleted leave the views: `on_change="replace"`.
    """

    def __init__(self, disk: MemoryDisk, bucket: Bucket, *, removes: bool) -> None:
        self._disk, self._bucket, self._removes = disk, bucket, removes

    @property
    def has_vanished(self) -> bool:
        """True if a file version counts as vanished; the message that it is back may not have arrived yet."""
        return FileTables.latest(self._disk).has_vanished

    def undiscovered(self, closed: Set[str]) -> set[PathKey]:
        """The objects of the bucket whose version is not in `seen`."""
        seen = FileTables.latest(self._disk).seen
        listed = self._bucket.listed_version
        versions = {(row["source"], key): listed(row["version"]) for key, row in seen.items()}
        return {
            path
            for path, each in self._bucket.present().items()
            if path[0] not in closed and versions.get((path[0], path_fingerprint(*path))) != each.file.version
        }

    def removed(self, closed: Set[str]) -> set[PathKey]:
        """The objects of the bucket whose rows have left the views with the object, which is back."""
        if not self._removes:
            return set()
        present = {path: each.file.version for path, each in self._bucket.present().items()}
        return {
            path_of(row)
            for row in FileTables.latest(self._disk).ledger.values()
            if row["status"] == "forgotten"
            and row["deleted_epoch"] is not None  # else a user has forgotten it
            and row["source"] not in closed
            and present.get(path_of(row)) == row["version"]
        }

    def not_noted_deleted(self, closed: Set[str]) -> set[PathKey]:
        """The paths of the ledger that are not in the bucket: no row notes that, or their rows are in the views."""
        tables = FileTables.latest(self._disk)
        paths = {path_of(row) for row in tables.ledger.values() if row["source"] not in closed}
        absent = paths - self._bucket.present().keys()
        # Also if a row notes it: the rows of every version must be retracted.
        in_views = {
            path_of(row)
            for row in tables.ledger.values()
            if self._removes and row["rows_read"] and row["status"] not in REMOVED_STATUSES
        }
        return absent - (tables.paths_noted_deleted() - in_views)
