"""Epochs as spans of OpenTelemetry, taken by the exporter in memory of its SDK."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracer, Span

from slackwater.status.observability.epoch_spans import EpochSpans
from state.tables.epoch_trace import EpochTrace
from tests.slackwater.reading.written_root import START
from tests.slackwater.status.observability.observed_run import TRACE, committed


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> EpochSpans:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return EpochSpans("flights", provider)


def by_name(exporter: InMemorySpanExporter) -> Mapping[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def test_an_epoch_is_a_tree(spans: EpochSpans, exporter: InMemorySpanExporter) -> None:
    spans.on_epoch(committed(7), TRACE)
    found = by_name(exporter)
    names = {span.context.span_id: name for name, span in found.items() if span.context is not None}
    assert {name: names[span.parent.span_id] if span.parent else None for name, span in found.items()} == {
        "epoch": None,
        "fetch": "epoch",
        "barrier": "epoch",
        "align": "barrier",
        "align fetch-0": "align",
        "align fetch-1": "align",
        "align list-flights": "align",
        "align merger": "align",
        "spark": "barrier",
        "spark waiting for its turn": "spark",
        "spark ingest into Spark": "spark",
        "spark by_carrier": "spark",
        "collect": "barrier",
        "collect waiting for its turn": "collect",
        "commit": "barrier",
    }
    assert len({span.context.trace_id for span in found.values() if span.context is not None}) == 1


def test_spans_are_when_things_were(spans: EpochSpans, exporter: InMemorySpanExporter) -> None:
    spans.on_epoch(committed(7), TRACE)

    def times(name: str) -> tuple[float, float]:
        span = by_name(exporter)[name]
        assert span.start_time is not None and span.end_time is not None
        committed_ns = (START + timedelta(seconds=7)).timestamp() * 1e9
        return round((span.start_time - committed_ns) / 1e9, 3), round((span.end_time - span.start_time) / 1e9, 3)

    assert times("commit") == (0.0, 0.125), "the time of an epoch is that at which its commit began"
    assert times("barrier") == (-1.5, 1.625)
    assert times("epoch") == (-2.0, 2.125)
    assert times("fetch") == (-2.0, 0.5)
    assert times("spark by_carrier") == (-1.0, 0.75)


def test_an_epoch_says_what_it_brought(spans: EpochSpans, exporter: InMemorySpanExporter) -> None:
    spans.on_epoch(committed(7), TRACE)
    assert dict(by_name(exporter)["epoch"].attributes or {}) == {
        "slackwater.pipeline": "flights",
        "slackwater.epoch": 7,
        "slackwater.files": 2,
        "slackwater.rows": 50,
        "slackwater.bytes": 900,
        "slackwater.requests": 3,
    }
    assert dict(by_name(exporter)["spark by_carrier"].attributes or {}) == {"slackwater.part": "by_carrier"}


def test_an_epoch_without_parts_is_still_one(spans: EpochSpans, exporter: InMemorySpanExporter) -> None:
    spans.on_epoch(committed(7), EpochTrace())
    assert {*by_name(exporter)} == {"epoch", "barrier", "commit"}


class Refusing(NoOpTracer):
    """What there is while a program has set up nothing, counting what it is asked for."""

    asked = 0

    def start_span(self, *args: Any, **options: Any) -> Span:
        self.asked += 1
        return super().start_span(*args, **options)


def test_without_a_provider_of_the_program_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider), "nothing of ours sets one"
    tracer = Refusing()
    monkeypatch.setattr(trace, "get_tracer", lambda *_: tracer)
    EpochSpans("flights").on_epoch(committed(7), TRACE)
    assert tracer.asked == 1, "the first answer tells that nobody listens"
