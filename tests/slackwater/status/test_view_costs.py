"""The costs of views come from the traces of epochs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from slackwater.status.view_costs import ViewCost, view_costs
from state.tables.epoch_trace import EpochTrace, Span, WorkCost
from state.tables.records import EpochCounts, EpochRecord, EpochSeconds, ViewVersion

VIEWS = {name: ViewVersion(name, f"views/{name}-1.lance", 1) for name in ("a", "a.1", "t.rows")}


def _record(*spans: Span) -> EpochRecord:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return EpochRecord(1, 1, at, 1, EpochCounts(), EpochSeconds(), VIEWS, EpochTrace.of(spans).to_json())


def _span(name: str, seconds: float, given: int = 0) -> Span:
    return Span("spark", name, 0.0, seconds, WorkCost(given=given, written=2, written_bytes=100))


def test_a_cost_is_the_median_of_the_epochs_that_changed_the_view() -> None:
    records = [
        _record(_span("a", 0.1, 10), _span("a.1", 0.5, 7), _span("stored rows of t", 0.1)),
        _record(_span("a", 0.3, 30)),
        _record(_span("ingest into Spark", 9.0)),
        _record(_span("a", 0.25, 12), _span("a, corrected files", 0.5, 8)),
    ]
    assert view_costs(records) == {
        "a": ViewCost("a", 3, 0.3, 0.75, WorkCost(given=20, written=2, written_bytes=100)),
        "a.1": ViewCost("a.1", 1, 0.5, 0.5, WorkCost(given=7, written=2, written_bytes=100)),
    }


def test_a_trace_without_costs_still_tells_seconds() -> None:
    record = replace(_record(), trace='{"spans":[["spark","a",0.0,0.25]]}')
    assert view_costs([record, replace(record, trace=None)])["a"] == ViewCost("a", 1, 0.25, 0.25, WorkCost())


def test_views_that_share_rows_have_the_cost_of_them() -> None:
    record = _record(_span("a.1", 0.5, 7))
    shared = replace(record, views={**VIEWS, "b.1": replace(VIEWS["a.1"], name="b.1")})
    assert {name: each.seconds for name, each in view_costs([shared]).items()} == {"a.1": 0.5, "b.1": 0.5}
