"""Checks of `owner.json`: one owner after the other, each by right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from state.clock import Clock
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.schedule import Life

_SLACK_S = 1.0
# As long as the work on files relies on its last reading of the owner, and some time for the reading itself.
_CONFIRMED_FOR_S = 2.5


@dataclass
class _Start:
    """The start of one run.

    Args:
        life: of its process.
        machine: the name of its machine.
        takeover: whether it takes the root from a living owner.
        writes, owners: the number of writes of `owner.json`, and of owners, before it began.
        found: the owner at its last reading.
    """

    life: Life
    machine: str
    takeover: bool
    writes: int
    owners: int
    found: str = ""
    has_owned: bool = False


class OwnerChecker:
    """Checks that one run owns a root after the other, that each took it by right, and that each hears of its end.

    A run is excused from renewing and from hearing while its process is frozen, while a request of it is under way, and
    after a request that got no answer.

    Attributes:
        owner: the run in the file; empty before the first.
        owners: all of them, in their order.

    Args:
        clock: measures how long an owner is silent.
        interval_s, watch_s: see `Ownership`.
    """

    def __init__(self, clock: Clock, interval_s: float = 5.0, watch_s: float = 20.0) -> None:
        self._clock = clock
        self.interval_s, self.watch_s = interval_s, watch_s
        self._starts: dict[str, _Start] = {}
        self.owners: list[str] = []
        self.owner = ""
        self._is_released = True
        self._writes = 0
        self._written_s = 0.0
        self._replaced_s: dict[str, float] = {}
        self._lost_uptime_s: dict[str, float] = {}
        self._excused_s: dict[str, float] = {}
        self._under_way: dict[str, int] = {}

    def on_start(self, run: str, life: Life, machine: str, *, takeover: bool) -> None:
        """A run begins to become the owner."""
        self._starts[run] = _Start(life, machine, takeover, self._writes, len(self.owners))

    @contextmanager
    def request(self, run: str) -> Iterator[None]:
        """A request of a run is under way for as long as the context lasts."""
        began_s = self._clock.monotonic()
        self._under_way[run] = self._under_way.get(run, 0) + 1
        try:
            yield
        finally:
            self._under_way[run] -= 1
            if self._clock.monotonic() - began_s > _SLACK_S:
                self.excuse(run)

    def excuse(self, run: str) -> None:
        """A run could not renew, or hear anything, until now."""
        self._excused_s[run] = self._clock.monotonic()

    def excuse_all(self) -> None:
        """The same for every run."""
        for run in self._starts:
            self.excuse(run)

    def on_read(self, run: str) -> None:
        """A run has read the file."""
        self._starts[run].found = self.owner

    def on_write(self, run: str, content: bytes) -> None:
        """A run has replaced the file."""
        if run != self.owner:
            self._check_change(run)
            if self.owner:
                self._replaced_s[self.owner] = self._clock.monotonic()
                self._lost_uptime_s[self.owner] = self._clock.uptime()
            self.owner = run
            self.owners.append(run)
        self._starts[run].has_owned = True
        self._is_released = bool(json.loads(content)["released"])
        self._on_change()

    def on_torn(self) -> None:
        """A power cut has left half of the file."""
        self._on_change()

    def on_owner(self, run: str) -> None:
        """A run was told that it owns the root."""
        if not self._starts[run].has_owned:
            raise PromiseBroken("owner", f"{run} believes that it owns the root, which {self.owner or 'no run'} owns")

    def on_refused(self, run: str) -> None:
        """A run was told that another one owns the root."""
        start = self._starts[run]
        if self.owner == run:
            raise PromiseBroken("owner", f"{run} owns the root, and was refused")
        if self._writes == start.writes and not self._is_seen_to_live(start.machine):
            raise PromiseBroken("owner", f"{run} was refused, and no run has written since it began")
        if start.takeover and len(self.owners) == start.owners:
            raise PromiseBroken("owner", f"{run} was to take the root from {self.owner}, and was refused")

    def on_renewed(self, run: str, named: str, *, lost: bool) -> None:
        """A run has renewed the file, or found that it is another's.

        Args:
            run: the run.
            named: the owner when it began to.
            lost: whether the run has given the root up.
        """
        replaced_s = self._replaced_s.get(run)
        if lost and replaced_s is None:
            raise PromiseBroken("owner", f"{run} gave up the root, which no run has taken from it")
        if not lost and named != run:
            raise PromiseBroken("owner", f"{run} renewed owner.json after {named} had become the owner, and goes on")

    def on_lost(self, run: str) -> None:
        """A run has heard that it does not own the root any more."""
        late_s = self._clock.monotonic() - self._replaced_s[run] - self.interval_s
        if late_s > _SLACK_S and not self._is_excused(run, self.interval_s + late_s):
            raise PromiseBroken("owner", f"{run} hears {late_s:.0f} s late that it does not own the root any more")

    def on_removal(self, run: str, path: str) -> None:
        """A run sends the request to delete a file of a user."""
        lost_s = self._lost_uptime_s.get(run)
        if lost_s is not None and self._clock.uptime() - lost_s > _CONFIRMED_FOR_S:
            raise PromiseBroken("owner", f"{run} deletes {path}, and {self.owner} has taken the root before")

    def on_released(self, run: str) -> None:
        """A run has ended, and released the root."""
        if self.owner == run and not self._is_released and not self._is_excused(run, _SLACK_S):
            raise PromiseBroken("owner", f"{run} has ended, and owner.json does not show it")

    def _on_change(self) -> None:
        self._writes += 1
        self._written_s = self._clock.monotonic()

    def _check_change(self, run: str) -> None:
        """Checks that a run may become the owner now."""
        start, before = self._starts[run], self._starts.get(self.owner)
        if run in self._replaced_s:
            raise PromiseBroken("G5", f"{run} lost the root, and {self.owner} loses it to {run} again")
        if start.found != self.owner:
            raise PromiseBroken("owner", f"{run} takes the root from {self.owner}, and has not read its name")
        if start.takeover or before is None or self._is_released or not before.life.alive:
            return
        silent_s = self._clock.monotonic() - self._written_s
        if silent_s < self.watch_s - _SLACK_S:
            raise PromiseBroken("owner", f"{run} takes the root from {self.owner}, which wrote {silent_s:.0f} s ago")
        if not self._is_excused(self.owner, self.watch_s):
            raise PromiseBroken("owner", f"{self.owner} lives, and has not written for {silent_s:.0f} s")

    def _is_seen_to_live(self, machine: str) -> bool:
        """True if processes of a machine see that the owner lives, and has written in time."""
        owner = self._starts[self.owner]
        silent_s = self._clock.monotonic() - self._written_s
        return owner.machine == machine and owner.life.alive and silent_s <= 2 * self.interval_s + _SLACK_S

    def _is_excused(self, run: str, seconds: float) -> bool:
        """True if a run could not do in these last seconds what it should."""
        excused_s = self._excused_s.get(run, float("-inf"))
        is_late = self._clock.monotonic() - excused_s <= seconds + self.interval_s + _SLACK_S
        return is_late or self._under_way.get(run, 0) > 0 or self._starts[run].life.process.frozen
