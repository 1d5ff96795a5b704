"""The vacuum: it deletes only versions that no retained epoch names, and a fenced process stays fenced."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceOperation, Transaction
from lance.fragment import write_fragments

from slackwater.testing.servers.s3_server import S3Server
from state.clock import ManualClock
from state.epoch import next_epoch
from state.errors import EpochNotFoundError, FencedError, NotFoundError
from state.lance import view_dataset
from state.lance.fragment_stager import FragmentStager
from state.lance.lance_access import lance_options, open_dataset
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.store.head_swap import HeadSwapStore
from state.tables.delta import DeltaBuilder
from state.tables.records import EpochCounts, EpochRecord, EpochSeconds, ViewVersion
from state.upkeep.housekeeping import Housekeeping, StagedUpkeep
from state.upkeep.retention import RetentionSettings
from state.upkeep.tags import delete_tag, put_tag
from state.upkeep.vacuum import STORE_PATH, Vacuum
from tests.cases import few
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.memory.memory_root import MemoryRoot

LAST_TWO = RetentionSettings(keep_s=0, keep_epochs=2)


@dataclass
class Writer:
    """Commits epochs, each with one row of the queue and with a view of one row that holds the epoch."""

    root: LanceRoot | MemoryRoot
    store: HeadSwapStore
    clock: ManualClock
    view: ViewVersion | None = None
    records: list[EpochRecord] = field(default_factory=list)
    pinned_epoch: int | None = None

    @classmethod
    def start(cls, root: LanceRoot | MemoryRoot, clock: ManualClock) -> Writer:
        store: HeadSwapStore = root.create_or_open()
        store.take_over()
        return cls(root, store, clock)

    def commit(self, *, with_view: bool = True) -> EpochRecord:
        epoch = next_epoch(self.clock, self.store.head.epoch)
        if with_view:
            self.view = self._written(epoch)
        builder = DeltaBuilder()
        builder.put("queue", str(epoch).encode(), 1, path=str(epoch))
        record = self.store.commit(
            epoch=epoch,
            delta=builder.build(),
            views={} if self.view is None else {"v": self.view},
            counts=EpochCounts(),
            seconds=EpochSeconds(),
        )
        self.records.append(record)
        self.clock.advance(1)
        return record

    def upkeep(self, retention: RetentionSettings = LAST_TWO) -> Housekeeping:
        return Housekeeping(self.root, self.clock, retention)

    def rows(self, record: EpochRecord) -> tuple[list[str], Any]:
        """The rows that a reader gets of an epoch: of the queue and of the view."""
        store = self.root.open(read_only=True)
        queue = sorted(store.scan("queue", state_version=record.state_version)["path"].to_pylist())
        view = record.views["v"]
        if isinstance(self.root, MemoryRoot):
            return queue, self.root.view_rows(view.path, view.version)
        return queue, open_dataset(self.root.location.child(view.path), view.version).to_table()["n"].to_pylist()

    def expected(self, record: EpochRecord) -> tuple[list[str], Any]:
        return sorted(str(each.epoch) for each in self.records if each.epoch <= record.epoch), [record.epoch]

    def _written(self, epoch: int) -> ViewVersion:
        path, last = (f"views/v-{epoch}.lance", 0) if self.view is None else (self.view.path, self.view.version)
        return ViewVersion("v", path, self.write(path, last, epoch), pinned_epoch=self.pinned_epoch)

    def write(self, path: str, last: int, number: int) -> int:
        """The version of a view's dataset that holds one row with this number."""
        if isinstance(self.root, MemoryRoot):
            return self.root.commit_view(path, last, [number])
        rows, location = pa.table({"n": pa.array([number], pa.int64())}), self.root.location.child(path)
        if not last:
            return int(view_dataset.create(location, rows).version)
        options = lance_options(location)
        return int(lance.write_dataset(rows, location.lance_uri, mode="overwrite", storage_options=options).version)


