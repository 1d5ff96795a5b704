from __future__ import annotations

import random

import pytest

from actors.exchange.barrier_aligner import BarrierAligner
from actors.protocol.barrier import Barrier
from actors.protocol.messages import Message, NewFiles
from state.epoch import EpochPair
from state.errors import ProtocolError
from tests.actors.flow import barrier, files


def test_an_edge_that_delivered_its_barrier_is_blocked_until_all_have() -> None:
    aligner = BarrierAligner(["a", "b"])
    assert aligner.on_message("a", barrier(1)) == []
    assert aligner.on_message("a", files("of epoch 2")) == []
    assert aligner.on_message("b", files("of epoch 1")) == [files("of epoch 1")]
    assert aligner.on_message("b", barrier(1)) == [barrier(1), files("of epoch 2")]


def test_an_edge_may_run_several_barriers_ahead() -> None:
    aligner = BarrierAligner(["a", "b"])
    for epoch in (1, 2, 3):
        assert aligner.on_message("a", barrier(epoch)) == []
    passed = [aligner.on_message("b", barrier(epoch)) for epoch in (1, 2, 3)]
    assert passed == [[barrier(1)], [barrier(2)], [barrier(3)]]


def test_one_edge_is_never_blocked() -> None:
    aligner = BarrierAligner(["a"])
    assert aligner.on_message("a", barrier(1)) == [barrier(1)]
    assert aligner.on_message("a", files("x")) == [files("x")]


def test_barriers_of_different_epochs_do_not_align() -> None:
    aligner = BarrierAligner(["a", "b"])
    aligner.on_message("a", barrier(1))
    with pytest.raises(ProtocolError, match="others"):
        aligner.on_message("b", Barrier(EpochPair(1, 5)))


@pytest.mark.parametrize("seed", range(50))
def test_no_data_crosses_a_barrier_in_any_interleaving(seed: int) -> None:
    rng = random.Random(seed)
    edges = [f"edge-{n}" for n in range(rng.randint(1, 5))]
    streams: dict[str, list[Message]] = {edge: [] for edge in edges}
    for stream in streams.values():
        for epoch in range(1, 6):
            stream += [files(f"{epoch}")] * rng.randint(0, 3)
            stream.append(barrier(epoch))
    aligner, passed, total = BarrierAligner(edges), [], sum(len(each) for each in streams.values())
    while any(streams.values()):
        edge = rng.choice([each for each in edges if streams[each]])
        passed += aligner.on_message(edge, streams[edge].pop(0))
    epoch = 1
    for message in passed:
        if isinstance(message, Barrier):
            assert message == barrier(epoch)
            epoch += 1
        else:
            assert isinstance(message, NewFiles) and message.files[0].path == str(epoch)
    assert epoch == 6
    assert len(passed) == total - 5 * (len(edges) - 1)
