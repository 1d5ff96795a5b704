"""The publications of a process: production's loops, over model tables, in calls that wait."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from actors.protocol.run_state import RunState
from slackwater.extensions.run_views import PublishedView
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.publication import Publication, PublishedEpoch
from slackwater.plugins.publish.publication_loop import EpochNews, PublicationLoop, PublicationReport
from slackwater.plugins.publish.publication_states import PublicationStates
from slackwater.plugins.publish.published_table import TableHead
from slackwater.plugins.publish.publisher import epoch_of
from slackwater.plugins.publish.targets import ParquetFiles, Target
from slackwater.reading.tables.expectation_table import published_epoch
from slackwater.status.run_status import PublicationStatus
from state.errors import EpochNotFoundError, NotFoundError
from state.tables.catalog import Catalog
from state.tables.keys import encode_key
from state.tables.records import ViewVersion
from state.tables.stored_rows import is_view
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.promises.outside.publication_checker import is_building
from tests.simulation.world.links import table_url
from tests.simulation.world.pins import EpochPin
from tests.simulation.world.published_tables import ModelTable, TableCommit, items_of
from tests.simulation.world.schedule import Life
from tests.simulation.world.simulated_root import SimulatedRoot, SimulatedStore
from tests.simulation.world.simulated_threads import PatientClock, SimulatedThreads

if TYPE_CHECKING:
    from tests.simulation.hosting.process import SimulatedProcess
    from tests.simulation.simulated_world import World

NAME = "publications"
_LAST_EPOCH_S = 30.0
_RESTART_S = 2.0
_UNKNOWN_ERROR = re.compile(r"[A-Z]\w*(Error|Exception): ")


class SimulatedPublications:
    """The process that publishes beside a run, and starts again when it dies.

    Attributes:
        last: view → the last report of the process that publishes.

    Args:
        process: of the run.
    """

    def __init__(self, process: SimulatedProcess) -> None:
        self._process, self._world = process, process.world
        self._declared = [
            DeclaredPublication(view, ParquetFiles(table_url(view), interval_s=self._interval_s()))
            for view in self._world.tables.by_view
        ]
        process.declared.needs.publish(PublishedView(each.view, str(each.target)) for each in self._declared)
        self._watches = {view: self._world.links.watch_of_table(view) for view in self._world.tables.by_view}
        self._states, self._is_over = PublicationStates(self._declared), False
        self.last = {each.view: PublicationReport(number) for number, each in enumerate(self._declared)}
        self._left = 0
        self._on_end: Callable[[], None] | None = None
        self._life = Life(NAME, process)
        self._news = _News(self._world.threads, self._life)

    @property
    def statuses(self) -> tuple[PublicationStatus, ...]:
        """The state of each publication, as the run sees it."""
        return self._states.statuses(self._world.clock.now())

    def notify(self, state: RunState) -> None:
        """Takes a state of the run."""
        is_first = not self._states.epoch and state.epoch
        self._states.notify(state)
        if is_first:
            self._start()
        elif self._states.epoch:
            self._news.notify(self._states.epoch)

    def crash(self) -> None:
        """The process that publishes dies; it starts again after a pause."""
        if not self._states.epoch or self._is_over:
            return
        self._life.end()
        self._states.death = "the process that publishes was killed by signal 9"
        self._life = Life(NAME, self._process)
        self._news = _News(self._world.threads, self._life)
        schedule = self._world.schedule
        schedule.at(self._world.clock.monotonic() + _RESTART_S, self._life, self._start)

    def finish(self, on_end: Callable[[], None]) -> None:
        """The last epoch is published, or its time is over.

        Args:
            on_end: called then.
        """
        self._on_end, self._is_over = on_end, True
        if not self._left:
            self._end()
            return
        self._news.end()
        end_s = self._world.clock.monotonic() + _LAST_EPOCH_S
        self._world.schedule.at(end_s, self._process, self._end_in_time)

    def _start(self) -> None:
        self._left = len(self._declared)
        clock = PatientClock(self._world.clock, self._world.threads)
        for number, each in enumerate(self._declared):
            access = _Access(self._world, self._life, each)
            watch = self._watches[each.view]
            loop = PublicationLoop(self._world.place, number, each, clock, self._on_report, access, watch)
            self._world.threads.start(self._life, partial(loop.run, self._news), self._on_loop_over)
        self._news.notify(self._states.epoch)

    def _on_report(self, report: PublicationReport) -> None:
        if report.error is not None and _UNKNOWN_ERROR.match(report.error):
            raise PromiseBroken("no bug", f"a publication failed: {report.error}")
        self._states.report(report)
        self.last[self._declared[report.number].view] = report

    def _on_loop_over(self) -> None:
        self._left -= 1
        if not self._left and self._on_end is not None:
            self._end()

    def _end_in_time(self) -> None:
        if self._on_end is not None:
            self._states.end_in_time(_LAST_EPOCH_S)
            self._end()

    def _end(self) -> None:
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            self._life.end()
            on_end()

    def _interval_s(self) -> float:
        return float(self._world.random.choice((0.0, 0.0, 5.0, 30.0)))


class _News(EpochNews):
    """See `EpochNews`: a call of the process that publishes waits for an epoch."""

    def __init__(self, threads: SimulatedThreads, life: Life) -> None:
        super().__init__()
        self._threads, self._life = threads, life

    def notify(self, epoch: int) -> None:
        super().notify(epoch)
        self._threads.wake(self._life)

    def end(self) -> None:
        super().end()
        self._threads.wake(self._life)

    def wait(self, after: int, pause_s: float) -> tuple[bool, bool]:
        if pause_s > 0:
            self._threads.wait_until(lambda: self._is_last, pause_s)
        self._threads.wait_until(lambda: self._is_last or self._epoch > after)
        return self._epoch > after, self._is_last


class _Access:
    """See `PublicationAccess`."""

    def __init__(self, world: World, life: Life, publication: DeclaredPublication) -> None:
        self._world, self._life, self._publication = world, life, publication
        self._root = SimulatedRoot(world.disk, world.clock, world.access(life))

    def open(self) -> _Root:
        return _Root(self._world, self._root, self._publication)

    def head(self) -> TableHead | None:
        self._world.tables.require_up()
        return _head(self._world.tables.by_view[self._publication.view])

    def maintain(self) -> None:
        self._world.place_checker.on_table(self._publication.view, "upkeep")
        self._world.tables.require_up()

    def pin(self, epoch: int) -> AbstractContextManager[object]:
        return _pinned(EpochPin("publication", self._world, self._life, epoch))


@contextmanager
def _pinned(pin: EpochPin) -> Iterator[None]:
    pin.create()
    try:
        yield
    finally:
        pin.let_go()


class _Root:
    """See `PublishedRoot`: it also computes changes, as `Publisher` does."""

    def __init__(self, world: World, root: SimulatedRoot, publication: DeclaredPublication) -> None:
        self._world, self._root, self._publication = world, root, publication
        self._store = root.open(read_only=True)
        self._catalog: Catalog | None = None

    @property
    def root(self) -> str:
        return self._world.place.url

    def identity(self) -> str:
        return ""

    def latest_epoch(self) -> int:
        return self._reopened().head.epoch

    def published_epoch(self) -> int:
        store = self._reopened()
        self._catalog = Catalog.of(store.scan("catalog"))
        return published_epoch(store, self._catalog)

    def version_of(self, view: str, epoch: int) -> ViewVersion | None:
        version = self._views_at(epoch).get(view)
        is_shown = version is not None and is_view(view) and version.pinned_epoch is None
        return version if is_shown else None

    def failure_of(self, view: str, epoch: int) -> str | None:
        # As `published_epoch` has just read it.
        found = None if self._catalog is None else self._catalog.views.get(view)
        return None if found is None else found.error

    def is_building(self, view: str, epoch: int) -> bool:
        return is_building(view, self._views_at(epoch))

    def epoch_times(self) -> pa.Table:
        return self._reopened().epoch_times().select(["epoch", "committed_at"])

    def publish(self, epoch: int) -> Publication:
        view, target, tables = self._publication.view, self._publication.target, self._world.tables
        table = tables.by_view[view]
        self._world.place_checker.on_table(view, "a commit")
        wanted = PublishedEpoch(self.root, view, epoch)
        after = self._views_at(epoch)[view]
        tables.require_up()
        expected, head = len(table.commits), _head(table)
        since = None if head is None else epoch_of(target, head, wanted)
        if since == epoch:
            return self._published(target, epoch, since, rows=0)
        before = None if since is None else self._known(since)
        rows = items_of(self._rows(after))
        if before is not None and before.path == after.path:
            earlier = items_of(self._rows(before))
            rows = table.commits[-1].rows - (earlier - rows) + (rows - earlier)
        self._root.access.before("publish")
        tables.commit(view, expected, TableCommit(wanted, rows))
        self._world.promises.published.check(table)
        self._root.access.after("publish")
        return self._published(target, epoch, since, rows=rows.total())

    def _published(self, target: Target, epoch: int, since: int | None, *, rows: int) -> Publication:
        return Publication(self._publication.view, str(target), epoch, since, since is None, rows, 0, "1")

    def _reopened(self) -> SimulatedStore:
        self._store = self._store.reopen()
        return self._store

    def _views_at(self, epoch: int) -> dict[str, ViewVersion]:
        """The views of an epoch.

        Raises:
            EpochNotFoundError: it is expired.
        """
        store = self._reopened()
        if store.get("epoch", encode_key(epoch)) is None:
            raise EpochNotFoundError(f"epoch {epoch} is not retained")
        [record] = [each for each in store.epochs() if each.epoch == epoch]
        return dict(record.views)

    def _known(self, epoch: int) -> ViewVersion | None:
        try:
            return self._views_at(epoch).get(self._publication.view)
        except EpochNotFoundError:
            return None

    def _rows(self, version: ViewVersion) -> object:
        try:
            return self._root.view_rows(version.path, version.version)
        except NotFoundError as error:
            raise PromiseBroken("G3", f"the rows of a pinned epoch are gone: {error}") from error


def _head(table: ModelTable) -> TableHead | None:
    if not table.commits:
        return None
    return TableHead(str(len(table.commits)), table.commits[-1].published, "a commit")
