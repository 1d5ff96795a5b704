"""A view that is followed: what each epoch changes in it."""

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
    """What has changed in a view since the change before.  Take `removed` out first, then put `rows` in.

    Args:
        view: its name.
        epoch: the epoch that the view is at with this change.
        key: the columns that a row is known by; none if the view has no groups, or not all of their columns.
        rows: the rows, as they are at this epoch, that are new or have changed.
        removed: what is gone.  With a key: the keys of the rows, as a table with these columns.  Without one: whole
            rows, also those in whose place others have come; a row that stands here twice is gone twice.
    """

    view: str
    epoch: int
    key: tuple[str, ...]
    rows: pa.Table
    removed: pa.Table


@dataclass(frozen=True)
class _Version:
    """A view at some epoch, and the columns that its rows are known by."""

    reader: ViewReader
    key: tuple[str, ...]

    def rows(self) -> pa.Table:
        return self.reader.table(self.reader.schema.names)

    def known_by(self) -> pa.Table:
        """What `ViewChange.removed` has of each row."""
        return self.reader.table(self.key or self.reader.schema.names)

    def none(self) -> pa.Table:
        """The same of no row."""
        schema = self.reader.schema
        return pa.schema([schema.field(name) for name in self.key or schema.names]).empty_table()


class ViewChanges:
    """Goes from epoch to epoch, and yields what each has changed in a view.

    It only reads, and keeps no epoch from expiring: who falls behind the retention gets EpochExpiredError.

    Args:
        root: the root of the pipeline.
        latest: gives the store as it is now.
        clock: what the pauses between two looks are taken by.
        name: the view.
        since: the epoch after which changes are wanted; None begins with all rows of the latest.
        poll_s: seconds between two looks at the store.
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
        at = self._since or store.epochs()[-1]
        version = self._version(store, at)
        if self._since is None and version is not None:
            with self._told_how_to_go_on(at):
                first = ViewChange(self._name, at.epoch, version.key, version.rows(), version.none())
            yield first
        while True:
            for record in self._later(store, at):
                if not self._is_same(at, record):
                    with self._told_how_to_go_on(at):
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
            EpochExpiredError: there may have been others, which have changed the view.
        """
        if store.head.epoch == at.epoch:
            return []
        records = store.epochs()
        later = [record for record in records if record.epoch > at.epoch]
        is_retained = any(record.epoch == at.epoch for record in records)
        # Versions of a dataset only grow: with the same one nothing has happened in between.
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
            key = earlier.key  # a dataset has one definition for ever
        else:
            key = Snapshot(self._root, store, record).view(self._name).key
        return _Version(ViewReader(self._root, version), key)

    def _change(self, epoch: int, before: _Version | None, after: _Version | None) -> ViewChange | None:
        """None if all rows are as they were."""
        if before and after and before.reader.location == after.reader.location:
            rows, removed = difference(before.reader, after.reader, after.key)
            key = after.key
        elif after:
            # A view that is new here, or has come in place of another of the name.
            rows, key = after.rows(), after.key
            removed = before.known_by() if before else after.none()
        elif before:
            rows, removed, key = before.reader.schema.empty_table(), before.known_by(), before.key
        else:
            return None
        return ViewChange(self._name, epoch, key, rows, removed) if rows.num_rows or removed.num_rows else None

    @contextmanager
    def _told_how_to_go_on(self, at: EpochRecord) -> Iterator[None]:
        try:
            yield
        except EpochExpiredError as error:
            raise self._expired(at) from error

    def _expired(self, at: EpochRecord) -> EpochExpiredError:
        return EpochExpiredError(
            f"what has changed in view {self._name!r} at {self._root} since epoch {at.epoch} is no longer retained: "
            "begin again without `since`, with all rows; a longer retention lets a reader fall further behind"
        )
