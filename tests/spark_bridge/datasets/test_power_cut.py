"""A power cut at any moment: the views of acknowledged epochs are whole, with their indexes and tags."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from spark_bridge.datasets import dataset_upkeep
from spark_bridge.datasets.view_table import ViewTable
from state.clock import ManualClock
from state.errors import SlackwaterError
from state.lance.dataset_files import DatasetFiles
from state.lance.fragment_stager import FragmentStager, staged_fragments
from state.lance.lance_root import LanceRoot
from state.lance.lance_store import LanceStateStore
from state.location import Durability, Location
from state.tables.delta import Delta
from state.tables.group_key import KEY_COLUMN
from state.tables.records import EpochCounts, EpochSeconds, ViewVersion
from tests.state.lance.recorded_disk import RecordedDisk, memory_directory, replayed

SCHEMA = pa.schema([pa.field(KEY_COLUMN, pa.string(), nullable=False), ("n", pa.int64())])
VIEW, STORED = "views/v-1.lance", "views/s.rows-1.lance"
Rows = dict[str, int]


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(dataset_upkeep, "_INDEX_FROM_ROWS", 12)
        changed.setattr(dataset_upkeep, "_TIDY_EVERY_COMMITS", 3)
        changed.setattr(dataset_upkeep, "_FRAGMENT_FACTOR", 2)
        yield


def groups(*numbers: int, n: int = 0) -> pa.Table:
    return pa.table({KEY_COLUMN: [f"{number:04}" for number in numbers], "n": [n] * len(numbers)}, schema=SCHEMA)


def rows_of(dataset: lance.LanceDataset) -> Rows:
    rows = dataset.to_table(columns=[KEY_COLUMN, "n"]).to_pydict()
    return dict(zip(rows[KEY_COLUMN], rows["n"], strict=True))


@dataclass
class Acknowledged:
    """The rows of each view by epoch, when an epoch was acknowledged.

    Args:
        syncs: the number of syncs before.
        epoch: the last epoch.
        rows: epoch → view → rows.
        paths: view → path.
        syncs_at_tags: the number of syncs when the tags of the views had moved, too.
    """

    syncs: int
    epoch: int
    rows: dict[int, dict[str, Rows]]
    paths: dict[str, str]
    syncs_at_tags: int = 0


class Views:
    """The views of an owner on a recorded disk."""

    def __init__(self, disk: RecordedDisk, place: Path, durability: Durability) -> None:
        self.disk = disk
        self.root = LanceRoot(Location(str(place), durability=durability), ManualClock())
        self.store: LanceStateStore = self.root.create_or_open()
        self.store.take_over("run")
        self.tables: dict[str, ViewTable] = {}
        self.acknowledged: list[Acknowledged] = []

    def create(self) -> None:
        self.tables["v"] = ViewTable.create(self.root.location.child(VIEW), groups(*range(8)))

    def create_stored(self) -> None:
        location = self.root.location.child(STORED)
        fragments = staged_fragments(FragmentStager(location).stage(groups(1, 2, 3)))
        self.tables["s.rows"] = ViewTable.create_of_fragments(location, SCHEMA, fragments)

    def stage(self, *numbers: int) -> None:
        location = self.root.location.child(STORED)
        self.tables["s.rows"].append(staged_fragments(FragmentStager(location).stage(groups(*numbers))))

    def commit(self) -> None:
        paths = {"v": VIEW, "s.rows": STORED}
        views = {name: ViewVersion(name, paths[name], table.version) for name, table in self.tables.items()}
        epoch = self.store.head.epoch + 1
        self.store.commit(epoch=epoch, delta=Delta(), views=views, counts=EpochCounts(), seconds=EpochSeconds())
        before = self.acknowledged[-1].rows if self.acknowledged else {}
        rows = {name: rows_of(table._dataset) for name, table in self.tables.items()}
        acknowledged = Acknowledged(self.disk.syncs, epoch, {**before, epoch: rows}, paths)
        self.acknowledged.append(acknowledged)
        for view in views.values():
            self.root.tag_committed(view)
        acknowledged.syncs_at_tags = self.disk.syncs

    def start_again(self) -> None:
        self.store = self.root.create_or_open()
        head = self.store.take_over("again")
        restored = {name: self.root.restore(view, head.term) for name, view in head.views.items()}
        self.tables = {
            name: ViewTable.open(self.root.location.child(view.path), view.version) for name, view in restored.items()
        }


def check_tags(root: LanceRoot, acknowledged: Acknowledged) -> None:
    """Checks the tags for plain readers, who come before the next owner."""
    for name, rows in acknowledged.rows[acknowledged.epoch].items():
        uri = root.location.child(acknowledged.paths[name]).lance_uri
        assert rows_of(lance.dataset(uri, version="committed")) == rows


def check(root: LanceRoot, before: Acknowledged | None, after: Acknowledged) -> None:
    """Checks the root after a power cut, as a next owner does."""
    store = root.create_or_open()
    head = store.take_over("next")
    restored = {name: root.restore(view, head.term) for name, view in head.views.items()}
    assert head.epoch in ((before.epoch if before else 0), after.epoch)
    records = {record.epoch: record for record in store.epochs()}
    for epoch, views in {} if before is None else before.rows.items():
        for name, rows in views.items():
            view = records[epoch].views[name]
            assert rows_of(ViewTable.open(root.location.child(view.path), view.version)._dataset) == rows
    for name, view in restored.items():
        expected = (after if head.epoch == after.epoch else before).rows[head.epoch][name]  # type: ignore[union-attr]
        location = root.location.child(view.path)
        table = ViewTable.open(location, view.version)
        assert rows_of(table._dataset) == expected
        some = pa.array(sorted(expected)[:3], pa.string())
        found = table.rows_of(some, ["n"]).to_pydict()
        assert dict(zip(found[KEY_COLUMN], found["n"], strict=True)) == {key: expected[key] for key in some.to_pylist()}
        for number in range(4):
            table.upsert(groups(9_000 + number))
        while table.tidy():
            pass
        root.tag_committed(replace(view, version=table.version))
        assert rows_of(lance.dataset(location.lance_uri, version="committed")).keys() >= expected.keys()
        root.delete_versions(view.path, {each for each in root.versions(view.path) if each < table.version})


def appends(views: Views) -> None:
    views.create()
    views.commit()
    views.tables["v"].append(groups(8, 9))
    views.commit()


def upserts(views: Views) -> None:
    views.create()
    views.commit()
    views.disk.begin()
    views.tables["v"].upsert(groups(1, 9, n=7))
    views.tables["v"].delete(groups(2).column(KEY_COLUMN).combine_chunks())
    views.commit()


def indexes_and_tidying(views: Views) -> None:
    views.create()
    views.commit()
    views.disk.begin()
    for number in range(10, 18, 2):
        views.tables["v"].upsert(groups(number, number + 1))
        views.tables["v"].tidy()
        views.commit()


def stored_rows(views: Views) -> None:
    views.create_stored()
    views.commit()
    views.stage(4, 5)
    views.commit()
    views.tables["s.rows"].delete_where(f"{KEY_COLUMN} < '0002'")
    views.tables["s.rows"].update_where({"n": "3"}, f"{KEY_COLUMN} = '0004'")
    views.tables["s.rows"].add_columns(pa.schema([pa.field("late", pa.int64())]))
    views.tables["s.rows"].append(groups(6).append_column("late", pa.array([1], pa.int64())))
    views.commit()


def another_owner(views: Views) -> None:
    views.create()
    views.commit()
    views.tables["v"].append(groups(8))  # for an epoch that is never committed
    views.disk.begin()
    views.start_again()
    views.tables["v"].append(groups(9))
    views.commit()


Play = Callable[..., Iterator[str]]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    disk = RecordedDisk(tmp_path / "disk", monkeypatch)

    def play(story: Callable[[Views], None], durability: Durability = "power_loss", randoms: int = 1) -> Iterator[str]:
        """Plays a story, and yields the errors of all power cuts."""
        views = Views(disk, tmp_path / "disk" / "root", durability)
        disk.begin()
        story(views)
        disk.cut()
        monkeypatch.undo()
        with memory_directory(tmp_path) as place:
            root = LanceRoot(Location(str(place / "root"), durability="process"), ManualClock())
            for state in replayed(disk, [each.syncs for each in views.acknowledged], place, randoms):
                before = None if state.before is None else views.acknowledged[state.before]
                try:
                    if before is not None and state.syncs >= before.syncs_at_tags:
                        check_tags(root, before)
                    check(root, before, views.acknowledged[state.after])
                except (SlackwaterError, AssertionError, OSError, ValueError, RuntimeError) as error:
                    yield f"sync {state.syncs}: {type(error).__name__}: {str(error)[:300]}"

    yield play
    disk.close()


@pytest.mark.more
@pytest.mark.parametrize("story", [appends, upserts])
def test_views_of_acknowledged_epochs_survive_a_power_cut(story: Callable[[Views], None], play: Play) -> None:
    assert list(play(story)) == []


@pytest.mark.more
@pytest.mark.parametrize("story", [indexes_and_tidying, stored_rows, another_owner])
def test_views_survive_a_power_cut_in_other_stories(story: Callable[[Views], None], play: Play) -> None:
    assert list(play(story, randoms=3)) == []


def nothing(*_: Any) -> set[Path]:
    return set()


@pytest.mark.more
@pytest.mark.parametrize(
    ("part", "story"),
    [
        ("sync_fragments", appends),
        ("sync_version", appends),
        pytest.param("_drop_torn_tags", appends, marks=pytest.mark.more),
        pytest.param("sync_tag", appends, marks=pytest.mark.more),
        pytest.param("_deletion_files", upserts, marks=pytest.mark.more),
        pytest.param("_files", indexes_and_tidying, marks=pytest.mark.more),
    ],
)
def test_each_part_of_the_syncing_is_needed(part: str, story: Callable[[Views], None], play: Play) -> None:
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(DatasetFiles, part, nothing)
        assert next(play(story), None) is not None
