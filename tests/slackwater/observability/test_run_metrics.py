"""Metrics of a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from actors.protocol.reports import SourceProgress
from actors.telemetry.metrics import Metric
from slackwater.observability.epoch_spans import EpochSpans
from slackwater.observability.run_metrics import RUN_PHASES, RunMetrics
from slackwater.observability.run_observer import RunObserver
from slackwater.status.run_status import AfterCommitStatus, RowsInMemory, RunStatus, SourceStatus, ViewStatus
from state.clock import ManualClock
from tests.slackwater.observability.exported import Exported
from tests.slackwater.observability.observed_run import SOURCE, STATUS, TRACE, committed, state
from tests.slackwater.reading.written_root import START

LABELS = {"phase", "source", "view", "status", "edge", "table", "expectation"}
UNITS = {"counter": "_total", "histogram": "_seconds"}


def published(*statuses: RunStatus) -> Exported:
    exported = Exported()
    metrics = RunMetrics(exported)
    for status in statuses:
        metrics.on_status(status)
    return exported


@pytest.mark.parametrize("metric", Metric, ids=lambda metric: metric.value.name)
def test_names_follow_the_conventions_of_prometheus(metric: Metric) -> None:
    definition = metric.value
    assert re.fullmatch(r"slackwater_[a-z]+(_[a-z]+)*", definition.name)
    assert definition.name.endswith(UNITS.get(definition.kind, "")) and definition.description.endswith(".")
    assert definition.name.endswith("_total") == (definition.kind == "counter")
    assert not re.search(r"_(ms|milliseconds|minutes|kb|mb|kib|mib|percent)(_|$)", definition.name), "base units only"
    assert {*definition.labels} <= LABELS, "of what is declared"
    assert (definition.kind == "histogram") == bool(definition.boundaries)
    assert list(definition.boundaries) == sorted({*definition.boundaries})


def test_every_declared_metric_is_published() -> None:
    exported = Exported()
    metrics = RunMetrics(exported)
    metrics.on_status(STATUS)
    metrics.on_epoch(committed(7), TRACE)
    assert exported.published == {*Metric}


def test_the_phases_of_an_epoch_do_not_overlap() -> None:
    exported = published(STATUS)
    RunMetrics(exported).on_epoch(committed(7), TRACE)
    assert exported.observed[Metric.EPOCH_PHASE] == {
        ("fetch",): [0.5],
        ("align",): [0.25],
        ("spark",): [1.0],
        ("collect",): [0.25],
        ("commit",): [0.125],
    }
    assert exported.observed[Metric.BARRIER] == {(): [1.5]}
    assert exported.observed[Metric.FRESHNESS] == {("flights",): [0.75]}
    assert exported.values[Metric.LAST_COMMIT][()] == START.timestamp() + 7


def test_the_time_of_the_last_commit_is_published_without_a_new_one() -> None:
    exported = Exported()
    metrics = RunMetrics(exported)
    metrics.on_epoch(committed(7), TRACE)
    exported.values.clear()
    metrics.on_status(STATUS)
    assert exported.values[Metric.LAST_COMMIT] == {(): START.timestamp() + 7}


def test_only_views_are_timed_as_views() -> None:
    exported = Exported()
    metrics = RunMetrics(exported)
    metrics.on_status(STATUS)
    metrics.on_epoch(committed(7), TRACE)
    assert exported.observed[Metric.VIEW] == {("by_carrier",): [0.75]}


def test_gauges_stand_where_the_run_is() -> None:
    values = published(STATUS).values
    assert {phase: values[Metric.PHASE][(phase,)] for phase in RUN_PHASES} == {
        phase: float(phase == "running") for phase in RUN_PHASES
    }
    assert values[Metric.EPOCHS_IN_FLIGHT] == {("align",): 2, ("spark",): 1, ("collect",): 0, ("commit",): 0}
    assert values[Metric.EDGE_FILL] == {("dispatcher-fetch",): 0.25}, "an edge without a limit is never full"
    assert values[Metric.FILES_UNFINISHED] == {("flights", "waiting"): 4, ("flights", "reading"): 1}
    assert values[Metric.VIEW_ROWS] == {("by_carrier",): 3}, "rows that are not known are not 0"
    assert values[Metric.VIEW_LAG][("top",)] == 1.5
    assert values[Metric.JOIN_MEMORY] == {(): 0}


def test_the_lag_of_each_published_table_is_known() -> None:
    values = published(STATUS).values
    current, behind = ("by_carrier", "delta:/pub/by_carrier"), ("by_carrier", "parquet:/pub/files")
    assert values[Metric.PUBLICATION_EPOCHS] == {current: 0, behind: 3}
    assert values[Metric.PUBLICATION_LAG] == {current: 0.0, behind: 12.5}
    assert values[Metric.PUBLICATION_FAILED] == {current: False, behind: True}


def test_files_that_are_handled_after_the_commit_are_counted() -> None:
    more = replace(STATUS, after_commit=(AfterCommitStatus("flights", "delete", handled=6, failed=0),))
    values = published(STATUS, more).values
    assert values[Metric.HANDLED_FILES] == {("flights",): 6}
    assert values[Metric.HANDLED_FILES_FAILED] == {("flights",): 0}


def test_rows_that_violate_expectations_are_shown() -> None:
    held = replace(STATUS.views["by_carrier"], violations={"few": 2, "named": 0}, held_since=7)
    values = published(replace(STATUS, views={"by_carrier": held, "top": STATUS.views["top"]})).values
    assert values[Metric.VIEW_VIOLATIONS] == {("by_carrier", "few"): 2, ("by_carrier", "named"): 0}
    assert values[Metric.VIEW_HELD] == {("by_carrier",): True}, "a view without expectations has no gate"


def test_the_rows_of_all_hidden_views_in_memory_count() -> None:
    kept = {f"views/pairs.{at}-1.lance": RowsInMemory(10, 400 * at) for at in (1, 2)}
    assert published(replace(STATUS, in_memory=kept)).values[Metric.JOIN_MEMORY] == {(): 1_200}


def test_indexes_that_were_wrong_are_counted_over_all_attempts() -> None:
    attempts = [replace(STATUS, rebuilt_indexes={"top": count}) for count in (1, 2, 1)]
    assert published(*attempts, STATUS).values[Metric.INDEXES_REBUILT] == {("top",): 3}


def test_watermarks_and_windows_of_event_time_are_shown() -> None:
    closing = replace(STATUS.views["by_carrier"], open_groups=12, late_rows=3)
    seen = replace(STATUS, sources={"flights": replace(SOURCE, watermark=START)}, views={"by_carrier": closing})
    values = published(seen, seen).values
    assert values[Metric.WATERMARK] == {("flights",): START.timestamp()}
    assert values[Metric.VIEW_OPEN_GROUPS] == {("by_carrier",): 12}
    assert values[Metric.VIEW_LATE_ROWS] == {("by_carrier",): 3}
    without = replace(STATUS, sources={"flights": replace(SOURCE, watermark=None)})
    assert Metric.WATERMARK not in published(without).values, "a source without an event time has none"


def test_a_counter_grows_with_the_run() -> None:
    more = replace(STATUS, epochs=5, sources={"flights": replace(SOURCE, done=9, rows=700, vanished=0)})
    values = published(STATUS, more, more).values
    assert values[Metric.EPOCHS] == {(): 5}
    assert values[Metric.FILES][("flights", "done")] == 9
    assert values[Metric.FILES][("flights", "vanished")] == 1
    assert values[Metric.ROWS] == {("flights",): 700}
    assert not published(RunStatus()).values[Metric.EPOCHS], "there is nothing to count"


def test_counters_begin_with_the_run_and_not_with_the_root() -> None:
    before = SourceProgress(done=5, quarantined=1, vanished=1, rows=400, rows_bad=3, bytes=8_000)
    values = published(replace(STATUS, sources={"flights": replace(SOURCE, before=before)})).values
    files = {status: values[Metric.FILES].get(("flights", status), 0) for status in ("done", "quarantined", "vanished")}
    assert files == {"done": 2, "quarantined": 1, "vanished": 0}
    assert values[Metric.ROWS][("flights",)] == 100 and values[Metric.READ_BYTES][("flights",)] == 1_000
    assert not values.get(Metric.BAD_ROWS)


def test_what_a_failed_attempt_takes_back_is_counted_once() -> None:
    def read(rows: int) -> RunStatus:
        return replace(STATUS, sources={"flights": replace(SOURCE, rows=rows)})

    assert published(read(500), read(200), read(450), read(620)).values[Metric.ROWS] == {("flights",): 620}


def test_listings_that_every_attempt_counts_anew_are_added_up() -> None:
    def listed(times: int) -> RunStatus:
        return replace(STATUS, sources={"flights": replace(SOURCE, listings=times)})

    assert published(listed(0), listed(5), listed(2), listed(3)).values[Metric.LISTINGS] == {("flights",): 8}


def test_a_backfill_that_is_shown_has_caught_up() -> None:
    values = published(STATUS, replace(STATUS, backfills={})).values
    assert values[Metric.VIEW_CAUGHT_UP] == {("late",): 1.0}


def test_a_failed_view_counts_until_it_is_built_anew_or_gone() -> None:
    wet = ViewStatus("aggregate", stands_at=7, error="too wet")
    failed = replace(STATUS, views={**STATUS.views, "by_carrier": wet})
    assert published(failed).values[Metric.VIEW_FAILED] == {("by_carrier",): 1.0, ("top",): 0.0}
    for later in (STATUS, replace(STATUS, views={"top": STATUS.views["top"]})):
        assert published(failed, later).values[Metric.VIEW_FAILED] == {("by_carrier",): 0.0, ("top",): 0.0}


def test_a_source_without_a_queue_has_no_messages() -> None:
    exported = published(replace(STATUS, sources={"flights": SourceStatus()}))
    assert not {Metric.MESSAGES, Metric.MESSAGES_IN_FLIGHT} & exported.published


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
        return len(self.exported.observed[Metric.BARRIER][()])


def test_each_epoch_is_told_once_and_the_whole_with_it_and_once_a_second() -> None:
    observed = Observed()
    for epochs in ([1], [1, 2], [1, 2], [1, 2, 3]):
        observed.observer.observe(state(*epochs))
        observed.clock.advance(0.25)
    assert (observed.barriers, observed.looks) == (3, 3)
    observed.clock.advance(0.5)
    observed.observer.observe(state(1, 2, 3))
    assert (observed.barriers, observed.looks) == (3, 3)
    observed.clock.advance(0.25)
    observed.observer.observe(state(1, 2, 3))
    assert (observed.barriers, observed.looks) == (3, 4)


def test_an_epoch_knows_the_views_that_came_with_it() -> None:
    statuses = iter([RunStatus(), STATUS])
    observed = Observed(lambda: next(statuses))
    observed.observer.observe(state())
    observed.observer.observe(replace(state(7), traces={7: TRACE.to_json()}))
    assert observed.exported.observed[Metric.VIEW]


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
    assert observed.barriers == 1 and not observed.exported.observed[Metric.VIEW]


def test_observers_that_fail_are_let_go_and_the_run_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> RunStatus:
        raise RuntimeError("no disk")

    observed = Observed(broken)
    observed.observer.observe(state(1))
    observed.observer.observe(state(1, 2), at_once=True)
    assert (observed.looks, observed.barriers) == (1, 0)
    assert "metrics end" in capsys.readouterr().out
