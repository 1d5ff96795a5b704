"""Metrics of a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from actors.protocol.counters import SourceProgress
from actors.telemetry.metrics import Metric
from slackwater.status.observability.epoch_spans import EpochSpans
from slackwater.status.observability.run_metrics import METRICS, RUN_PHASES, RunMetrics
from slackwater.status.observability.run_observer import RunObserver
from slackwater.status.run_status import AfterCommitStatus, RowsInMemory, RunStatus, SourceStatus, ViewStatus
from state.clock import ManualClock
from tests.slackwater.reading.written_root import START
from tests.slackwater.status.observability.exported import Exported
from tests.slackwater.status.observability.observed_run import SOURCE, STATUS, TRACE, committed, state

LABELS = {"phase", "source", "view", "status", "edge", "table", "expectation"}
UNITS = {"counter": "_total", "histogram": "_seconds"}


def published(*statuses: RunStatus) -> Exported:
    exported = Exported()
    metrics = RunMetrics(exported)
    for status in statuses:
        metrics.on_status(status)
    return exported


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_follow_the_conventions_of_prometheus(metric: Metric) -> None:
    assert re.fullmatch(r"slackwater_[a-z]+(_[a-z]+)*", metric.name)
    assert metric.name.endswith(UNITS.get(metric.kind, "")) and metric.description.endswith(".")
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert not re.search(r"_(ms|milliseconds|minutes|kb|mb|kib|mib|percent)(_|$)", metric.name), "base units only"
    assert {*metric.labels} <= LABELS, "of what is declared"
    assert (metric.kind == "histogram") == bool(metric.boundaries)
    assert list(metric.boundaries) == sorted({*metric.boundaries})


def test_every_declared_metric_is_published() -> None:
    exported = Exported()
    metrics = RunMetrics(exported)
    metrics.on_status(STATUS)
    metrics.on_epoch(committed(7), TRACE)
    assert exported.published == {each.name for each in METRICS}


def test_the_phases_of_an_epoch_do_not_overlap() -> None:
    exported = published(STATUS)
    RunMetrics(exported).on_epoch(committed(7), TRACE)
    assert exported.observed["slackwater_epoch_phase_seconds"] == {
        ("fetch",): [0.5],
        ("align",): [0.25],
        ("spark",): [1.0],
        ("collect",): [0.25],
        ("commit",): [0.125],
    }
    assert exported.observed["slackwater_barrier_seconds"] == {(): [1.5]}
    assert exported.observed["slackwater_freshness_seconds"] == {("flights",): [0.75]}
    assert exported.values["slackwater_last_commit_timestamp_seconds"][()] == START.timestamp() + 7


def test_the_time_of_the_last_commit_is_published_without_a_new_one() -> None:
    exported = Exported()
    metrics = RunMetrics(exported)
    metrics.on_epoch(committed(7), TRACE)
    exported.values.clear()
    metrics.on_status(STATUS)
    assert exported.values["slackwater_last_commit_timestamp_seconds"] == {(): START.timestamp() + 7}


def test_only_views_are_timed_as_views() -> None:
    exported = Exported()
    metrics = RunMetrics(exported)
    metrics.on_status(STATUS)
    metrics.on_epoch(committed(7), TRACE)
    assert exported.observed["slackwater_view_seconds"] == {("by_carrier",): [0.75]}


def test_gauges_stand_where_the_run_is() -> None:
    values = published(STATUS).values
    assert {phase: values["slackwater_run_phase"][(phase,)] for phase in RUN_PHASES} == {
        phase: float(phase == "running") for phase in RUN_PHASES
    }
    assert values["slackwater_epochs_in_flight"] == {("align",): 2, ("spark",): 1, ("collect",): 0, ("commit",): 0}
    assert values["slackwater_edge_fill_ratio"] == {("dispatcher-fetch",): 0.25}, (
        "an edge without a limit is never full"
    )
    assert values["slackwater_files_unfinished"] == {("flights", "waiting"): 4, ("flights", "reading"): 1}
    assert values["slackwater_view_rows"] == {("by_carrier",): 3}, "rows that are not known are not 0"
    assert values["slackwater_view_lag_seconds"][("top",)] == 1.5
    assert values["slackwater_join_memory_bytes"] == {(): 0}


def test_the_lag_of_each_published_table_is_known() -> None:
    values = published(STATUS).values
    current, behind = ("by_carrier", "delta:/pub/by_carrier"), ("by_carrier", "parquet:/pub/files")
    assert values["slackwater_publication_lag_epochs"] == {current: 0, behind: 3}
    assert values["slackwater_publication_lag_seconds"] == {current: 0.0, behind: 12.5}
    assert values["slackwater_publication_failed"] == {current: False, behind: True}


def test_files_that_are_handled_after_the_commit_are_counted() -> None:
    more = replace(STATUS, after_commit=(AfterCommitStatus("flights", "delete", handled=6, failed=0),))
    values = published(STATUS, more).values
    assert values["slackwater_handled_files_total"] == {("flights",): 6}
    assert values["slackwater_handled_files_failed"] == {("flights",): 0}


def test_rows_that_violate_expectations_are_shown() -> None:
    held = replace(STATUS.views["by_carrier"], violations={"few": 2, "named": 0}, held_since=7)
    values = published(replace(STATUS, views={"by_carrier": held, "top": STATUS.views["top"]})).values
    assert values["slackwater_view_violations"] == {("by_carrier", "few"): 2, ("by_carrier", "named"): 0}
    assert values["slackwater_view_held"] == {("by_carrier",): True}, "a view without expectations has no gate"


def test_the_rows_of_all_internal_views_in_memory_count() -> None:
    kept = {f"views/pairs.{at}-1.lance": RowsInMemory(10, 400 * at) for at in (1, 2)}
    assert published(replace(STATUS, in_memory=kept)).values["slackwater_join_memory_bytes"] == {(): 1_200}


def test_indexes_that_were_wrong_are_counted_over_all_attempts() -> None:
    attempts = [replace(STATUS, rebuilt_indexes={"top": count}) for count in (1, 2, 1)]
    assert published(*attempts, STATUS).values["slackwater_indexes_rebuilt_total"] == {("top",): 3}


def test_queries_that_spark_planned_are_counted_over_all_attempts() -> None:
    attempts = [replace(STATUS, planned_queries=count) for count in (7, 9, 4)]
    assert published(*attempts).values["slackwater_planned_queries_total"] == {(): 13}


def test_watermarks_and_windows_of_event_time_are_shown() -> None:
    closing = replace(STATUS.views["by_carrier"], open_groups=12, late_rows=3)
    seen = replace(STATUS, sources={"flights": replace(SOURCE, watermark=START)}, views={"by_carrier": closing})
    values = published(seen, seen).values
    assert values["slackwater_watermark_timestamp_seconds"] == {("flights",): START.timestamp()}
    assert values["slackwater_view_open_groups"] == {("by_carrier",): 12}
    assert values["slackwater_view_late_rows_total"] == {("by_carrier",): 3}
    without = replace(STATUS, sources={"flights": replace(SOURCE, watermark=None)})
    assert "slackwater_watermark_timestamp_seconds" not in published(without).values, (
        "a source without an event time has none"
    )


def test_a_counter_grows_with_the_run() -> None:
    more = replace(STATUS, epochs=5, sources={"flights": replace(SOURCE, done=9, rows=700, vanished=0)})
    values = published(STATUS, more, more).values
    assert values["slackwater_epochs_total"] == {(): 5}
    assert values["slackwater_files_total"][("flights", "done")] == 9
    assert values["slackwater_files_total"][("flights", "vanished")] == 1
    assert values["slackwater_rows_total"] == {("flights",): 700}
    assert not published(RunStatus()).values["slackwater_epochs_total"], "there is nothing to count"


def test_counters_begin_with_the_run_and_not_with_the_root() -> None:
    before = SourceProgress(done=5, quarantined=1, vanished=1, rows=400, rows_bad=3, bytes=8_000)
    values = published(replace(STATUS, sources={"flights": replace(SOURCE, before=before)})).values
    files = {
        status: values["slackwater_files_total"].get(("flights", status), 0)
        for status in ("done", "quarantined", "vanished")
    }
    assert files == {"done": 2, "quarantined": 1, "vanished": 0}
    assert (
        values["slackwater_rows_total"][("flights",)] == 100
        and values["slackwater_read_bytes_total"][("flights",)] == 1_000
    )
    assert not values.get("slackwater_bad_rows_total")


def test_what_a_failed_attempt_takes_back_is_counted_once() -> None:
    def read(rows: int) -> RunStatus:
        return replace(STATUS, sources={"flights": replace(SOURCE, rows=rows)})

    assert published(read(500), read(200), read(450), read(620)).values["slackwater_rows_total"] == {("flights",): 620}


def test_listings_that_every_attempt_counts_again_are_added_up() -> None:
    def listed(times: int) -> RunStatus:
        return replace(STATUS, sources={"flights": replace(SOURCE, listings=times)})

    assert published(listed(0), listed(5), listed(2), listed(3)).values["slackwater_listings_total"] == {
        ("flights",): 8
    }


def test_a_backfill_that_is_shown_has_caught_up() -> None:
    values = published(STATUS, replace(STATUS, backfills={})).values
    assert values["slackwater_view_caught_up_ratio"] == {("late",): 1.0}


def test_a_failed_view_counts_until_it_is_rebuilt_or_gone() -> None:
    wet = ViewStatus("aggregate", stale_epoch=7, error="too wet")
    failed = replace(STATUS, views={**STATUS.views, "by_carrier": wet})
    assert published(failed).values["slackwater_view_failed"] == {("by_carrier",): 1.0, ("top",): 0.0}
    for later in (STATUS, replace(STATUS, views={"top": STATUS.views["top"]})):
        assert published(failed, later).values["slackwater_view_failed"] == {("by_carrier",): 0.0, ("top",): 0.0}


def test_a_source_without_a_queue_has_no_messages() -> None:
    exported = published(replace(STATUS, sources={"flights": SourceStatus()}))
    assert not {"slackwater_messages_total", "slackwater_messages_in_flight"} & exported.published


class Observed:
    """An observer, and what it was told."""

    def __init__(self, status: Callable[[], RunStatus] = lambda: STATUS) -> None:
        self.exported, self.clock, self.looks = Exported(), ManualClock(START), 0
        self.observer = RunObserver(lambda: self._look(status), self.clock, RunMetrics(self.exported), EpochSpans("p"))

    def _look(self, status: Callable[[], RunStatus]) -> RunStatus:
        self.looks += 1
        return status()

    @property
    def barriers(self) -> int:
        return len(self.exported.observed["slackwater_barrier_seconds"][()])


def test_each_epoch_is_told_once_and_the_whole_with_it_and_once_a_second_while_it_changes() -> None:
    observed = Observed()
    for epochs in ([1], [1, 2], [1, 2], [1, 2, 3]):
        observed.observer.observe(state(*epochs))
        observed.clock.advance(0.25)
    assert (observed.barriers, observed.looks) == (3, 3)
    changed = replace(state(1, 2, 3), version=state(1, 2, 3).version + 1)
    observed.clock.advance(0.5)
    observed.observer.observe(changed)
    assert (observed.barriers, observed.looks) == (3, 3)
    observed.clock.advance(0.25)
    observed.observer.observe(changed)
    assert (observed.barriers, observed.looks) == (3, 4)
    observed.clock.advance(4.75)
    observed.observer.observe(changed)
    assert observed.looks == 4
    observed.clock.advance(0.25)
    observed.observer.observe(changed)
    assert observed.looks == 5


def test_an_epoch_knows_the_views_that_came_with_it() -> None:
    statuses = iter([RunStatus(), STATUS])
    observed = Observed(lambda: next(statuses))
    observed.observer.observe(state())
    observed.observer.observe(replace(state(7), traces={7: TRACE.to_json()}))
    assert observed.exported.observed["slackwater_view_seconds"]


def test_a_new_phase_and_an_end_are_seen_at_once() -> None:
    observed = Observed()
    for phase in ("running", "stopping", "stopping"):
        observed.observer.observe(state(1, phase=phase))
    assert observed.looks == 2
    observed.observer.observe(state(1, phase="stopping"), at_once=True)
    assert observed.looks == 3


def test_a_trace_that_is_gone_leaves_the_phases() -> None:
    observed = Observed()
    observed.observer.observe(replace(state(1), traces={}))
    assert observed.barriers == 1 and not observed.exported.observed["slackwater_view_seconds"]


def test_observers_that_fail_are_let_go_and_the_run_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> RunStatus:
        raise RuntimeError("no disk")

    observed = Observed(broken)
    observed.observer.observe(state(1))
    observed.observer.observe(state(1, 2), at_once=True)
    assert (observed.looks, observed.barriers) == (1, 0)
    assert "metrics end" in capsys.readouterr().out
