"""How many fetch actors the work needs, by what they report."""

from __future__ import annotations

from dataclasses import dataclass

_LOOK_S = 5.0
_OVERLOADED_S = 15.0
_QUIET_S = 300.0
_TARGET_S = 30.0
_SPARE = 0.5


@dataclass(frozen=True)
class Workload:
    """What there is to do, at a moment.

    Args:
        num_fetchers: how many fetch actors there are.
        waiting: files that are listed, and that nobody has begun to read.
        finished: files that have ended so far.
        is_held_back: whether it is not for the fetch actors to read faster: the run is paused or throttled, Spark
            takes no more, or vnodes are moving.
    """

    num_fetchers: int
    waiting: int
    finished: int
    is_held_back: bool


@dataclass(frozen=True)
class ScalingDecision:
    """There should be another number of fetch actors."""

    num_fetchers: int
    reason: str


class Autoscaler:
    """Doubles the fetch actors when what waits would take them long, and halves them after a quiet time.

    Twice as many are asked for when for 15 seconds more has waited than could be read in 30, and nothing but the fetch
    actors has been the reason.  Half as many are when for 5 minutes next to nothing has waited, and half as many would
    have had time to spare by what each of them could read when it was last busy.  After each decision both times
    begin anew.

    Args:
        fewest, most: fetch actors.
    """

    def __init__(self, fewest: int, most: int) -> None:
        self._fewest, self._most = fewest, most
        self._looked_s = float("-inf")
        self._begin: tuple[float, int] | None = None
        self._is_overloaded = False
        self._busy_rate: float | None = None

    @property
    def is_on(self) -> bool:
        """Whether there is anything to decide."""
        return self._fewest < self._most

    def wake_s(self, now_s: float) -> float | None:
        """When it should look again."""
        return max(now_s, self._looked_s + _LOOK_S) if self.is_on else None

    def on_workload(self, now_s: float, workload: Workload) -> ScalingDecision | None:
        """Looks at the work; a look within five seconds of the last one is none.

        Args:
            now_s: of the monotonic clock.
            workload: as of now.
        """
        if not self.is_on or now_s < self._looked_s + _LOOK_S:
            return None
        self._looked_s = now_s
        if workload.is_held_back:
            self._begin = None
            return None
        if self._begin is None:
            self._begin = (now_s, workload.finished)
            return None
        seconds = now_s - self._begin[0]
        rate = (workload.finished - self._begin[1]) / seconds
        is_overloaded = workload.waiting > rate * _TARGET_S
        is_quiet = workload.waiting <= rate
        if is_overloaded != self._is_overloaded or not (is_overloaded or is_quiet):
            self._is_overloaded = is_overloaded
            self._begin = (now_s, workload.finished)
            return None
        decision = self._grown(seconds, rate, workload) if is_overloaded else self._shrunk(seconds, rate, workload)
        if decision is not None:
            self._begin = None
        return decision

    def _grown(self, seconds: float, rate: float, workload: Workload) -> ScalingDecision | None:
        if seconds < _OVERLOADED_S:
            return None
        self._busy_rate = rate / workload.num_fetchers
        wanted = min(self._most, 2 * workload.num_fetchers)
        if wanted <= workload.num_fetchers:
            return None
        return ScalingDecision(wanted, f"{workload.waiting:,} files wait, and {rate:,.1f} are read each second")

    def _shrunk(self, seconds: float, rate: float, workload: Workload) -> ScalingDecision | None:
        wanted = max(self._fewest, workload.num_fetchers // 2)
        if seconds < _QUIET_S or wanted >= workload.num_fetchers:
            return None
        if self._busy_rate is not None and rate > _SPARE * wanted * self._busy_rate:
            return None
        return ScalingDecision(wanted, f"for {seconds:,.0f} seconds next to no file has waited")
