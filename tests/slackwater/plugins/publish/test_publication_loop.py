"""A table follows a view turn by turn: failures are tried again, and no vacuum takes what a turn still has to read."""

from __future__ import annotations

import shutil
import threading
from copy import copy
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from slackwater.commands.maintenance import run_as_owner, vacuum
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.publication_loop import EpochNews, PublicationLoop, PublicationReport
from slackwater.reading.store import Store
from state.clock import ManualClock, SystemClock
from state.errors import ViewNotFoundError
from state.location import Location
from state.tables.catalog import delete_view, put_view
from state.tables.records import CatalogView, ViewVersion
from state.upkeep.retention import RetentionSettings
from tests.slackwater.plugins.publish.growing_view import GrowingView, events, groups
from tests.slackwater.plugins.publish.published import (
    contents,
    iceberg_table,
    require_equal,
    target_in,
    written_by_another,
)
from tests.waiting import eventually

FORMATS = pytest.mark.parametrize("format", ["delta", "iceberg", "parquet"])


class Followed:
    """A view that a loop publishes; `reports` are those of its turns."""

    def __init__(self, directory: Path, format: str, *key: str, **options: float) -> None:
        self.view = GrowingView(Location(str(directory / "root")), *key)
        self.clock, self.reports = ManualClock(SystemClock().now()), list[PublicationReport]()
        self._publication = DeclaredPublication("v", target_in(directory, format, **options))
        self.loop = PublicationLoop(self.view.writer.root, 0, self._publication, self.clock, self.reports.append)

    def again(self) -> Followed:
        """The same view, followed by a new process."""
        later = copy(self)
        later.loop = PublicationLoop(self.view.writer.root, 0, self._publication, self.clock, self.reports.append)
        return later

    def turn(self, *, is_last: bool = False) -> PublicationReport:
        self.loop.turn(is_last=is_last)
        return self.reports[-1]


def expire_all_but_the_last(view: GrowingView) -> None:
    run_as_owner(
        view.writer.root.url, {}, lambda store, root: vacuum(store, root, RetentionSettings(keep_s=0, keep_epochs=1))
    )


@pytest.mark.more_after(1)
@FORMATS
def test_epochs_that_pass_between_two_turns_are_one_commit(tmp_path: Path, format: str) -> None:
    followed = Followed(tmp_path, format)
    first = followed.view.create(events(1, 2))
    report = followed.turn()
    assert (followed.reports[0].epoch, followed.reports[0].later) == (None, 1), "told before the first rows are written"
    assert (report.epoch, report.later, report.commits, report.rows) == (first, 0, 1, 2)
    for numbers in ((3,), (4, 5)):
        followed.view.table.append(events(*numbers))
        last = followed.view.commit()
    report = followed.turn()
    assert (report.epoch, report.later, report.commits, report.rows) == (last, 0, 2, 5)
    assert require_equal(followed.view.store, tmp_path, format) == last


@pytest.mark.more
def test_an_epoch_that_is_committed_while_a_turn_begins_is_not_taken_for_a_held_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed = Followed(tmp_path, "delta")
    epochs, asked = [followed.view.create(events(1))], Store.published_epoch

    def published_epoch(store: Store) -> int:
        published = asked(store)
        if len(epochs) == 1:
            followed.view.table.append(events(2))
            epochs.append(followed.view.commit())
        return published

    monkeypatch.setattr(Store, "published_epoch", published_epoch)
    news = EpochNews()
    news.notify(epochs[0])
    following = threading.Thread(target=followed.loop.run, args=(news,))
    following.start()
    eventually(lambda: len(epochs) == 2 and any(each.epoch for each in followed.reports))
    news.notify(epochs[1])
    news.end()
    following.join()
    assert require_equal(followed.view.store, tmp_path, "delta") == epochs[1]


@pytest.mark.more_after(1)
@FORMATS
def test_an_epoch_that_does_not_change_the_view_is_named_at_the_end_only(tmp_path: Path, format: str) -> None:
    followed = Followed(tmp_path, format)
    first = followed.view.create(events(1, 2))
    followed.turn()
    last = followed.view.commit()
    report = followed.turn()
    assert (report.epoch, report.later, report.commits) == (last, 0, 1), "the table has the rows of this epoch"
    assert contents(tmp_path, format)[0] == first
    followed.turn(is_last=True)
    assert require_equal(followed.view.store, tmp_path, format) == last


