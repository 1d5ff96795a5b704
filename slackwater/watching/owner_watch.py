"""Whether the run that a root names is alive, as far as somebody can tell who sees the root alone."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import timedelta

from state.clock import Clock
from state.ownership.owner import Owner

_SILENT_S = 20.0
_STALE = timedelta(seconds=60)
_RUNS = frozenset({"living", "unheard"})


@dataclass(frozen=True)
class OwnerLife:
    """What is known of an owner after a look at it.

    Args:
        state: `none`: nobody has run here; `unheard`: somebody says to run, and has not been heard of since the
            watching began; `living`: and has been; `silent`: but for 20 s no more; `gone`: its process is
            dead; `ended`.
        silent_s: for how long it has written nothing.
        took_over: whether it has taken the root from a living one since the watching began.
    """

    state: str
    silent_s: float = 0.0
    took_over: bool = False

    @property
    def runs(self) -> bool:
        """Whether there is no reason to think that it does not."""
        return self.state in _RUNS


class OwnerWatch:
    """Looks at every owner that was read, and tells what has become of it.

    An owner renews itself every 5 seconds.  That it does not any more is told by this machine's own clock, from one
    look to the next; only at the first look the owner's time counts, with a minute for clocks that do not agree.

    Args:
        clock: of this machine.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last: Owner | None = None
        self._heard_s = clock.monotonic()
        self._was_heard = self._took_over = False

    def look(self, owner: Owner | None) -> OwnerLife:
        """What is known with this, which was just read; None if there is none."""
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
                self._took_over = not before.released and not before.is_dead()

    def _state(self, owner: Owner | None, silent_s: float) -> str:
        if owner is None:
            return "none"
        if owner.released:
            return "ended"
        if owner.is_dead():
            return "gone"
        if silent_s >= _SILENT_S:
            return "silent"
        return "living" if self._was_heard else "unheard"
