"""Changes of one epoch to the tables `queue`, `ledger` and `quarantine`, as one fetch actor makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from actors.fetching.file_progress import FileProgress
from actors.files import FileKey, Vanished
from actors.protocol.reports import CorrectedFile
from actors.rows import BadRecord
from state.tables.delta import Delta, DeltaBuilder
from state.tables.keys import encode_key
from state.vnode import vnode_of


class StateChanges:
    """Rows that the next `seal` gives away, and the versions that the coordinator is told of beside them.

    Attributes:
        corrected: objects whose rows in the views were replaced, forgotten or kept, in this order of events.
        vanished: versions that vanished without a row in the views.
    """

    def __init__(self) -> None:
        self.corrected: list[CorrectedFile] = []
        self.vanished: list[Vanished] = []
        self._event_times: dict[str, dict[int, int]] = {}
        self._bad_records: dict[str, int] = {}
        self._touched: dict[FileKey, FileProgress] = {}
        # Rows of `ledger` that are not in the delta yet: they go there by column.
        self._ended: list[tuple[FileProgress, Mapping[str, object]]] = []
        self._delta = DeltaBuilder()

    @property
    def is_sealed(self) -> bool:
        """True if no `queue` row has changed since the last seal."""
        return not self._touched

    def touch(self, progress: FileProgress) -> FileProgress:
        """Writes the `queue` row of a file at the next seal, as it is then."""
        self._touched[progress.key] = progress
        return progress

    def drop(self, progress: FileProgress) -> None:
        """Deletes the `queue` row of a file."""
        self._touched.pop(progress.key, None)
        if progress.stored:
            self._delta.delete("queue", progress.state_key, progress.vnode)

    def finish(self, progress: FileProgress, row: Mapping[str, object]) -> None:
        """Moves a file from `queue` to `ledger`, with this row."""
        self.drop(progress)
        self.put_ledger(progress, row)

    def put_ledger(self, progress: FileProgress, row: Mapping[str, object]) -> None:
        """Writes the `ledger` row of a file."""
        self._ended.append((progress, row))

    def patch_ledger(self, key: FileKey, **fields: object) -> None:
        """Changes some fields of the `ledger` row of a version."""
        self._put_ended()
        self._delta.patch("ledger", encode_key(*key), vnode_of(key[1]), **fields)

    def delete_ledger(self, progress: FileProgress) -> None:
        """Deletes the `ledger` row of a file."""
        self._put_ended()
        self._delta.delete("ledger", progress.state_key, progress.vnode)

    def quarantine(self, progress: FileProgress, records: Iterable[BadRecord]) -> None:
        """Writes bad records of a file to `quarantine`, each with its position."""
        source = progress.file.source
        for bad in records:
            self._bad_records[source] = self._bad_records.get(source, 0) + 1
            self._delta.put("quarantine", progress.quarantine_key(bad), progress.vnode, **progress.quarantine_row(bad))

    def seal(self) -> Delta:
        """All changes since the last seal."""
        self._put_ended()
        self._put("queue", [(progress, progress.queue_row()) for progress in self._touched.values()])
        for progress in self._touched.values():
            progress.stored = True
        self._touched = {}
        return self._delta.build()

    def _put_ended(self) -> None:
        """Later changes of a row come behind it."""
        ended, self._ended = self._ended, []
        self._put("ledger", ended)

    def _put(self, table: str, rows: Sequence[tuple[FileProgress, Mapping[str, object]]]) -> None:
        """Writes rows, all with the same fields."""
        if rows:
            columns = {name: [row[name] for _, row in rows] for name in rows[0][1]}
            keys, vnodes = [each.state_key for each, _ in rows], [each.vnode for each, _ in rows]
            self._delta.put_many(table, keys, vnodes, columns)

    def take_corrected(self) -> tuple[CorrectedFile, ...]:
        """The corrected objects since the last call."""
        corrected, self.corrected = tuple(self.corrected), []
        return corrected

    def note_event_time(self, progress: FileProgress, high: int | None) -> None:
        """Notes the highest event time of rows that came; None for a source without one."""
        if high is not None:
            of_source = self._event_times.setdefault(progress.file.source, {})
            of_source[progress.listed_epoch] = max(high, of_source.get(progress.listed_epoch, high))

    def take_event_times(self) -> Mapping[str, Mapping[int, int]]:
        """The event times since the last call: source → epoch that listed the files → the highest one."""
        taken, self._event_times = self._event_times, {}
        return taken

    def take_bad_records(self) -> Mapping[str, int]:
        """The numbers of bad records since the last call, by source."""
        taken, self._bad_records = self._bad_records, {}
        return taken

    def take_vanished(self) -> tuple[Vanished, ...]:
        """The vanished versions since the last call."""
        vanished, self.vanished = tuple(self.vanished), []
        return vanished
