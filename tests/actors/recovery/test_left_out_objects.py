"""Objects that are left out for their age, from the declaration to the list actor."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from actors.fetching.file_progress import Ending, FileProgress
from actors.recovery.attempt_plan import AttemptPlan
from actors.recovery.catalog_changes import CatalogChanges
from actors.sources.discovery import Listing
from actors.sources.pipeline_definition import PipelineDefinition
from state.clock import ManualClock
from state.tables.catalog import Catalog
from state.tables.delta import Delta
from state.tables.fingerprint import path_fingerprint
from state.tables.records import EpochCounts, EpochSeconds
from tests.actors.flow import file
from tests.actors.recovery.root_with_files import commit, definition, recover
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.memory.memory_root import MemoryRoot

BEGAN = datetime(2026, 5, 1, 12, 0, 0, 700_000, tzinfo=UTC)
DECLARED = BEGAN.replace(microsecond=0)


def declared(root: Path, discovery: Listing) -> PipelineDefinition:
    made = definition(root, "s")
    return replace(made, sources=tuple(replace(source, discovery=discovery) for source in made.sources))


def catalog_after(changes: CatalogChanges) -> Catalog:
    """What is committed with these changes."""
    store = MemoryRoot(MemoryDisk(), ManualClock()).create_or_open()
    store.take_over("run")
    delta: Delta = changes.take_delta(())
    store.commit(epoch=1 << 50, delta=delta, views={}, counts=EpochCounts(), seconds=EpochSeconds())
    return Catalog.of(store.scan("catalog"))


def test_times_without_a_zone_are_utc() -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001 - that is what is tested
    assert Listing(modified_after=naive).not_before(None) == datetime(2026, 1, 1, tzinfo=UTC)


def test_the_later_of_both_limits_counts() -> None:
    before, after = DECLARED - timedelta(days=1), DECLARED + timedelta(days=1)
    assert Listing().not_before(DECLARED) is None
    assert Listing(include_existing=False).not_before(DECLARED) == DECLARED
    assert Listing(include_existing=False, modified_after=before).not_before(DECLARED) == DECLARED
    assert Listing(include_existing=False, modified_after=after).not_before(DECLARED) == after
    assert Listing(include_existing=False).not_before(None) is None


def test_the_moment_of_the_first_declaration_is_kept_for_ever(tmp_path: Path) -> None:
    made = declared(tmp_path, Listing(include_existing=False))
    first = CatalogChanges(Catalog())
    first.declare(made, 0, BEGAN)
    assert first.not_before == {"s": DECLARED}
    kept = catalog_after(first)
    assert kept.sources["s"].declared_at == DECLARED
    later = CatalogChanges(kept)
    later.declare(made, 0, BEGAN + timedelta(days=7))
    assert later.not_before == {"s": DECLARED}
    assert not later.is_changed


def test_another_limit_is_noted_for_whoever_asks_why(tmp_path: Path) -> None:
    first = CatalogChanges(Catalog())
    first.declare(declared(tmp_path, Listing()), 0, BEGAN)
    again = CatalogChanges(catalog_after(first))
    again.declare(declared(tmp_path, Listing(modified_after=BEGAN)), 0, BEGAN + timedelta(days=7))
    assert again.is_changed
    assert catalog_after(again).sources["s"].not_before == BEGAN


def test_every_attempt_of_a_run_has_its_beginning(tmp_path: Path) -> None:
    made = declared(tmp_path, Listing(include_existing=False))
    plan = AttemptPlan("run", began_at=BEGAN)
    # The first attempt commits nothing.
    assert recover(made, plan).catalog.not_before == {"s": DECLARED}
    assert recover(made, replace(plan, number=2, held_root=True)).catalog.not_before == {"s": DECLARED}


def test_after_a_restart_nobody_asks_again_for_what_is_known_to_be_deleted(tmp_path: Path) -> None:
    made = definition(tmp_path, "s")
    deleted = FileProgress(file("deleted"), listed_epoch=1, row_offset=3, deleted_epoch=2)
    there = FileProgress(file("there"), listed_epoch=1, row_offset=3)
    commit(made, (deleted, Ending("done")), (there, Ending("done")))
    seen = recover(made).seen.indexes()["s"]
    seen.begin_listing()
    assert seen.take_missing(10).keys() == {path_fingerprint("s", "there")}


def test_after_a_restart_a_deleted_version_that_is_queued_again_may_be_missing_again(tmp_path: Path) -> None:
    made = definition(tmp_path, "s")
    deleted = FileProgress(file("deleted"), listed_epoch=1, row_offset=3, deleted_epoch=2)
    commit(made, (deleted, Ending("done")))
    commit(made, (FileProgress(file("deleted"), listed_epoch=3), None))
    seen = recover(made).seen.indexes()["s"]
    seen.begin_listing()
    assert seen.take_missing(10).keys() == {path_fingerprint("s", "deleted")}
