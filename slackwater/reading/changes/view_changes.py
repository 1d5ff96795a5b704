"""Changes of a followed view, epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from slackwater.reading.changes.view_difference import difference
from slackwater.reading.snapshot import Snapshot
from slackwater.reading.view_reader import ViewReader
from state.clock import Clock
from state.errors import EpochExpiredError
from state.location import Location
from state.store.store import StateStore
from state.tables.records import EpochRecord


@dataclass(frozen=True)
class ViewChange:
    """The changes of a view since the previous change.  Remove `removed` first, then add `rows`.

    Args:
        view: the name of the view.
        epoch: the epoch of the view with this change.
        key: the columns that identify a row; empty for a view without groups, or without all of their columns.
        rows: the new and changed rows, as of this epoch.
        removed: the removed rows.  With a key: their keys, as a table of these columns.  Without a key: whole rows,
            also replaced ones; a row that is listed twice is removed twice.
    """

    view: str
    epoch: int
    key: tuple[str, ...]
    rows: pa.Table
    removed: pa.Table


@dataclass(frozen=True)
class _Version:
    """A view at one epoch, and the columns that identify its rows."""

    reader: ViewReader
    key: tuple[str, ...]

    def rows(self) -> pa.Table:
        return self.reader.table(self.reader.schema.names)

    def known_by(self) -> pa.Table:
        """The rows as `ViewChange.removed` has them."""
        return self.reader.table(self.key or self.reader.schema.names)

    def none(self) -> pa.Table:
        """An empty table of the same columns."""
        schema = self.reader.schema
        return pa.schema([schema.field(name) for name in self.key or schema.names]).empty_table()


class ViewChanges:
    """Iterator over the changes of a view, one for each epoch that changes it.

    It only reads, and does not keep epochs from expiring: behind the retention it raises EpochExpiredError.

    Args:
        root: the root of the pipeline.
        latest: returns the store as of now.
        clock: the clock of the pauses between two looks.
        name: the name of the view.
        since: the epoch to begin after; None begins with all rows of the latest epoch.
        poll_s: the time between two looks at the store, in seconds.
    """

    def __init__(
        self,
        root: Location,
        latest: Callable[[], StateStore],
        clock: Clock,
        name: str,
        *,
        since: EpochRecord | None,
        poll_s: float,
    ) -> None:
        self._root = root
        self._latest = latest
        self._clock = clock
        self._name = name
        self._since = since
        self._poll_s = poll_s

    def __iter__(self) -> Iterator[ViewChange]:
        store = self._latest()
        at = self._since or store.epochs(last=1)[-1]
        version = self._version(store, at)
        if self._since is None and version is not None:
            with self._with_next_step(at):
                first = ViewChange(self._name, at.epoch, version.key, version.rows(), version.none())
            yield first
        while True:
            for record in self._later(store, at):
                if not self._is_same(at, record):
                    with self._with_next_step(at):
                        next_version = self._version(store, record, version)
                        change = self._change(record.epoch, version, next_version)
                    version = next_version
                    if change is not None:
                        yield change
                at = record
            self._clock.sleep(self._poll_s)
            store = self._latest()

    def _later(self, store: StateStore, at: EpochRecord) -> list[EpochRecord]:
        """The epochs after this one, oldest first.

        Raises:
            EpochExpiredError: other epochs that changed the view may have expired.
        """
        if store.head.epoch == at.epoch:
            return []
        records = store.epochs(after=at.epoch - 1)
        later = [record for record in records if record.epoch > at.epoch]
        is_retained = len(later) < len(records)
        # Versions of a dataset only grow: an equal version means no change in between.
        if not is_retained and later and not self._is_same(at, later[0]):
            raise self._expired(at)
        return later

    def _is_same(self, one: EpochRecord, other: EpochRecord) -> bool:
        versions = (one.views.get(self._name), other.views.get(self._name))
        paths_and_numbers = [None if each is None else (each.path, each.version) for each in versions]
        return paths_and_numbers[0] == paths_and_numbers[1]

    def _version(self, store: StateStore, record: EpochRecord, earlier: _Version | None = None) -> _Version | None:
        version = record.views.get(self._name)
        if version is None:
            return None
        if earlier is not None and earlier.reader.version.path == version.path:
            key = earlier.key  # a dataset has one definition
        else:
            key = Snapshot(self._root, store, record).view(self._name).key
        return _Version(ViewReader(self._root, version), key)

    def _change(self, epoch: int, before: _Version | None, after: _Version | None) -> ViewChange | None:
        """The change between two versions; None if no row differs."""
        if before and after and before.reader.location == after.reader.location:
            rows, removed = difference(before.reader, after.reader, after.key)
            key = after.key
        elif after:
            # The view is new, or replaces another view of the same name.
            rows, key = after.rows(), after.key
            removed = before.known_by() if before else after.none()
        elif before:
            rows, removed, key = before.reader.schema.empty_table(), before.known_by(), before.key
        else:
            return None
        return ViewChange(self._name, epoch, key, rows, removed) if rows.num_rows or removed.num_rows else None

    @contextmanager
    def _with_next_step(self, at: EpochRecord) -> Iterator[None]:
        try:
            yield
        except EpochExpiredError as error:
            raise self._expired(at) from error

    def _expired(self, at: EpochRecord) -> EpochExpiredError:
        return EpochExpiredError(
            f"what has changed in view {self._name!r} at {self._root} since epoch {at.epoch} is no longer retained: "
            "begin again without `since`, with all rows; a longer retention lets a reader fall further behind"
        )
