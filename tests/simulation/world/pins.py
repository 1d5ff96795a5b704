"""Pins of readers, in objects that are in memory: readers write them, and the owner reads them before epochs expire."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import obstore
from obstore.store import MemoryStore

from state.errors import StorageUnavailableError
from state.location import Location
from state.tables.keys import encode_key
from state.upkeep.pin import LIFETIME_S, RENEWAL_S, PinFile, pinned_epochs
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.interruptions import Killed
from tests.simulation.world.schedule import Life
from tests.simulation.world.simulated_root import SimulatedRoot

if TYPE_CHECKING:
    from tests.simulation.simulated_world import World

_TORN = b'{"epoch": "1'


@dataclass(frozen=True)
class _Held:
    """An epoch that a reader holds, until an end that it moves forward.

    Args:
        epoch: the epoch.
        ends_at: the end.
        version: the version of the store at which the reader has written its pin.
    """

    epoch: int
    ends_at: datetime
    version: int


class Pins:
    """The pins of all readers, by the code of production over objects in memory.

    Args:
        world: everything else.
        place: the location of the root, for errors.
    """

    def __init__(self, world: World, place: Location) -> None:
        self.client, self.place = MemoryStore(), place
        self._world = world
        self._readers: dict[str, PinningReader] = {}
        self._held: dict[PinningReader | EpochPin, _Held] = {}

    def begin(self, name: str) -> None:
        """A reader begins to read the last epoch; one of this name stops before."""
        self.end(name)
        reader = self._readers[name] = PinningReader(f"reader-{name}", self._world)
        self._world.schedule.soon(reader, reader.pin)

    def end(self, name: str) -> None:
        """A reader lets go of its epoch."""
        reader = self._readers.pop(name, None)
        if reader is not None:
            reader.let_go()
            reader.end()

    def kill(self, name: str) -> None:
        """A reader dies; its pin stays until its end."""
        reader = self._readers.pop(name, None)
        if reader is not None:
            reader.end()

    def tear(self) -> None:
        """A power cut leaves half a pin."""
        obstore.put(self.client, "pins/torn-1-1.json", _TORN)  # noqa: TID251 - in memory

    def hold(self, reader: PinningReader | EpochPin, epoch: int) -> None:
        """A reader has written its pin, for the first time or once more."""
        now, before = self._world.clock.now(), self._held.get(reader)
        is_renewed = before is not None and before.ends_at > now
        version = before.version if before is not None and is_renewed else self._world.disk.latest
        self._held[reader] = _Held(epoch, now + timedelta(seconds=LIFETIME_S), version)

    def let_go(self, reader: PinningReader | EpochPin) -> None:
        """A reader has deleted its pin."""
        self._held.pop(reader, None)

    def kept_at(self, number: int) -> frozenset[int]:
        """The epochs that the owner must keep in a version of the store.

        The owner reads the pins between the version before and this one: it may miss a pin that is as late.
        """
        now = self._world.clock.now()
        return frozenset(each.epoch for each in self._held.values() if each.ends_at > now and each.version < number - 1)

    def read(self, run: str) -> frozenset[int]:
        """The epochs that a run must keep, as it reads them.

        Raises:
            PromiseBroken: a living reader's epoch is not among them, or one that no reader holds.
        """
        read = pinned_epochs(self.place, self._world.clock, self.client)
        now = self._world.clock.now()
        # `pinned_epochs` has deleted the expired pins: a clock that is set back later does not make them valid again.
        self._held = {reader: each for reader, each in self._held.items() if each.ends_at > now}
        held = frozenset(each.epoch for each in self._held.values())
        if read != held:
            raise PromiseBroken("G3", f"readers hold the epochs {sorted(held)}, and {run} reads {sorted(read)}")
        return read


class EpochPin:
    """The pin of an epoch that something else in the world holds, for example a publication.

    Args:
        name: of the holder.
        world: everything else.
        life: of the holder; with its end the pin stays until its own.
        epoch: the epoch.
    """

    def __init__(self, name: str, world: World, life: Life, epoch: int) -> None:
        self.name = name
        self._world, self._life, self._epoch = world, life, epoch
        self._file = PinFile(world.pins.place, world.clock, epoch, world.pins.client)
        self._is_held = False

    def create(self) -> None:
        """Writes the pin, and renews it from now on."""
        self._file.create()
        self._is_held = True
        self._renewed()

    def let_go(self) -> None:
        """Deletes the pin, unless its holder is dead."""
        if self._is_held and self._life.alive:
            self._is_held = False
            self._file.delete()
            self._world.pins.let_go(self)

    def _renewed(self) -> None:
        self._world.pins.hold(self, self._epoch)
        self._world.schedule.at(self._world.clock.monotonic() + RENEWAL_S, self._life, self._renew)

    def _renew(self) -> None:
        if self._is_held:
            self._file.renew()
            self._renewed()


class PinningReader(Life):
    """A reader of one epoch.

    Args:
        name: its name in the trace.
        world: everything else.
    """

    def __init__(self, name: str, world: World) -> None:
        super().__init__(name)
        self._world = world
        self._root = SimulatedRoot(world.disk, world.clock, world.access(self))
        self._file: PinFile | None = None
        self._epoch = 0

    @property
    def epoch(self) -> int:
        """The epoch that it holds; 0 without one."""
        return self._epoch if self._file is not None else 0

    def pin(self) -> None:
        """Pins the last epoch, and then looks whether it still exists."""
        world = self._world
        if not world.disk.latest:
            return
        try:
            store = self._root.open(read_only=True)
            epoch = self._epoch = store.head.epoch
            file = PinFile(world.pins.place, world.clock, epoch, world.pins.client)
            self._root.access.before("pin")
            file.create()
            self._file = file
            world.pins.hold(self, epoch)
            self._root.access.after("pin")
            if epoch and store.reopen().get("epoch", encode_key(epoch)) is None:
                self.let_go()
        except StorageUnavailableError:
            self.let_go()
        except Killed:
            return
        self._renew_later()

    def let_go(self) -> None:
        """Deletes the pin."""
        if self._file is not None:
            self._file.delete()
            self._file = None
            self._world.pins.let_go(self)

    def _renew_later(self) -> None:
        if self._file is not None:
            self._world.schedule.at(self._world.clock.monotonic() + RENEWAL_S, self, self._renew)

    def _renew(self) -> None:
        if self._file is not None:
            self._file.renew()
            self._world.pins.hold(self, self._epoch)
            self._renew_later()
