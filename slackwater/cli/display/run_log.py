"""How far a run is, as log lines, where there is no terminal."""

from __future__ import annotations

from collections.abc import Hashable
from types import TracebackType
from typing import TYPE_CHECKING

import structlog

from state.clock import Clock

if TYPE_CHECKING:
    from slackwater.status.run_status import MessageStatus, RunStatus, SourceStatus

_INTERVAL_S = 10.0


class RunLog:
    """Logs what has changed, and nothing while nothing changes.  A context manager: at the end it says the last of it.

    A new phase, or another thing that the run waits for, is said at once; the counts of one source, or how far a view
    has caught up, every ten seconds at most.

    Args:
        clock: for the pace.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
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
        """Logs what has changed since it was logged."""
        self._last = status
        self._log(status, at_most_every_s=_INTERVAL_S)

    def _log(self, status: RunStatus, at_most_every_s: float) -> None:
        log = structlog.get_logger(actor="run", epoch=status.epoch)
        if self._is_news("run", (status.phase, status.spark, status.message, status.recoveries), 0.0):
            said = {"message": status.message} if status.message else {}
            log.info("run", phase=status.phase, spark=status.spark, **said)
        for name, source in status.sources.items():
            counts = _counts(source)
            # A listing that finds nothing costs requests, and is no news.
            if any(counts.values()) and self._is_news(("source", name), counts, at_most_every_s):
                freshness = {} if source.freshness_s is None else {"freshness_s": round(source.freshness_s, 3)}
                log.info("source", source=name, **counts, bytes=source.bytes, requests=source.requests, **freshness)
        if self._is_news("caught up", status.caught_up, 0.0) and status.caught_up:
            log.info("caught up")
        for name, late in status.backfills.items():
            far = (round(late.fraction, 2), len(late.missing))
            if self._is_news(("view", name), far, at_most_every_s):
                log.info("backfill", view=name, fraction=far[0], missing=far[1])

    def _is_news(self, subject: Hashable, said: object, at_most_every_s: float) -> bool:
        now_s = self._clock.monotonic()
        if said == self._logged.get(subject):
            return False
        if now_s - self._logged_s.get(subject, float("-inf")) < at_most_every_s:
            return False
        self._logged[subject], self._logged_s[subject] = said, now_s
        return True


def _counts(source: SourceStatus) -> dict[str, int]:
    return {
        "listed": source.listed,
        "waiting": source.waiting + source.reading,
        "done": source.done,
        "quarantined": source.quarantined,
        "rows": source.rows,
        "rows_bad": source.rows_bad,
        **_messages(source.messages),
    }


def _messages(messages: MessageStatus | None) -> dict[str, int]:
    if messages is None:
        return {}
    return {
        "messages_in_flight": messages.in_flight,
        "redelivered": messages.redelivered,
        "poison": messages.poison,
    }
