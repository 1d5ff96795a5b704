"""Checks of the reports of runs against the store and the bucket."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from actors.files import FileKey, FileVersion, PathKey
from actors.protocol.run_state import RunState
from actors.sources.source import OnChange
from state.tables.fingerprint import path_fingerprint
from state.tables.records import EpochRecord, ViewVersion
from tests.simulation.memory.file_tables import FileTables, path_of
from tests.simulation.memory.memory_disk import Row
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.bucket import Bucket


class RunChecker:
    """Checks that reports of runs are true, and that deleted messages are settled (G3, G4, G6).

    Args:
        bucket: the files and their history.
        on_change: the `on_change` of every source.
    """

    def __init__(self, bucket: Bucket, on_change: OnChange) -> None:
        self._bucket = bucket
        self._ignores_changes = on_change in ("ignore", "fail")
        self._epochs: dict[str, int] = {}

    def check_state(self, run: str, state: RunState, *, is_committed: bool) -> None:
        """Checks the epoch that a run reports.

        Args:
            run: the name of the run.
            state: its state.
            is_committed: True if the epoch of this state is committed.
        """
        last = self._epochs.get(run, 0)
        if state.epoch < last or (state.epoch and not is_committed):
            raise PromiseBroken("G3", f"{run} was at epoch {last}, and reports epoch {state.epoch}")
        self._epochs[run] = state.epoch

    def check_totals(self, run: str, state: RunState, records: Sequence[EpochRecord]) -> None:
        """Checks the totals of a run that has stopped.

        Args:
            run: the name of the run.
            state: its last state.
            records: the epochs that it committed.
        """
        rows, files = sum(each.counts.rows for each in records), sum(each.counts.files for each in records)
        if (len(records), rows, files) != (state.epochs, state.totals.rows, state.totals.files):
            raise PromiseBroken(
                "G4",
                f"{run} has committed {len(records)} epochs, {rows} rows, {files} files; "
                f"it reports {state.epochs}, {state.totals.rows}, {state.totals.files}",
            )

    def check_views(self, run: str, written: Mapping[str, ViewVersion], recorded: Mapping[str, ViewVersion]) -> None:
        """Checks that the last epoch of a run that has stopped has the views as its materializer left them.

        Args:
            run: the name of the run.
            written: the last versions of the views that it has changed.
            recorded: the views of the head.
        """
        for name, view in written.items():
            if recorded.get(name) != view:
                raise PromiseBroken("G4", f"{run} has stopped, and {view} is recorded as {recorded.get(name)}")

    def check_caught_up(
        self,
        objects: Mapping[PathKey, FileVersion],
        tables: FileTables,
        retried: Collection[FileKey] = (),
        *,
        is_settled: bool,
    ) -> None:
        """Checks that every object is finished when a run has caught up.

        Args:
            objects: the objects that have been in the bucket since the mark.
            tables: the rows about files.
            retried: file versions that were finished at the mark or later, and that a user has retried since.
            is_settled: True if none of them may count as vanished.
        """
        finished: dict[PathKey, list[Row]] = {}
        for row in tables.ledger.values():
            finished.setdefault(path_of(row), []).append(row)
        for path, file in objects.items():
            rows = finished.get(path, [])
            listed = self._bucket.listed_version
            own = [(row["status"], row["rows_read"]) for row in rows if listed(row["version"]) == file.version]
            noted = any(row["changed_epoch"] is not None and row["rows_read"] for row in rows)
            is_ignored = self._ignores_changes and noted
            if not own and not is_ignored and (*path, file.version) not in retried:
                raise PromiseBroken("G4", f"caught up, and {path[1]} is not finished")
            if own == [("vanished", 0)] and is_settled:
                raise PromiseBroken("G4", f"{path[1]} is in the bucket, and counts as vanished")

    def check_message_deleted(
        self, queue: str, message_id: str, change: tuple[PathKey, int] | None, tables: FileTables
    ) -> None:
        """Checks that the store knows the change behind a deleted message, or a later change of the same path.

        Args:
            queue: the URL of the queue.
            message_id: the id of the message.
            change: the path and the number of the change; None for a message that is not an event.
            tables: the rows about files.
        """
        if change is None:
            if f"{queue}#{message_id}" not in {row["path"] for row in tables.quarantine.values()}:
                raise PromiseBroken("G6", f"{message_id} is deleted, and is not in quarantine")
            return
        path, number = change
        versions = [version for at, version in self._bucket.history[path] if at >= number]
        if versions == [None] and not _is_settled_deleted(path, tables) and not tables.must_be_listed(path[0]):
            raise PromiseBroken("G4", f"a message is deleted, and no epoch notes that {path[1]} is deleted")
        seen = tables.seen.get(path_fingerprint(*path))
        if None not in versions and (seen is None or self._bucket.listed_version(seen["version"]) not in versions):
            raise PromiseBroken("G4", f"a message about {path[1]} is deleted, and no epoch knows this version")


def _is_settled_deleted(path: PathKey, tables: FileTables) -> bool:
    """True for a path that does not wait and that the ledger does not know, or notes as deleted."""
    if any(path_of(row) == path for row in tables.queue.values()):
        return False
    is_known = any(path_of(row) == path for row in tables.ledger.values())
    return not is_known or path in tables.paths_noted_deleted()
