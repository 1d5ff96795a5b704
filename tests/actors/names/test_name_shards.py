"""Names in shards: pages are split by vnode, and the answers together are those of one index."""

from __future__ import annotations

from hashlib import blake2b
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from actors.names.name_executor import NameExecutor
from actors.names.name_mapping import NameMapping
from actors.names.name_messages import NameAnswer, NameMessage
from actors.names.name_shards import NameShards, SendToNames
from actors.names.questions import CountPresent, CountUnshown, FindNames, KnownName, Question, ShowNames, TakeMissing
from actors.names.seen_index import SeenIndex
from actors.names.seen_piece import SeenLoader, SeenPiece
from actors.protocol.barrier import Stop
from actors.protocol.instructions import Collect, End, Send
from actors.protocol.messages import NewFiles
from state.errors import ProtocolError
from tests.actors.flow import barrier

NUMBERS = (2, 3, 4, 16)


def key(number: int) -> bytes:
    return blake2b(number.to_bytes(4, "big"), digest_size=16).digest()


def version(number: int) -> bytes:
    return number.to_bytes(8, "big")


class Shards:
    """Name steps that answer a `NameShards`, in the order that chance picks."""

    def __init__(self, number: int, random: Random) -> None:
        owners = [f"names-{at}" for at in range(number)]
        self.names, self._random = NameShards(owners), random
        self.steps = {owner: NameExecutor(actor=owner, index=SeenIndex()) for owner in owners}

    def ask(self, question: Question[Any]) -> Any:
        answers = [answer for each in self.names.ask(question) if (answer := self.take(each)) is not None]
        self._random.shuffle(answers)
        for owner, part in answers:
            assert not self.names.is_answered
            self.names.on_answer(owner, part)
        return self.names.take_answer()

    def take(self, sent: SendToNames) -> tuple[str, NameAnswer] | None:
        for step in self.steps[sent.to].on_message(sent.message):
            assert isinstance(step, Send) and isinstance(step.message, NameAnswer)
            return sent.to, step.message
        return None


@pytest.mark.more_after(1)
@pytest.mark.parametrize("number", NUMBERS)
def test_shards_answer_as_one_index_does_over_a_long_random_history(number: int) -> None:
    random = Random(number)
    index, shards = SeenIndex(), Shards(number, random)
    answers = 0
    for _ in range(400):
        keys = [key(each) for each in random.sample(range(60), random.randint(1, 12))]
        one, other = key(random.randrange(60)), version(random.randrange(3))
        match random.randrange(9):
            case 0 | 1:
                question: Question[Any] = ShowNames(keys, [version(random.randrange(3)) for _ in keys])
            case 2:
                question = FindNames(keys)
            case 3:
                question = random.choice((CountPresent(), CountUnshown()))
            case 4:
                # Each shard takes its share of the limit: enough for all names in every one.
                question = TakeMissing(60 * number)
            case kind:
                # A name is put when a listing or a look has shown it.
                show = ShowNames([one], [other])
                assert shards.ask(show).sights.tolist() == show.answer(index).sights.tolist()
                for names in (index, shards.names):
                    change(names, kind, one, other, keys)
                continue
        expected, found = question.answer(index), shards.ask(question)
        if isinstance(question, ShowNames):
            assert (found.sights.tolist(), found.before) == (expected.sights.tolist(), expected.before)
        else:
            assert found == expected, question
        answers += 1
    assert answers > 150


def change(names: Any, kind: int, one: bytes, other: bytes, keys: list[bytes]) -> None:
    match kind:
        case 5:
            names.put(one, other)
        case 6:
            names.forget(one, other)
        case 7:
            names.set_deleted(keys)
            names.set_unread([one])
        case _:
            names.take_back(one)
            names.set_missing(keys[:1])
            names.set_deleted_by_run([one, *keys[1:]], [other] * len(keys), [version(1)] * len(keys))
            if other == version(0):
                names.begin_listing()


