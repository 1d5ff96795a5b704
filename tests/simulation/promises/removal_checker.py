"""Check of removals: only missing files leave the views, with the approval that this needs."""

from __future__ import annotations

from collections import Counter

from actors.files import FileKey
from state.tables.fingerprint import is_delivery
from tests.simulation.memory.file_tables import FileTables, file_of, path_of
from tests.simulation.memory.memory_disk import Row
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.bucket import Bucket


class RemovalChecker:
    """Checks G4: no file counts as deleted that was in the bucket throughout, or without an approval if it needs one.

    Args:
        bucket: the files and their history.
        needs_approval: whether every removal pauses until the user allows it.

    Attributes:
        is_allowed: whether the user has allowed removals.
    """

    def __init__(self, bucket: Bucket, *, needs_approval: bool = False) -> None:
        self._bucket = bucket
        self.is_allowed = not needs_approval
        self._removals: Counter[FileKey] = Counter()
        self._tables = FileTables.of(None)

    def begin(self, tables: FileTables, above: RemovalChecker) -> None:
        """Begins with the rows of the first version of a branch, and with what is allowed in the root above it."""
        self._tables, self.is_allowed = tables, above.is_allowed

    def check(self, tables: FileTables) -> None:
        """Checks the rows of the next version of the store against those of the last one."""
        before, self._tables = self._tables, tables
        for key, row in tables.ledger.items():
            earlier = before.ledger.get(key)
            if earlier is not None and earlier is not row and _has_deleted(earlier, row):
                if not self.is_allowed:
                    raise PromiseBroken("G4", f"{row['path']} has left the views, and removals were paused")
                self._check_away(row)

    def _check_away(self, row: Row) -> None:
        """Checks that the object was away once more than its version was deleted: between two times it was read."""
        file = file_of(row)
        self._removals[file] += 1
        history = [version for _, version in self._bucket.history[path_of(row)]]
        # The bucket has no name for the delivery of a content that it had before.
        began = 0 if is_delivery(file[2]) else history.index(file[2])
        away = history[began:].count(None)
        if away < self._removals[file]:
            raise PromiseBroken("G4", f"{row['path']} counts as deleted, and was in the bucket throughout")


def _has_deleted(earlier: Row, row: Row) -> bool:
    return bool(earlier["rows_read"]) and earlier["deleted_epoch"] is None and row["deleted_epoch"] is not None
