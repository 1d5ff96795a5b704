from __future__ import annotations

import pytest

from state.clock import ManualClock
from state.errors import EpochNotFoundError, NotFoundError, UsageError
from state.tables.delta import Delta
from state.tables.records import EpochCounts, EpochSeconds
from state.upkeep.tags import check_tag_name, delete_tag, put_tag
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.memory.memory_store import MemoryStateStore


@pytest.fixture
def store() -> MemoryStateStore:
    made = MemoryStateStore.create(MemoryDisk(), ManualClock())
    made.take_over()
    for epoch in (5, 6):
        made.commit(epoch=epoch, delta=Delta(), views={}, counts=EpochCounts(), seconds=EpochSeconds())
    return made


@pytest.mark.parametrize("name", ["latest", "", "7", "2026-01-31", "a b", "a/b", "-x", "x" * 65, "ä"])
def test_a_name_that_could_be_something_else_is_refused(store: MemoryStateStore, name: str) -> None:
    with pytest.raises(UsageError, match="is not a valid tag name"):
        put_tag(store, name, 5)
    assert store.head.tags == {}


@pytest.mark.parametrize("name", ["a", "release-1.2_b", "x" * 64])
def test_a_name_that_can_be_typed_is_taken(name: str) -> None:
    check_tag_name(name)


def test_a_tag_names_an_epoch_moves_and_goes(store: MemoryStateStore) -> None:
    put_tag(store, "a", 5)
    put_tag(store, "b", 5)
    put_tag(store, "a", 6)
    assert store.reopen().head.tags == {"a": 6, "b": 5}
    delete_tag(store, "b")
    assert store.reopen().head.tags == {"a": 6}
    with pytest.raises(NotFoundError, match="the tags are: a"):
        delete_tag(store, "b")


def test_a_tag_that_is_there_already_makes_no_version(store: MemoryStateStore) -> None:
    put_tag(store, "a", 5)
    version = store.version
    put_tag(store, "a", 5)
    assert store.version == version


def test_commits_and_take_overs_keep_the_tags(store: MemoryStateStore) -> None:
    put_tag(store, "a", 5)
    store.commit(epoch=7, delta=Delta(), views={}, counts=EpochCounts(), seconds=EpochSeconds())
    taker = store.reopen()
    taker.take_over()
    assert taker.head.tags == {"a": 5}


def test_an_epoch_that_is_not_retained_cannot_be_tagged(store: MemoryStateStore) -> None:
    with pytest.raises(EpochNotFoundError, match="epoch 4 cannot be tagged 'a'"):
        put_tag(store, "a", 4)


def test_there_is_a_limit_since_every_commit_carries_them(store: MemoryStateStore) -> None:
    store.amend(tags={f"t{number}": 5 for number in range(1_000)})
    with pytest.raises(UsageError, match="delete some"):
        put_tag(store, "one-more", 6)
    put_tag(store, "t7", 6)
    assert store.head.tags["t7"] == 6
