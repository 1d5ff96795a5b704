"""Checks of ledger, queue and `seen` against the bucket."""

from __future__ import annotations

from dataclasses import dataclass

from actors.files import FileKey
from state.tables.fingerprint import path_fingerprint
from state.tables.tables import REMOVED_STATUSES
from tests.simulation.memory.file_tables import FileTables, file_of, path_of
from tests.simulation.memory.memory_disk import Row
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.promises.command_checker import CommandChecker
from tests.simulation.world.bucket import Bucket
from tests.simulation.world.file_rows import RowsByFile

_STATUSES = ("done", "quarantined", "vanished", *REMOVED_STATUSES)


@dataclass(frozen=True)
class IngestedRows:
    """The ingested rows at one version of the store.

    Args:
        rows: all rows that were ever ingested.
        removed: the file versions whose rows were removed from the views since.
    """

    rows: RowsByFile
    removed: frozenset[FileKey] = frozenset()

    @property
    def in_views(self) -> RowsByFile:
        """The rows that the views must have."""
        return {file: rows for file, rows in self.rows.items() if file not in self.removed}

    def count_since(self, before: IngestedRows, read_again: frozenset[FileKey] = frozenset()) -> int:
        """Number of rows that were ingested since an earlier version.

        A removed file that is back counts again, and so does a file that was read again.
        """
        again = (before.removed - self.removed) | read_again
        return sum(
            len(rows) - (0 if file in again else len(before.rows.get(file, ()))) for file, rows in self.rows.items()
        )


class FileChecker:
    """Checks that each file version is ingested once, by its content, and that every object has a row (G1, G4).

    Args:
        bucket: the files and their contents.
        commands: the wishes of users.
    """

    def __init__(self, bucket: Bucket, commands: CommandChecker) -> None:
        self._bucket, self._commands = bucket, commands
        self._ingested = IngestedRows({})
        self._done_epochs: dict[bytes, int] = {}

    def begin(self, tables: FileTables) -> None:
        """Begins with the rows of the first version of a branch."""
        self._ingested = self._ingested_rows(tables)
        self._read_again(tables)

    def check(self, tables: FileTables, new_rows: int) -> RowsByFile:
        """Checks the rows of the next version of the store.

        Args:
            tables: its rows about files.
            new_rows: the number of rows that its new epoch counts; 0 without a new epoch.

        Returns:
            The rows of each file version that the views must have.
        """
        ingested = self._ingested_rows(tables)
        for row in tables.ledger.values():
            self._check_finished(row)
        _check_seen(tables)
        again = self._read_again(tables)
        count = ingested.count_since(self._ingested, again)
        # A user may have asked once more for a file while it was read.
        most = count + sum(len(ingested.rows[file]) for file in again)
        if not count <= new_rows <= most:
            raise PromiseBroken("G4", f"{count} rows were ingested, the epoch counts {new_rows}")
        self._ingested = ingested
        return ingested.in_views

    def _ingested_rows(self, tables: FileTables) -> IngestedRows:
        rows: dict[FileKey, tuple[int, ...]] = {}
        removed: set[FileKey] = set()
        for row, offset in tables.offsets():
            file = file_of(row)
            if not offset:
                continue
            if file in rows:
                raise PromiseBroken("G1", f"{row['path']} is finished, and is read again")
            rows[file] = self._bucket.contents[file].good_rows(offset)
            if row.get("status") in REMOVED_STATUSES:
                removed.add(file)
        return IngestedRows(rows, frozenset(removed))

    def _read_again(self, tables: FileTables) -> frozenset[FileKey]:
        """The file versions that have ended once more, and replace their own rows."""
        before, self._done_epochs = self._done_epochs, {key: row["done_epoch"] for key, row in tables.ledger.items()}
        return frozenset(
            file_of(row)
            for key, row in tables.ledger.items()
            if row["replaces"] and row["rows_read"] and before.get(key) != row["done_epoch"]
        )

    def _check_finished(self, row: Row) -> None:
        """Checks a row of the ledger against the content of the file, and against the history of its path."""
        content = self._bucket.contents[file_of(row)]
        status, rows = row["status"], row["rows_read"]
        wrong = status not in _STATUSES or rows > content.readable_rows
        if status == "done":
            wrong |= rows != content.rows
        elif status == "quarantined":
            kills = content.kills is not None and rows <= content.kill_row
            wrong |= content.bad_row is None and not kills and not self._commands.is_reread(row)
        if wrong:
            raise PromiseBroken("G4", f"{row['path']} has {content}; it is {status} with {rows} rows")
        if row["deleted_epoch"] is not None and path_of(row) not in self._bucket.left:
            raise PromiseBroken("G4", f"{row['path']} counts as deleted, and never left the bucket")


def _check_seen(tables: FileTables) -> None:
    """Checks that `seen` has exactly the paths that have a row in ledger or queue."""
    rows: dict[bytes, list[Row]] = {}
    for row, _ in tables.offsets():
        rows.setdefault(path_fingerprint(*path_of(row)), []).append(row)
    for key, seen in tables.seen.items():
        if not any(
            row["version"] == seen["version"] or row.get("changed_epoch") is not None for row in rows.get(key, ())
        ):
            raise PromiseBroken("G4", f"an object of {seen['source']} is in `seen`, and has no row")
    if not rows.keys() <= tables.seen.keys():
        raise PromiseBroken("G4", "a file has a row, is not in `seen`, and would be read again")
