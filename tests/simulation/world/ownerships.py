"""The ownership of a root, by the code of production: `owner.json` in memory, and its renewals in the background."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import obstore
from obstore.store import MemoryStore

from state.errors import FencedError, OwnedError, StorageUnavailableError
from state.location import Location
from state.ownership.conditional_file import ConditionalFile, FileChangedError, ReadFile, Version
from state.ownership.owner import Ownership
from state.ownership.process_identity import ProcessIdentity
from state.tables.records import Head
from tests.simulation.world.background import Background
from tests.simulation.world.interruptions import Interruptions
from tests.simulation.world.schedule import Life
from tests.simulation.world.simulated_clock import SimulatedClock
from tests.simulation.world.simulated_root import LATE, LOST, UNANSWERED, CommitFate
from tests.simulation.world.simulated_threads import (
    PatientClock,
    SimulatedEvent,
    SimulatedThread,
    SimulatedThreads,
)

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

    from tests.simulation.promises.owner_checker import OwnerChecker

OwnerFate: TypeAlias = CommitFate | Literal["repeated"]

REPEATED: Final = "repeated"
_NAME = "owner.json"
_MACHINES = ("machine-1", "machine-2")
_CUT = "owner.json: the connection was cut before the answer came"


class Ownerships:
    """Everything around the ownerships of all runs of a story.

    In most stories a run takes the root as it starts, and each renewal happens at its time.  If the root is contended,
    others act between any two requests, processes are on two machines, and requests can fail.

    Attributes:
        background: the events of claims, renewals and releases.
        fates: fate of each of the next writes of `owner.json`: it is lost, or comes late, or its answer is lost, and
            the sender gives up or repeats it.
        silences: number of the next readings that are not answered.

    Args:
        place: the location of the root.
        clock: of the world.
        random: makes every choice.
        interruptions: of the world, for what a story plans.
        turn: see `Interruptions`.
        background: see above.
        checker: hears of every request, and of its outcome.
        is_contended: see above.
    """

    def __init__(
        self,
        place: Location,
        clock: SimulatedClock,
        random: Random,
        interruptions: Interruptions,
        turn: Callable[[], bool],
        background: Background,
        checker: OwnerChecker,
        *,
        is_contended: bool,
    ) -> None:
        self.client, self.place, self.clock, self.background = MemoryStore(), place, clock, background
        self.checker = checker
        self.threads = SimulatedThreads(background, clock)
        self.fates: deque[OwnerFate] = deque()
        self.silences = 0
        self._random, self._plans, self._is_contended = random, interruptions, is_contended
        self._interruptions = Interruptions(random, turn, around=interruptions)
        self._network = Life("network")
        self._lives: list[Life] = []
        self._claims: list[SimulatedThread] = []

    @property
    def is_claimed(self) -> bool:
        """True while a run starts."""
        return any(call.life.alive and not call.is_over for call in self._claims)

    def claim(
        self, run: str, head: Callable[[], Head], on_owner: Callable[[RunOwnership, Head], None], *, takeover: bool
    ) -> None:
        """A run becomes the owner, now or later, or is refused; see `slackwater.pipeline.Pipeline.start`.

        Args:
            run: its name.
            head: reads the head of the store.
            on_owner: called when the run is the owner, with the head before it.
            takeover: see `Ownership.acquire`.
        """
        life = Life(f"{run}/owner")
        self._lives.append(life)
        machine = self._random.choice(_MACHINES) if self._is_contended else _MACHINES[0]
        ownership = RunOwnership(self, run, life, ProcessIdentity(machine, len(self._lives)))
        self.checker.on_start(run, life, machine, takeover=takeover)

        heads: list[Head] = []

        def acquire() -> None:
            ownership.acquire(takeover=takeover)
            heads.append(head())
            ownership.confirm()

        def try_to_acquire() -> None:
            try:
                acquire()
            except OwnedError:
                self.checker.on_refused(run)
                life.end()
            except (FencedError, StorageUnavailableError):
                life.end()

        if takeover and not self._is_contended:
            acquire()
            on_owner(ownership, heads[0])
        else:
            self._claims.append(self.call(life, try_to_acquire, lambda: on_owner(ownership, heads[0])))

    def call(self, life: Life, work: Callable[[], None], on_end: Callable[[], None]) -> SimulatedThread:
        """Does something that waits, and to whose end time passes."""
        call = self.threads.start(life, work, on_end)
        self.background.wait_for(call)
        if not self._is_contended:
            self.background.between()
        return call

    def cut_power(self) -> None:
        """Every process dies, and half of the file is left."""
        for life in self._lives:
            life.process.end()
        obstore.put(self.client, _NAME, b'{"run_id": "run-')  # noqa: TID251 - in memory
        self.checker.on_torn()

    def thaw(self) -> None:
        """Frozen processes continue."""
        self.checker.excuse_all()
        self.background.thaw()

    def end_faults(self) -> None:
        """Every request is answered from now on."""
        self.fates.clear()
        self.silences = 0

    def has_ended(self, process: ProcessIdentity) -> bool:
        """True if a process has ended."""
        return not self._lives[process.pid - 1].alive

    def before(self, operation: str, life: Life) -> None:
        """A request of a life is on its way."""
        self._plans.planned(f"before {operation}")
        if self._is_contended:
            self._interruptions.moment("", life, may_arrive_late=operation == "owner")

    def after(self, operation: str, life: Life) -> None:
        """The answer is on its way."""
        self._plans.planned(f"after {operation}")
        if self._is_contended:
            self._interruptions.moment("", life)

    def send_late(self, write: Callable[[], None]) -> None:
        """Lets a request arrive at some time, whether its sender lives or not."""
        self.background.soon(self._network, write)


class RunOwnership(Ownership):
    """The ownership of one run, which is checked.

    Attributes:
        on_lost: called when the run has heard that it does not own the root any more.

    Args:
        all: everything around it.
        run: the name of the run.
        life: of its process.
        identity: its process.
    """

    def __init__(self, all: Ownerships, run: str, life: Life, identity: ProcessIdentity) -> None:
        self.life, self._checker = life, all.checker
        self.on_lost: Callable[[], None] = lambda: None
        super().__init__(
            all.place,
            PatientClock(all.clock, all.threads),
            run_id=run,
            pipeline="simulated",
            interval_s=all.checker.interval_s,
            watch_s=all.checker.watch_s,
            file=_OwnerFile(all, run, life),
            host=_SimulatedHost(all, life, identity),
        )

    def acquire(self, *, takeover: bool = False) -> None:
        super().acquire(takeover=takeover)
        self._checker.on_owner(self.run_id)

    def renew(self) -> None:
        had_lost, named = self.lost, self._checker.owner
        super().renew()
        self._checker.on_renewed(self.run_id, named, lost=self.lost)
        if self.lost and not had_lost:
            self._checker.on_lost(self.run_id)
            self.on_lost()

    def release(self, phase: str = "stopped") -> None:
        super().release(phase)
        self._checker.on_released(self.run_id)


class _OwnerFile(ConditionalFile):
    """`owner.json` by the way of one run."""

    def __init__(self, all: Ownerships, run: str, life: Life) -> None:
        super().__init__(all.place, _NAME, all.client)
        self._all, self._run, self._life = all, run, life

    def read(self) -> ReadFile | None:
        with self._request():
            self._all.before("look", self._life)
            if self._all.silences:
                self._all.silences -= 1
                self._give_up()
            found = super().read()
            self._all.checker.on_read(self._run)
            self._all.after("look", self._life)
        return found

    def replace(self, content: bytes, version: Version | None) -> None:
        with self._request():
            self._all.before("owner", self._life)
            fate = self._all.fates.popleft() if self._all.fates else None
            if fate == LATE:
                self._all.send_late(lambda: self._arrive(content, version))
            if fate in (LOST, LATE):
                self._give_up()
            self._write(content, version)
            if fate == UNANSWERED:
                self._give_up()
            if fate == REPEATED:
                raise FileChangedError(f"{_NAME} was written by another process")
            self._all.after("owner", self._life)

    def _request(self) -> AbstractContextManager[None]:
        return self._all.checker.request(self._run)

    def _give_up(self) -> None:
        self._all.checker.excuse(self._run)
        raise StorageUnavailableError(_CUT)

    def _write(self, content: bytes, version: Version | None) -> None:
        found = super().read()
        # Some stores name a version by its content, so that the same content is the same version.
        if found is None or (found.content, found.version) != (content, version):
            super().replace(content, version)
        self._all.checker.on_write(self._run, content)

    def _arrive(self, content: bytes, version: Version | None) -> None:
        """A write that was sent long ago, and given up, comes to the store."""
        try:
            self._write(content, version)
        except FileChangedError:
            pass


class _SimulatedHost:
    """See `Host`: the end of a process is seen on its own machine."""

    def __init__(self, all: Ownerships, life: Life, identity: ProcessIdentity) -> None:
        self._all, self._life, self.identity = all, life, identity

    def has_ended(self, process: ProcessIdentity) -> bool:
        return process.host == self.identity.host and self._all.has_ended(process)

    def lives(self, process: ProcessIdentity) -> bool:
        return process.host == self.identity.host and not self._all.has_ended(process)

    def event(self) -> SimulatedEvent:
        return SimulatedEvent(self._all.threads, self._life)

    def start(self, work: Callable[[], None]) -> SimulatedThread:
        return self._all.threads.start(self._life, work)
