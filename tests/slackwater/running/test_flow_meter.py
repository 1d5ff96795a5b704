"""Tests of the flow meter: rates, units waiting between actors, and freshness."""

from __future__ import annotations

from dataclasses import replace

import pytest

from actors.protocol.counters import SourceProgress
from actors.protocol.reports import FetchProgress, ListProgress
from actors.protocol.run_state import CommittedEpoch, EpochInFlight, RunState
from actors.settings import BarrierSettings, FetchSettings
from slackwater.running.flow_meter import FlowMeter
from slackwater.status.run_status import EdgeStatus, SourceStatus
from state.clock import ManualClock
from state.tables.records import EpochCounts, EpochSeconds
from tests.slackwater.reading.written_root import START

STATE = RunState(1, "running", 1, 7, num_fetchers=2)


class Metered:
    """A meter, and a clock that moves with each look."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        fetch = FetchSettings(max_files_waiting=100, max_bytes_in_flight=1_000)
        self.meter = FlowMeter(BarrierSettings(max_in_flight=4), fetch, self.clock, window_s=5.0)

    def looks(self, state: RunState = STATE, after_s: float = 1.0, **sources: SourceStatus) -> None:
        self.clock.advance(after_s)
        self.meter.observe(state, sources)

    def source(self, name: str = "s") -> SourceStatus:
        return self.meter.measured(name, SourceStatus())


def test_rates_are_those_of_the_last_seconds() -> None:
    metered = Metered()
    assert metered.source().rows_per_s == 0.0
    for second in range(20):
        rows = 100 * min(second, 10)
        metered.looks(s=SourceStatus(rows=rows, done=second, bytes=10 * second, requests=2 * second), t=SourceStatus())
        if second == 10:
            assert metered.source().rows_per_s == pytest.approx(100.0)
    assert metered.source().rows_per_s == 0.0, "nothing came in the last seconds"
    assert metered.source().files_per_s == pytest.approx(1.0)
    assert metered.source().bytes_per_s == pytest.approx(10.0)
    assert metered.source().requests_per_s == pytest.approx(2.0)
    assert metered.source("t") == SourceStatus()


def test_what_a_failed_attempt_takes_back_is_no_negative_rate() -> None:
    metered = Metered()
    metered.looks(s=SourceStatus(rows=1_000))
    metered.looks(s=SourceStatus(rows=200))
    assert metered.source().rows_per_s == 0.0


def test_an_epoch_in_flight_tells_for_how_long_it_has_been_in_its_phase() -> None:
    metered = Metered()
    aligning = replace(STATE, in_flight=(EpochInFlight(8, "align"),))
    in_spark = replace(STATE, in_flight=(EpochInFlight(8, "spark"), EpochInFlight(9, "align")))
    metered.looks(aligning)
    metered.looks(aligning)
    assert [each.seconds for each in metered.meter.in_flight(aligning)] == [pytest.approx(1.0)]
    metered.looks(in_spark)
    metered.clock.advance(3)
    (first, second) = metered.meter.in_flight(in_spark)
    assert (first.epoch, first.phase) == (8, "spark") and first.seconds == pytest.approx(3.0)
    assert (second.epoch, second.phase) == (9, "align") and second.seconds == pytest.approx(3.0)


def test_freshness_is_that_of_the_last_epoch_that_tells_it() -> None:
    metered = Metered()

    def committed(epoch: int, **freshness_s: float) -> CommittedEpoch:
        return CommittedEpoch(epoch, START, EpochCounts(), EpochSeconds(), freshness_s=freshness_s)

    assert metered.source().freshness_s is None
    metered.looks(replace(STATE, recent=(committed(1, s=9.0), committed(2, s=0.5, t=4.0), committed(3))))
    assert (metered.source().freshness_s, metered.source("t").freshness_s) == (0.5, 4.0)
    metered.looks(replace(STATE, recent=(committed(1, s=9.0), committed(4, s=0.25))))
    assert metered.source().freshness_s == 0.25


def test_edges_tell_what_passes_and_what_waits_against_its_limit() -> None:
    metered = Metered()
    lists = (ListProgress("list-s", "s", sent=10, held=3), ListProgress("list-t", "t", sent=2))
    fetchers = (
        FetchProgress(
            "fetch-0", received=7, in_flight_bytes=900, sources={"s": SourceProgress(waiting=60, reading=40)}
        ),
        FetchProgress("fetch-1", received=5, in_flight_bytes=500),
    )
    busy = replace(STATE, lists=lists, fetchers=fetchers, epochs=6, in_flight=(EpochInFlight(8, "spark"),))
    metered.looks(s=SourceStatus())
    metered.looks(replace(busy, totals=EpochCounts(rows=50)), after_s=2.0, s=SourceStatus(bytes=400))
    edges = {edge.sender: edge for edge in metered.meter.edges(busy)}
    assert edges["list"] == EdgeStatus("list", "dispatcher", "files", 6.0, 3)
    assert edges["dispatcher"] == EdgeStatus("dispatcher", "fetch", "files", 6.0, 100, 100)
    assert edges["fetch"] == EdgeStatus("fetch", "merger", "bytes", 200.0, 1_400, 2_000)
    assert edges["merger"] == EdgeStatus("merger", "materializer", "epochs", 3.0, 1, 4)
    assert edges["materializer"] == EdgeStatus("materializer", "views", "rows", 25.0, 0)
    assert [each.is_full for each in edges.values()] == [False, True, False, False, False]
