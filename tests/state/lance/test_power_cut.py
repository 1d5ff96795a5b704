"""A power cut at any moment: acknowledged epochs are whole, and the next owner can go on.

The writes are recorded with their syncs; a test replays every prefix of them, with the unsynced ones missing or torn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from state.clock import ManualClock
from state.epoch import next_epoch
from state.errors import SlackwaterError
from state.lance.dataset_files import DatasetFiles
from state.lance.lance_root import LanceRoot
from state.lance.lance_store import LanceStateStore
from state.location import Durability, Location
from state.tables.delta import Delta, DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds
from state.upkeep.housekeeping import Housekeeping
from state.upkeep.retention import RetentionSettings
from state.upkeep.tags import put_tag
from tests.state.lance.recorded_disk import RecordedDisk, memory_directory, replayed

Keys = frozenset[bytes]


@dataclass(frozen=True)
class Acknowledged:
    """The content of the store when a call returned.

    Args:
        syncs: the number of syncs before.
        epoch: the last epoch.
        term: the term.
        tags: all tags.
        rows: epoch → the keys of the table `seen`.
    """

    syncs: int
    epoch: int
    term: int
    tags: dict[str, int]
    rows: dict[int, Keys]


class Writer:
    """An owner of a root on a recorded disk."""

    def __init__(self, disk: RecordedDisk, place: Path, durability: Durability) -> None:
        self.disk, self._clock = disk, ManualClock()
        self.root = LanceRoot(Location(str(place), durability=durability), self._clock)
        self.store: LanceStateStore | None = None
        self._keys: Keys = frozenset()
        self._rows: dict[int, Keys] = {}
        self.acknowledged: list[Acknowledged] = []

    def start(self) -> None:
        self.store = self.root.create_or_open()
        self.store.take_over("run")
        self._acknowledge()

    def commit(self, *, rows: int = 1, stage: bool = False) -> int:
        assert self.store is not None
        self._clock.advance(1)
        epoch = next_epoch(self._clock, self.store.head.epoch, self.store.head.term)
        delta, keys = changes(epoch, rows)
        if stage:
            delta = self.root.stage(delta, epoch)
        self.store.commit(epoch=epoch, delta=delta, views={}, counts=EpochCounts(), seconds=EpochSeconds())
        self._keys |= keys
        self._rows[epoch] = self._keys
        self._acknowledge()
        return epoch

    def tag(self, name: str, epoch: int) -> None:
        assert self.store is not None
        put_tag(self.store, name, epoch)
        self._acknowledge()

    def keep_house(self, keep_epochs: int) -> None:
        assert self.store is not None
        retention = RetentionSettings(keep_s=0, keep_epochs=keep_epochs)
        Housekeeping(self.root, self._clock, retention).run(self.store)
        kept = {record.epoch for record in self.store.epochs()}
        self._rows = {epoch: rows for epoch, rows in self._rows.items() if epoch in kept}
        self._acknowledge()

    def _acknowledge(self) -> None:
        assert self.store is not None
        head = self.store.head
        self.acknowledged.append(
            Acknowledged(self.disk.syncs, head.epoch, head.term, dict(head.tags), dict(self._rows))
        )


def changes(epoch: int, rows: int) -> tuple[Delta, Keys]:
    """A delta with new rows of `seen`, and their keys."""
    keys = [f"{epoch}-{number}".encode() for number in range(rows)]
    builder = DeltaBuilder()
    for key in keys:
        builder.put("seen", key, 1, version=b"12345678")
    return builder.build(), frozenset(keys)


def check(root: LanceRoot, before: Acknowledged | None, after: Acknowledged, *, keep_house: bool) -> None:
    """Checks the root after a power cut: it holds what was acknowledged before, at most what was written until then.

    Args:
        root: the root.
        before: the last acknowledgement before the cut; None before the first.
        after: the first one after it.
        keep_house: whether to fold and vacuum, too.
    """
    kept = {} if before is None else {epoch: rows for epoch, rows in before.rows.items() if epoch in after.rows}
    if before is not None:
        reader = root.open(read_only=True)
        assert reader.head.epoch >= before.epoch and reader.head.term >= before.term
    store = root.create_or_open()
    if before is not None:
        assert store.head.epoch in (before.epoch, after.epoch)
        assert store.head.term in (before.term, after.term)
        assert dict(store.head.tags) in (before.tags, after.tags)
    store.take_over("next")
    records = {record.epoch: record for record in store.epochs()}
    assert records.keys() >= kept.keys()
    for epoch, rows in kept.items():
        found = store.scan("seen", state_version=records[epoch].state_version)
        assert frozenset(found["key"].to_pylist()) == rows
    if before is not None:
        now = frozenset(store.scan("seen")["key"].to_pylist())
        assert now == (before if store.head.epoch == before.epoch else after).rows.get(store.head.epoch, frozenset())
    clock = ManualClock()
    clock.advance(1e9)
    epoch = next_epoch(clock, store.head.epoch, store.head.term)
    delta, keys = changes(epoch, 1)
    store.commit(epoch=epoch, delta=delta, views={}, counts=EpochCounts(), seconds=EpochSeconds())
    if keep_house:
        Housekeeping(root, clock, RetentionSettings(keep_s=0, keep_epochs=2)).run(store)
    assert keys <= frozenset(root.open(read_only=True).scan("seen")["key"].to_pylist())


def first_epochs(writer: Writer) -> None:
    writer.start()
    writer.commit()
    first = writer.commit(rows=3, stage=True)
    writer.tag("audit", first)


def a_second_owner(writer: Writer) -> None:
    writer.start()
    writer.commit()
    writer.disk.begin()
    writer.start()
    writer.commit()


def a_vacuum(writer: Writer) -> None:
    writer.start()
    for _ in range(3):
        writer.commit()
    writer.disk.begin()
    writer.keep_house(keep_epochs=1)
    writer.commit()


def a_fold(writer: Writer) -> None:
    writer.start()
    for _ in range(17):
        writer.commit()
    writer.disk.begin()
    writer.keep_house(keep_epochs=3)
    writer.commit()


Play = Callable[..., Iterator[str]]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    disk = RecordedDisk(tmp_path / "disk", monkeypatch)

    def play(story: Callable[[Writer], None], durability: Durability = "power_loss", randoms: int = 2) -> Iterator[str]:
        """Plays a story, and yields the errors of all power cuts."""
        writer = Writer(disk, tmp_path / "disk" / "root", durability)
        story(writer)
        disk.cut()
        monkeypatch.undo()
        with memory_directory(tmp_path) as place:
            yield from errors(disk, writer.acknowledged, place, randoms)

    yield play
    disk.close()


def errors(disk: RecordedDisk, acknowledged: list[Acknowledged], place: Path, randoms: int) -> Iterator[str]:
    root = LanceRoot(Location(str(place / "root"), durability="process"), ManualClock())
    for number, state in enumerate(replayed(disk, [each.syncs for each in acknowledged], place, randoms)):
        before = None if state.before is None else acknowledged[state.before]
        try:
            check(root, before, acknowledged[state.after], keep_house=number % 5 == 0)
        except (SlackwaterError, AssertionError, OSError) as error:
            yield f"sync {state.syncs}: {type(error).__name__}: {str(error)[:300]}"


@pytest.mark.more
def test_acknowledged_epochs_survive_a_power_cut(play: Play) -> None:
    assert list(play(first_epochs)) == []


@pytest.mark.more
@pytest.mark.parametrize("story", [a_second_owner, a_vacuum, a_fold])
def test_acknowledged_epochs_survive_a_power_cut_in_other_stories(story: Callable[[Writer], None], play: Play) -> None:
    assert list(play(story, randoms=4)) == []


def nothing(*_: object) -> tuple[()]:
    return ()


@pytest.mark.more
@pytest.mark.parametrize(
    ("part", "instead"),
    [
        ("sync_fragments", nothing),
        ("sync_version", nothing),
        ("sync_creation", DatasetFiles.sync_version),
        ("_directories", nothing),
        ("settle", nothing),
    ],
)
def test_each_part_of_the_syncing_is_needed(part: str, instead: Callable[..., Any], play: Play) -> None:
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(DatasetFiles, part, instead)
        assert next(play(first_epochs), None) is not None


def test_without_syncing_epochs_are_lost(play: Play) -> None:
    assert next(play(first_epochs, durability="process"), None) is not None
