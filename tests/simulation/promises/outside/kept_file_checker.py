"""Checks of the files of users that a run deletes or moves after the commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from actors.files import FileKey, FileVersion
from state.tables.expectations import PUBLISHED, Gate
from state.tables.records import Head
from state.tables.stored_rows import base_name
from tests.simulation.memory.file_tables import FileTables, file_of, path_of
from tests.simulation.memory.memory_disk import MemoryDisk, Row
from tests.simulation.model_views.model_view import ModelView, identity_of
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.promises.outside.publication_checker import PublicationChecker
from tests.simulation.world.bucket import Bucket, is_version
from tests.simulation.world.published_tables import PublishedTables
from tests.simulation.world.simulated_clock import SimulatedClock


@dataclass(frozen=True)
class _Finished:
    """The commit of the epoch that finished a file: its true time, and how far the wall clock was ahead of it."""

    true_s: float
    ahead_s: float


class KeptFileChecker:
    """Checks that a file is removed only if every declared view has its rows, its time has come, and it is published.

    Attributes:
        branches: returns the branches that can be opened, each with its disk.
        removed: the number of files that were deleted or moved.

    Args:
        disk: of the store.
        bucket: the files.
        clock: knows the true time.
        keep_s: seconds from the commit to the removal; None if no file may be removed.
        stored: the sources whose rows are stored.
        tables: the tables that follow views.
        published: their checker.
    """

    def __init__(
        self,
        disk: MemoryDisk,
        bucket: Bucket,
        clock: SimulatedClock,
        keep_s: float | None,
        stored: Collection[str],
        tables: PublishedTables,
        published: PublicationChecker,
    ) -> None:
        self._disk, self._bucket, self._clock = disk, bucket, clock
        self._tables, self._published = tables, published
        self._keep_s, self._stored = keep_s, stored
        self._commits: dict[int, _Finished] = {}
        self._finished: dict[tuple[FileKey, int], _Finished] = {}
        self._looked = FileTables.of(None)
        self.branches: Callable[[], Iterable[tuple[str, MemoryDisk]]] = tuple
        self.removed = 0

    def check(self, tables: FileTables) -> None:
        """Notes when the files of the next version of the store were finished; none is of another program's table."""
        if self._bucket.foreign_paths:
            for row, _ in tables.offsets():
                if path_of(row) in self._bucket.foreign_paths:
                    raise PromiseBroken("kept", f"{row['path']} is of another program's table, and is read as data")
        if self._keep_s is None:
            return
        for row in tables.ledger.values():
            if row["status"] == "done":
                epoch = row["done_epoch"]
                self._finished.setdefault((file_of(row), epoch), self._commits[epoch])

    def on_commit(self, epoch: int) -> None:
        """Notes the time of a commit, which may arrive later."""
        if self._keep_s is not None:
            self._commits.setdefault(epoch, _Finished(self._clock.true_s, self._clock.ahead_s))

    def on_begin(self, run: str, source: str, paused: Collection[str], looked: FileTables, *, has_lost: bool) -> None:
        """Checks that a run removes no further files if it has lost the root, or its source is paused, as it knows.

        Args:
            run: the name of the run.
            source: the source of the files.
            paused: the paused sources, as the run knows.
            looked: the rows of the store at the beginning of the look.
            has_lost: whether the run knows that it has lost the root.
        """
        self._looked = looked
        if source in paused:
            raise PromiseBroken("kept", f"{source} is paused, and {run} goes on with its files")
        if has_lost:
            raise PromiseBroken("kept", f"{run} has lost the root, and goes on with files")

    def on_sent(
        self,
        file: FileVersion,
        declared: Iterable[ModelView],
        gate: Gate,
        *,
        knows_root: bool,
        ahead_at_start_s: float,
    ) -> None:
        """Checks the request to remove a file, as it is sent.

        Args:
            file: the version of the file.
            declared: the views that the run declares.
            gate: the state of the gate.
            knows_root: whether the run still owns the root, as it knows; another one may declare other views.
            ahead_at_start_s: how far the wall clock was ahead of the true time when the run began.
        """
        if self._keep_s is None:
            raise PromiseBroken("kept", f"{file.path} is removed, and nobody has declared that")
        tables = FileTables.latest(self._disk)
        head = self._disk.versions[self._disk.latest].head
        key = (file.source, file.path, file.version)
        row = next((each for each in tables.ledger.values() if file_of(each) == key), None)
        if row is None or row["status"] != "done":
            raise PromiseBroken("kept", f"{file.path} is removed, and its version is not done: {row}")
        if row["rows_bad"]:
            raise PromiseBroken("kept", f"{file.path} is removed, and has {row['rows_bad']} bad records")
        for branch, disk in self.branches():
            self._check_branch(branch, FileTables.latest(disk), row)
        self._check_time(row, ahead_at_start_s)
        self._check_published(row, head, gate)
        for view in declared:
            if file.source in view.sources:
                self._check_table(view, row)
                if knows_root and file.source not in self._stored:
                    self._check_view(view, row, head, tables)

    def on_removed(self, file: FileVersion) -> None:
        """Checks the object that a request removes, as the bucket carries it out."""
        found = self._bucket.present().get((file.source, file.path))
        assert found is not None, "the bucket compares versions"
        if not is_version(found.file, file):
            raise PromiseBroken("kept", f"{file.path} is removed in another version than it was read in")
        self.removed += 1

    def check_archive(self) -> None:
        """Checks that each moved file is in the archive with its content, and that nothing was overwritten there."""
        for path, content in self._bucket.moved.items():
            if self._bucket.archived.get(path) != content:
                raise PromiseBroken("kept", f"{path} was moved, and the archive has {self._bucket.archived.get(path)}")
        for path, content in self._bucket.foreign.items():
            if self._bucket.archived.get(path) != content:
                raise PromiseBroken("kept", f"{path} of another program was overwritten in the archive")

    def _check_time(self, row: Row, ahead_at_start_s: float) -> None:
        """A run measures time from its own start on; before it, it has only the wall clock."""
        finished, now_s, keep_s = self._finished[file_of(row), row["done_epoch"]], self._clock.true_s, self._keep_s
        assert keep_s is not None
        set_before_s = max(0.0, ahead_at_start_s - finished.ahead_s)
        if now_s - finished.true_s + set_before_s < keep_s:
            passed_s = now_s - finished.true_s
            raise PromiseBroken("kept", f"{row['path']} is removed {passed_s:.1f} s after its commit, not {keep_s:g} s")

    def _check_published(self, row: Row, head: Head, gate: Gate) -> None:
        last = head.tags.get(PUBLISHED, 0) if gate == "closed" else head.epoch
        if row["done_epoch"] > last:
            raise PromiseBroken(
                "kept", f"{row['path']} of epoch {row['done_epoch']} is removed, and {last} is published"
            )

    def _check_table(self, view: ModelView, row: Row) -> None:
        table = self._tables.by_view.get(view.name)
        if table is not None and not self._published.has_epoch(table, row["done_epoch"]):
            raise PromiseBroken(
                "kept",
                f"{row['path']} of epoch {row['done_epoch']} is removed, and the table of {view.name} is at epoch "
                f"{table.epoch}",
            )

    def _check_branch(self, branch: str, tables: FileTables, row: Row) -> None:
        """Checks that a branch, which reads the same source, has read the file, too."""
        if not any(file_of(each) == file_of(row) for each in tables.ledger.values()):
            raise PromiseBroken("kept", f"{row['path']} is removed, and branch {branch} has not read it")

    def _check_view(self, view: ModelView, row: Row, head: Head, tables: FileTables) -> None:
        """Checks that a declared view is there in its definition, complete and maintained: then it has all rows."""
        found = [
            each
            for each in tables.catalog.values()
            if each["kind"] == "view" and base_name(each["name"]) == view.name and each["identity"] == identity_of(view)
        ]
        why = "is not there" if not found else ""
        for each in found:
            version = head.views.get(each["name"])
            if version is None:
                why = "is not there"
            elif each["stopped_epoch"] is not None and each["name"] not in self._looked.stopped_views():
                return  # it has failed during the look, as if the file had been removed just before
            elif each["stopped_epoch"] is not None:
                why = f"is stale since epoch {each['stopped_epoch']} ({each['error']})"
            elif version.pinned_epoch is not None:
                why = "is being built"
            else:
                return
        raise PromiseBroken("kept", f"{row['path']} is removed, and the declared view {view.name} {why}")
