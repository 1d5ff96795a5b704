"""While the gate is closed, publications, SQL clients and the tag stay at the last epoch that it let pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.cli.display.expectation_list import held_lines
from slackwater.commands.release import release
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.publication_loop import PublicationLoop, PublicationReport
from slackwater.reading.store import Store
from slackwater.reading.watching.stored_status import stored_status
from state.clock import ManualClock, SystemClock
from state.errors import CommandRefusedError, EpochNotFoundError, UsageError
from state.location import Location
from state.tables.expectations import PUBLISHED
from state.tables.fingerprint import path_fingerprint
from state.upkeep.tags import delete_tag, put_tag
from tests.slackwater.cli.command import slackwater
from tests.slackwater.expectations.gated_root import POSITIVE, GatedRoot
from tests.slackwater.plugins.publish.published import require_equal, target_in
from tests.slackwater.plugins.serve.served_sql import served
from tests.slackwater.reading.written_root import RootWriter
from tests.waiting import eventually


@pytest.fixture
def root(tmp_path: Path) -> GatedRoot:
    return GatedRoot(Location(str(tmp_path / "root")))


def test_sql_clients_see_the_last_epoch_that_passed_unless_they_ask(root: GatedRoot) -> None:
    first = root.epoch(1)
    with served(root.writer.root.url) as endpoint, endpoint.connect() as client:

        def seen(epoch: str = "published") -> tuple[int, str]:
            client.execute(f"SET slackwater.epoch = '{epoch}'")
            rows = client.execute("SELECT count(*) FROM v").fetchone()
            number = client.execute("SHOW slackwater.epoch").fetchone()
            assert rows is not None and number is not None
            return rows[0], number[0]

        assert seen() == seen("latest") == (1, str(first))
        second = root.epoch(-1)
        eventually(lambda: seen("latest") == (2, str(second)), 30)
        assert seen() == seen(PUBLISHED) == (1, str(first))
        third = root.epoch(2)
        eventually(lambda: seen("latest") == (3, str(third)), 30)
        client.execute("RESET slackwater.epoch")
        assert client.execute("SELECT count(*) FROM v").fetchone() == (1,)
        release(root.writer.store, root.writer.clock)
        eventually(lambda: seen()[0] == 3, 30)
        assert seen() == seen("latest") == (3, str(root.writer.store.head.epoch))


@pytest.mark.more
def test_nothing_is_served_before_an_epoch_has_passed(root: GatedRoot) -> None:
    root.epoch(-1)
    root.epoch(2)
    assert (root.store.published_epoch(), PUBLISHED in root.store.tags()) == (0, False)
    with pytest.raises(EpochNotFoundError, match="no epoch has fulfilled the expectations of its views yet"):
        root.store.published_snapshot()
    ended = slackwater("serve", root.writer.root.url, "--port", "0")
    assert (ended.code, "slackwater held" in ended.err) == (1, True)


@pytest.mark.more_after(1)
@pytest.mark.parametrize("format", ["delta", "iceberg", "parquet"])
def test_a_publication_stays_where_it_is_and_goes_on_when_the_gate_opens(
    root: GatedRoot, tmp_path: Path, format: str
) -> None:
    reports, clock = list[PublicationReport](), ManualClock(SystemClock().now())
    declared = DeclaredPublication("v", target_in(tmp_path, format, interval_s=0))
    loop = PublicationLoop(root.writer.root, 0, declared, clock, reports.append)
    good = root.epoch(1, 2)
    loop.turn()
    root.epoch(-1)
    root.epoch(3)
    loop.turn()
    assert (reports[-1].epoch, reports[-1].later, reports[-1].error) == (good, 2, None)
    loop.turn(is_last=True)
    assert require_equal(root.store, tmp_path, format) == good
    assert sw.publish(root.store, "v", declared.target).epoch == good, "also by command"
    release(root.writer.store, root.writer.clock)
    loop.turn()
    assert (reports[-1].epoch, reports[-1].later) == (root.store.latest_epoch(), 0)
    assert require_equal(root.store, tmp_path, format) == root.store.latest_epoch()


def test_nothing_is_published_before_an_epoch_has_passed(root: GatedRoot, tmp_path: Path) -> None:
    reports, clock = list[PublicationReport](), ManualClock(SystemClock().now())
    declared = DeclaredPublication("v", target_in(tmp_path, "parquet"))
    loop = PublicationLoop(root.writer.root, 0, declared, clock, reports.append)
    root.epoch(-1)
    loop.turn(is_last=True)
    assert (reports[-1].epoch, reports[-1].later, reports[-1].error) == (None, 1, None)


def test_a_release_is_an_epoch_that_opens_the_gate_until_more_rows_violate(root: GatedRoot) -> None:
    root.epoch(1)
    with pytest.raises(CommandRefusedError, match="no view is held back"):
        release(root.writer.store, root.writer.clock)
    closed = root.epoch(-1, -2)
    assert root.store.published_epoch() < closed
    root.writer.clock.advance(1)
    release(root.writer.store, root.writer.clock)
    released = root.store.latest_epoch()
    assert released > closed
    assert root.store.published_epoch() == root.store.tags()[PUBLISHED] == released
    (row,) = root.store.views.expectations().to_pylist()
    assert (row["rows"], row["accepted"], row["came"], row["is_held"], row["held_since"]) == (2, 2, 2, False, None)
    assert root.store.snapshot(closed).epoch == closed, "the epoch that was held back is an epoch like others"


def test_the_tag_of_the_gate_is_not_the_users(root: GatedRoot) -> None:
    root.epoch(1)
    with pytest.raises(UsageError, match="follows the views with on_violation"):
        put_tag(root.writer.store, PUBLISHED, 1)
    with pytest.raises(UsageError, match="follows the views with on_violation"):
        delete_tag(root.writer.store, PUBLISHED)


def test_a_tag_of_the_user_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    writer = RootWriter(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))
    writer.commit()
    put_tag(writer.store, PUBLISHED, writer.store.head.epoch)
    pipeline = sw.Pipeline("p", tmp_path / "root")
    pipeline.source("s", tmp_path / "raw", format="csv", schema="n bigint")
    pipeline.view("v", "SELECT n FROM s", expect={POSITIVE: "n > 0"}, on_violation="hold")
    with pytest.raises(UsageError, match=r"has a tag 'published'.*delete it \(`slackwater tag --delete`\)"):
        pipeline.start()
    assert Store(writer.root, writer.clock).tags() == {PUBLISHED: writer.store.head.epoch}


def test_the_files_are_those_that_the_rows_name_or_those_of_the_epochs(root: GatedRoot) -> None:
    root.epoch(1)
    for path in ("bad.csv", "worse.csv"):
        root.writer.delta.put(
            "seen", path_fingerprint("flights", path), 1, source="flights", path=path, version=b"12345678"
        )
    files = {path_fingerprint("flights", "bad.csv").hex(): 1, path_fingerprint("flights", "worse.csv").hex(): 3}
    closed = root.epoch(-1, -2, files=files)
    (held,) = root.store.views.held()
    assert (held["view"], held["since"], held["expectations"]) == ("v", closed, {POSITIVE: 2})
    assert ([each.rpartition("/")[2] for each in held["files"]], held["rows_name_files"]) == (
        ["worse.csv", "bad.csv"],
        True,
    )
    root.writer.finish("one.csv")
    root.epoch(-3)
    (held,) = root.store.views.held()
    assert ([each.rpartition("/")[2] for each in held["files"]], held["rows_name_files"]) == (["one.csv"], False)


def test_status_tells_what_violates_and_what_is_held_back(root: GatedRoot) -> None:
    good = root.epoch(1)
    view = stored_status(root.store).views["v"]
    assert (view.violations, view.held_since) == ({POSITIVE: 0}, None)
    closed = root.epoch(-1)
    view = stored_status(root.store).views["v"]
    assert (view.violations, view.held_since) == ({POSITIVE: 1}, closed)
    (line,) = held_lines(root.store.views.expectations().to_pylist(), good, "ROOT")
    assert line.startswith(f"view v held back: published is epoch {good}, committed at ")
    assert line.endswith("`slackwater held ROOT` shows the files")


@pytest.mark.more
def test_no_file_is_to_be_forgotten_where_no_row_violates(root: GatedRoot) -> None:
    root.epoch(1)
    root.writer.finish("bad.csv")
    root.epoch(-1, found="3 of 4 records were bad")
    told = slackwater("held", root.writer.root.url)
    assert "3 of 4 records were bad" in told.out and "/raw/bad.csv" in told.out
    assert "slackwater release" in told.out and "slackwater forget" not in told.out


@pytest.mark.more
def test_the_commands_tell_the_files_and_release_the_rows(root: GatedRoot) -> None:
    url = root.writer.root.url
    good = root.epoch(1)
    assert slackwater("held", url).out == "no view is held back\n"
    root.writer.finish("bad.csv")
    closed = root.epoch(-1, -2)
    told = slackwater("held", url)
    assert told.code == 0
    assert f"published is epoch {good}, committed at 2026-01-31" in told.out
    assert f"view v is held back since epoch {closed}" in told.out
    assert f"{POSITIVE}\t2" in told.out and "slackwater forget" in told.out and "/raw/bad.csv" in told.out
    document = json.loads(slackwater("held", url, "--json").out)
    assert (document["published"], document["epoch"]) == (str(good), str(closed))
    assert [(each["view"], each["expectations"]) for each in document["views"]] == [("v", {POSITIVE: 2})]
    status = slackwater("status", url)
    assert "expectations: rows that violate" in status.out and "view v held back" in status.out
    done = slackwater("release", url)
    assert (done.code, done.out) == (0, "the rows that violate expectations now are accepted\n")
    assert slackwater("held", url).out == "no view is held back\n"
    assert slackwater("release", url).code == 1
