"""The store in the hands of its owner: one change at a time, and upkeep between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import structlog

from actors.coordination.instructions import Commit
from actors.coordination.ledger_corrections import corrected_delta
from state.errors import StorageError
from state.lance.lance_root import LanceRoot
from state.store.store import StateStore
from state.tables.records import EpochRecord
from state.upkeep.housekeeping import UPKEEP_INTERVAL_S, Housekeeping
from state.upkeep.pin import pinned_epochs
from state.upkeep.retention import RetentionSettings
from state.upkeep.vacuum import Vacuumed

_Result = TypeVar("_Result")


class OwnedStore:
    """Commits, folds, expires and vacuums for the coordinator, in threads beside its event loop.

    Args:
        store: the handle that won the head.
        root: where it is.
        retention: which epochs stay.
    """

    def __init__(self, store: StateStore, root: LanceRoot, retention: RetentionSettings) -> None:
        self._store, self._root, self._retention = store, root, retention
        self._log = structlog.get_logger().bind(actor="coordinator")
        self._turn = asyncio.Lock()
        # Two folds that are staged at once could replace the same fragments.
        self._upkeep = asyncio.Lock()
        self._committed = asyncio.Event()
        self._housekeeping = self._new_housekeeping()

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
            )
        )
        self._committed.set()
        return record

    async def change(self, action: Callable[[StateStore], _Result]) -> _Result:
        """Does something with the store while nobody else does."""
        async with self._turn:
            return await asyncio.to_thread(action, self._store)

    async def vacuum(self) -> Vacuumed:
        """Everything that upkeep can do, now, beside the commits.  Errors as `Housekeeping.run`."""
        async with self._upkeep:
            housekeeping = self._new_housekeeping(interval_s=0.0)
            while (staged := await asyncio.to_thread(housekeeping.stage, self._store)) is not None:
                await self.change(partial(housekeeping.commit, staged=staged))
            return await asyncio.to_thread(housekeeping.vacuum)

    async def keep_house(self) -> None:
        """Never returns: what is due after a commit is prepared beside the next ones, and shown between two.

        A root that does not answer puts the upkeep off; what a commit raises is raised.
        """
        while True:
            await self._committed.wait()
            self._committed.clear()
            if self._housekeeping.due(self._store):
                async with self._upkeep:
                    await self._keep_house_once()

    async def _keep_house_once(self) -> None:
        try:
            staged = await asyncio.to_thread(self._housekeeping.stage, self._store)
        except StorageError as error:
            self._log.warning("upkeep is put off", epoch=self._store.head.epoch, error=str(error))
            return
        if staged is None:
            return
        await self.change(partial(self._housekeeping.commit, staged=staged))
        if staged.expired:
            try:
                gone = await asyncio.to_thread(self._housekeeping.vacuum)
                self._log.info(
                    "vacuumed", epoch=self._store.head.epoch, versions=gone.versions, datasets=gone.datasets,
                    bytes=gone.bytes,
                )  # fmt: skip
            except StorageError as error:
                self._log.warning(
                    "what the vacuum left is deleted by the next one", epoch=self._store.head.epoch, error=str(error)
                )

    def _new_housekeeping(self, interval_s: float = UPKEEP_INTERVAL_S) -> Housekeeping:
        clock = self._root.clock
        pinned = partial(pinned_epochs, self._root.location, clock)
        return Housekeeping(self._root, clock, self._retention, pinned, interval_s=interval_s)
