"""The trace of an epoch: it keeps the longest spans, and comes back from its JSON."""

from __future__ import annotations

from dataclasses import replace

import pytest

from state.tables.epoch_trace import PHASES, EpochTrace, HotKey, Phase, Span, WorkCost


def spans(phase: Phase, count: int) -> list[Span]:
    return [Span(phase, "", 0.0, 1.0), *(Span(phase, f"part-{at}", at / 8, at / 4) for at in range(count))]


def test_a_trace_comes_back_from_its_text() -> None:
    hot = Span("spark", "v", 0.0, 0.5, WorkCost(found=20_000), HotKey("customer=17", 20_000))
    trace = EpochTrace.of([*spans("spark", 3), hot, *spans("align", 20)], (7 << 57, 0.25), 3)
    assert hot in trace.spans and trace.planned_queries == 3
    assert trace.left_out == {"align": 4} and trace.commit_before == (7 << 57, 0.25)
    assert EpochTrace.of_json(trace.to_json()) == trace
    assert EpochTrace.of_json(EpochTrace().to_json()) == EpochTrace()


def test_the_longest_parts_of_each_phase_are_kept_in_the_order_of_their_begins() -> None:
    trace = EpochTrace.of([*spans("spark", 40), *spans("align", 2), *spans("fetch", 0)])
    assert [span.phase for span in trace.spans if not span.name] == ["fetch", "align", "spark"]
    assert [span.name for span in trace.spans if span.phase == "spark"] == ["", *(f"part-{at}" for at in range(24, 40))]
    assert trace.left_out == {"spark": 24}


def test_the_costs_of_the_kept_parts_are_kept() -> None:
    costs = [WorkCost(given=at, written_bytes=2 * at) for at in range(3)]
    told = [replace(span, cost=cost) for span, cost in zip(spans("spark", 3)[1:], costs, strict=True)]
    kept = EpochTrace.of_json(EpochTrace.of([*spans("fetch", 1), *told]).to_json())
    assert {span.name: span.cost for span in kept.spans if span.phase == "spark"} == {s.name: s.cost for s in told}
    assert all(span.cost is None for span in kept.spans if span.phase == "fetch")


@pytest.mark.parametrize("actors", [16, 256])
def test_the_size_of_the_text_does_not_grow_with_actors_and_views(actors: int) -> None:
    trace = EpochTrace.of([span for phase in PHASES[:4] for span in spans(phase, actors)])
    assert len(trace.to_json()) < 3_000


def test_each_part_of_a_cost_adds_up() -> None:
    assert WorkCost(1, 2, 3, 4) + WorkCost(10, 20, 30, 40) == WorkCost(11, 22, 33, 44)
