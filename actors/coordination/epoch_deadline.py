"""The deadline of the epochs in flight: the longest time without progress before the attempt fails."""

from __future__ import annotations

from actors.coordination.epoch_collector import Outstanding
from actors.protocol.reports import Progress
from state.errors import RunFailedError

_NAMED = 8


class EpochDeadline:
    """The time of the last progress, and the limit.

    Progress is a report about any epoch, or activity of an actor whose report is outstanding.  Activity of others does
    not count: a list actor finds files for as long as they arrive.  The materializer is not timed, as an epoch may keep
    Spark busy for long; its own process watches it.

    Args:
        limit_s: seconds without progress; infinity for no limit.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._progress_s = float("-inf")
        self._activity: dict[str, int] = {}

    def on_report(self, now_s: float) -> None:
        """An actor has collected an epoch."""
        self._progress_s = now_s

    def on_progress(self, progress: Progress, outstanding: Outstanding | None, now_s: float) -> None:
        """An actor reports its activity, a count that only grows."""
        known = self._activity.get(progress.actor, 0)
        self._activity[progress.actor] = max(known, progress.activity)
        if progress.activity > known and outstanding is not None and progress.actor in outstanding.actors:
            self._progress_s = now_s

    def wake_s(self, outstanding: Outstanding | None) -> float:
        """The time of the monotonic clock at which the deadline ends; infinity if no report is outstanding."""
        if outstanding is None:
            return float("inf")
        return max(outstanding.injected_s, self._progress_s) + self._limit_s

    def error(self, outstanding: Outstanding | None, now_s: float) -> RunFailedError | None:
        """The failure of the attempt, with the actors to blame, if the deadline has passed."""
        if outstanding is None or now_s < self.wake_s(outstanding):
            return None
        names, others = ", ".join(outstanding.actors[:_NAMED]), len(outstanding.actors) - _NAMED
        more = f" and {others} others" if others > 0 else ""
        verb = "has" if len(outstanding.actors) == 1 else "have"
        return RunFailedError(
            f"epoch {outstanding.epoch} has made no progress for {self._limit_s:,.0f} s: "
            f"{names}{more} {verb} not reported it; look at their logs"
        )
