from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from actors.coordination.instructions import Commit
from actors.hosting.ray_runtime import RayRuntime
from actors.shells.owned_store import OwnedStore
from state.clock import SystemClock
from state.epoch import next_epoch
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.tables.delta import DeltaBuilder
from state.tables.keys import encode_key
from state.tables.records import EpochCounts, EpochSeconds
from state.upkeep.housekeeping import Housekeeping
from state.upkeep.retention import RetentionSettings
from state.upkeep.vacuum import Vacuumed

FEW = RetentionSettings(keep_s=0, keep_epochs=2)


class Life:
    """A store that commits epochs of one row."""

    def __init__(self, root: Path) -> None:
        self.root = LanceRoot(Location(str(root)), SystemClock())
        store = self.root.create_or_open()
        store.take_over("run")
        self.store = OwnedStore(store, self.root, RayRuntime("coordinator"), FEW)
        self._epoch = 0

    async def commit(self) -> None:
        self._epoch = next_epoch(self.root.clock, self._epoch)
        delta = DeltaBuilder()
        delta.put("list_state", encode_key("s"), 0, source="s", pages=self._epoch)
        await self.store.commit(Commit(self._epoch, delta.build(), {}, EpochCounts(), EpochSeconds()))

    def epochs(self) -> int:
        return len(self.root.open(read_only=True).epochs())


def test_a_commit_does_not_wait_for_a_vacuum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    vacuum = Housekeeping.vacuum

    def slow(housekeeping: Housekeeping) -> Vacuumed:
        begun.set()
        assert go_on.wait(60)
        return vacuum(housekeeping)

    monkeypatch.setattr(Housekeeping, "vacuum", slow)

    async def story() -> Vacuumed:
        life = Life(tmp_path)
        for _ in range(20):
            await life.commit()
        vacuuming = asyncio.ensure_future(life.store.vacuum())
        while not begun.is_set():  # until then, a committed epoch may make an older epoch expire
            await asyncio.sleep(0.01)
        assert life.epochs() == 2
        await asyncio.wait_for(life.commit(), 30)
        assert not vacuuming.done()
        go_on.set()
        gone = await vacuuming
        assert life.epochs() == 3
        return gone

    assert asyncio.run(story()).versions > 10


@pytest.mark.more
def test_upkeep_by_itself_and_by_command_do_not_meet(tmp_path: Path) -> None:
    async def story() -> None:
        life = Life(tmp_path)
        keeping = asyncio.ensure_future(life.store.keep_house())
        for _ in range(4):
            for _ in range(20):
                await life.commit()
            await life.store.vacuum()
        assert not keeping.done(), "nothing was refused"
        keeping.cancel()
        assert life.epochs() == 2

    asyncio.run(story())
