"""The store in the hands of its owner: one change at a time, and upkeep between two changes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from types import TracebackType
from typing import Protocol, TypeVar

from actors.coordination.instructions import Commit
from actors.coordination.ledger_corrections import corrected_delta
from actors.shells.runtime import Event, Runtime
from state.errors import StorageError
from state.store.root import Root
from state.store.store import StateStore
from state.tables.records import EpochRecord
from state.upkeep.housekeeping import UPKEEP_INTERVAL_S, Housekeeping
from state.upkeep.retention import RetentionSettings
from state.upkeep.vacuum import Vacuumed, VacuumRoot

_Result = TypeVar("_Result")


class OwnedRoot(Root, VacuumRoot, Protocol):
    """A root that is also kept small."""


class OwnedStore:
    """Commits, folds, expires and vacuums for the coordinator, in threads.

    Args:
        store: the handle that won the head.
        root: the place of the store.
        runtime: the world around the coordinator.
        retention: the epochs that stay.
        pinned: the epochs that readers hold at this moment.
        upkeep_interval_s: see `Housekeeping`.
    """

    def __init__(
        self,
        store: StateStore,
        root: OwnedRoot,
        runtime: Runtime,
        retention: RetentionSettings,
        pinned: Callable[[], Collection[int]] = frozenset,
        *,
        upkeep_interval_s: float = UPKEEP_INTERVAL_S,
    ) -> None:
        self._store, self._root, self._runtime = store, root, runtime
        self._retention, self._pinned = retention, pinned
        self._turn = _Turns(runtime)
        # Two folds that are staged at once could replace the same fragments.
        self._upkeep = _Turns(runtime)
        self._committed = runtime.event()
        self._housekeeping = self._new_housekeeping(upkeep_interval_s)

    async def commit(self, commit: Commit) -> EpochRecord:
        """Commits an epoch.  Errors as `StateStore.commit`."""
        record = await self.change(
            lambda store: store.commit(
                epoch=commit.epoch,
                delta=corrected_delta(store, commit),
                views=commit.views,
                counts=commit.counts,
                seconds=commit.seconds,
                trace=commit.trace,
                published=commit.published,
            )
        )
        self._committed.set()
        return record

    async def change(self, action: Callable[[StateStore], _Result]) -> _Result:
        """Changes the store, one caller at a time."""
        async with self._turn:
            return await self._runtime.in_thread(partial(action, self._store))

    async def vacuum(self) -> Vacuumed:
        """All upkeep that can be done now, while commits continue.  Errors as `Housekeeping.run`."""
        async with self._upkeep:
            housekeeping = self._new_housekeeping(0.0)
            while (staged := await self._runtime.in_thread(partial(housekeeping.stage, self._store))) is not None:
                await self.change(partial(housekeeping.commit, staged=staged))
            return await self._runtime.in_thread(housekeeping.vacuum)

    async def keep_house(self) -> None:
        """Never returns: prepares upkeep while commits continue, and commits it between two epochs.

        A root that does not answer puts the upkeep off; errors of a commit are raised.
        """
        while True:
            await self._committed.wait()
            self._committed.clear()
            if self._housekeeping.due(self._store):
                async with self._upkeep:
                    await self._keep_house_once()

    async def _keep_house_once(self) -> None:
        log = self._runtime.log
        try:
            staged = await self._runtime.in_thread(partial(self._housekeeping.stage, self._store))
        except StorageError as error:
            log.warning("upkeep is put off", epoch=self._store.head.epoch, error=str(error))
            return
        if staged is None:
            return
        await self.change(partial(self._housekeeping.commit, staged=staged))
        if staged.expired:
            try:
                gone = await self._runtime.in_thread(self._housekeeping.vacuum)
                log.info(
                    "vacuumed", epoch=self._store.head.epoch, versions=gone.versions, datasets=gone.datasets,
                    bytes=gone.bytes,
                )  # fmt: skip
                if gone.left:
                    log.warning(
                        "the vacuum left objects that Slackwater did not write: move them out of the root",
                        epoch=self._store.head.epoch, objects=", ".join(gone.left),
                    )  # fmt: skip
            except StorageError as error:
                log.warning(
                    "a vacuum is incomplete; the next vacuum deletes the rest",
                    epoch=self._store.head.epoch,
                    error=str(error),
                )

    def _new_housekeeping(self, interval_s: float) -> Housekeeping:
        return Housekeeping(self._root, self._runtime.clock, self._retention, self._pinned, interval_s=interval_s)


class _Turns:
    """A lock: one holder at a time, in the order of arrival."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._last: Event | None = None
        self._holder: Event | None = None

    async def __aenter__(self) -> None:
        before, mine = self._last, self._runtime.event()
        self._last = mine
        if before is not None:
            await before.wait()
        self._holder = mine

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._holder is not None, "it is entered before it is left"
        self._holder.set()
