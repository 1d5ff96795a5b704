"""Files that a run has listed and not committed: `status` and `why` show them as in flight."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.reading.store import open as open_store
from slackwater.status.run_status import RunStatus, SourceStatus, StartupStep
from state.clock import SystemClock
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.ownership.owner import Ownership
from state.tables.discovery_progress import DiscoveryProgress
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.reading.written_root import WrittenRoot

COMMITTED = SourceStatus(done=2, quarantined=1, reading=1, waiting=1)
"""The files of `WrittenRoot`."""


@contextmanager
def running(root: Location, flights: SourceStatus, *steps: StartupStep) -> Iterator[Ownership]:
    """A run that has reported these files, and a listing that has just ended."""
    clock = SystemClock()
    status = RunStatus(phase="running", sources={"flights": flights}, startup=steps)
    ownership = Ownership(root, clock, run_id="a run of a test", pipeline="p")
    ownership.acquire(takeover=True)
    ownership.notify(status.to_json)
    ownership.update(phase="running", sources={"flights": DiscoveryProgress(listed_at=clock.now(), period_s=10.0)})
    ownership.renew()
    try:
        yield ownership
    finally:
        ownership.release()


def test_a_listed_file_without_a_committed_epoch_is_in_flight(written: WrittenRoot) -> None:
    with running(written.root, replace(COMMITTED, reading=3)):
        history = open_store(str(written.root)).ledger.why("day=3/unseen.csv")
        assert (history.status, history.source) == ("in_flight", "flights")
        assert "no committed epoch has it yet: 2 files of source flights are being read, or wait for" in history.text
        assert "no listing" not in history.text


def test_a_file_is_not_in_flight_without_a_file_of_its_source_there(written: WrittenRoot) -> None:
    with running(written.root, COMMITTED):
        assert open_store(str(written.root)).ledger.why("day=3/unseen.csv").status == "not_listed"


def test_a_file_that_came_behind_the_last_listing_is_not_in_flight(written: WrittenRoot) -> None:
    with running(written.root, replace(COMMITTED, reading=3)) as run:
        listed_at = open_store(str(written.root)).ledger.sources()["listed_at"][0].as_py()
        (written.raw.path / "day=3" / "late.csv").write_text("carrier\n")
        run.update(sources={"flights": DiscoveryProgress(listed_at=listed_at, period_s=10.0)})
        assert open_store(str(written.root)).ledger.why("day=3/late.csv").status == "not_listed"


def test_the_files_of_a_dead_run_are_not_in_flight(written: WrittenRoot) -> None:
    with running(written.root, replace(COMMITTED, reading=3)):
        pass
    assert open_store(str(written.root)).ledger.why("day=3/unseen.csv").status == "not_listed"
    assert json.loads(slackwater("status", str(written.root), "--json").out)["sources"][0]["in_flight"] == 0


def test_status_counts_the_files_in_flight_and_names_the_step_of_a_start(written: WrittenRoot) -> None:
    step = StartupStep("views of the first epoch", 65.0, done=False)
    with running(written.root, replace(COMMITTED, reading=3, done=5), StartupStep("Ray", 2.0, done=True), step):
        shown = slackwater("status", str(written.root)).out
        assert "start: views of the first epoch 1 min 05 s\n" in shown
        assert "source flights: 7 files are in flight: listed by the run, and not finished in an epoch\n" in shown
        assert json.loads(slackwater("status", str(written.root), "--json").out)["sources"][0]["in_flight"] == 7


@pytest.fixture
def first_epoch(tmp_path: Path) -> Location:
    """A root whose run works on its first epoch: nothing of its sources is committed."""
    root = Location(str(tmp_path / "new"))
    LanceStateStore.create(root, SystemClock())
    return root


def test_the_sources_of_a_first_epoch_are_shown_with_their_files(first_epoch: Location) -> None:
    with running(first_epoch, SourceStatus(reading=4, waiting=2)):
        status = json.loads(slackwater("status", str(first_epoch), "--json").out)
        assert [(each["name"], each["in_flight"], each["done"]) for each in status["sources"]] == [("flights", 6, 0)]
        history = open_store(str(first_epoch)).ledger.why("day=1/a.csv")
        assert (history.status, history.source) == ("in_flight", None)
        assert "in flight are: 6 files of flights" in history.text and "under no source" not in history.text


def test_a_run_that_has_reported_nothing_is_starting(first_epoch: Location) -> None:
    ownership = Ownership(first_epoch, SystemClock(), run_id="r", pipeline="p")
    ownership.acquire()
    history = open_store(str(first_epoch)).ledger.why("day=1/a.csv")
    assert history.status == "unknown" and "is starting" in history.text
    ownership.release()


def test_a_root_whose_run_has_not_created_the_store_is_not_called_unused(tmp_path: Path) -> None:
    root = Location(str(tmp_path / "new"))
    ownership = Ownership(root, SystemClock(), run_id="r", pipeline="p")
    ownership.acquire()
    for command in (("status",), ("why", "a.csv")):
        ended = slackwater(command[0], str(root), *command[1:])
        assert ended.code == 1 and "is starting, and has not created it; ask again in a moment" in ended.err
    ownership.release()
    assert "run a pipeline with this root" in slackwater("status", str(root)).err
