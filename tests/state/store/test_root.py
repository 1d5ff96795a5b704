"""The contract of a root for views, in memory and in Lance."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import lance
import pyarrow as pa
import pytest

from state.clock import ManualClock
from state.errors import CommitRefusedError, FencedError, NotFoundError
from state.lance import view_dataset
from state.lance.lance_access import open_dataset
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.store.root import Root
from state.tables.records import ViewVersion
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.memory.memory_root import MemoryRoot

PATH, STATE_PATH = "views/totals-1.lance", "view_state/totals-1.lance"


class Place(Protocol):
    """A root, and a writer with an open version of a view."""

    root: Root

    def open_writer(self, path: str, version: int) -> Writer: ...

    def rows(self, path: str, version: int | str) -> list[int]: ...


class Writer(Protocol):
    def write(self, rows: list[int]) -> int: ...


class MemoryWriter:
    def __init__(self, root: MemoryRoot, path: str, version: int) -> None:
        self.root, self.path, self.version = root, path, version

    def write(self, rows: list[int]) -> int:
        self.version = self.root.commit_view(self.path, self.version, rows)
        return self.version


class MemoryPlace:
    def __init__(self) -> None:
        self.memory = MemoryRoot(MemoryDisk(), ManualClock())
        self.root: Root = self.memory

    def open_writer(self, path: str, version: int) -> Writer:
        return MemoryWriter(self.memory, path, version)

    def rows(self, path: str, version: int | str) -> list[int]:
        if isinstance(version, str):
            committed = self.memory.disk.datasets[path].committed
            assert committed is not None
            version = committed
        rows: list[int] = self.memory.view_rows(path, version)
        return rows


class LanceWriter:
    def __init__(self, location: Location, version: int) -> None:
        self.location = location
        self.dataset = open_dataset(location, version) if version else None

    def write(self, rows: list[int]) -> int:
        table = pa.table({"n": pa.array(rows, pa.int64())})
        if self.dataset is None:
            self.dataset = view_dataset.create(self.location, table)
            return 1
        merge = self.dataset.merge_insert("n").when_not_matched_insert_all().when_not_matched_by_source_delete()
        transaction, _ = merge.execute_uncommitted(table)
        try:
            self.dataset = lance.LanceDataset.commit(self.dataset, transaction, max_retries=0)
        except OSError as error:
            raise CommitRefusedError(str(error)) from error
        return int(self.dataset.version)


class LancePlace:
    def __init__(self, directory: Path) -> None:
        self.location = Location(str(directory))
        self.root: Root = LanceRoot(self.location, ManualClock())

    def open_writer(self, path: str, version: int) -> Writer:
        return LanceWriter(self.location.child(path), version)

    def rows(self, path: str, version: int | str) -> list[int]:
        rows: list[int] = open_dataset(self.location.child(path), version).to_table()["n"].to_pylist()
        return sorted(rows)


@pytest.fixture(params=["memory", "lance"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return MemoryPlace() if request.param == "memory" else LancePlace(tmp_path)


def view(version: int) -> ViewVersion:
    return ViewVersion("totals", PATH, version)


def test_a_restored_view_holds_the_recorded_rows_and_refuses_older_writers(place: Place) -> None:
    writer = place.open_writer(PATH, 0)
    assert [writer.write([1]), writer.write([2]), writer.write([3])] == [1, 2, 3]
    restored = place.root.restore(view(2), term=2)
    assert restored == view(4)
    assert place.rows(PATH, 4) == [2]
    with pytest.raises(CommitRefusedError):
        writer.write([9])
    assert place.open_writer(PATH, 4).write([5]) == 5
    assert place.rows(PATH, 5) == [5]
    assert place.rows(PATH, 2) == [2]


def test_the_state_of_a_view_is_restored_with_it(place: Place) -> None:
    place.open_writer(PATH, 0).write([1])
    state = place.open_writer(STATE_PATH, 0)
    assert [state.write([10]), state.write([20])] == [1, 2]
    restored = place.root.restore(ViewVersion("totals", PATH, 1, STATE_PATH, 1), term=1)
    assert restored == ViewVersion("totals", PATH, 2, STATE_PATH, 3)
    assert place.rows(STATE_PATH, 3) == [10]


def test_a_term_that_is_over_cannot_restore(place: Place) -> None:
    place.open_writer(PATH, 0).write([1])
    later = place.root.restore(view(1), term=4)
    with pytest.raises(FencedError, match="fenced by term 4, ours is 3"):
        place.root.restore(later, term=3)
    assert place.root.restore(later, term=4).version == later.version + 1


def test_a_view_is_created_once(place: Place) -> None:
    place.open_writer(PATH, 0).write([1])
    with pytest.raises(CommitRefusedError):
        place.open_writer(PATH, 0).write([2])
    assert place.rows(PATH, 1) == [1]


def test_the_committed_version_never_goes_back(place: Place) -> None:
    writer = place.open_writer(PATH, 0)
    for number in (1, 2, 3):
        writer.write([number])
    for version in (1, 2, 1):
        place.root.tag_committed(view(version))
    assert place.rows(PATH, "committed") == [2]


def test_a_version_that_is_not_there_is_named(place: Place) -> None:
    place.open_writer(PATH, 0).write([1])
    for attempt in (lambda: place.root.restore(view(9), term=1), lambda: place.root.tag_committed(view(9))):
        with pytest.raises(NotFoundError, match="totals-1"):
            attempt()