@pytest.mark.more_after(1)
@FORMATS
def test_the_epochs_that_the_next_turn_reads_are_pinned(tmp_path: Path, format: str) -> None:
    followed = Followed(tmp_path, format, "carrier", "day of it")
    followed.view.create(groups(dict.fromkeys(range(40), 1)))
    followed.turn()
    followed.view.table.upsert(groups({1: 7}))
    last = followed.view.commit()
    expire_all_but_the_last(followed.view)
    report = followed.turn()
    assert (report.epoch, report.rows) == (last, 40 + 1), "the changed group, and not all of them again"
    assert require_equal(followed.view.store, tmp_path, format) == last


@pytest.mark.more
def test_a_new_loop_pins_the_epoch_that_the_table_names(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "delta")
    followed.view.create(events(1, 2))
    followed.turn()
    followed.view.table.append(events(3))
    last = followed.view.commit()
    over = EpochNews()
    over.end()
    followed.loop.run(over)
    pins = tmp_path / "root" / "pins"
    assert not list(pins.iterdir()), "a loop that ends lets go"
    later = followed.again()
    (tmp_path / "v").rename(tmp_path / "away")
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "_delta_log").write_text("in the way")
    assert later.turn().error is not None
    shutil.rmtree(tmp_path / "v")
    (tmp_path / "away").rename(tmp_path / "v")
    assert (later.turn().rows, later.turn().epoch) == (1, last)
    assert len(list(pins.iterdir())) == 1


@pytest.mark.more_after(1)
@FORMATS
def test_changes_that_are_gone_are_made_up_by_all_rows(tmp_path: Path, format: str) -> None:
    followed = Followed(tmp_path, format)
    followed.view.create(events(1, 2))
    followed.turn()
    followed.view.table.append(events(3))
    last = followed.view.commit()
    for pin in (tmp_path / "root" / "pins").iterdir():
        pin.unlink()  # as if it had ended while the process was frozen
    expire_all_but_the_last(followed.view)
    assert followed.turn().rows == 2 + 3
    assert require_equal(followed.view.store, tmp_path, format) == last


@pytest.mark.more
def test_a_failed_turn_is_tried_again_with_growing_pauses_and_goes_on_by_itself(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "delta")
    first = followed.view.create(events(1, 2))
    followed.turn()
    written_by_another(tmp_path, "delta", events(9))
    followed.view.table.append(events(3))
    last = followed.view.commit()
    pauses = []
    for failures in range(1, 13):
        report = followed.turn()
        assert report.error is not None and "was written by another program" in report.error
        assert (report.failures, report.epoch, report.later, report.looked) == (failures, first, 1, last)
        pauses.append(followed.loop.due_s - followed.clock.monotonic())
        assert report.is_failed, "a person must take the commit back"
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]
    DeltaTable(str(tmp_path / "v")).restore(0)
    report = followed.turn()
    assert (report.error, report.failures, report.epoch) == (None, 0, last)
    assert require_equal(followed.view.store, tmp_path, "delta") == last


@pytest.mark.more
def test_a_failure_that_may_pass_is_tried_again_at_the_end_of_a_run(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "parquet")
    last = followed.view.create(events(1, 2))
    (tmp_path / "v").write_text("in the way")

    def notify(report: PublicationReport) -> None:
        followed.reports.append(report)
        if report.failures == 2:
            (tmp_path / "v").unlink()

    news = EpochNews()
    news.notify(last)
    news.end()
    PublicationLoop(followed.view.writer.root, 0, followed._publication, followed.clock, notify).run(news)
    assert [report.failures for report in followed.reports if report.failures] == [1, 2]
    assert require_equal(followed.view.store, tmp_path, "parquet") == last


def test_a_place_that_is_there_again_is_published_to(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "parquet")
    last = followed.view.create(events(1, 2))
    (tmp_path / "v").write_text("in the way")
    report = followed.turn()
    assert report.error is not None and str(tmp_path / "v") in report.error and report.later == 1
    (tmp_path / "v").unlink()
    report = followed.turn()
    assert (report.error, report.failures, report.epoch) == (None, 0, last)


