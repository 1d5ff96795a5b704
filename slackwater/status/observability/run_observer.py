"""Observer of a run: publishes each epoch once, and the status once a second while it changes."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from actors.hosting.metric_exporter import MetricExporter
from actors.protocol.run_state import RunState
from slackwater.status.observability.epoch_spans import EpochSpans
from slackwater.status.observability.run_metrics import RunMetrics
from slackwater.status.run_status import RunStatus
from slackwater.status.trace import phases
from state.clock import Clock
from state.tables.epoch_trace import EpochTrace

_LOOK_EVERY_S, _REST_S = 1.0, 5.0
_log = structlog.get_logger(actor="run")


class RunObserver:
    """Publishes the states of a run as metrics and spans; called by one thread.

    Args:
        status: returns the status of the run.
        clock: the clock of the pauses between two looks at the status.
        metrics: the metrics of the run.
        spans: the spans of its epochs.
    """

    def __init__(self, status: Callable[[], RunStatus], clock: Clock, metrics: RunMetrics, spans: EpochSpans) -> None:
        self._status, self._clock, self._metrics, self._spans = status, clock, metrics, spans
        self._looked_s = float("-inf")
        self._phase, self._version = "", -1
        self._last_epoch = 0
        self._has_failed = False

    @classmethod
    def of(cls, pipeline: str, status: Callable[[], RunStatus], clock: Clock) -> RunObserver:
        """An observer that publishes to Ray's metrics and to the program's OpenTelemetry."""
        return cls(status, clock, RunMetrics(MetricExporter(pipeline)), EpochSpans(pipeline))

    def observe(self, state: RunState, *, at_once: bool = False) -> None:
        """Takes a state of the run.  Ray is connected.

        Args:
            state: the state of the attempt.
            at_once: True publishes the status even if the last look was a moment ago.
        """
        if self._has_failed:
            return
        try:
            # A new epoch needs a new status: it names the views of the epoch.
            is_news = bool(state.recent) and state.recent[-1].epoch > self._last_epoch
            # Without a change, the status has new ages alone.
            pause_s = _REST_S if state.version == self._version else _LOOK_EVERY_S
            is_due = self._clock.monotonic() >= self._looked_s + pause_s
            if at_once or is_news or is_due or state.phase != self._phase:
                self._look(state)
            self._report_epochs(state)
        except Exception as error:
            # The run does not depend on its observers.
            self._has_failed = True
            _log.warning("metrics end", epoch=state.epoch, error=f"{type(error).__name__}: {error}")

    def _look(self, state: RunState) -> None:
        self._phase, self._version, self._looked_s = state.phase, state.version, self._clock.monotonic()
        self._metrics.on_status(self._status())

    def _report_epochs(self, state: RunState) -> None:
        for epoch in state.recent:
            if epoch.epoch > self._last_epoch:
                self._last_epoch = epoch.epoch
                kept = state.traces.get(epoch.epoch)
                trace = EpochTrace.of_json(kept) if kept else EpochTrace(phases(epoch.seconds))
                self._metrics.on_epoch(epoch, trace)
                self._spans.on_epoch(epoch, trace)
