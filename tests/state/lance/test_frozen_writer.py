"""Fencing of real processes: frozen during a commit, simultaneous take-overs, simultaneous first starts."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import lance
import pytest

from slackwater.testing.servers.s3_server import S3Server
from state.clock import SystemClock
from state.errors import CommitRefusedError
from state.lance.lance_access import lance_options
from state.lance.lance_store import LanceStateStore, dataset_location
from state.location import Location
from state.tables.delta import DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds
from tests.cases import few
from tests.state.store_process import StoreProcess

CLOCK = SystemClock()
REPETITIONS = 10


@pytest.fixture(scope="module")
def processes() -> Iterator[list[StoreProcess]]:
    """Processes, started once: a start takes longer than all tests."""
    started = [StoreProcess() for _ in range(8)]
    yield started
    for process in started:
        process.end()


@pytest.fixture(params=few(["local", "s3"], "s3"))
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "local":
        return Location(str(tmp_path / "root"))
    server: S3Server = request.getfixturevalue("s3")
    return Location(f"s3://{request.getfixturevalue('bucket')}/root", server.storage_options)


def commit(store: LanceStateStore) -> None:
    epoch = store.head.epoch + 1
    delta = DeltaBuilder()
    delta.put("queue", b"%d" % epoch, 0, path=f"taker-{epoch}")
    store.commit(epoch=epoch, delta=delta.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds())


def paths(store: LanceStateStore) -> set[str]:
    return {row["path"] for row in store.rows("queue")}


def forget_older_versions(root: Location) -> None:
    dataset = lance.dataset(dataset_location(root).lance_uri, storage_options=lance_options(root))
    dataset.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)


def taken_over(root: Location) -> LanceStateStore:
    """A handle whose take-over is committed; a commit that a frozen process has sent before may come first."""
    while True:
        taker = LanceStateStore.open(root, CLOCK)
        try:
            taker.take_over("taker")
        except CommitRefusedError:
            continue
        return taker


@pytest.mark.more
def test_a_frozen_writer_changes_nothing_when_it_goes_on(root: Location, processes: list[StoreProcess]) -> None:
    chance, writer = random.Random(7), processes[0]
    LanceStateStore.create(root, CLOCK)
    for repetition in range(REPETITIONS):
        writer.tell("write", root)
        acknowledged = [writer.answer()["epoch"] for _ in range(chance.randint(1, 3))]
        time.sleep(chance.uniform(0, 0.02))  # to any point of a commit
        writer.freeze()
        taker = taken_over(root)
        visible = paths(taker)
        for _ in range(chance.randint(0, 2)):
            commit(taker)
        if repetition % 2:
            forget_older_versions(root)
        head, version, rows = taker.head, taker.version, paths(taker)
        writer.thaw()
        *more, end = writer.answers_until_error()
        assert end["error"] == "FencedError", end["message"]
        acknowledged += [answer["epoch"] for answer in more]
        assert {f"child-{epoch}" for epoch in acknowledged} <= visible
        fresh = LanceStateStore.open(root, CLOCK)
        assert (fresh.head, fresh.version, paths(fresh)) == (head, version, rows)
        commit(taker)
        assert LanceStateStore.open(root, CLOCK).head == taker.head


@pytest.mark.more
def test_of_many_takers_exactly_one_wins(root: Location, processes: list[StoreProcess]) -> None:
    for round_number in range(3):
        for process in processes:
            process.tell("open", root)
        assert {process.answer()["term"] for process in processes} == {round_number}
        for process in processes:
            process.tell("take over", root)
        answers = [process.answer() for process in processes]
        assert [answer["term"] for answer in answers if "term" in answer] == [round_number + 1]
        assert {answer.get("error", "won") for answer in answers} == {"won", "FencedError"}
    assert LanceStateStore.open(root, CLOCK).head.term == 3


def test_of_many_first_starts_one_creates_the_store(root: Location, processes: list[StoreProcess]) -> None:
    for process in processes:
        process.tell("open", root)
    assert {process.answer()["version"] for process in processes} == {1}
    dataset = lance.dataset(dataset_location(root).lance_uri, storage_options=lance_options(root))
    assert (dataset.version, dataset.count_rows()) == (1, 2), "the head and the directory"
