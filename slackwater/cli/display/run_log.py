"""The progress of a run as log lines, without a terminal."""

from __future__ import annotations

from collections.abc import Hashable
from types import TracebackType
from typing import TYPE_CHECKING

import structlog

from actors.telemetry.counted import counters_of
from state.clock import Clock

if TYPE_CHECKING:
    from slackwater.status.run_status import RunStatus, SourceStatus

_INTERVAL_S = 10.0


class RunLog:
    """Logs changes of the status.  A context manager: its end logs the last changes.

    A new phase, a new message and a failed view are logged at once.  The counts of a source, the progress of a backfill
    and the duration of a step of the start are logged at most every ten seconds.

    Args:
        clock: paces the lines.
        root: of the run, as an argument of the commands that lines name.
    """

    def __init__(self, clock: Clock, root: str) -> None:
        self._clock, self._root = clock, root
        self._logged: dict[Hashable, object] = {}
        self._logged_s: dict[Hashable, float] = {}
        self._last: RunStatus | None = None

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._last is not None:
            self._log(self._last, at_most_every_s=0.0)

    def show(self, status: RunStatus) -> None:
        """Logs the changes since the last lines."""
        self._last = status
        self._log(status, at_most_every_s=_INTERVAL_S)

    def _log(self, status: RunStatus, at_most_every_s: float) -> None:
        log = structlog.get_logger(actor="run", epoch=status.epoch)
        if self._is_news("run", (status.phase, status.spark, status.message, status.recoveries), 0.0):
            message = {"message": status.message} if status.message else {}
            log.info("run", phase=status.phase, spark=status.spark, **message)
        for each in status.startup:
            is_long = not each.done and each.seconds >= _INTERVAL_S
            if is_long and self._is_news(("step", each.name), each.seconds, _INTERVAL_S):
                log.info("starting", step=each.name, seconds=round(each.seconds, 1))
        for name, source in status.sources.items():
            counts = logged_counts(source)
            # Requests of a listing without new files are not a change.
            if any(counts.values()) and self._is_news(("source", name), counts, at_most_every_s):
                freshness = {} if source.freshness_s is None else {"freshness_s": round(source.freshness_s, 3)}
                log.info("source", source=name, **counts, bytes=source.bytes, requests=source.requests, **freshness)
        if self._is_news("caught up", status.caught_up, 0.0) and status.caught_up:
            log.info("caught up")
        for name, backfill in status.backfills.items():
            progress = (round(backfill.fraction, 2), len(backfill.missing))
            if self._is_news(("view", name), progress, at_most_every_s):
                log.info("backfill", view=name, fraction=progress[0], missing=progress[1])
        for name, view in status.views.items():
            if self._is_news(("failure", name), view.error, 0.0) and view.error is not None:
                step = f"correct it or its files, and rebuild it: slackwater retry {self._root} --view {name}"
                # Text: an epoch does not fit the numbers of every reader of JSON.
                log.warning(
                    "a view has failed",
                    view=name,
                    stale_epoch=str(view.stale_epoch or "none"),
                    error=view.error,
                    next_step=step,
                )

    def _is_news(self, subject: Hashable, value: object, at_most_every_s: float) -> bool:
        now_s = self._clock.monotonic()
        if value == self._logged.get(subject):
            return False
        if now_s - self._logged_s.get(subject, float("-inf")) < at_most_every_s:
            return False
        self._logged[subject], self._logged_s[subject] = value, now_s
        return True


def logged_counts(source: SourceStatus) -> dict[str, int]:
    """The described numbers of a source and of its queue that log lines have, the present ones before the counters."""
    counts: dict[str, int] = {}
    for values in (source, source.messages):
        described = [] if values is None else counters_of(type(values)).items()
        for name, counter in sorted(described, key=lambda item: item[1].kind == "counter"):
            if counter.log:
                counts[counter.log] = counts.get(counter.log, 0) + (getattr(values, name) or 0)
    return counts
