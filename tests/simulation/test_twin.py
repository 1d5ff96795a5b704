"""Each difference between the simulated root and its twin in Lance breaks the promise `twin`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from state.errors import CommitRefusedError
from state.store.store import StagedFold
from state.tables.delta import Delta, DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds, ViewVersion
from tests.simulation.memory.memory_disk import MemoryVersion
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.promises.promises import Promises
from tests.simulation.promises.store_versions import breaks
from tests.simulation.simulated_world import World
from tests.simulation.stories.scenario import Scenario
from tests.simulation.twin.lance_twin import SmallFoldsStore
from tests.simulation.twin.twin_root import TwinDisk
from tests.simulation.world.file_rows import Span
from tests.simulation.world.schedule import Life
from tests.simulation.world.simulated_root import SimulatedRoot, SimulatedStore
from tests.simulation.world.surroundings import Surroundings

PATH = "views/rows-1.lance"
SPAN = Span(("s", "a", b"12345678"), 0, 3)


class NoChance:
    """Chance without interruptions."""

    def random(self) -> float:
        return 0.99


class Twins:
    """A root with a twin, taken over once, without checks of its content."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for check in ("on_version", "on_acknowledged", "on_tag", "check_retained"):
            monkeypatch.setattr(Promises, check, lambda *_: None)
        scenario, chance = Scenario((), on_lance=True), NoChance()
        self.world = World(scenario, Surroundings(scenario, chance, chance, lambda: False))  # type: ignore[arg-type]
        assert self.world.twin_disk is not None
        self.disk: TwinDisk = self.world.twin_disk
        self.root: SimulatedRoot = self.world.root(Life("run"))
        self.store: SimulatedStore = self.root.create_or_open()
        self.store.take_over("run")

    def lance(self) -> SmallFoldsStore:
        """Another handle on the store in Lance."""
        store = SmallFoldsStore.open(self.disk.twin.root.location, self.world.clock)
        assert isinstance(store, SmallFoldsStore)
        return store

    def commit(self, epoch: int) -> None:
        counts, seconds = EpochCounts(), EpochSeconds()
        self.store.commit(
            epoch=epoch, delta=self.root.stage(queued(epoch), epoch), views={}, counts=counts, seconds=seconds
        )

    def change(self, **tables: dict[bytes, dict[str, object]]) -> None:
        """Changes the last simulated version."""
        made = self.disk.versions[self.disk.latest]
        self.disk.versions[self.disk.latest] = MemoryVersion(made.swap_name, made.head, {**made.tables, **tables})


def queued(epoch: int) -> Delta:
    builder = DeltaBuilder()
    builder.put("queue", b"%03d" % epoch, 1, path=f"{epoch}")
    builder.put("list_state", b"s", 1, pages=epoch)
    return builder.build()


@pytest.fixture
def twins(monkeypatch: pytest.MonkeyPatch) -> Iterator[Twins]:
    made = Twins(monkeypatch)
    yield made
    made.world.close()


@pytest.mark.more
def test_equal_stores_keep_the_promise_through_folds_takeovers_and_vacuums(twins: Twins) -> None:
    frozen = twins.root.open()
    for epoch in range(1, 12):
        twins.commit(epoch)
        fold = twins.store.stage_fold()
        if fold is not None:
            twins.store.commit_fold(fold)
    with pytest.raises(CommitRefusedError):
        frozen.amend(queued(99))
    twins.root.delete_versions("state.lance", {2, 3, 4})
    version = twins.root.commit_view(PATH, 0, (SPAN,))
    version = twins.root.restore(ViewVersion("rows", PATH, version), 2).version
    with pytest.raises(CommitRefusedError):
        twins.root.commit_view(PATH, 1, ())
    twins.root.tag_committed(ViewVersion("rows", PATH, version))
    twins.root.commit_view(PATH, version, (SPAN, SPAN))
    twins.disk.check_all()
    fragments = twins.lance()._dataset.get_fragments()
    assert len(fragments) < 20, "each commit adds two, and it folds"


def test_a_refused_append_leaves_a_version_that_no_epoch_names(twins: Twins) -> None:
    first = twins.root.commit_view(PATH, 0, (SPAN,))
    twins.root.commit_view(PATH, first, (SPAN, SPAN))
    with pytest.raises(CommitRefusedError):
        twins.root.commit_view(PATH, first, (SPAN, SPAN, SPAN))
    restored = twins.root.restore(ViewVersion("rows", PATH, first), 2).version
    assert (restored, twins.disk.datasets[PATH].versions[3]) == (4, (SPAN,) * 4)
    twins.disk.check_all()


def test_a_commit_that_only_one_store_accepts_breaks_twin(twins: Twins) -> None:
    twins.lance().amend(queued(1))
    with breaks("twin", "memory accepts a commit after version 2, and Lance refuses it"):
        twins.commit(2)


def test_other_rows_break_twin(twins: Twins) -> None:
    twins.commit(1)
    twins.change(queue={})
    with breaks("twin", "queue"):
        twins.disk.check_all()


def test_another_count_of_the_ledger_breaks_twin(twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    twins.commit(1)
    monkeypatch.setattr(SmallFoldsStore, "count_ledger", lambda self: self.scan("queue"))
    with breaks("twin", "the ledger counts []"):
        twins.disk.check_all()


def test_a_version_that_only_one_store_has_breaks_twin(twins: Twins) -> None:
    twins.commit(1)
    twins.commit(2)
    del twins.disk.versions[1]
    with breaks("twin", "the versions are [3, 4], and [1, 3, 4] in Lance"):
        twins.root.delete_versions("state.lance", {2})


def test_a_view_with_other_rows_versions_or_datasets_breaks_twin(twins: Twins) -> None:
    twins.root.commit_view(PATH, 0, (SPAN,))
    twins.root.commit_view(PATH, 1, (SPAN, SPAN))
    versions = twins.disk.datasets[PATH].versions
    versions[2] = (SPAN,)
    with breaks("twin", f"version 2 of {PATH} has the rows"):
        twins.disk.check_all()
    del versions[2]
    with breaks("twin", f"{PATH} has the versions [1], and [1, 2] in Lance"):
        twins.disk.check_all()
    del twins.disk.datasets[PATH]
    with breaks("twin", "the datasets are []"):
        twins.disk.check_all()


def test_a_store_that_is_not_folded_breaks_twin(twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    for epoch in range(1, 5):
        twins.commit(epoch)
    monkeypatch.setattr(SmallFoldsStore, "stage_fold", lambda self: None)
    with pytest.raises(PromiseBroken, match=r"twin: .* fragments of the log are not folded"):
        twins.disk.check_all()


def test_folds_that_do_not_end_break_twin(twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    twins.commit(1)
    monkeypatch.setattr(SmallFoldsStore, "stage_fold", lambda self: StagedFold(self.head.term))
    monkeypatch.setattr(SmallFoldsStore, "commit_fold", lambda self, fold: None)
    with breaks("twin", "after 23 folds another one is due"):
        twins.disk.check_all()
