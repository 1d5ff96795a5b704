"""The meter of a run: rates, units waiting between its actors, and freshness of the commits."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from actors.protocol.counters import SourceProgress
from actors.protocol.run_state import EpochInFlight, RunState
from actors.settings import BarrierSettings, FetchSettings
from slackwater.status.run_status import EdgeStatus, EpochStatus, SourceStatus
from state.clock import Clock

_WINDOW_S = 5.0
_MEASURED = ("done", "rows", "bytes", "requests")


class FlowMeter:
    """Computes rates from the states of a run.

    Args:
        barrier, fetch: the limits of the run.
        window_s: the interval of the rates, in seconds.
    """

    def __init__(
        self, barrier: BarrierSettings, fetch: FetchSettings, clock: Clock, *, window_s: float = _WINDOW_S
    ) -> None:
        self._barrier, self._fetch, self._clock, self._window_s = barrier, fetch, clock, window_s
        self._lock = threading.Lock()
        self._samples: deque[tuple[float, Mapping[str, float]]] = deque()
        self._since_s: dict[EpochInFlight, float] = {}
        self._freshness_s: dict[str, float] = {}
        self._last_epoch = 0

    def observe(self, state: RunState, sources: Mapping[str, SourceProgress]) -> None:
        """Adds a state.

        Args:
            sources: the counts of the whole run in this state.
        """
        now_s = self._clock.monotonic()
        counts: dict[str, float] = {
            f"{name}.{count}": getattr(source, count) for name, source in sources.items() for count in _MEASURED
        }
        counts["sent"] = sum(each.sent for each in state.lists)
        counts["received"] = sum(each.received for each in state.fetchers)
        counts["bytes"] = sum(source.bytes for source in sources.values())
        counts["epochs"], counts["rows"] = state.epochs, state.totals.rows
        with self._lock:
            self._samples.append((now_s, counts))
            while len(self._samples) > 2 and self._samples[1][0] <= now_s - self._window_s:
                self._samples.popleft()
            self._since_s = {each: self._since_s.get(each, now_s) for each in state.in_flight}
            for epoch in state.recent:
                if epoch.epoch > self._last_epoch:
                    self._last_epoch = epoch.epoch
                    self._freshness_s.update(epoch.freshness_s)

    def measured(self, name: str, source: SourceStatus) -> SourceStatus:
        """A source with its rates and its freshness."""
        return replace(
            source,
            files_per_s=self._per_s(f"{name}.done"),
            rows_per_s=self._per_s(f"{name}.rows"),
            bytes_per_s=self._per_s(f"{name}.bytes"),
            requests_per_s=self._per_s(f"{name}.requests"),
            freshness_s=self._freshness_s.get(name),
        )

    def in_flight(self, state: RunState) -> tuple[EpochStatus, ...]:
        """The epochs between barrier and commit, with the seconds since their phases began."""
        now_s = self._clock.monotonic()
        with self._lock:
            since_s = dict(self._since_s)
        return tuple(
            EpochStatus(each.epoch, each.phase, max(0.0, now_s - since_s.get(each, now_s))) for each in state.in_flight
        )

    def edges(self, state: RunState) -> tuple[EdgeStatus, ...]:
        """The edges of the flow, from the buckets to the views."""
        fetchers = max(1, state.num_fetchers)
        shares = [share for each in state.fetchers for share in each.sources.values()]
        return (
            EdgeStatus("list", "dispatcher", "files", self._per_s("sent"), sum(each.held for each in state.lists)),
            EdgeStatus(
                "dispatcher",
                "fetch",
                "files",
                self._per_s("received"),
                sum(share.waiting + share.reading for share in shares),
                self._fetch.max_files_waiting,
            ),
            EdgeStatus(
                "fetch",
                "merger",
                "bytes",
                self._per_s("bytes"),
                sum(each.in_flight_bytes for each in state.fetchers),
                self._fetch.max_bytes_in_flight * fetchers,
            ),
            EdgeStatus(
                "merger",
                "materializer",
                "epochs",
                self._per_s("epochs"),
                len(state.in_flight),
                self._barrier.max_in_flight,
            ),
            EdgeStatus("materializer", "views", "rows", self._per_s("rows"), 0),
        )

    def _per_s(self, count: str) -> float:
        """The rate of a count; not below zero, because a failed attempt loses counts that it had not committed."""
        with self._lock:
            if len(self._samples) < 2:
                return 0.0
            (before_s, before), (after_s, after) = self._samples[0], self._samples[-1]
        seconds = after_s - before_s
        return max(0.0, after.get(count, 0) - before.get(count, 0)) / seconds if seconds > 0 else 0.0
