from __future__ import annotations

import pytest

from actors.exchange.dispatch_executor import DispatchExecutor
from actors.exchange.merge_executor import Deliver, Grant, MergeExecutor
from actors.protocol.blocks import BadRecords, Block
from actors.protocol.instructions import Send
from actors.protocol.messages import NewFiles
from actors.protocol.vnode_mapping import VnodeMapping, fetcher_names
from state.errors import ProtocolError
from state.vnode import VNODES
from tests.actors.flow import INITIAL, barrier, files, of


@pytest.mark.parametrize("owners", [1, 2, 3, 7, 256])
def test_every_vnode_has_one_owner_and_shares_are_even(owners: int) -> None:
    mapping = VnodeMapping.even(fetcher_names(0, owners))
    shares = [mapping.vnodes_of(owner) for owner in mapping.owners]
    assert sum(len(share) for share in shares) == VNODES == len(frozenset().union(*shares))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_each_file_goes_to_the_owner_of_its_path_and_to_nobody_else() -> None:
    mapping = VnodeMapping.even(fetcher_names(0, 4))
    executor = DispatchExecutor(actor="dispatcher", edges=["list-s"], mapping=mapping)
    message = files(*(f"f{n}" for n in range(100)))
    sends = of(Send, executor.on_message("list-s", message))
    routed = [(each.to, file) for each in sends for file in each.message.files]
    assert sorted(file.path for _, file in routed) == sorted(file.path for file in message.files)
    assert all(to == (mapping.owner_of("s", file.path),) for to, file in routed)
    assert all(isinstance(each.message, NewFiles) for each in sends)


def test_bad_records_belong_to_the_epoch_of_the_barrier_behind_them() -> None:
    executor = MergeExecutor(actor="merger", edges=["fetch-0", "fetch-1"])
    for edge in ("fetch-0", "fetch-1"):
        executor.on_message(edge, INITIAL)
    executor.on_message("fetch-0", BadRecords({"s": 2, "t": 1}))
    executor.on_message("fetch-0", barrier(1))
    executor.on_message("fetch-0", BadRecords({"s": 7}))
    executor.on_message("fetch-1", BadRecords({"s": 3}))
    executor.on_message("fetch-1", Block("fetch-1", "s", object(), 15, 10))
    (delivered,) = of(Deliver, executor.on_message("fetch-1", barrier(1)))
    assert delivered.epoch.bad_records == {"s": 5, "t": 1}
    assert (delivered.epoch.records(["s"]), delivered.epoch.records(["s", "t"])) == ((20, 5), (21, 6))
    executor.on_message("fetch-0", barrier(2))
    (delivered,) = of(Deliver, executor.on_message("fetch-1", barrier(2)))
    assert delivered.epoch.records(["s", "t"]) == (7, 7)


def test_the_blocks_of_an_epoch_are_delivered_by_source_and_their_credit_comes_back_by_edge() -> None:
    executor = MergeExecutor(actor="merger", edges=["fetch-0", "fetch-1"])
    for edge in ("fetch-0", "fetch-1"):
        executor.on_message(edge, INITIAL)
    first, second = Block("fetch-0", "s", object(), 1, 10), Block("fetch-1", "s", object(), 1, 20)
    other, late = Block("fetch-0", "t", object(), 1, 5), Block("fetch-0", "s", object(), 1, 99)
    for block in (first, other):
        executor.on_message("fetch-0", block)
    executor.on_message("fetch-0", barrier(1))
    executor.on_message("fetch-0", late)
    executor.on_message("fetch-1", second)
    (delivered,) = of(Deliver, executor.on_message("fetch-1", barrier(1)))
    assert delivered.epoch.blocks == {"s": (first, second), "t": (other,)}
    assert sorted(executor.on_release(1), key=str) == [Grant("fetch-0", 15), Grant("fetch-1", 20)]
    with pytest.raises(ProtocolError, match="released twice"):
        executor.on_release(1)
    executor.on_message("fetch-0", barrier(2))
    (delivered,) = of(Deliver, executor.on_message("fetch-1", barrier(2)))
    assert delivered.epoch.blocks == {"s": (late,)}, "a block belongs to one epoch"
