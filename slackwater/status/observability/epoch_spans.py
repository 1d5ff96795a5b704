"""OpenTelemetry spans of the committed epochs, one tree for each epoch."""

from __future__ import annotations

from opentelemetry import trace as opentelemetry
from opentelemetry.context import Context
from opentelemetry.trace import Tracer, TracerProvider
from opentelemetry.util.types import AttributeValue

import slackwater
from actors.protocol.run_state import CommittedEpoch
from slackwater.status.trace import Trace
from state.tables.epoch_trace import EpochTrace, Span

_SCOPE = "slackwater"


class EpochSpans:
    """Makes the spans of an epoch at its commit, with the recorded times.

        epoch
        ├── fetch
        └── barrier
            ├── align         with a span for each actor
            ├── spark         with a span for each view and step
            ├── collect
            └── commit

    The spans go to the `TracerProvider` of the program; without one no span is made.

    Args:
        pipeline: the name of the pipeline, an attribute of each epoch.
        provider: the receiver of the spans; None for the provider that the program has set at the first epoch.
    """

    def __init__(self, pipeline: str, provider: TracerProvider | None = None) -> None:
        self._pipeline, self._provider = pipeline, provider

    def on_epoch(self, epoch: CommittedEpoch, trace: EpochTrace) -> None:
        tracer = opentelemetry.get_tracer(_SCOPE, slackwater.__version__, self._provider)
        report = Trace.of(epoch.epoch, epoch.committed_at, epoch.counts, trace, epoch.commit_s)
        # `committed_at` is the time at which the commit began.
        commit_start_s = next(span.start_s for span in report.spans if span.phase == "commit")
        drawn = _Drawn(tracer, epoch.committed_at.timestamp() - commit_start_s)
        first_s = min(span.start_s for span in report.spans)
        whole = drawn.span("epoch", first_s, report.seconds, Context(), self._attributes(report))
        if whole is None:
            return
        barrier = drawn.span("barrier", 0.0, first_s + report.seconds, whole) or whole
        phases: dict[str, Context] = {}
        for span in report.spans:
            name = f"{span.phase} {span.name}" if span.name else span.phase
            parent = phases.get(span.phase) or (whole if span.phase == "fetch" else barrier)
            context = drawn.span(name, span.start_s, span.seconds, parent, _part(span))
            if context is not None and not span.name:
                phases[span.phase] = context

    def _attributes(self, trace: Trace) -> dict[str, AttributeValue]:
        return {
            "slackwater.pipeline": self._pipeline,
            "slackwater.epoch": trace.epoch,
            "slackwater.files": trace.files,
            "slackwater.rows": trace.rows,
            "slackwater.bytes": trace.bytes,
            "slackwater.requests": trace.requests,
        }


class _Drawn:
    """Maker of spans of the past.

    Args:
        tracer: makes the spans.
        barrier_s: the time of the barrier, in seconds since 1970; the times of the spans are relative to it.
    """

    def __init__(self, tracer: Tracer, barrier_s: float) -> None:
        self._tracer, self._barrier_s = tracer, barrier_s

    def span(
        self,
        name: str,
        start_s: float,
        seconds: float,
        parent: Context,
        attributes: dict[str, AttributeValue] | None = None,
    ) -> Context | None:
        """Makes a span.  Returns the context of its child spans; None without a receiver of spans."""
        made = self._tracer.start_span(name, parent, attributes=attributes, start_time=self._at_ns(start_s))
        made.end(self._at_ns(start_s + seconds))
        is_taken = made.get_span_context().is_valid
        return opentelemetry.set_span_in_context(made, parent) if is_taken else None

    def _at_ns(self, from_barrier_s: float) -> int:
        return int((self._barrier_s + from_barrier_s) * 1e9)


def _part(span: Span) -> dict[str, AttributeValue] | None:
    return {"slackwater.part": span.name} if span.name else None
