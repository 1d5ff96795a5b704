"""PublicationAccess: the root that a publication reads, the table that it writes, and the pins of its epochs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa

from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.publication import Publication
from slackwater.plugins.publish.published_table import TableHead
from slackwater.plugins.publish.publisher import Publisher, opened_table
from slackwater.reading.snapshot import Snapshot
from slackwater.reading.store import Store
from state.clock import Clock
from state.location import Location
from state.tables.records import ViewVersion
from state.upkeep.pin import Pin


class PublishedRoot(Protocol):
    """The root of a publication; each call sees the last epoch."""

    @property
    def root(self) -> str: ...

    def identity(self) -> str:
        """The identity of the root; empty if it lacks one."""
        ...

    def latest_epoch(self) -> int:
        """The last committed epoch; 0 before the first."""
        ...

    def published_epoch(self) -> int:
        """The last epoch that no expectation holds back; 0 before the first."""
        ...

    def version_of(self, view: str, epoch: int) -> ViewVersion | None:
        """A view at an epoch; None if it is not shown there."""
        ...

    def failure_of(self, view: str, epoch: int) -> str | None:
        """The reason why a view lacks rows at an epoch: the error of the view; None while it is maintained."""
        ...

    def is_building(self, view: str, epoch: int) -> bool:
        """True if the backfill of a view, or of its new definition, is not complete at an epoch."""
        ...

    def epoch_times(self) -> pa.Table: ...

    def publish(self, epoch: int) -> Publication:
        """Brings an epoch into the table; see `Publisher.publish`."""
        ...


class PublicationAccess(Protocol):
    """The parts of the world that `PublicationLoop` uses."""

    def open(self) -> PublishedRoot: ...

    def head(self) -> TableHead | None:
        """The last commit of the table; None without one."""
        ...

    def maintain(self) -> None:
        """The upkeep of the table."""
        ...

    def pin(self, epoch: int) -> AbstractContextManager[object]:
        """Keeps an epoch of the root readable."""
        ...


class RealPublication:
    """See `PublicationAccess`.

    Args:
        publication: the view and the table.
        clock: for pins and ages.
    """

    def __init__(self, root: Location, publication: DeclaredPublication, clock: Clock) -> None:
        self._root, self._publication, self._clock = root, publication, clock

    def open(self) -> PublishedRoot:
        return _OpenedRoot(Store(self._root, self._clock), self._publication, self._clock)

    def head(self) -> TableHead | None:
        return opened_table(self._publication.target, self._clock).head()

    def maintain(self) -> None:
        opened_table(self._publication.target, self._clock).maintain()

    def pin(self, epoch: int) -> AbstractContextManager[object]:
        return Pin(self._root, self._clock, epoch)


class _OpenedRoot:
    """See `PublishedRoot`."""

    def __init__(self, store: Store, publication: DeclaredPublication, clock: Clock) -> None:
        self._store, self._publication, self._clock = store, publication, clock
        self._is_marked = False
        self._snapshot: Snapshot | None = None

    @property
    def root(self) -> str:
        return self._store.root

    def identity(self) -> str:
        return self._store.identity()

    def latest_epoch(self) -> int:
        self._snapshot = None
        return self._store.latest_epoch()

    def published_epoch(self) -> int:
        return self._store.published_epoch()

    def version_of(self, view: str, epoch: int) -> ViewVersion | None:
        snapshot = self._at(epoch)
        return snapshot.reader(view).version if view in snapshot.views else None

    def failure_of(self, view: str, epoch: int) -> str | None:
        return self._at(epoch).failure_of(view)

    def is_building(self, view: str, epoch: int) -> bool:
        return self._at(epoch).is_building(view)

    def _at(self, epoch: int) -> Snapshot:
        """The snapshot of an epoch, with its catalog read once: a turn begins with the latest epoch, and has few."""
        if self._snapshot is None or self._snapshot.epoch != epoch:
            self._snapshot = self._store.snapshot(epoch)
        return self._snapshot

    def epoch_times(self) -> pa.Table:
        return self._store.epoch_times()

    def publish(self, epoch: int) -> Publication:
        publisher = Publisher(
            self._store, self._publication.view, self._publication.target, self._clock, is_marked=self._is_marked
        )
        published = publisher.publish(epoch)
        self._is_marked = True
        return published
