"""A list step whose names are in shards: nothing happens between a question and its last answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from actors.listing.instructions import ListInstruction, ReadPage
from actors.listing.list_executor import ListExecutor
from actors.names.name_messages import NameAnswer, NameMessage
from actors.names.name_shards import NameShards, SendToNames
from actors.names.questions import Question, ShowNames
from actors.names.seen_index import SeenIndex
from actors.protocol.barrier import Barrier
from actors.protocol.instructions import Collect, Send
from actors.protocol.messages import NewFiles
from state.errors import ProtocolError
from tests.actors.flow import AT, INITIAL, barrier, lister, of, page, report, sent

OWNERS = ("names-s-0", "names-s-1")
PATHS = tuple("abcdefgh")


@pytest.fixture(name="executor")
def _executor(monkeypatch: pytest.MonkeyPatch) -> ListExecutor:
    """A list step whose name steps are played by the test; a listing is under way."""
    monkeypatch.setattr("tests.actors.flow.ListExecutor", ListExecutor)
    made = lister(seen=NameShards(OWNERS))
    assert of(ReadPage, made.on_barrier(INITIAL, 0.0))
    made.on_barrier(replace(barrier(1), list_budget={"s": 100}), 0.0)
    return made


def questions(instructions: list[ListInstruction]) -> dict[str, Question[object]]:
    return {
        each.to: each.message.question
        for each in of(SendToNames, instructions)
        if isinstance(each.message, NameMessage) and each.message.question is not None
    }


def answered(executor: ListExecutor, asked: dict[str, Question[object]], owner: str) -> list[ListInstruction]:
    """An empty shard answers: all names are new."""
    return executor.on_names(owner, NameAnswer(asked[owner].answer(SeenIndex())))


def test_files_are_handed_on_when_every_shard_has_answered(executor: ListExecutor) -> None:
    begun = executor.on_page(page(*PATHS), 1.0)
    asked = questions(begun)
    assert {*asked} == {*OWNERS} and all(isinstance(each, ShowNames) for each in asked.values())
    assert not of(Send, begun) and not of(ReadPage, begun)
    assert answered(executor, asked, OWNERS[1]) == []
    (new,) = of(Send, answered(executor, asked, OWNERS[0]))
    assert isinstance(new.message, NewFiles) and [file.path for file in new.message.files] == [*PATHS]


def test_a_barrier_and_the_end_of_a_listing_wait_for_the_answers_before_them(executor: ListExecutor) -> None:
    asked = questions(executor.on_page(page(*PATHS), 1.0))
    assert executor.on_barrier(barrier(2), 2.0) == []
    assert executor.on_mark(1, 2.0) == []
    assert answered(executor, asked, OWNERS[0]) == []
    over = answered(executor, asked, OWNERS[1])
    kinds = [type(message).__name__ for message in sent(over)]
    assert kinds == ["NewFiles", "Barrier"], "the files belong to the epoch that the barrier ends"
    assert report(over).epoch == 2 and report(over).delta.tables["seen"].num_rows == len(PATHS)


def test_no_mark_is_complete_before_the_last_answer(executor: ListExecutor) -> None:
    asked = questions(executor.on_page(replace(page(*PATHS), is_last=True), 1.0))
    assert executor.on_barrier(barrier(2), 2.0) == []
    answered(executor, asked, OWNERS[0])
    (collect,) = of(Collect, answered(executor, asked, OWNERS[1]))
    assert collect.report.complete_mark == 0, "the listing has not ended"
    counted = questions(executor.on_listing_end(3.0, AT))
    assert executor.on_barrier(barrier(3), 3.0) == []
    while counted:
        for owner in OWNERS:
            instructions = answered(executor, counted, owner)
        counted = questions(instructions)
    (collect,) = of(Collect, instructions)
    assert collect.report.complete_mark == 1


def test_a_barrier_goes_to_every_name_step(executor: ListExecutor) -> None:
    passed = [
        each.to for each in of(SendToNames, executor.on_barrier(barrier(2), 1.0)) if isinstance(each.message, Barrier)
    ]
    assert passed == [*OWNERS]


def test_an_answer_that_no_step_waits_for_is_refused(executor: ListExecutor) -> None:
    with pytest.raises(ProtocolError, match="not asked"):
        executor.on_names(OWNERS[0], NameAnswer(1))
    with pytest.raises(ProtocolError, match="no shard has the names"):
        ListExecutor.on_names(lister(seen=SeenIndex()), OWNERS[0], NameAnswer(1))
