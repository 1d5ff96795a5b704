"""The record of the actions on files after the commit of their rows: a dataset at the root, next to the store.

Rows are only appended.  The last row of a version and an action counts.  The meaning of a row without a path:

* All files of the source up to an epoch are done, for one action.
* With the action `clock`: the clock of the machine was set.
* With the action `commit`: the time of the commit of an epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

import lance
import pyarrow as pa
import pyarrow.compute as pc

from state.errors import CommitRefusedError, NotFoundError
from state.lance.lance_access import create_dataset, lance_options, open_dataset
from state.location import Location
from state.objects.storage_error import storage_error
from state.removal.datasets import delete_aged_versions
from state.tables.row_selection import quoted

Outcome: TypeAlias = Literal["done", "absent", "changed", "failed", "waits"]
"""done; the object did not exist; it had another version, and stays; the store refused; it is kept for the reason in
`error`.  Files that failed or wait are tried again."""

NAME = "after.lance"
SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("action", pa.string()),
        ("path", pa.string()),
        ("version", pa.binary()),
        ("epoch", pa.int64()),
        ("outcome", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("error", pa.string()),
        ("last_modified", pa.timestamp("us", tz="UTC")),
    ]
)
_DELETING = ("delete", "move to ")
"""The beginnings of the actions after which the object is no longer in its source."""
_CLOCK, _COMMIT = "clock", "commit"
_MOST_FRAGMENTS = 64
_KEPT = timedelta(hours=1)


@dataclass(frozen=True)
class HandledFile:
    """The work on one version of a file after its commit.

    Args:
        source: the name of its source.
        action: the text of the action.
        path: relative to the source.
        version: its fingerprint.
        epoch: the epoch that finished it.
        outcome: see `Outcome`.
        error: why it failed; None if it did not.
        last_modified: the time of the object, as it was listed.
    """

    source: str
    action: str
    path: str
    version: bytes
    epoch: int
    outcome: Outcome
    at: datetime
    error: str | None = None
    last_modified: datetime | None = None


@dataclass(frozen=True)
class ClockChange:
    """The clock of the machine was set: times of commits from before cannot be compared with times after it.

    Args:
        epoch: the last epoch that was committed before the change was noticed.
        at: the time when it was noticed, by the new clock.
    """

    epoch: int
    at: datetime


@dataclass(frozen=True)
class CommitTime:
    """The wall time of the commit of an epoch, which the store forgets when the epoch expires."""

    epoch: int
    at: datetime


class HandledFiles:
    """The record of one root.  One process writes it, the owner of the root; any may read."""

    def __init__(self, root: Location) -> None:
        self._root, self._location = root, root.child(NAME)

    def append(self, files: Sequence[HandledFile], done: tuple[str, str, int, datetime] | None = None) -> None:
        """Records files, and the epoch up to which all files of a source are done, in one commit.

        Args:
            done: source, action, epoch and time; None if more files follow.

        Raises:
            StorageError: the root refuses or does not answer.
        """
        rows: list[dict[str, Any]] = [vars(each) for each in files]
        if done is not None:
            source, action, epoch, at = done
            rows.append({"source": source, "action": action, "epoch": epoch, "at": at, "outcome": "done"})
        if not rows:
            return
        table = pa.Table.from_pylist(rows, SCHEMA)
        dataset = self._opened()
        if dataset is None:
            try:
                create_dataset(self._location, table)
                return
            except CommitRefusedError:  # another process has created it since `_opened`
                dataset = open_dataset(self._location)
        try:
            written = lance.write_dataset(table, dataset, mode="append", storage_options=lance_options(self._location))
            if len(written.get_fragments()) > _MOST_FRAGMENTS:
                written.optimize.compact_files()
                delete_aged_versions(written, self._root, NAME, _KEPT)
        except (OSError, ValueError, RuntimeError) as error:
            raise storage_error(error, self._location) from None

    def append_clock_change(self, change: ClockChange) -> None:
        """Records that the clock was set.

        Raises:
            StorageError: as `append`.
        """
        self.append([], ("", _CLOCK, change.epoch, change.at))

    def clock_change(self) -> ClockChange | None:
        """The last change of the clock; None without one.

        Raises:
            StorageError: as `append`.
        """
        rows = self._read(f"{_of('', _CLOCK)} AND path IS NULL", ["epoch", "at"]).to_pylist()
        return ClockChange(**rows[-1]) if rows else None

    def append_commit_time(self, commit: CommitTime) -> None:
        """Records the time of a commit.

        Raises:
            StorageError: as `append`.
        """
        self.append([], ("", _COMMIT, commit.epoch, commit.at))

    def commit_times(self) -> list[CommitTime]:
        """The recorded times, in the order of their epochs.

        Raises:
            StorageError: as `append`.
        """
        rows = self._read(f"{_of('', _COMMIT)} AND path IS NULL", ["epoch", "at"]).to_pylist()
        return sorted((CommitTime(**row) for row in rows), key=lambda each: each.epoch)

    def done_until(self, source: str, action: str) -> int:
        """The epoch up to which all files of a source are done; 0 before the first.

        Raises:
            StorageError: as `append`.
        """
        found = self._read(f"{_of(source, action)} AND path IS NULL", ["epoch"])
        return max(found["epoch"].to_pylist(), default=0)

    def since(self, source: str, action: str, epoch: int) -> dict[tuple[str, bytes], Outcome]:
        """Path and version of each file that a later epoch has finished, and the last outcome.

        Raises:
            StorageError: as `append`.
        """
        where = f"{_of(source, action)} AND path IS NOT NULL AND epoch > {epoch}"
        return _last_outcomes(self._read(where, ["path", "version", "outcome"]))

    def unfinished(self, source: str, action: str) -> dict[tuple[str, bytes], Outcome]:
        """Path and version of each file whose last outcome is `failed` or `waits`, and that outcome.

        Raises:
            StorageError: as `append`.
        """
        where = f"{_of(source, action)} AND outcome IN ('failed', 'waits')"
        names = {(path, version) for path, version in _keys(self._read(where, ["path", "version"]))}
        if not names:
            return {}
        paths = ", ".join(quoted(path) for path, _ in names)
        rows = self._read(f"{_of(source, action)} AND path IN ({paths})", ["path", "version", "outcome"])
        return {key: outcome for key, outcome in _last_outcomes(rows).items() if outcome in ("failed", "waits")}

    def deletions(self, source: str, start: int) -> tuple[list[HandledFile], int]:
        """The versions that are no longer in a source because the run has deleted or moved them.

        A version that did not exist any more when the run was to delete it counts as well: the run before may have
        been killed between the deletion and its record.

        Args:
            source: the name of the source.
            start: the number of rows of the record that an earlier call has read; 0 for all.

        Returns:
            The files, and the number of rows that are read now.

        Raises:
            StorageError: as `append`.
        """
        dataset = self._opened()
        if dataset is None:
            return [], 0
        try:
            count = dataset.count_rows()
            if count == start:
                return [], start
            # With fewer rows than before it is another record, which is read from its start.
            rows = dataset.scanner(offset=start if start < count else 0, scan_in_order=True).to_table()
        except (OSError, ValueError, RuntimeError) as error:
            raise storage_error(error, self._location) from None
        is_deleting = pc.or_(*(pc.starts_with(rows["action"], each) for each in _DELETING))
        is_over = pc.is_in(rows["outcome"], pa.array(["done", "absent"]))
        wanted = pc.and_(pc.and_(is_deleting, is_over), pc.equal(rows["source"], source))
        wanted = pc.and_(wanted, pc.and_(pc.is_valid(rows["path"]), pc.is_valid(rows["last_modified"])))
        return [HandledFile(**row) for row in rows.filter(wanted).to_pylist()], count

    def table(self, source: str | None = None, path: str | None = None) -> pa.Table:
        """The files, see `SCHEMA`, in the order in which they were handled.

        Args:
            source: only files of this source.
            path: only files with this path, relative to their source.

        Raises:
            StorageError: as `append`.
        """
        where = ["path IS NOT NULL"]
        if source is not None:
            where.append(f"source = {quoted(source)}")
        if path is not None:
            where.append(f"path = {quoted(path)}")
        return self._read(" AND ".join(where), SCHEMA.names)

    def _read(self, where: str, columns: Sequence[str]) -> pa.Table:
        dataset = self._opened()
        if dataset is None:
            return pa.schema([SCHEMA.field(name) for name in columns]).empty_table()
        try:
            return dataset.to_table(columns=list(columns), filter=where, scan_in_order=True)
        except (OSError, ValueError, RuntimeError) as error:
            raise storage_error(error, self._location) from None

    def _opened(self) -> lance.LanceDataset | None:
        try:
            return open_dataset(self._location)
        except NotFoundError:
            return None


def _of(source: str, action: str) -> str:
    return f"source = {quoted(source)} AND action = {quoted(action)}"


def _keys(rows: pa.Table) -> list[tuple[str, bytes]]:
    return list(zip(rows["path"].to_pylist(), rows["version"].to_pylist(), strict=True))


def _last_outcomes(rows: pa.Table) -> dict[tuple[str, bytes], Outcome]:
    # The rows are in the order of their commits, so the last row of a key wins.
    return dict(zip(_keys(rows), rows["outcome"].to_pylist(), strict=True))
