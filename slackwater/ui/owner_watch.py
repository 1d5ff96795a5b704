"""Whether the run that a root names is alive, as far as somebody can tell who sees the root alone."""

from __future__ import annotations

import threading
from datetime import timedelta

from state.clock import Clock
from state.owner import Owner

_SILENT_S = 20.0
_STALE = timedelta(seconds=60)


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
        self._changed_s = 0.0

    def state(self, owner: Owner | None) -> str:
        """`none` (nobody ever ran), `running`, `silent` (it says nothing any more), `dead`, or `ended`."""
        if owner is None:
            return "none"
        if owner.released:
            return "ended"
        if owner.is_dead():
            return "dead"
        with self._lock:
            now_s = self._clock.monotonic()
            if self._last is None:
                is_stale = self._clock.now() - owner.renewed_at > _STALE
                self._last, self._changed_s = owner, now_s - (_SILENT_S if is_stale else 0.0)
            elif (owner.run_id, owner.renewed_at) != (self._last.run_id, self._last.renewed_at):
                self._last, self._changed_s = owner, now_s
            return "silent" if now_s - self._changed_s >= _SILENT_S else "running"
