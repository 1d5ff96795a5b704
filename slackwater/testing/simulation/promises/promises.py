"""What must hold at every version of the store, judged on the disk and never on what anybody says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from actors.files import FileKey, FileVersion, PathKey, place
from actors.protocol.run_state import RunState
from slackwater.testing.simulation.promise_broken import PromiseBroken
from slackwater.testing.simulation.promises.model_view import ModelView, history_of, taken_spans
from slackwater.testing.simulation.world.bucket import Bucket
from state.errors import NotFoundError
from state.memory.memory_disk import MemoryDisk, MemoryVersion
from state.tables.fingerprint import path_fingerprint
from state.tables.record_rows import read_epochs
from state.tables.records import EpochRecord, ViewVersion
from state.tables.stored_rows import base_name
from state.tables.tables import REMOVED_STATUSES

_FINISHED = ("done", "quarantined", "vanished", *REMOVED_STATUSES)
_Rows = Mapping[bytes, Mapping[str, Any]]


class Promises:
    """Watches a disk.

    Args:
        disk: where the store and the views are.
        bucket: knows what is in each file version.
        views: what each view must be.
        keep_epochs: so many of the last epochs must stay readable; None for all.
        on_change: what the sources do with files that have changed.
        order: in which the files of each source are read; None for none.
    """

    def __init__(
        self,
        disk: MemoryDisk,
        bucket: Bucket,
        views: Sequence[ModelView],
        keep_epochs: int | None = None,
        on_change: str = "ignore",
        order: str | None = None,
    ) -> None:
        self._order = order
        self._on_change = on_change
        self._disk, self._bucket, self._keep_epochs = disk, bucket, keep_epochs
        self._last: MemoryVersion | None = None
        self._retained: list[int] = []
        self._views = {view.name: view for view in views}
        self._checked = 0
        self._kept: dict[tuple[str, int], object] = {}
        self._recorded: dict[int, EpochRecord] = {}
        self._runs: dict[int, str] = {}
        self._told: dict[str, int] = {}
        self._read: Mapping[FileKey, tuple[int, ...]] = {}
        self._removed: set[FileKey] = set()
        self.epochs = 0

    def on_version(self) -> None:
        """The store may have new versions."""
        while self._checked < self._disk.latest:
            self._checked += 1
            before, self._last = self._last, self._disk.versions[self._checked]
            self._check(before, self._last)

    def on_acknowledged(self, record: EpochRecord) -> None:
        """Somebody was told that an epoch is committed."""
        if self._recorded.get(record.epoch) != record:
            raise PromiseBroken("G3", f"epoch {record.epoch} was acknowledged and is not there")

    def on_state(self, run: str, state: RunState) -> None:
        """A run says how far it is."""
        if state.files_at_once is not None:
            # It looks for a file that kills: what may be read is not in the hands of an order.
            self._order = None
        if state.epoch < self._told.get(run, 0) or (state.epoch and state.epoch not in self._recorded):
            raise PromiseBroken("G3", f"{run} was at epoch {self._told.get(run, 0)} and is at {state.epoch}")
        self._told[run] = state.epoch

    def on_stopped(self, run: str, state: RunState) -> None:
        """A run has ended gracefully, and says what it did."""
        if len(self._retained) < len(self._recorded):
            return  # the run counts only what it finds
        records = [record for record in self._recorded.values() if self._runs[record.term] == run]
        rows, files = sum(each.counts.rows for each in records), sum(each.counts.files for each in records)
        if (len(records), rows, files) != (state.epochs, state.totals.rows, state.totals.files):
            raise PromiseBroken(
                "G4",
                f"{run} has committed {len(records)} epochs, {rows} rows, {files} files; it says {state.epochs}, "
                f"{state.totals.rows}, {state.totals.files}",
            )

    def on_tag(self, path: str) -> None:
        """A view's tag was moved."""
        dataset = self._disk.datasets[path]
        assert dataset.committed is not None
        if dataset.rows(path, dataset.committed) not in [rows for (at, _), rows in self._kept.items() if at == path]:
            raise PromiseBroken("G2", f"version {dataset.committed} of {path} is tagged and was never committed")

    def on_caught_up(
        self, objects: Mapping[PathKey, FileVersion], views: Iterable[str], *, is_settled: bool = False
    ) -> None:
        """A run says that it has caught up.

        Args:
            objects: what was in the bucket at the mark, and is still.
            views: those that it declares.
            is_settled: whether the bucket has not changed for long, so that what is there cannot have vanished.
        """
        there = self._disk.versions[self._disk.latest].head.views
        # Over the same sources as the first view, which is there when the schemas are.
        missing = [name for name in views if name not in there and "rows" in there]
        if missing:
            raise PromiseBroken("G1", f"caught up, and the views {missing} are not there")
        finished: dict[PathKey, list[Mapping[str, Any]]] = {}
        for row in self._disk.versions[self._disk.latest].tables.get("ledger", {}).values():
            finished.setdefault((row["source"], row["path"]), []).append(row)
        for path, file in objects.items():
            rows = finished.get(path, [])
            own = [(row["status"], row["rows_read"]) for row in rows if row["version"] == file.version]
            may_be_noted = self._on_change == "ignore" and any(
                row["changed_epoch"] is not None and row["rows_read"] for row in rows
            )
            if not own and not may_be_noted:
                raise PromiseBroken("G4", f"caught up, and {path[1]} is not finished")
            if own == [("vanished", 0)] and is_settled:
                raise PromiseBroken("G4", f"{path[1]} is in the bucket, and counts as vanished")

    def not_noted(self, closed: Set[str]) -> list[PathKey]:
        """The paths that are in the ledger, not in the bucket any more, and of which no row says so.

        Args:
            closed: sources that are not listed to their end.
        """
        ledger = self._disk.versions[self._disk.latest].tables.get("ledger", {}).values()
        present = self._bucket.present()
        paths = {(row["source"], row["path"]) for row in ledger if row["source"] not in closed}
        noted = {(row["source"], row["path"]) for row in ledger if _is_gone(row)}
        return sorted(path for path in paths - noted if path not in present)

    def not_found(self, closed: Set[str]) -> list[PathKey]:
        """The paths that are in the bucket, and of whose version nothing is known.

        Args:
            closed: sources that are not listed to their end.
        """
        tables = self._disk.versions[self._disk.latest].tables
        versions = {(row["source"], key): row["version"] for key, row in tables.get("seen", {}).items()}
        return sorted(
            path
            for path, each in self._bucket.present().items()
            if path[0] not in closed and versions.get((path[0], path_fingerprint(*path))) != each.file.version
        )

    def on_deleted(self, queue: str, message_id: str, change: tuple[PathKey, int] | None) -> None:
        """A message is deleted: what it has told of, or something later, is in a committed epoch."""
        tables = self._disk.versions[self._disk.latest].tables
        if change is None:
            kept = {row["path"] for row in tables.get("quarantine", {}).values()}
            if f"{queue}#{message_id}" not in kept:
                raise PromiseBroken("G6", f"{message_id} is deleted, and is not in quarantine")
            return
        path, number = change
        seen = tables.get("seen", {}).get(path_fingerprint(*path))
        later = [version for at, version in self._bucket.history[path] if at >= number]
        if later == [None] and self._is_not_noted(path):
            raise PromiseBroken("G4", f"a message is deleted, and no committed epoch says that {path[1]} is gone")
        if None not in later and (seen is None or seen["version"] not in later):
            raise PromiseBroken("G4", f"a message about {path[1]} is deleted, and no committed epoch knows of it")

    def _is_not_noted(self, path: PathKey) -> bool:
        tables = self._disk.versions[self._disk.latest].tables
        rows = [row for row in tables.get("ledger", {}).values() if (row["source"], row["path"]) == path]
        is_queued = any((row["source"], row["path"]) == path for row in tables.get("queue", {}).values())
        return is_queued or (bool(rows) and not any(map(_is_gone, rows)))

    def not_in_views(self, closed: Set[str]) -> list[PathKey]:
        """The paths that are in the bucket, and whose rows were taken out of the views.

        Args:
            closed: sources that are not listed to their end.
        """
        present = {path: each.file.version for path, each in self._bucket.present().items()}
        ledger = self._disk.versions[self._disk.latest].tables.get("ledger", {}).values()
        return sorted(
            (row["source"], row["path"])
            for row in ledger
            if row["status"] == "forgotten"
            and row["source"] not in closed
            and present.get((row["source"], row["path"])) == row["version"]
        )

    @property
    def has_vanished(self) -> bool:
        """Whether any file version has, before a row of it was read."""
        rows = self._disk.versions[self._disk.latest].tables.get("ledger", {}).values()
        return any(row["status"] == "vanished" and not row["rows_read"] for row in rows)

    def statuses(self) -> dict[str, tuple[str, ...]]:
        """`source/path` -> the statuses of its finished versions, in the order in which they ended."""
        rows = sorted(self._disk.versions[self._disk.latest].tables.get("ledger", {}).values(), key=_ending)
        names = sorted({f"{row['source']}/{row['path']}" for row in rows})
        return {
            name: tuple(row["status"] for row in rows if f"{row['source']}/{row['path']}" == name) for name in names
        }

    def on_vacuum(self) -> None:
        """Something was deleted, or the end has come: whatever is retained can be read, and is what it was."""
        self.on_version()
        for epoch in self._retained:
            record = self._recorded[epoch]
            version = self._disk.versions.get(record.state_version)
            if version is None or version.head.epoch != epoch:
                raise PromiseBroken("G2", f"epoch {epoch} names version {record.state_version}, which is not its own")
            for view in record.views.values():
                for path, number in _datasets(view):
                    if self._stored(path, number) != self._kept[path, number]:
                        raise PromiseBroken("G3", f"version {number} of {path} has changed after epoch {epoch}")

    # -- inside --------------------------------------------------------------------------------------------------

    def _check(self, before: MemoryVersion | None, now: MemoryVersion) -> None:
        if before is not None:
            self._check_order(before, now)
        new_rows = self._check_records(before, now)
        read, removed = self._check_files(before, now)
        # What was gone, and its rows with it, is read once more when it is back.
        again = self._removed - removed
        before_rows = {file: () if file in again else rows for file, rows in self._read.items()}
        gained = sum(len(rows) - len(before_rows.get(file, ())) for file, rows in read.items())
        if gained != new_rows:
            raise PromiseBroken("G4", f"{gained} rows are ingested, and {new_rows} are counted")
        if self._order is not None:
            self._check_reading_order(now, self._order)
        self._read, self._removed = read, removed
        ingested = {file: rows for file, rows in read.items() if file not in removed}
        for view in now.head.views.values():
            self._check_view(view, ingested)

    def _check_order(self, before: MemoryVersion, now: MemoryVersion) -> None:
        if now.head.term < before.head.term:
            raise PromiseBroken("G5", f"term {now.head.term} has written after term {before.head.term}")
        if now.head.epoch < before.head.epoch:
            raise PromiseBroken("G3", f"epoch {now.head.epoch} was committed after epoch {before.head.epoch}")
        run = self._runs.get(now.head.term, now.head.run)
        if run != now.head.run:
            raise PromiseBroken("G5", f"the runs {run} and {now.head.run} have both term {now.head.term}")
        if run != before.head.run and run in self._runs.values():
            raise PromiseBroken("G5", f"{run} has lost the root to {before.head.run}, and takes it again")
        self._runs[now.head.term] = run

    def _check_records(self, before: MemoryVersion | None, now: MemoryVersion) -> int:
        """Checks the epoch records; returns how many rows the new one counts."""
        head, records = now.head, _records(now)
        if before is None or head.epoch == before.head.epoch:
            new: list[EpochRecord] = []
        else:
            new = records[-1:]
            record = records[-1]
            if (record.epoch, record.term, record.state_version, dict(record.views)) != (
                head.epoch,
                head.term,
                self._checked,
                dict(head.views),
            ):
                raise PromiseBroken("G2", f"the head is {head}, and the last record {record}")
        for record in records[: len(records) - len(new)]:
            if self._recorded.get(record.epoch) != record:
                raise PromiseBroken("G3", f"the record of epoch {record.epoch} has changed")
        retained = [record.epoch for record in records]
        last = self._retained[-(self._keep_epochs or len(self._retained)) :]
        if not set(last) <= set(retained) <= {*self._retained, *(record.epoch for record in new)}:
            raise PromiseBroken("G3", "the record of an epoch is gone, or back")
        self._retained = retained
        self._recorded.update({record.epoch: record for record in new})
        self.epochs += len(new)
        return sum(record.counts.rows for record in new)

    def _check_files(
        self, before: MemoryVersion | None, now: MemoryVersion
    ) -> tuple[dict[FileKey, tuple[int, ...]], set[FileKey]]:
        """Checks ledger, queue, `seen` and quarantine.

        Returns:
            The rows of each file version that were ever ingested, and those versions whose rows were removed since.
        """
        ledger: _Rows = now.tables.get("ledger", {})
        queue: _Rows = now.tables.get("queue", {})
        read: dict[FileKey, tuple[int, ...]] = {}
        removed: set[FileKey] = set()
        quarantined: dict[FileKey, set[int]] = {}
        for bad in now.tables.get("quarantine", {}).values():
            if bad["row"] is None:
                continue  # a message that is none
            quarantined.setdefault((bad["source"], bad["path"], bad["version"]), set()).add(bad["row"])
        known: dict[bytes, list[Mapping[str, Any]]] = {}
        for rows, offset in ((ledger, "rows_read"), (queue, "row_offset")):
            for row in rows.values():
                file = row["source"], row["path"], row["version"]
                known.setdefault(path_fingerprint(*file[:2]), []).append(row)
                kept: set[int] = set()
                if row[offset]:
                    if file in read:
                        raise PromiseBroken("G1", f"{file[1]} is finished and read again")
                    read[file] = self._bucket.contents[file].good_rows(row[offset])
                    if row.get("status") in REMOVED_STATUSES:
                        removed.add(file)
                    kept = quarantined.pop(file, set())
                expected = {each for each in self._bucket.contents[file].bad_records if each < row[offset]}
                if row.get("status") == "forgotten":
                    expected = set()
                if kept != expected or (expected and len(kept) != row["rows_bad"]):
                    raise PromiseBroken(
                        "G6", f"rows {expected} of {file[1]} are bad; {kept} are kept, {row['rows_bad']} are counted"
                    )
        if quarantined:
            raise PromiseBroken("G6", f"bad records of {sorted(quarantined)} are kept, of which nothing was read")
        for key, row in ledger.items():
            self._check_finished(row)
            if row["gone_epoch"] is not None and (row["source"], row["path"]) not in self._bucket.left:
                raise PromiseBroken("G4", f"{row['path']} counts as gone, and was always there")
            earlier = None if before is None else before.tables.get("ledger", {}).get(key)
            if earlier is not None and earlier is not row:
                self._check_still_finished(earlier, row)
        if before is not None:
            for key, row in before.tables.get("ledger", {}).items():
                if key not in ledger:
                    raise PromiseBroken("G4", f"{row['path']} is no longer in the ledger")
            for key, row in before.tables.get("queue", {}).items():
                self._check_waiting(key, row, now)
        seen: _Rows = now.tables.get("seen", {})
        for key, row in seen.items():
            if not any(
                each["version"] == row["version"] or each.get("changed_epoch") is not None
                for each in known.get(key, ())
            ):
                raise PromiseBroken("G4", f"an object of {row['source']} was handed on, and has no row")
        if len(known) > len(seen) or not known.keys() <= seen.keys():
            raise PromiseBroken("G4", "a file has a row, and would be handed on again")
        return read, removed

    def _check_reading_order(self, now: MemoryVersion, order: str) -> None:
        """Of what was known when a file was opened, nothing that comes before it is left."""
        ledger, queue = now.tables.get("ledger", {}).values(), now.tables.get("queue", {}).values()
        waiting = [row for row in queue if not row["row_offset"] and not row["replaces"]]
        begun = [row for row in queue if row["row_offset"]]
        for source in {row["source"] for row in begun}:
            half_read = [row["path"] for row in begun if row["source"] == source]
            if len(half_read) > 1:
                raise PromiseBroken("order", f"{half_read} are half read")
        for later in (*begun, *(row for row in ledger if row["rows_read"])):
            for row in waiting:
                is_earlier = place(_file_of(row), order) < place(_file_of(later), order)
                if row["source"] == later["source"] and row["listed_epoch"] < later["listed_epoch"] and is_earlier:
                    raise PromiseBroken("order", f"{later['path']} was read, and {row['path']} was known and is not")

    def _check_finished(self, row: Mapping[str, Any]) -> None:
        content = self._bucket.contents[row["source"], row["path"], row["version"]]
        status, rows = row["status"], row["rows_read"]
        wrong = status not in _FINISHED or rows > content.readable_rows
        if status == "done":
            wrong |= rows != content.rows
        elif status == "quarantined":
            wrong |= content.bad_row is None and content.kills is None
        if wrong:
            raise PromiseBroken("G4", f"{row['path']} has {content}; it is {status} with {rows} rows")

    def _check_still_finished(self, earlier: Mapping[str, Any], row: Mapping[str, Any]) -> None:
        was_removed = self._on_change == "replace" and earlier["status"] == "forgotten"
        is_back = was_removed or (earlier["status"] == "vanished" and not earlier["rows_read"])
        is_gone = self._on_change == "replace" and row["gone_epoch"] is not None
        allowed = (earlier["status"], "replaced", *(["forgotten"] if is_gone else []))
        is_same = earlier["rows_read"] == row["rows_read"] and row["status"] in allowed
        if not is_back and not is_same:
            raise PromiseBroken("G3", f"{row['path']} was {earlier['status']} and is {row['status']}")

    def _check_waiting(self, key: bytes, earlier: Mapping[str, Any], now: MemoryVersion) -> None:
        """What waited waits still, and further on, or is finished; or a later version stands in for it."""
        row = now.tables["queue"].get(key)
        if row is not None:
            if row["row_offset"] < earlier["row_offset"]:
                raise PromiseBroken(
                    "G3", f"{row['path']} was at row {earlier['row_offset']} and is at {row['row_offset']}"
                )
            return
        row = now.tables.get("ledger", {}).get(key)
        if row is not None and row["rows_read"] >= earlier["row_offset"]:
            return
        path = earlier["source"], earlier["path"]
        others = [each for name in ("queue", "ledger") for each in now.tables.get(name, {}).values()]
        if earlier["row_offset"] or not any((each["source"], each["path"]) == path for each in others):
            raise PromiseBroken("G4", f"{path[1]} was waiting and is forgotten")

    def _check_view(self, view: ViewVersion, ingested: Mapping[FileKey, tuple[int, ...]]) -> None:
        model = self._views[base_name(view.name)]
        (path, version), *state = _datasets(view)
        rows = self._stored(path, version)
        kept = self._stored(*state[0]) if state else rows
        if view.pinned_epoch is not None:
            self._check_backfill(view, model, kept, ingested)
            self._kept[path, version] = rows
            return
        own = {file: rows for file, rows in ingested.items() if rows and file[0] in model.sources}
        difference = model.difference(kept, own)
        if difference is None and model.result(kept) != rows:
            difference = f"its rows are {rows}, its partials {kept}"
        if difference is not None:
            raise PromiseBroken("G1", f"view {view.name} at version {version}: {difference}")
        self._kept[path, version] = rows
        for each in state:
            self._kept[each] = kept

    def _check_backfill(
        self, view: ViewVersion, model: ModelView, kept: object, ingested: Mapping[FileKey, tuple[int, ...]]
    ) -> None:
        """With what it lacks of its history it must be what it will be."""
        assert view.pinned_epoch is not None, "it catches up"
        pinned = max(epoch for epoch in self._retained if epoch <= view.pinned_epoch)
        if any(pinned < epoch <= view.pinned_epoch for epoch in self._recorded):
            raise PromiseBroken("G3", f"epoch {view.pinned_epoch}, up to which {view.name} catches up, has expired")
        tables = self._disk.versions[self._recorded[pinned].state_version].tables
        ledger, queue = tables.get("ledger", {}), tables.get("queue", {})
        history = history_of(ledger.values(), queue.values(), self._bucket.contents, model.sources)
        whole = model.after(kept, history[taken_spans(view) :])
        own = {file: rows for file, rows in ingested.items() if rows and file[0] in model.sources}
        difference = model.difference(whole, own)
        if difference is not None:
            raise PromiseBroken("G1", f"{view.name} at version {view.version} and its history: {difference}")

    def _stored(self, path: str, version: int) -> object:
        try:
            return self._disk.datasets[path].rows(path, version)
        except (KeyError, NotFoundError) as error:
            raise PromiseBroken("G2", f"version {version} of {path} is recorded and not there") from error


def _records(version: MemoryVersion) -> list[EpochRecord]:
    return read_epochs(version.tables.get("epoch", {}).values())


def _file_of(row: Mapping[str, Any]) -> FileVersion:
    return FileVersion(**{name: row[name] for name in FileVersion.__dataclass_fields__})


def _is_gone(row: Mapping[str, Any]) -> bool:
    return row["gone_epoch"] is not None or (row["status"] == "vanished" and not row["rows_read"])


def _ending(row: Mapping[str, Any]) -> int:
    return int(row["done_epoch"])


def _datasets(view: ViewVersion) -> list[tuple[str, int]]:
    return list(view.datasets.items())
