"""Watch of the owner of a root: alive, silent or gone, judged by the root alone."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

from state.clock import Clock
from state.ownership.owner import Owner

OwnerState: TypeAlias = Literal["none", "unheard", "living", "silent", "gone", "ended"]

SILENT_S = 20.0
"""Seconds without a sign after which an owner counts as silent; it gives one every 5 s."""

_STALE = timedelta(seconds=60)
_RUNS = frozenset({"living", "unheard"})


@dataclass(frozen=True)
class OwnerLife:
    """The state of an owner after a look.

    Args:
        state: `none`: no process ran here; `unheard`: the owner claims to run, without a sign since the watch began;
            `living`: it gave a sign; `silent`: it gave none for 20 s; `gone`: its process is dead; `ended`.
        silent_s: the time without a sign, in seconds.
        took_over: True if it took the root from a living owner since the watch began.
    """

    state: OwnerState
    silent_s: float = 0.0
    took_over: bool = False

    @property
    def runs(self) -> bool:
        """True if nothing speaks against a running owner."""
        return self.state in _RUNS


class OwnerWatch:
    """Judges the owner of a root from look to look.

    An owner renews itself every 5 seconds.  Silence is measured by the clock of this machine, from one look to the
    next; only the first look uses the time that the owner wrote, with a minute of tolerance between clocks.

    Args:
        clock: the clock of this machine.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last: Owner | None = None
        self._heard_s = clock.monotonic()
        self._was_heard = self._took_over = False

    def look(self, owner: Owner | None) -> OwnerLife:
        """The state with the owner that was just read; None for a root without one."""
        with self._lock:
            now_s = self._clock.monotonic()
            self._hear(owner, now_s)
            silent_s = now_s - self._heard_s
            return OwnerLife(self._state(owner, silent_s), silent_s, self._took_over)

    def _hear(self, owner: Owner | None, now_s: float) -> None:
        before, self._last = self._last, owner
        if owner is None:
            self._heard_s = now_s
        elif before is None:
            age = self._clock.now() - owner.renewed_at
            self._heard_s = now_s - (age.total_seconds() if age > _STALE else 0.0)
        elif (owner.run_id, owner.renewed_at) != (before.run_id, before.renewed_at):
            self._heard_s, self._was_heard = now_s, True
            if owner.run_id != before.run_id:
                self._took_over = not before.is_gone()

    def _state(self, owner: Owner | None, silent_s: float) -> OwnerState:
        if owner is None:
            return "none"
        if owner.released:
            return "ended"
        if owner.is_dead():
            return "gone"
        if silent_s >= SILENT_S:
            return "silent"
        return "living" if self._was_heard else "unheard"
