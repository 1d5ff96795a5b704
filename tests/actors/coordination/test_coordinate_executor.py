"""The coordinator of one attempt: requests, schemas, commits and the published state."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from actors.coordination.coordinate_executor import CoordinateExecutor
from actors.coordination.instructions import (
    Commit,
    Connect,
    CoordinateInstruction,
    DecideSchema,
    MarkListings,
    ReportScaling,
    ReportUnmatched,
    TryNextFile,
)
from actors.fetching.file_progress import FileProgress
from actors.files import RetriedFile
from actors.protocol.barrier import Pause, Resume, Retry, Throttle
from actors.protocol.counters import SourceProgress
from actors.protocol.reports import CollectReport, FetchProgress
from actors.protocol.run_state import Unfinished
from actors.recovery.attempt_plan import AttemptPlan
from actors.recovery.recovery import recover
from actors.settings import FetchSettings
from state.clock import ManualClock, SystemClock
from state.epoch import next_epoch
from state.lance.lance_root import LanceRoot
from state.tables.catalog import Catalog
from state.tables.delta import DeltaBuilder
from state.tables.epoch_trace import EpochTrace, Span
from state.tables.records import UnmatchedColumn, ViewVersion
from state.tables.tables import TABLES
from tests.actors.coordination.coordination import Coordination, X
from tests.actors.flow import AT, file, of
from tests.actors.recovery.root_with_files import commit, definition


@pytest.fixture
def flow(tmp_path: Path) -> Coordination:
    """A flow that has committed its declaration."""
    made = Coordination(tmp_path)
    made.ends(made.barriers[0])
    first = made.ask(Resume())
    assert first is not None
    made.ends(first)
    assert (made.executor.requests, made.over) == (1, 1)
    return made


def test_a_request_is_over_when_the_epoch_that_it_ends_is(flow: Coordination) -> None:
    barrier = flow.ask(Pause())
    assert barrier is not None and barrier.mutation == Pause()
    assert (flow.executor.requests, flow.over, flow.executor.state.phase) == (2, 1, "paused")
    assert of(Commit, flow.all_collect(barrier)) == []
    assert flow.over == 2


def test_a_pause_that_is_in_force_is_on_the_first_barrier_of_an_attempt(tmp_path: Path) -> None:
    slow = Throttle(files_per_second=1.0)
    flow = Coordination(tmp_path, flow=(Pause(), slow))
    assert [each.mutation for each in flow.barriers] == [Pause(), slow]
    assert flow.executor.state.phase == "paused"
    for barrier in flow.barriers:
        flow.ends(barrier)
    assert (flow.executor.requests, flow.over) == (2, 2)


def test_a_request_whose_epoch_has_something_to_commit_is_over_when_that_is_committed(flow: Coordination) -> None:
    barrier = flow.ask(Throttle(files_per_second=1.0))
    assert barrier is not None and flow.executor.state.phase == "running"
    (commit,) = of(Commit, flow.all_collect(barrier, with_a_change=True))
    assert flow.over == 1
    flow.commits(commit)
    assert flow.over == 2


def test_a_mark_that_a_user_waits_for_asks_for_listings_at_once(flow: Coordination) -> None:
    assert flow.executor.on_mark() == [MarkListings(2, at_once=True)]


def test_no_mark_is_reached_before_the_commit_of_the_epoch_that_shows_what_a_view_lacked(flow: Coordination) -> None:
    declared = partial(flow.executor.on_views_declared, frozenset({"s"}), False, 0.0)
    declared(backfilling=True)
    barrier = flow.ask(Throttle(files_per_second=1.0))
    assert barrier is not None
    assert of(Commit, flow.all_collect(barrier, complete_mark=1)) == []
    assert flow.executor.state.reached_mark == 0, "a full view is not recomputed"
    barrier = flow.ask(Throttle(files_per_second=2.0))
    assert barrier is not None
    (commit,) = of(Commit, flow.all_collect(barrier, with_a_change=True, complete_mark=1))
    declared(backfilling=False)  # the epoch records its new version
    flow.ask(Throttle(files_per_second=3.0))  # something else changes the state
    assert flow.executor.state.reached_mark == 0
    flow.commits(commit)
    assert flow.executor.state.reached_mark == 1


def test_an_epoch_in_flight_tells_what_it_waits_for_and_is_among_the_recent_ones_when_it_is_committed(
    flow: Coordination,
) -> None:
    barrier = flow.ask(Throttle(files_per_second=1.0))
    assert barrier is not None
    epoch = barrier.epoch.prev
    phases: list[tuple[int, str]] = []

    def note() -> None:
        phases.extend((each.epoch, each.phase) for each in flow.executor.state.in_flight)

    note()
    modified = AT - timedelta(seconds=3)
    delta = DeltaBuilder()
    delta.put("ledger", b"f", 0, source="s", path="f", status="done", last_modified=modified)
    for actor in ("fetch-0", "merger", "materializer", "list-s", "dispatcher"):
        flow.executor.on_collect(CollectReport(actor, epoch), 1.0)
        note()
    (commit,) = of(Commit, flow.executor.on_collect(CollectReport("fetch-1", epoch, delta.build()), 2.0))
    note()
    expected = ["align", "align", "spark", "collect", "collect", "collect", "commit"]
    assert phases == [(epoch, phase) for phase in expected]
    flow.commits(commit, now_s=2.5)
    assert flow.executor.state.in_flight == ()
    last = flow.executor.state.recent[-1]
    assert (last.epoch, last.commit_s, last.freshness_s) == (epoch, 0.5, {"s": 3.0})


def test_a_commit_tells_when_each_actor_had_collected_and_how_long_the_one_before_took(flow: Coordination) -> None:
    before = flow.ask(Throttle(files_per_second=1.0))
    assert before is not None
    (commit,) = of(Commit, flow.all_collect(before, with_a_change=True))
    flow.commits(commit, now_s=0.25)
    barrier = flow.ask(Pause())
    assert barrier is not None
    delta = DeltaBuilder()
    delta.put("list_state", b"s", 0, source="s")
    work = (Span("spark", "totals", 0.5, 1.0),)
    reports = [
        (CollectReport("list-s", barrier.epoch.prev, delta.build()), 0.5),
        *((CollectReport(actor, barrier.epoch.prev), 1.0) for actor in ("dispatcher", "fetch-0", "fetch-1", "merger")),
        (CollectReport("materializer", barrier.epoch.prev, work_s=2.0, work=work), 4.0),
    ]
    (commit,) = [each for report, at_s in reports for each in of(Commit, flow.executor.on_collect(report, at_s))]
    assert commit.trace is not None
    trace = EpochTrace.of_json(commit.trace)
    assert trace.commit_before == (before.epoch.prev, 0.25)
    spans = {span.name or span.phase: (span.start_s, span.seconds) for span in trace.spans}
    assert (spans["list-s"], spans["fetch-1"], spans["align"]) == ((0.0, 0.5), (0.0, 1.0), (0.0, 1.0))
    assert (spans["spark"], spans["totals"], spans["collect"]) == ((1.0, 3.0), (2.5, 1.0), (4.0, 0.0))
    flow.commits(commit, now_s=5.0)
    assert flow.executor.state.traces[barrier.epoch.prev] == commit.trace


def test_a_retry_is_over_when_the_epoch_that_it_begins_is(flow: Coordination) -> None:
    retried = RetriedFile(file("bad"), 0, 0, 1, None, 0, 1, 1)
    barrier = flow.ask(Retry((retried, retried)))
    assert barrier is not None
    assert flow.executor.state.files_in_flight == 2, "they can be to blame for a failure again"
    flow.ends(barrier)
    assert flow.over == 1, "the files come behind the barrier"
    following = flow.ask(Pause())
    assert following is not None and following.epoch.prev == barrier.epoch.curr
    (commit,) = of(Commit, flow.all_collect(following, with_a_change=True))
    assert flow.over == 1
    flow.commits(commit)
    assert flow.over == 3


def test_the_schema_is_decided_when_every_file_of_the_sample_has_shown_its_own(tmp_path: Path) -> None:
    flow = Coordination(tmp_path, schema=None)
    assert of(DecideSchema, flow.shows("b", pa.schema([("y", pa.string()), ("x", pa.int64())]), 3)) == []
    assert of(DecideSchema, flow.shows("c", None, 3)) == []
    (decided,) = of(DecideSchema, flow.shows("a", pa.schema([("x", pa.int32())]), 3))
    assert decided == DecideSchema("s", pa.schema([("x", pa.int64()), ("y", pa.string())]))
    assert flow.shows("late", pa.schema([("z", pa.int8())]), 3) == []


def test_when_no_file_of_a_sample_shows_anything_the_next_ones_go_ahead(tmp_path: Path) -> None:
    flow = Coordination(tmp_path, schema=None)
    assert of(TryNextFile, flow.shows("a", None, 2)) == []
    assert of(TryNextFile, flow.shows("b", None, 2)) == [TryNextFile("s")]
    (decided,) = of(DecideSchema, flow.shows("c", X, 3))
    assert decided.schema == X


def test_a_file_of_another_kind_than_the_first_one_does_not_end_the_run(tmp_path: Path) -> None:
    flow = Coordination(tmp_path, schema=None)
    flow.shows("a", X, 2)
    (decided,) = of(DecideSchema, flow.shows("b", pa.schema([("x", pa.string())]), 2))
    assert decided.schema == X


def test_new_columns_come_to_the_end_of_the_schema_and_every_proposal_is_answered(flow: Coordination) -> None:
    def proposed(*fields: tuple[str, pa.DataType]) -> DecideSchema:
        (decided,) = of(DecideSchema, flow.executor.on_columns_proposed("s", pa.schema(fields), 0.0))
        assert isinstance(decided, DecideSchema)
        return decided

    longer = pa.schema([("x", pa.int64()), ("y", pa.string())])
    assert proposed(("y", pa.string())).schema == longer
    assert proposed(("y", pa.int64()), ("x", pa.int8())).schema == longer, "another file was faster"
    barrier = flow.ask(Resume())
    assert barrier is not None
    (commit,) = of(Commit, flow.all_collect(barrier))
    (row,) = commit.delta.tables["catalog"].to_pylist()
    assert pa.ipc.read_schema(pa.py_buffer(row["row"]["schema"])) == longer


@pytest.mark.parametrize("is_missing", [False, True])
def test_a_column_that_is_left_out_or_missing_is_told_and_kept_once(flow: Coordination, is_missing: bool) -> None:
    def collected() -> tuple[list[CoordinateInstruction], Commit]:
        barrier = flow.ask(Resume())
        assert barrier is not None
        unmatched = (UnmatchedColumn("s", "y", "a", barrier.epoch.prev, is_missing),)
        instructions = flow.all_collect(barrier, with_a_change=True, unmatched=unmatched)
        (commit,) = of(Commit, instructions)
        flow.commits(commit)
        return of(ReportUnmatched, instructions), commit

    (told,), commit = collected()
    assert isinstance(told, ReportUnmatched) and (told.column.column, told.column.path) == ("y", "a")
    assert Catalog.of(_rows(commit)).unmatched == (told.column,)
    assert flow.executor.state.filled == ({"s": ("y",)} if is_missing else {})
    reported_again, commit = collected()
    assert reported_again == [] and "catalog" not in commit.delta.tables


def _rows(commit: Commit) -> pa.Table:
    rows = commit.delta.tables["catalog"]["row"].to_pylist()
    return pa.Table.from_pylist(rows, TABLES["catalog"])


def test_a_file_that_is_listed_and_not_read_is_seen_to_grow_old(flow: Coordination) -> None:
    def epoch_over(unfinished_since: dict[str, int]) -> dict[str, Unfinished]:
        barrier = flow.ask(Resume())
        assert barrier is not None
        (commit,) = of(Commit, flow.all_collect(barrier, with_a_change=True, unfinished_since=unfinished_since))
        flow.commits(commit)
        return dict(flow.executor.state.unfinished)

    listed = flow.barriers[-1].epoch.curr
    assert [epoch_over({"s": listed})["s"] for _ in range(3)] == [Unfinished(listed, epochs) for epochs in range(3)]
    younger = flow.barriers[-1].epoch.curr
    assert epoch_over({"s": younger}) == {"s": Unfinished(younger, 0)}
    assert epoch_over({}) == {}


def test_stored_rows_stay_where_they_are_and_new_ones_get_a_place_of_their_own(tmp_path: Path) -> None:
    made = definition(tmp_path, "s", schema=X)
    made = replace(made, sources=(replace(made.sources[0], materialize=True), replace(made.sources[0], name="t")))
    root = LanceRoot(made.root, SystemClock())
    places = []
    for run in ("first", "second"):
        recovered = recover(made, AttemptPlan(run), root)
        there = {"s.rows": ViewVersion("s.rows", "views/s.rows-7.lance", 3)} if run == "second" else {}
        for views in ({}, there):
            executor = CoordinateExecutor(
                definition=made,
                plan=AttemptPlan(run),
                recovered=replace(recovered, views=views),
                next_epoch=partial(next_epoch, ManualClock(), term=recovered.head.term),
                now_s=0.0,
            )
            places.append(executor.stored_paths)
    assert all(place.keys() == {"s"} for place in places)
    assert places[0] == places[1] != places[2], "no attempt takes the place of another"
    assert places[3] == {"s": "views/s.rows-7.lance"}


def test_the_workload_decides_between_two_numbers_and_says_why(flow: Coordination) -> None:
    flow.executor.on_rescale(1, 8, 100.0)
    assert (flow.executor.rescalings, flow.executor.state.rescalings_over) == (1, 1), "two are within the bounds"
    waiting = FetchProgress("fetch-0", activity=1, sources={"s": SourceProgress(waiting=1_000)})
    told: list[CoordinateInstruction] = flow.executor.on_progress(waiting, 1, 100.0)
    for now_s in range(105, 140, 5):
        told += flow.executor.on_time(float(now_s))
    (scaling,), (connect,) = of(ReportScaling, told), of(Connect, told)
    assert (scaling.before, scaling.decision.num_fetchers, len(connect.after.owners)) == (2, 4, 4)
    assert flow.executor.state.scaling == "2 to 4: 1,000 files wait, and 0.0 are read each second"
    assert flow.executor.state.num_fetchers == 2, "until the barrier"


def test_an_attempt_begins_with_as_many_fetch_actors_as_the_last_one_had() -> None:
    settings = FetchSettings(num_fetchers=(2, 6))
    assert AttemptPlan("run").fetchers(settings) == (2, 2, 6)
    assert AttemptPlan("run", num_fetchers=4).fetchers(settings) == (4, 2, 6)
    assert AttemptPlan("run", num_fetchers=4, fetcher_bounds=(3, 3)).fetchers(settings) == (3, 3, 3)


def test_when_an_actor_dies_the_files_that_it_does_not_read_are_no_suspects(tmp_path: Path) -> None:
    files = [FileProgress(file(f"{number}.parquet"), listed_epoch=1, row_offset=number) for number in range(8)]
    commit(definition(tmp_path, "s", schema=X), *((each, None) for each in files))
    everything = {each.key: each.row_offset for each in files}
    for dead, reads in (("fetch-0", True), ("fetch-1", True), ("merger", False), ("list-s", False)):
        executor = Coordination(tmp_path, files_at_once=8).executor
        assert executor.state.suspects == everything
        executor.on_death(dead)
        left = executor.state.suspects
        assert left == {key: rows for key, rows in everything.items() if executor.mapping.owner_of(*key[:2]) == dead}
        assert bool(left) is reads
