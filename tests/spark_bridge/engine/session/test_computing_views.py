"""A death is attributed to the views that were being computed, and for a while one view is computed at a time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from spark_bridge.engine.session.computing_views import ComputingViews
from state.clock import ManualClock
from tests.waiting import eventually


def test_the_views_at_a_death_are_those_at_the_first_error() -> None:
    views = ComputingViews(ManualClock())
    with views.computing("done"):
        pass
    with views.computing("v.next"), views.computing("v.1"), views.computing("w"), views.computing("s.rows"):
        assert views.at_death() == {"v", "w"}
    assert views.at_death() == {"v", "w"}, "later errors of the same death name the same views"


def test_for_a_while_one_view_is_computed_at_a_time() -> None:
    clock = ManualClock()
    views, end = ComputingViews(clock, alone_s=600), threading.Event()
    entered: list[str] = []

    def compute(name: str) -> None:
        with views.computing(name):
            entered.append(name)
            assert end.wait(60)

    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(compute, "v")
        eventually(lambda: entered == ["v"])
        nested = threads.submit(compute, "v.1")
        eventually(lambda: entered == ["v", "v.1"])
        second = threads.submit(compute, "w")
        assert views.at_death() == {"v"}
        end.set()
        for each in (first, nested, second):
            each.result(60)
    assert entered == ["v", "v.1", "w"]
    clock.advance(600)
    end.clear()
    with ThreadPoolExecutor(2) as threads:
        side_by_side = [threads.submit(compute, name) for name in ("v", "w")]
        eventually(lambda: len(entered) == 5)
        end.set()
        for each in side_by_side:
            each.result(60)
