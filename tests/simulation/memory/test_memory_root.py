"""The root in memory: staged rows grow old, as they do in Lance."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from state.clock import ManualClock
from state.errors import CommitRefusedError
from state.tables.delta import DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds
from state.upkeep.vacuum import STORE_PATH
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.memory.memory_root import MemoryRoot

_DAY_S = timedelta(days=1).total_seconds()


@pytest.fixture
def root() -> MemoryRoot:
    return MemoryRoot(MemoryDisk(), ManualClock())


def _wait(root: MemoryRoot, days: float) -> None:
    assert isinstance(root.clock, ManualClock)
    root.clock.advance(days * _DAY_S)


def _staged_delta(root: MemoryRoot) -> Callable[[], object]:
    """Stages a delta; the result commits it."""
    store = root.create_or_open()
    builder = DeltaBuilder()
    builder.put("queue", b"a", 1, path="a")
    staged = root.stage(builder.build(), 1)

    def commit() -> object:
        store.commit(epoch=1, delta=staged, views={}, counts=EpochCounts(), seconds=EpochSeconds())
        return store.get("queue", b"a")

    return commit


def _staged_rows(root: MemoryRoot) -> Callable[[], object]:
    """Stages rows of a dataset; the result reads them for a commit."""
    root.commit_view("views/rows", 0, ())
    name = root.stage_rows("views/rows", ("row",))
    return lambda: root.staged_rows("views/rows", name)


@pytest.mark.parametrize("stage", [_staged_delta, _staged_rows])
def test_staged_rows_are_committed_for_five_days_and_refused_then(
    stage: Callable[[MemoryRoot], Callable[[], object]], root: MemoryRoot
) -> None:
    commit = stage(root)
    _wait(root, 6.5)
    with pytest.raises(CommitRefusedError, match=r"6\.5 days ago"):
        commit()
    _wait(root, -1.5)
    assert commit()


@pytest.mark.parametrize(("stage", "path"), [(_staged_delta, STORE_PATH), (_staged_rows, "views/rows")])
def test_a_vacuum_deletes_staged_rows_after_seven_days(
    stage: Callable[[MemoryRoot], Callable[[], object]], path: str, root: MemoryRoot
) -> None:
    commit = stage(root)
    _wait(root, 6.9)
    root.delete_versions(path, set())
    assert _left(root) == 1
    _wait(root, 0.2)
    root.delete_versions(path, set())
    assert _left(root) == 0
    with pytest.raises(CommitRefusedError, match=r"7\.1 days ago"):
        commit()
    _wait(root, -2)
    assert commit() is None  # a clock that is set back: nothing tells that they are gone


def _left(root: MemoryRoot) -> int:
    staged = [root.disk.staged, *root.disk.stored.values()]
    return sum(each.rows is not None for place in staged for each in place.values())


def test_a_staged_delta_that_is_committed_may_go(root: MemoryRoot) -> None:
    assert _staged_delta(root)()
    _wait(root, 8)
    root.delete_versions(STORE_PATH, set())
    assert root.open().get("queue", b"a") is not None
