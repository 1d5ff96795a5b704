"""The client of the merger and the coordinator for the materializer's loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

from actors.protocol.reports import CollectReport, EpochBlocks
from actors.shells.coordinator_shell import CoordinatorShell
from actors.shells.exchange_shells import MergerShell
from actors.shells.runtime import Actor, ActorDiedError
from state.errors import RunFailedError
from state.tables.records import ViewVersion
from tests.simulation.hosting.simulated_runtime import SimulatedActor, SimulatedRuntime


class SimulatedRunClient:
    """See `EpochClient`.

    Attributes:
        reported_views: the views of the last report.
        is_catching_up: whether backfills or full views lack rows, as the loop has told.

    Args:
        runtime: of the materializer.
        coordinator, merger: of the attempt.
        on_news: called when an epoch has come, or the merger has died.
    """

    def __init__(
        self,
        runtime: SimulatedRuntime,
        coordinator: SimulatedActor[CoordinatorShell],
        merger: Actor[MergerShell],
        on_news: Callable[[], None],
    ) -> None:
        self._runtime, self._coordinator, self._merger, self._on_news = runtime, coordinator, merger, on_news
        self._epoch: EpochBlocks | None = None
        self._is_taking = False
        self._failure: RunFailedError | None = None
        self.reported_views: Mapping[str, ViewVersion] = {}
        self.is_catching_up = False

    def next_epoch(self, timeout_s: float) -> EpochBlocks | None:
        """The next epoch if it is there; its arrival is news, so nothing waits."""
        if self._failure is not None:
            raise self._failure
        epoch, self._epoch = self._epoch, None
        if epoch is None and not self._is_taking:
            self._is_taking = True
            self._runtime.beside(self._take)
        return epoch

    def wake(self) -> None:
        """Nothing waits."""

    def collect(self, report: CollectReport) -> None:
        self.reported_views = report.views or self.reported_views
        self._runtime.notify(self._merger, MergerShell.release, report.epoch)
        self._runtime.notify(self._coordinator, CoordinatorShell.collect, report)

    def views_declared(
        self, *, sources: Set[str], new_views: bool, columns: Mapping[str, Sequence[str]], backfilling: bool
    ) -> None:
        """A call that is waited for: it keeps its order."""
        self.is_catching_up = backfilling
        if not self._coordinator.alive:
            raise self._coordinator.death().ending("the coordinator died")
        arguments = (frozenset(sources), new_views, columns, backfilling)
        self._runtime.notify_now(self._coordinator, CoordinatorShell.views_declared, *arguments)

    async def _take(self) -> None:
        try:
            self._epoch = await self._runtime.call(self._merger, MergerShell.take)
        except ActorDiedError as error:
            self._failure = error.ending("the actor merger died")
        self._is_taking = False
        self._on_news()