@pytest.fixture(params=few(["memory", "lance", "lance-s3"], "memory", "lance"))
def writer(request: pytest.FixtureRequest, tmp_path: Path) -> Writer:
    clock = ManualClock()
    if request.param == "memory":
        return Writer.start(MemoryRoot(MemoryDisk(), clock), clock)
    if request.param == "lance":
        return Writer.start(LanceRoot(Location(str(tmp_path / "a root% with")), clock), clock)
    server: S3Server = request.getfixturevalue("s3")
    location = Location(f"s3://{request.getfixturevalue('bucket')}/root", server.storage_options)
    return Writer.start(LanceRoot(location, clock), clock)


@pytest.fixture
def local(tmp_path: Path) -> Writer:
    clock = ManualClock()
    return Writer.start(LanceRoot(Location(str(tmp_path)), clock), clock)


def test_retained_epochs_stay_whole_and_the_others_are_gone(writer: Writer) -> None:
    for _ in range(6):
        writer.commit()
    gone = writer.upkeep().run(writer.store)
    assert gone.versions > 0
    assert [record.epoch for record in writer.root.open(read_only=True).epochs()] == [
        record.epoch for record in writer.records[-2:]
    ]
    for record in writer.records[-2:]:
        assert writer.rows(record) == writer.expected(record)
    for record in writer.records[:-2]:
        with pytest.raises(EpochNotFoundError):
            writer.root.open(read_only=True).scan("queue", state_version=record.state_version)
        with pytest.raises(NotFoundError):
            writer.rows(record)
    record = writer.commit()
    assert writer.rows(record) == writer.expected(record)


def test_every_later_pass_takes_what_has_expired_since(writer: Writer) -> None:
    upkeep = writer.upkeep()
    for _ in range(4):
        for _ in range(3):
            writer.commit()
        upkeep.run(writer.store)
        # The two that are retained, and what came after the last of them: the expiry and the fold.
        assert len(writer.root.versions(STORE_PATH)) <= 2 + 2
        assert writer.view is not None
        assert len(writer.root.versions(writer.view.path)) == 2


def test_the_epoch_to_which_a_view_catches_up_stays_until_it_is_there(writer: Writer) -> None:
    pinned = writer.commit()
    writer.pinned_epoch = pinned.epoch + 1  # one without a record, which shows the same
    for _ in range(4):
        writer.commit()
    writer.upkeep().run(writer.store)
    assert writer.rows(pinned) == writer.expected(pinned)
    writer.pinned_epoch = None
    for _ in range(2):
        writer.commit()
    writer.upkeep().run(writer.store)
    with pytest.raises(NotFoundError):
        writer.rows(pinned)


def test_a_tagged_epoch_stays_until_its_tag_goes(writer: Writer) -> None:
    tagged = writer.commit()
    put_tag(writer.store, "before-the-move", tagged.epoch)
    for _ in range(5):
        writer.commit()
    upkeep = writer.upkeep()
    upkeep.run(writer.store)
    assert writer.rows(tagged) == writer.expected(tagged)
    assert writer.root.open().head.tags == {"before-the-move": tagged.epoch}
    delete_tag(writer.store, "before-the-move")
    upkeep.run(writer.store)
    with pytest.raises(NotFoundError):
        writer.rows(tagged)


def test_an_epoch_that_was_tagged_after_the_expiry_was_staged_stays(writer: Writer) -> None:
    for _ in range(5):
        writer.commit()
    upkeep = writer.upkeep()
    writer.clock.advance(3_600)
    staged = upkeep.stage(writer.store)
    assert staged is not None and writer.records[0].epoch in staged.expired
    put_tag(writer.store, "kept", writer.records[0].epoch)
    upkeep.commit(writer.store, staged)
    upkeep.vacuum()
    assert writer.rows(writer.records[0]) == writer.expected(writer.records[0])
    assert [record.epoch for record in writer.store.epochs()] == [writer.records[each].epoch for each in (0, 3, 4)]


