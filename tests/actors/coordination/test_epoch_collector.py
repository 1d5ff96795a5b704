"""Complete epochs leave the collector in order, with the sums of their reports."""

from __future__ import annotations

import pytest

from actors.coordination.epoch_collector import EpochCollector, Outstanding
from actors.coordination.epoch_times import EpochTimes
from actors.protocol.barrier import Update
from actors.protocol.reports import CollectReport
from actors.protocol.vnode_mapping import VnodeMapping
from state.errors import ProtocolError
from state.tables.delta import Delta, DeltaBuilder
from state.tables.records import EpochCounts, ViewVersion
from tests.actors.flow import barrier

ACTORS = ["list-s", "merger", "materializer"]


def collector() -> EpochCollector:
    return EpochCollector(actors=ACTORS, merger="merger", materializer="materializer", now_s=0.0)


def delta(key: bytes) -> Delta:
    builder = DeltaBuilder()
    builder.put("seen", key, 0, version=b"12345678")
    return builder.build()


def test_an_epoch_is_complete_when_all_actors_have_collected_it() -> None:
    made = collector()
    made.on_barrier(barrier(1), 2.0)
    made.on_collect(CollectReport("list-s", 1, delta(b"a"), EpochCounts(files=1, rows=2)), 2.5)
    made.on_collect(CollectReport("merger", 1, delta(b"b"), EpochCounts(rows=3)), 3.0)
    assert made.take_complete(3.0) is None
    views = {"v": ViewVersion("v", "views/v-1.lance", 2)}
    made.on_collect(CollectReport("materializer", 1, views=views), 7.0)
    epoch = made.take_complete(8.0)
    assert epoch is not None
    assert (epoch.epoch, epoch.views, epoch.counts.files, epoch.counts.rows) == (1, views, 1, 5)
    assert sorted(epoch.delta.tables["seen"]["key"].to_pylist()) == [b"a", b"b"]
    seconds = epoch.seconds
    assert (seconds.fetch, seconds.align, seconds.spark, seconds.collect) == (2.0, 1.0, 4.0, 6.0)
    assert epoch.times == EpochTimes(-2.0, 1.0, 5.0, {"list-s": 0.5, "merger": 1.0}, 6.0), "from the barrier on"


def test_a_later_epoch_waits_for_the_earlier_one() -> None:
    made = collector()
    made.on_barrier(barrier(1), 0.0)
    made.on_barrier(barrier(2), 0.0)
    for actor in ACTORS:
        made.on_collect(CollectReport(actor, 2), 0.0)
    assert made.take_complete(0.0) is None
    for actor in ACTORS:
        made.on_collect(CollectReport(actor, 1), 0.0)
    taken = [made.take_complete(0.0), made.take_complete(0.0)]
    assert [each.epoch for each in taken if each is not None] == [1, 2]


def test_the_oldest_epoch_with_an_outstanding_report_names_its_actors_in_the_order_of_the_flow() -> None:
    actors = ["list-s", "dispatcher", "fetch-0", "merger", "materializer"]
    made = EpochCollector(actors=actors, merger="merger", materializer="materializer", now_s=0.0)
    assert made.outstanding() is None
    moved = Update(VnodeMapping.even(["fetch-0"]), VnodeMapping.even(["fetch-0", "fetch-1"]))
    made.on_barrier(barrier(1, moved), 1.0)
    made.on_barrier(barrier(2), 2.0)
    made.on_collect(CollectReport("merger", 1), 3.0)
    assert made.outstanding() == Outstanding(1, ("list-s", "dispatcher", "fetch-0"), 1.0)
    for actor in ("list-s", "dispatcher", "fetch-0"):
        made.on_collect(CollectReport(actor, 1), 3.0)
    expected = ("list-s", "dispatcher", "fetch-0", "fetch-1", "merger")
    assert made.outstanding() == Outstanding(2, expected, 2.0), "the materializer is not timed"


@pytest.mark.parametrize(
    "report", [CollectReport("list-s", 9), CollectReport("stranger", 1), CollectReport("merger", 1)]
)
def test_an_unexpected_report_is_an_error(report: CollectReport) -> None:
    made = collector()
    made.on_barrier(barrier(1), 0.0)
    made.on_collect(CollectReport("merger", 1), 0.0)
    with pytest.raises(ProtocolError, match="not expected"):
        made.on_collect(report, 0.0)