def test_each_part_of_a_page_goes_to_the_owner_of_its_vnodes_once() -> None:
    mapping = NameMapping(["a", "b", "c"])
    keys = [key(each) for each in range(500)]
    shares = mapping.shares(keys)
    assert sorted(row for rows in shares.values() for row in rows.tolist()) == list(range(500))
    assert all(mapping.owner_of(keys[row]) == owner for owner, rows in shares.items() for row in rows)
    assert {owner: keys[rows[0]][0] // 86 for owner, rows in shares.items()} == {"a": 0, "b": 1, "c": 2}
    assert min(len(rows) for rows in shares.values()) > 100


def test_only_the_owners_of_its_names_are_asked() -> None:
    shards = NameShards(["a", "b"])
    (sent,) = shards.ask(FindNames([bytes(16)]))
    assert sent == SendToNames("a", NameMessage((), FindNames([bytes(16)])))
    shards.on_answer("a", NameAnswer([KnownName(None, False)]))
    assert shards.take_answer() == [KnownName(None, False)]


def test_a_change_is_made_before_the_next_question() -> None:
    shards = Shards(2, Random(1))
    shards.names.put(key(1), version(1))
    assert shards.ask(FindNames([key(1), key(2)])) == [KnownName(version(1), False), KnownName(None, False)]


def test_changes_without_a_question_are_sent_once() -> None:
    shards = NameShards(["a", "b"])
    shards.begin_listing()
    assert [sent.to for sent in shards.send_changes()] == ["a", "b"]
    assert shards.send_changes() == []


def test_an_answer_is_not_taken_before_all_parts_have_come() -> None:
    shards = NameShards(["a", "b"])
    shards.ask(CountPresent())
    shards.on_answer("a", NameAnswer(1))
    assert not shards.is_answered
    with pytest.raises(ProtocolError, match="before all of its parts"):
        shards.take_answer()


def test_an_answer_that_is_not_asked_for_is_refused() -> None:
    shards = NameShards(["a", "b"])
    with pytest.raises(ProtocolError, match="not asked"):
        shards.on_answer("a", NameAnswer(1))
    shards.ask(CountPresent())
    shards.on_answer("a", NameAnswer(1))
    with pytest.raises(ProtocolError, match="not asked"):
        shards.on_answer("a", NameAnswer(1))
    with pytest.raises(ProtocolError, match="was asked before CountPresent was over"):
        shards.ask(CountUnshown())


def test_the_limit_of_missing_names_is_for_all_shards_together() -> None:
    shards = Shards(4, Random(1))
    for number in range(100):
        shards.names.put(key(number), version(1))
    shards.names.begin_listing()
    assert len(shards.ask(TakeMissing(20))) == 20


def test_a_piece_is_split_into_the_names_of_each_owner_in_their_order() -> None:
    keys = sorted(key(each) for each in range(300))
    piece = SeenPiece.of_columns("s", pa.chunked_array([keys]), pa.chunked_array([[k[:8] for k in keys]]))
    parts = NameMapping(["a", "b", "c"]).split(piece)
    assert np.concatenate([part.keys for part in parts.values()]).tolist() == piece.keys.tolist()
    for owner, part in parts.items():
        loader = SeenLoader()
        loader.add(part)
        own = [each for each in keys if NameMapping(["a", "b", "c"]).owner_of(each) == owner]
        assert loader.index().lookup(keys) == [each[:8] if each in own else None for each in keys]


def test_a_name_step_collects_each_epoch_and_ends_with_a_stop() -> None:
    step = NameExecutor(actor="names-s-0", index=SeenIndex())
    (collect,) = step.on_message(barrier(1))
    assert isinstance(collect, Collect) and (collect.report.actor, collect.report.epoch) == ("names-s-0", 1)
    assert not collect.report.delta.tables
    collect, end = step.on_message(barrier(2, Stop()))
    assert isinstance(collect, Collect) and isinstance(end, End)


def test_a_name_step_refuses_files() -> None:
    step = NameExecutor(actor="names-s-0", index=SeenIndex())
    with pytest.raises(ProtocolError, match="NewFiles does not pass here"):
        step.on_message(NewFiles(()))