def test_pinned_epochs_stay(writer: Writer) -> None:
    for _ in range(5):
        writer.commit()
    pinned = writer.records[1]
    Housekeeping(writer.root, writer.clock, LAST_TWO, lambda: {pinned.epoch}).run(writer.store)
    assert writer.rows(pinned) == writer.expected(pinned)


def test_datasets_newer_than_the_last_epoch_stay(writer: Writer) -> None:
    for _ in range(4):
        writer.commit()
    assert writer.view is not None
    ahead = writer.write(writer.view.path, writer.view.version, 7)
    further = writer.write(writer.view.path, ahead, 8)
    writer.upkeep().run(writer.store)
    assert {ahead, further} <= writer.root.versions(writer.view.path)
    assert writer.rows(writer.records[-1])[1] == [writer.records[-1].epoch]


def test_a_crash_between_the_records_and_their_files_is_made_good_by_the_next_pass(writer: Writer) -> None:
    for _ in range(5):
        writer.commit()
    upkeep = writer.upkeep()
    writer.clock.advance(3_600)
    staged = upkeep.stage(writer.store)
    assert staged is not None
    upkeep.commit(writer.store, staged)
    before = len(writer.root.versions(STORE_PATH))
    Vacuum(writer.root).run()  # by the next process
    assert len(writer.root.versions(STORE_PATH)) < before
    for record in writer.records[-2:]:
        assert writer.rows(record) == writer.expected(record)


def test_no_files_go_before_the_records_have_stopped_naming_them(writer: Writer) -> None:
    for _ in range(5):
        writer.commit()
    upkeep = writer.upkeep()
    writer.clock.advance(3_600)
    staged = upkeep.stage(writer.store)
    assert staged is not None and len(staged.expired) == 3
    Vacuum(writer.root).run()
    for record in writer.records:
        assert writer.rows(record) == writer.expected(record)


def test_a_dataset_of_no_epoch_goes_and_one_that_is_on_its_way_stays(writer: Writer) -> None:
    orphan = writer.commit().epoch - 1
    coming = writer.commit().epoch + 1
    for epoch in (orphan, coming):
        writer.write(f"views/w-{epoch}.lance", 0, epoch)
        writer.write(f"view_state/w-{epoch}.lance", 0, epoch)
    gone = writer.upkeep().run(writer.store)
    assert gone.datasets == 2
    for epoch, versions in ((orphan, 0), (coming, 1)):
        for place in ("views", "view_state"):
            assert versions_of(writer.root, f"{place}/w-{epoch}.lance") == versions
    assert writer.upkeep().run(writer.store).datasets == 0


def staged(writer: Writer, path: str) -> None:
    """Rows staged for a missing dataset."""
    if isinstance(writer.root, MemoryRoot):
        writer.root.stage_rows(path, [1])
    else:
        FragmentStager(writer.root.location.child(path)).stage(pa.table({"n": [1]}))


def test_rows_that_are_staged_stay_for_as_long_as_their_attempt_may_commit_them(writer: Writer) -> None:
    path = f"views/s.rows-{writer.commit().epoch + 1}.lance"
    staged(writer, path)
    for _ in range(4):
        writer.commit()
    assert writer.upkeep().run(writer.store).datasets == 0
    assert path in writer.root.datasets()
    writer.store.take_over()
    writer.commit()
    assert writer.upkeep().run(writer.store).datasets == 1
    assert writer.upkeep().run(writer.store).datasets == 0


def versions_of(root: LanceRoot | MemoryRoot, path: str) -> int:
    try:
        return len(root.versions(path))
    except NotFoundError:
        return 0


def test_a_root_without_an_epoch_keeps_what_it_has(writer: Writer) -> None:
    writer.write("views/v-5.lance", 0, 1)
    assert writer.upkeep().run(writer.store).datasets == 0
    assert writer.root.datasets() == ["views/v-5.lance"]


