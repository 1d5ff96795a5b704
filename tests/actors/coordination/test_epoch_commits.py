"""Tests of the catalog: it names only committed epochs, also as the last one of a failed view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from actors.coordination.epoch_collector import CollectedEpoch, EpochCollector
from actors.coordination.epoch_commits import EpochCommits
from actors.coordination.instructions import Commit
from actors.protocol.reports import CollectReport
from actors.recovery.catalog_changes import CatalogChanges
from state.tables.catalog import Catalog
from state.tables.expectations import Expectation, ViewExpectations
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
    """The last epoch of the view in the catalog of a commit."""
    (commit,) = of(Commit, commits.begin(epoch, 0.0))
    (row,) = [each for each in commit.delta.tables["catalog"]["row"].to_pylist() if each is not None]
    commits.end(EpochRecord(epoch.epoch, 1, AT, epoch.epoch, EpochCounts(), EpochSeconds(), {}), 0.0)
    stopped_epoch: int | None = row["stopped_epoch"]
    return stopped_epoch


def test_a_view_stops_at_the_last_committed_epoch_and_stays_there_until_it_is_another_one() -> None:
    commits = EpochCommits(CatalogChanges(Catalog(views={"v": VIEW})), {}, epoch=7)
    failed = replace(VIEW, stopped_epoch=8, error="too wet")
    assert committed(commits, collected(9, failed)) == 7, "epoch 8 has changed nothing"
    assert committed(commits, collected(12, replace(failed, error=None))) == 7, "it is rebuilt"
    assert committed(commits, collected(13, replace(failed, error="too dry"))) == 7
    another = replace(VIEW, created_epoch=15, stopped_epoch=14, error="too wet")
    assert committed(commits, collected(15, another, "v")) == 13
    assert committed(commits, collected(16, replace(VIEW, created_epoch=15))) is None


def expecting(rows: int) -> dict[str, ViewExpectations | None]:
    return {"v": ViewExpectations("v", "hold", {"positive": Expectation("amount > 0", rows)})}


def published(commits: EpochCommits, number: int, expectations: Mapping[str, ViewExpectations | None]) -> int | None:
    """The epoch of the tag `published` in the commit of an epoch that changes the view."""
    epoch = replace(collected(number, VIEW), expectations=expectations)
    (commit,) = of(Commit, commits.begin(epoch, 0.0))
    commits.end(EpochRecord(epoch.epoch, 1, AT, epoch.epoch, EpochCounts(), EpochSeconds(), {}), 0.0)
    at: int | None = commit.published
    return at


def test_the_commit_of_an_epoch_moves_the_tag_of_the_gate() -> None:
    commits = EpochCommits(CatalogChanges(Catalog(views={"v": VIEW})), {}, epoch=7)
    assert published(commits, 8, {}) is None, "no view holds results back"
    assert published(commits, 9, expecting(0)) == 9
    assert published(commits, 11, expecting(2)) == 9, "the last one that was committed"
    assert published(commits, 12, {}) is None, "it stays there"
    assert published(commits, 13, expecting(0)) == 13
    assert published(commits, 14, {"v": None}) == 0, "there is no gate any more"


def test_the_gate_is_that_of_the_recovered_catalog() -> None:
    known = {name: each for name, each in expecting(2).items() if each is not None}
    commits = EpochCommits(CatalogChanges(Catalog(views={"v": VIEW}, expectations=known)), {}, epoch=7)
    assert published(commits, 8, {}) is None
    assert published(commits, 9, expecting(0)) == 9
