"""Checks of the views that show a group when its window closes, and of late rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from actors.files import FileKey
from state.epoch import epoch_time_us
from state.tables.keys import decode_key
from state.tables.records import ViewVersion
from tests.simulation.memory.file_tables import FileTables, file_of
from tests.simulation.memory.memory_disk import MemoryDataset
from tests.simulation.model_views.model_view import ClosedWindows, Groups, ModelView, window_end_us
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.bucket import Bucket
from tests.simulation.world.file_rows import RowsByFile, event_time_us

LateRow: TypeAlias = tuple[FileKey, int]
"""The file and the position of a row that came too late for a view."""
_REASONS = ("its window was closed", "rows that it joins may have expired")


class _Shown:
    """One such view, from the epoch that shows it.

    Attributes:
        closed: the watermark up to which its windows are closed; None before the first.
        groups: the closed groups.
        late: the late rows: their file and position.
    """

    def __init__(self) -> None:
        self.closed: int | None = None
        self.groups: Groups = {}
        self.late: list[LateRow] = []


class ClosingChecker:
    """Checks that each row is in one window, or late, and that a closed window stays as it is.

    Args:
        datasets: path → dataset of a view.
        files: checks the files of late rows.
        models: the models of all views.
    """

    def __init__(
        self, datasets: Mapping[str, MemoryDataset], files: LateRowChecker, models: Iterable[ModelView]
    ) -> None:
        self._datasets, self._files = datasets, files
        self._models = {model.name: model for model in models if isinstance(model, ClosedWindows)}
        self._shown: dict[str, _Shown] = {}

    @property
    def late_rows(self) -> tuple[LateRow, ...]:
        """The late rows of all views."""
        return tuple(row for shown in self._shown.values() for row in shown.late)

    def has_open(self, views: Iterable[ViewVersion]) -> bool:
        """Whether one of the views of the last version of the store has an open window."""
        datasets = [each.datasets for each in views if each.name in self._models]
        return any(self._datasets[path].rows(path, version) for _, (path, version) in map(dict.items, datasets))

    def check(
        self,
        tables: FileTables,
        views: Iterable[ViewVersion],
        ingested: RowsByFile,
        late: dict[str, list[LateRow]],
    ) -> None:
        """Checks the views of the next version of the store.

        Args:
            tables: its rows about files.
            views: those of its head.
            ingested: the rows of each file version.
            late: view → its new late rows; those of these views are taken out.
        """
        stopped = tables.stopped_views()
        for view in views:
            if view.name in self._models and view.name not in stopped:
                own = {file: rows for file, rows in ingested.items() if file[0] in self._models[view.name].sources}
                self._check(view, own, late.pop(view.name, []), tables)

    def _check(self, view: ViewVersion, ingested: RowsByFile, late: list[LateRow], tables: FileTables) -> None:
        (path, version), (state_path, state_version) = view.datasets.items()
        closed: Groups = self._datasets[path].rows(path, version)
        left: Groups = self._datasets[state_path].rows(state_path, state_version)
        shown = self._shown.setdefault(path, _Shown())
        progress = view.noted
        until: int | None = progress.get("closed")
        for file, row in late:
            if shown.closed is None or window_end_us(file, row) > shown.closed:
                raise untimely(view, f"row {row} of {file[1]} is late, and its window is open until {shown.closed}")
            self._files.check(view.name, file, shown.closed, tables)
        shown.late += late
        if len(shown.late) != progress.get("late", 0):
            raise untimely(view, f"it counts {progress.get('late')} late rows, and {shown.late} are in quarantine")
        if shown.closed is not None and (until is None or until < shown.closed):
            raise untimely(view, f"its windows were closed up to {shown.closed}, and are up to {until}")
        if any(closed.get(end) != group for end, group in shown.groups.items()):
            raise untimely(view, f"its closed windows were {shown.groups}, and are {closed}")
        early = [end for end in closed if until is None or end > until]
        overdue = [end for end in left if until is not None and end <= until]
        if early or overdue:
            raise untimely(view, f"it is closed up to {until}; {early} are shown, and {overdue} are open")
        expected = dict(ingested)
        for file, row in shown.late:
            expected[file] = tuple(each for each in expected.get(file, ()) if each != row)
        difference = self._models[view.name].difference({**closed, **left}, expected)
        if difference is not None:
            raise PromiseBroken("G1", f"{view.name} at version {version}, without late rows: {difference}")
        shown.closed, shown.groups = until, closed


def untimely(view: ViewVersion, text: str) -> PromiseBroken:
    """The promise about time, broken by a version of a view."""
    return PromiseBroken("time", f"{view.name} at version {view.version}: {text}")


class LateRowChecker:
    """Finds the late rows in the quarantine, and checks that no row of a backlog is late.

    Args:
        bucket: the files and their contents.
        lateness_us: of every source; None for sources without an event time.
        idle_us: of every source; None for sources that are never idle.
    """

    def __init__(self, bucket: Bucket, lateness_us: int | None, idle_us: int | None = None) -> None:
        self._bucket, self._lateness_us, self._idle_us = bucket, lateness_us, idle_us
        self._known: set[bytes] = set()
        # Files that were finished; a retry reads the rest of some of them.
        self._finished: set[bytes] = set()

    def take(self, tables: FileTables) -> dict[str, list[LateRow]]:
        """View → its new late rows."""
        found: dict[str, list[LateRow]] = {}
        for key in sorted(tables.quarantine.keys() - self._known):
            record = tables.quarantine[key]
            if record["row"] is None or record["version"] is not None:
                continue
            self._known.add(key)
            view = str(decode_key(key)[4])
            if not str(record["reason"]).startswith(tuple(f"view {view}: {why}" for why in _REASONS)):
                raise PromiseBroken("time", f"a late row of {record['path']} has the reason {record['reason']}")
            file = record["source"], record["path"], bytes.fromhex(json.loads(record["raw"])["version"])
            found.setdefault(view, []).append((file, record["row"]))
        return found

    def check(self, view: str, file: FileKey, closed: int, tables: FileTables) -> None:
        """Checks that the file of a late row was not there when the rows were listed that have moved the watermark.

        Args:
            view: for which it is late.
            file: the file.
            closed: the watermark.
            tables: the rows about files at this version of the store.
        """
        assert self._lateness_us is not None, "its source has an event time"
        reaching = [
            row["listed_epoch"]
            for row in tables.ledger.values()
            if row["source"] == file[0] and self._high(file_of(row)) >= closed + self._lateness_us
        ]
        for key, row in (*tables.queue.items(), *tables.ledger.items()):
            if file_of(row) != file or key in self._finished:
                continue
            if not self._is_later(row["listed_epoch"], closed, reaching):
                raise PromiseBroken(
                    "time", f"{view}: rows of {file[1]} are late, which was listed before the watermark was {closed}"
                )

    def _is_later(self, listed_epoch: int, closed: int, reaching: list[int]) -> bool:
        """Whether a file was listed after the rows that have moved the watermark, or after the source was idle."""
        if reaching and listed_epoch > min(reaching):
            return True
        return self._idle_us is not None and epoch_time_us(listed_epoch) >= closed + self._idle_us

    def _high(self, file: FileKey) -> int:
        content = self._bucket.contents[file]
        good = content.good_rows(content.readable_rows)
        return event_time_us(file, good[-1]) if good else 0

    def on_checked(self, tables: FileTables) -> None:
        """Takes the version of the store as the last one."""
        self._finished |= tables.ledger.keys()