def test_a_pipeline_that_commits_nothing_is_left_in_peace(local: Writer) -> None:
    upkeep = local.upkeep(RetentionSettings(keep_s=10, keep_epochs=1))
    local.commit()
    local.commit()
    local.clock.advance(3_600)
    assert upkeep.due(local.store)
    staged = upkeep.stage(local.store)
    assert staged == StagedUpkeep(None, (local.records[0].epoch,))
    upkeep.commit(local.store, staged)
    version = local.store.version
    for _ in range(3):
        local.clock.advance(1_000_000)
        assert not upkeep.due(local.store)
    assert local.store.version == version


@pytest.mark.more
@pytest.mark.parametrize("sleeps_at", [1, 3, 5])
def test_a_process_that_slept_through_a_vacuum_is_fenced(writer: Writer, sleeps_at: int) -> None:
    sleeper: Any = None
    for number in range(6):
        if number == sleeps_at:
            sleeper = writer.root.open()
        writer.commit()
    taker = Writer(writer.root, writer.root.open(), writer.clock, writer.view, list(writer.records))
    taker.store.take_over()
    for _ in range(3):
        taker.commit()
    taker.upkeep(RetentionSettings(keep_s=0, keep_epochs=1)).run(taker.store)
    head, version = taker.store.head, taker.store.version
    builder = DeltaBuilder()
    builder.put("queue", b"z", 1, path="zombie")
    with pytest.raises(FencedError):
        sleeper.commit(
            epoch=head.epoch + 1, delta=builder.build(), views={}, counts=EpochCounts(), seconds=EpochSeconds()
        )
    fresh = writer.root.open()
    assert (fresh.head, fresh.version) == (head, version)
    assert "zombie" not in fresh.scan("queue")["path"].to_pylist()


def test_a_writer_of_a_view_that_slept_through_a_vacuum_is_refused(local: Writer) -> None:
    assert isinstance(local.root, LanceRoot)
    for _ in range(3):
        local.commit()
    assert local.view is not None
    location = local.root.location.child(local.view.path)
    sleeper = open_dataset(location)
    local.commit()
    taker = Writer(local.root, local.root.open(), local.clock, local.view)
    head = taker.store.take_over()
    taker.view = local.root.restore(head.views["v"], head.term)
    for _ in range(4):
        taker.commit()
    taker.upkeep(RetentionSettings(keep_s=0, keep_epochs=1)).run(taker.store)
    assert taker.view is not None
    fragments = write_fragments(pa.table({"n": [666]}), sleeper, mode="append")
    with pytest.raises(OSError, match="conflict"):
        lance.LanceDataset.commit(
            sleeper, Transaction(sleeper.version, LanceOperation.Append(fragments)), max_retries=0
        )
    assert open_dataset(location).version == taker.view.version


def test_the_tag_for_plain_readers_survives(local: Writer) -> None:
    assert isinstance(local.root, LanceRoot)
    first = local.commit()
    local.root.tag_committed(first.views["v"])
    for _ in range(4):
        local.commit()
    upkeep = local.upkeep(RetentionSettings(keep_s=0, keep_epochs=1))
    upkeep.run(local.store)
    location = local.root.location.child(first.views["v"].path)
    assert open_dataset(location, "committed").to_table()["n"].to_pylist() == [first.epoch]
    local.root.tag_committed(local.records[-1].views["v"])
    Vacuum(local.root).run()
    assert open_dataset(location, "committed").to_table()["n"].to_pylist() == [local.records[-1].epoch]
    assert len(local.root.versions(first.views["v"].path)) == 1


@pytest.mark.more
def test_files_on_disk_are_bounded(local: Writer, tmp_path: Path) -> None:
    upkeep = local.upkeep(RetentionSettings(keep_s=0, keep_epochs=10))
    counts = []
    for _ in range(4):
        for _ in range(40):
            local.commit()
            while not isinstance(local.root, MemoryRoot) and (fold := local.store.stage_fold()) is not None:
                local.store.commit_fold(fold)
        upkeep.run(local.store)
        counts.append(sum(len(names) for _, _, names in os.walk(tmp_path)))
    assert max(counts) < 200
    assert counts[-1] <= counts[0] + 20
