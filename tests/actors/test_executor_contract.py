"""The contract of barriers: the coordinator makes them, every other executor seals and passes them on."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from actors.coordination.instructions import Commit, Inject
from actors.exchange.dispatch_executor import DispatchExecutor
from actors.exchange.merge_executor import Deliver, MergeExecutor
from actors.fetching.read_outcomes import PieceRead, StoreUnavailable
from actors.listing.instructions import ReadPage
from actors.protocol.barrier import Barrier, BarrierKind, Pause, Resume, Stop
from actors.protocol.instructions import Collect, End, Instruction, Send
from actors.protocol.reports import CollectReport, FetchProgress
from actors.protocol.vnode_mapping import VnodeMapping, fetcher_names
from actors.sources.pipeline_definition import MATERIALIZER, MERGER
from state.errors import ProtocolError, StorageUnavailableError
from state.tables.delta import Delta, DeltaBuilder
from state.tables.records import EpochCounts, EpochRecord, EpochSeconds
from tests.actors.coordination.coordination import Coordination
from tests.actors.flow import AT, INITIAL, barrier, fetcher, file, files, lister, of, page, reads, report, rows

Feed = Callable[[Barrier], Sequence[Instruction]]


def list_feed() -> Feed:
    executor = lister()
    return lambda message: executor.on_barrier(message, 0.0)


def dispatch_feed() -> Feed:
    executor = DispatchExecutor(actor="dispatcher", edges=["list-s"], mapping=VnodeMapping.even(fetcher_names(0, 2)))
    return lambda message: executor.on_message("list-s", message)


def fetch_feed() -> Feed:
    executor = fetcher()
    return lambda message: executor.on_message(message, 0.0)


def merge_feed() -> Feed:
    executor = MergeExecutor(actor="merger", edges=["fetch-0"])
    return lambda message: executor.on_message("fetch-0", message)


FEEDS = {"list": list_feed, "dispatch": dispatch_feed, "fetch": fetch_feed, "merge": merge_feed}


@pytest.fixture(params=FEEDS, name="feed")
def _feed(request: pytest.FixtureRequest) -> Feed:
    return FEEDS[request.param]()


def passed(instructions: Sequence[Instruction]) -> list[int]:
    """Positions in the instructions at which a barrier is passed on."""
    return [
        at
        for at, each in enumerate(instructions)
        if (isinstance(each, Send) and isinstance(each.message, Barrier)) or isinstance(each, Deliver)
    ]


def test_passes_each_barrier_once_and_seals_before_passing(feed: Feed) -> None:
    for message in (INITIAL, barrier(1), barrier(2)):
        instructions = feed(message)
        (at,) = passed(instructions)
        assert [type(each) for each in instructions[:at]].count(Collect) == 1
        assert report(instructions).epoch == message.epoch.prev


@pytest.mark.parametrize("mutation", [Pause(), Resume()])
def test_passes_on_a_mutation_unchanged(feed: Feed, mutation: Pause | Resume) -> None:
    feed(INITIAL)
    instructions = feed(barrier(1, mutation))
    step = instructions[passed(instructions)[0]]
    assert isinstance(step, Send | Deliver)
    message = step.message if isinstance(step, Send) else step.epoch.barrier
    assert message == barrier(1, mutation)


def test_ends_after_passing_a_stop_and_not_before(feed: Feed) -> None:
    assert not of(End, feed(INITIAL))
    instructions = feed(barrier(1, Stop()))
    assert isinstance(instructions[-1], End)
    assert passed(instructions)[0] < len(instructions) - 1


def test_a_step_with_two_inputs_passes_a_barrier_when_both_have_delivered_it() -> None:
    merge = MergeExecutor(actor="merger", edges=["a", "b"])
    dispatch = DispatchExecutor(actor="dispatcher", edges=["a", "b"], mapping=VnodeMapping.even(fetcher_names(0, 2)))
    for on_message in (merge.on_message, dispatch.on_message):
        assert on_message("a", INITIAL) == []
        assert len(passed(on_message("b", INITIAL))) == 1


@pytest.mark.parametrize("made", [list_feed, fetch_feed])
def test_a_step_with_state_refuses_a_barrier_that_does_not_follow_its_epoch(made: Callable[[], Feed]) -> None:
    feed = made()
    feed(INITIAL)
    with pytest.raises(ProtocolError, match="does not follow epoch 1"):
        feed(barrier(2))


def test_what_was_asked_for_before_a_stop_and_comes_after_it_begins_nothing() -> None:
    listing, fetching = lister(), fetcher()
    assert of(ReadPage, listing.on_barrier(INITIAL, 0.0))
    fetching.on_message(INITIAL, 0.0)
    assert len(reads(fetching.on_message(files("a", "b"), 0.0))) == 2
    listing.on_barrier(barrier(1, Stop()), 0.0)
    fetching.on_message(barrier(1, Stop()), 0.0)
    assert listing.on_page(page(), 0.0) == []
    assert listing.on_page(page("new"), 0.0) == []
    assert listing.on_listing_end(0.0, AT) == []
    assert listing.on_time(1e9) == []
    assert fetching.on_read([PieceRead(file("a"), rows(3), last=False, requests=1, bytes_read=24)], 0.0) == []
    no_answer = StorageUnavailableError("no answer")
    assert fetching.on_read([StoreUnavailable(file("b"), no_answer, requests=1, bytes_read=0)], 0.0) == []
    assert fetching.on_time(1e9) == []


# -- the coordinator: what it makes, and in which order ------------------------------------------------------------

COLLECTORS = ("list-s", "dispatcher", "fetch-0", "fetch-1", MERGER, MATERIALIZER)


@pytest.fixture(name="flow")
def _flow(tmp_path: Path) -> Coordination:
    return Coordination(tmp_path)


def named(actor: str, epoch: int) -> Delta:
    """A change that names its actor."""
    delta = DeltaBuilder()
    delta.put("list_state", actor.encode(), 0, source=actor, pages=epoch)
    return delta.build()


def committed(commit: Commit) -> EpochRecord:
    return EpochRecord(commit.epoch, 1, AT, 1, EpochCounts(), EpochSeconds(), {})


@pytest.mark.parametrize("seed", range(10))
def test_the_coordinator_commits_each_epoch_once_in_order_whoever_collects_first(flow: Coordination, seed: int) -> None:
    chance = random.Random(seed)
    for mutation in (Pause(), Resume(), Pause(), Stop(), Resume()):
        flow.ask(mutation)
    assert len(flow.barriers) == 4, "all that may be in flight"
    reports = [(actor, each) for each in flow.barriers for actor in COLLECTORS]
    open_commits: list[Commit] = []
    epochs: list[int] = []
    ends = 0
    while reports or open_commits:
        assert not ends
        if not reports or (open_commits and chance.random() < 0.2):
            instructions = flow.executor.on_committed(committed(open_commits.pop()), 0.0)
        else:
            actor, of_barrier = reports.pop(chance.randrange(len(reports)))
            epoch = of_barrier.epoch.prev
            delta = Delta() if of_barrier.kind is BarrierKind.INITIAL else named(actor, epoch)
            instructions = flow.executor.on_collect(CollectReport(actor, epoch, delta), 0.0)
        for inject in of(Inject, instructions):
            flow.barriers.append(inject.barrier)
            reports += [(actor, inject.barrier) for actor in COLLECTORS]
        for commit in of(Commit, instructions):
            assert not open_commits, "one at a time"
            open_commits.append(commit)
            epochs.append(commit.epoch)
            changed = [change.fields for change in commit.delta.changes["list_state"].values()]
            assert {(row["source"], row["pages"]) for row in changed} == {(each, commit.epoch) for each in COLLECTORS}
        ends += len(of(End, instructions))
    pairs = [each.epoch for each in flow.barriers]
    assert [each.prev for each in pairs[1:]] == [each.curr for each in pairs[:-1]]
    assert epochs == [each.prev for each in pairs[1:]] == sorted(set(epochs))
    assert [each.mutation for each in flow.barriers] == [None, Pause(), Resume(), Pause(), Stop()]
    assert (ends, flow.executor.state.phase) == (1, "stopped")


@pytest.mark.parametrize("mutation", [Pause(), Stop()])
def test_the_coordinator_injects_nothing_after_a_stop(flow: Coordination, mutation: Pause | Stop) -> None:
    flow.ask(mutation)
    fetched = FetchProgress("fetch-0", activity=5)
    news = [
        flow.executor.on_progress(fetched, 1, 100.0),
        flow.executor.on_time(200.0),
        flow.executor.on_request(Resume(), 300.0),
    ]
    injected = [each for instructions in news for each in of(Inject, instructions)]
    assert bool(injected) is not isinstance(mutation, Stop)


def test_the_coordinator_ends_when_the_epoch_of_the_stop_is_over_and_not_before(flow: Coordination) -> None:
    flow.ends(flow.barriers[0])
    last = flow.ask(Stop())
    assert last is not None
    instructions = flow.all_collect(last, with_a_change=True)
    (commit,) = of(Commit, instructions)
    assert not of(End, instructions)
    assert isinstance(flow.executor.on_committed(committed(commit), 0.0)[-1], End)


def test_the_coordinator_refuses_what_nobody_was_asked_to_collect(flow: Coordination) -> None:
    (first,) = flow.barriers
    flow.executor.on_collect(CollectReport(MERGER, first.epoch.prev), 0.0)
    for actor, epoch in ((MERGER, first.epoch.prev), ("stranger", first.epoch.prev), ("fetch-0", first.epoch.curr)):
        with pytest.raises(ProtocolError, match=f"{actor} collected epoch {epoch}, which is not expected"):
            flow.executor.on_collect(CollectReport(actor, epoch), 0.0)
