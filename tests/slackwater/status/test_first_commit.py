"""The steps of a start from the first listing to the first commit of files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from actors.protocol.counters import SourceProgress
from actors.protocol.reports import FetchProgress, ListProgress
from actors.protocol.run_state import EpochInFlight, RunState
from slackwater.status.first_commit import first_commit_step
from state.tables.records import EpochCounts

STARTED = RunState(version=1, phase="running", term=1, epoch=5, lists=(ListProgress("list-a", "a"),))
LISTED = replace(STARTED, lists=(ListProgress("list-a", "a", listings=1, sent=2),), files_in_flight=2)
READ = replace(LISTED, fetchers=(FetchProgress("fetch-0", sources={"a": SourceProgress(done=2)}),))


def test_a_start_names_its_step_up_to_the_first_commit_of_files() -> None:
    reading = replace(LISTED, fetchers=(FetchProgress("fetch-0", sources={"a": SourceProgress(reading=2)}),))
    in_spark = (EpochInFlight(9, "spark"),)
    assert first_commit_step(STARTED) == "first listing"
    assert first_commit_step(reading) == "first files"
    assert first_commit_step(replace(reading, in_flight=in_spark)) == "first files", "that epoch has only names"
    assert first_commit_step(READ) == "first files"
    assert first_commit_step(replace(READ, in_flight=in_spark)) == "views of the first epoch"
    assert first_commit_step(replace(READ, in_flight=(EpochInFlight(9, "commit"),))) == "first commit"
    assert first_commit_step(replace(READ, totals=EpochCounts(files=1))) is None


def test_local_files_that_must_settle_belong_to_the_start() -> None:
    settling = replace(STARTED, lists=(ListProgress("list-a", "a", listings=1, unsettled=1),))
    assert first_commit_step(settling) == "first files"
    assert first_commit_step(replace(settling, in_flight=(EpochInFlight(9, "spark"),))) == "first files"


def test_a_start_without_files_is_over_with_its_listings() -> None:
    empty = replace(STARTED, lists=(ListProgress("list-a", "a", listings=1),))
    assert first_commit_step(empty) is None


@pytest.mark.parametrize(("phase", "step"), [("paused", ""), ("stopping", None), ("stopped", None)])
def test_a_run_that_does_not_work_on_its_start_names_no_step(phase: str, step: str | None) -> None:
    assert first_commit_step(replace(LISTED, phase=phase)) == step  # type: ignore[arg-type]
