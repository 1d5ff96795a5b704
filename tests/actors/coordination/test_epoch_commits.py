"""Tests of the catalog: it names only committed epochs, also as the last one of a failed view."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from actors.coordination.epoch_collector import CollectedEpoch, EpochCollector
from actors.coordination.epoch_commits import EpochCommits
from actors.coordination.instructions import Commit
from actors.protocol.reports import CollectReport
from actors.recovery.catalog_changes import CatalogChanges
from state.tables.catalog import Catalog
from state.tables.records import CatalogView, EpochCounts, EpochRecord, EpochSeconds
from tests.actors.flow import barrier, of

AT = datetime(2026, 1, 31, tzinfo=UTC)
VIEW = CatalogView("v", "append", "SELECT", "v", ("s",), (), created_epoch=5)


def collected(number: int, view: CatalogView, *dropped: str) -> CollectedEpoch:
    made = EpochCollector(actors=["merger", "materializer"], merger="merger", materializer="materializer", now_s=0.0)
    made.on_barrier(barrier(number), 0.0)
    made.on_collect(CollectReport("merger", number), 0.0)
    made.on_collect(CollectReport("materializer", number, changed_views=(view,), dropped=dropped), 0.0)
    epoch = made.take_complete(0.0)
    assert epoch is not None
    return epoch


def committed(commits: EpochCommits, epoch: CollectedEpoch) -> int | None:
    """The epoch at which the view stands in the catalog of a commit."""
    (commit,) = of(Commit, commits.begin(epoch, 0.0))
    (row,) = [each for each in commit.delta.tables["catalog"]["row"].to_pylist() if each is not None]
    commits.end(EpochRecord(epoch.epoch, 1, AT, epoch.epoch, EpochCounts(), EpochSeconds(), {}), 0.0)
    frozen_epoch: int | None = row["frozen_epoch"]
    return frozen_epoch


def test_a_view_stands_at_the_last_committed_epoch_and_stays_there_until_it_is_another_one() -> None:
    commits = EpochCommits(CatalogChanges(Catalog(views={"v": VIEW})), {}, epoch=7)
    failed = replace(VIEW, frozen_epoch=8, error="too wet")
    assert committed(commits, collected(9, failed)) == 7, "epoch 8 has changed nothing"
    assert committed(commits, collected(12, replace(failed, error=None))) == 7, "it is built anew"
    assert committed(commits, collected(13, replace(failed, error="too dry"))) == 7
    another = replace(VIEW, created_epoch=15, frozen_epoch=14, error="too wet")
    assert committed(commits, collected(15, another, "v")) == 13
    assert committed(commits, collected(16, replace(VIEW, created_epoch=15))) is None
