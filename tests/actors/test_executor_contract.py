"""What every executor does with a barrier."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actors.dispatch_executor import DispatchExecutor
from actors.instructions import Collect, Deliver, End, Instruction, Send
from actors.list_executor import ListExecutor
from actors.merge_executor import MergeExecutor
from actors.messages import Barrier, Pause, Resume, Stop
from actors.path_filter import PathFilter
from actors.seen_index import SeenIndex
from actors.vnode_mapping import VnodeMapping
from tests.actors.flow import INITIAL, barrier, fetcher, of, report

Feed = Callable[[Barrier], list[Instruction]]


def lister(**changes: object) -> ListExecutor:
    options = {
        "actor": "list-s",
        "source": "s",
        "path_filter": PathFilter("**"),
        "interval_s": 10.0,
        "seen": SeenIndex(),
        "schema_known": True,
        "must_settle": False,
    }
    return ListExecutor(**{**options, **changes})  # type: ignore[arg-type]


def list_feed() -> Feed:
    executor = lister()
    return lambda message: executor.on_barrier(message, 0.0)


def dispatch_feed() -> Feed:
    executor = DispatchExecutor(actor="dispatcher", edges=["list-s"], mapping=VnodeMapping(2))
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


def passed(instructions: list[Instruction]) -> list[int]:
    """Where in the instructions a barrier is passed on."""
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
    message = step.message if isinstance(step, Send) else step.epoch.barrier  # type: ignore[union-attr]
    assert message == barrier(1, mutation)


def test_ends_after_passing_a_stop_and_not_before(feed: Feed) -> None:
    assert not of(End, feed(INITIAL))
    instructions = feed(barrier(1, Stop()))
    assert isinstance(instructions[-1], End)
    assert passed(instructions)[0] < len(instructions) - 1


def test_a_step_with_two_inputs_passes_a_barrier_when_both_have_delivered_it() -> None:
    merge = MergeExecutor(actor="merger", edges=["a", "b"])
    dispatch = DispatchExecutor(actor="dispatcher", edges=["a", "b"], mapping=VnodeMapping(2))
    for on_message in (merge.on_message, dispatch.on_message):
        assert on_message("a", INITIAL) == []
        assert len(passed(on_message("b", INITIAL))) == 1