def test_a_view_that_is_not_shown_yet_is_no_failure(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "delta")
    followed.view.writer.commit()
    report = followed.turn()
    assert (report.error, report.epoch, report.later, report.commits) == (None, None, 0, 0)
    last = followed.view.create(events(1))
    assert followed.turn().epoch == last


@pytest.mark.more
@pytest.mark.parametrize("is_replaced", [False, True])
def test_the_table_of_a_view_in_backfill_is_behind_until_the_backfill_is_complete(
    tmp_path: Path, is_replaced: bool
) -> None:
    followed = Followed(tmp_path, "delta")
    writer, published = followed.view.writer, None
    if is_replaced:
        published = followed.view.create(events(1))
    put_view(writer.delta, CatalogView("v.next", "append", "SELECT", "plan", ("s",), (), writer.epoch))
    writer.views["v.next"] = ViewVersion("v.next", "views/v-2.lance", 1, pinned_epoch=writer.epoch - 1)
    writer.commit()
    report = followed.turn()
    assert (report.is_building, report.error, report.later) == (True, None, 0 if is_replaced else 1)
    assert report.epoch == (writer.records[-1].epoch if is_replaced else published)
    if not is_replaced:
        with pytest.raises(ViewNotFoundError, match=r"'v' has no rows at epoch .*: its backfill is not complete"):
            followed.view.store.snapshot().view("v")
    del writer.views["v.next"]
    delete_view(writer.delta, "v.next")
    last = followed.view.create(events(1, 2))
    report = followed.turn()
    assert (report.is_building, report.epoch, report.later) == (False, last, 0)


@pytest.mark.more
def test_the_table_of_a_failed_view_is_reported_as_failed_until_the_view_works(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "delta")
    failed = CatalogView("v", "append", "SELECT", "plan", ("s",), (), followed.view.writer.epoch, 0, "no such column")
    put_view(followed.view.writer.delta, failed)
    followed.view.writer.commit()
    report = followed.turn()
    assert (report.epoch, report.is_failed) == (None, True), "it failed in its first epoch, before its table was made"
    with pytest.raises(ViewNotFoundError, match=r"'v' has no rows at epoch .*: it has failed: no such column"):
        followed.view.store.snapshot().view("v")
    first = followed.view.create(events(1, 2))
    report = followed.turn()
    assert (report.epoch, report.error, report.is_failed) == (first, None, False)
    put_view(followed.view.writer.delta, replace(failed, stopped_epoch=first))
    last = followed.view.commit()
    report = followed.turn(is_last=True)
    assert report.error == "view v has failed, and its table lacks the same rows: no such column"
    assert (report.epoch, report.is_failed, report.failures) == (last, True, 0)
    assert require_equal(followed.view.store, tmp_path, "delta") == last
    put_view(followed.view.writer.delta, replace(failed, stopped_epoch=None, error=None))
    followed.view.table.append(events(3))
    last = followed.view.commit()
    assert (followed.turn().error, require_equal(followed.view.store, tmp_path, "delta")) == (None, last)


@pytest.mark.more
def test_a_table_is_compacted_and_old_files_go(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "delta", keep_s=0)
    followed.view.create(events(1))
    followed.turn()
    for number in (2, 3, 4):
        followed.view.table.append(events(number))
        followed.view.commit()
        followed.turn()
    assert len(list((tmp_path / "v").glob("*.parquet"))) == 4
    followed.clock.advance(601)
    followed.view.table.append(events(5))
    last = followed.view.commit()
    assert followed.turn().upkeep_error is None
    assert len(list((tmp_path / "v").glob("*.parquet"))) == 1
    assert require_equal(followed.view.store, tmp_path, "delta") == last
    followed.view.table.append(events(6))
    assert followed.view.commit() == followed.turn().epoch
    require_equal(followed.view.store, tmp_path, "delta")


@pytest.mark.more
def test_old_snapshots_of_iceberg_expire(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "iceberg", keep_s=0)
    followed.view.create(events(1))
    for number in (2, 3, 4):
        followed.turn()
        followed.view.table.append(events(number))
        followed.view.commit()
    followed.clock.advance(601)
    assert followed.turn().upkeep_error is None
    assert len(iceberg_table(tmp_path).metadata.snapshots) == 1
    require_equal(followed.view.store, tmp_path, "iceberg")
