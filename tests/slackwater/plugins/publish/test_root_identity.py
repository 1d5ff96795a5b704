"""A published table belongs to one root: to its URL and its identity."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

import slackwater as sw
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.start_check import check_publications
from state.capabilities.store_record import NAME, require_capable, root_identity
from state.clock import SystemClock
from state.errors import UsageError
from state.location import Location
from state.places.marker import MARKER, read_marker
from tests.slackwater.plugins.publish.growing_view import GrowingView, bag, events
from tests.slackwater.plugins.publish.published import contents, require_equal, target_in

FORMATS = pytest.mark.parametrize("format", ["delta", "iceberg", "parquet"])


def view_in(directory: Path, *numbers: int, is_early: bool = False) -> GrowingView:
    """A root with a view.

    Args:
        directory: the directory of the root.
        numbers: the rows of the view.
        is_early: whether an earlier version has made the root, without an identity.
    """
    view = GrowingView(Location(str(directory / "root")))
    view.create(events(*numbers))
    if not is_early:
        start(view)
    return view


def start(view: GrowingView) -> str:
    """Gives the root its identity, as the start of a run does."""
    return require_capable(view.writer.root, SystemClock(), "probe", lambda: True).identity


def made_again(directory: Path, *numbers: int, is_early: bool = False) -> GrowingView:
    """Another root in the place of the present one: like the root of the same URL on another machine."""
    shutil.rmtree(directory / "root")
    return view_in(directory, *numbers, is_early=is_early)


@pytest.mark.more_after(1)
@FORMATS
def test_a_root_of_the_same_url_with_another_identity_is_refused_with_both_identities(
    tmp_path: Path, format: str
) -> None:
    target = target_in(tmp_path, format)
    first = view_in(tmp_path, 1, 2)
    sw.publish(first.store, "v", target)
    identity = first.store.identity()
    [epoch, rows] = contents(tmp_path, format)
    second = made_again(tmp_path, 3)
    with pytest.raises(UsageError) as refusal:
        sw.publish(second.store, "v", target)
    text = str(refusal.value)
    assert identity in text and second.store.identity() in text and text.count(second.store.root) >= 2
    assert f"slackwater publish {second.store.root} v --to {target} --adopt" in text
    with pytest.raises(UsageError, match=identity):
        check_publications(second.writer.root, [DeclaredPublication("v", target)], SystemClock())
    now = contents(tmp_path, format)
    assert now[0] == epoch and bag(now[1], rows.column_names) == bag(rows, rows.column_names)


@FORMATS
def test_a_root_that_does_not_exist_yet_is_refused(tmp_path: Path, format: str) -> None:
    target = target_in(tmp_path, format)
    first = view_in(tmp_path, 1, 2)
    sw.publish(first.store, "v", target)
    identity = first.store.identity()
    shutil.rmtree(tmp_path / "root")
    with pytest.raises(UsageError, match=f"identity {identity}"):
        check_publications(first.writer.root, [DeclaredPublication("v", target)], SystemClock())


@pytest.mark.more_after(1)
@FORMATS
def test_a_root_that_replaces_another_one_adopts_its_table(tmp_path: Path, format: str) -> None:
    target = target_in(tmp_path, format)
    first = view_in(tmp_path, 1, 2)
    first.table.append(events(4))
    first.commit()
    sw.publish(first.store, "v", target)
    second = made_again(tmp_path, 3)
    adopted = sw.publish(second.store, "v", target, adopt=True)
    assert (adopted.is_whole, adopted.since, adopted.rows) == (True, None, 1)
    require_equal(second.store, tmp_path, format)
    second.table.append(events(5))
    second.commit()
    check_publications(second.writer.root, [DeclaredPublication("v", target)], SystemClock())
    followed = sw.publish(second.store, "v", target, adopt=True)
    assert (followed.is_whole, followed.rows) == (False, 1), "its own table is continued"
    require_equal(second.store, tmp_path, format)


@pytest.mark.more_after(1)
@FORMATS
def test_a_root_without_an_identity_publishes_by_its_url_and_continues_with_its_identity(
    tmp_path: Path, format: str
) -> None:
    target = target_in(tmp_path, format)
    view = view_in(tmp_path, 1, 2, is_early=True)
    assert view.store.identity() == ""
    sw.publish(view.store, "v", target)
    identity = start(view)
    view.table.append(events(3))
    view.commit()
    assert not sw.publish(view.store, "v", target).is_whole
    require_equal(view.store, tmp_path, format)
    early = made_again(tmp_path, 9, is_early=True).store
    with pytest.raises(UsageError, match=f"{identity}.*without an identity"):
        sw.publish(early, "v", target)
    with pytest.raises(UsageError, match="start its pipeline once"):
        sw.publish(early, "v", target, adopt=True)


@pytest.mark.more
@FORMATS
def test_a_moved_root_is_refused_until_it_adopts_its_table(tmp_path: Path, format: str) -> None:
    target = target_in(tmp_path, format)
    view = view_in(tmp_path, 1, 2)
    sw.publish(view.store, "v", target)
    (tmp_path / "root").rename(tmp_path / "moved")
    moved = sw.open(tmp_path / "moved")
    with pytest.raises(UsageError, match=r"a copy of it, or was moved: .*; if it was moved: .* --adopt"):
        sw.publish(moved, "v", target)
    sw.publish(moved, "v", target, adopt=True)
    require_equal(moved, tmp_path, format)
    assert not sw.publish(moved, "v", target).is_whole


@pytest.mark.more
@FORMATS
def test_an_older_copy_of_a_root_does_not_take_its_table_back(tmp_path: Path, format: str) -> None:
    """The same identity and URL, as after `cp -r` to another machine."""
    target = target_in(tmp_path, format)
    view = view_in(tmp_path, 1, 2)
    sw.publish(view.store, "v", target)
    shutil.copytree(tmp_path / "root", tmp_path / "copy")
    view.table.append(events(3))
    view.commit()
    sw.publish(view.store, "v", target)
    (tmp_path / "root").rename(tmp_path / "elsewhere")
    (tmp_path / "copy").rename(tmp_path / "root")
    store = sw.open(tmp_path / "root")
    with pytest.raises(UsageError, match=r"never goes back: .*; if the root was restored from a backup: .* --adopt"):
        sw.publish(store, "v", target)
    sw.publish(store, "v", target, adopt=True)
    require_equal(store, tmp_path, format)


@pytest.mark.more_after(1)
@FORMATS
def test_another_view_is_not_adopted(tmp_path: Path, format: str) -> None:
    target = target_in(tmp_path, format)
    sw.publish(view_in(tmp_path, 1, 2).store, "v", target)
    _rename_view(tmp_path, format)
    second = made_again(tmp_path, 3)
    with pytest.raises(UsageError, match="holds view 'w'"):
        sw.publish(second.store, "v", target, adopt=True)


def _rename_view(directory: Path, format: str) -> None:
    """Has the last commit name another view."""
    if format == "parquet":
        path = directory / "v" / "_manifest.json"
        path.write_text(path.read_text().replace('"slackwater.view": "v"', '"slackwater.view": "w"'))
    elif format == "delta":
        [log] = (directory / "v" / "_delta_log").glob("*.json")
        log.write_text(log.read_text().replace('"slackwater.view":"v"', '"slackwater.view":"w"'))
    else:
        pytest.skip("its metadata are binary files")


def test_a_marker_of_an_empty_table_of_another_root_is_refused(tmp_path: Path) -> None:
    target = target_in(tmp_path, "delta")
    first = view_in(tmp_path, 1, 2)
    sw.publish(first.store, "v", target)
    marker = read_marker(Location(str(tmp_path / "v")))
    assert marker is not None and marker.identity == first.store.identity()
    shutil.rmtree(tmp_path / "v" / "_delta_log")
    second = made_again(tmp_path, 3)
    with pytest.raises(UsageError, match=f"{marker.identity}.*delete the marker"):
        sw.publish(second.store, "v", target)
    (tmp_path / "v" / MARKER).unlink()
    sw.publish(second.store, "v", target)


def test_a_delta_log_that_has_lost_the_commits_of_another_root_is_refused(tmp_path: Path) -> None:
    """The transaction of the application has the identity, too."""
    target = target_in(tmp_path, "delta")
    first = view_in(tmp_path, 1, 2)
    sw.publish(first.store, "v", target)
    table = DeltaTable(str(tmp_path / "v"))
    assert table.transaction_version(f"slackwater:{first.store.root}:v:{first.store.identity()}") is not None
    table.create_checkpoint()
    [log] = (tmp_path / "v" / "_delta_log").glob("*.json")
    log.unlink()
    second = made_again(tmp_path, 3)
    with pytest.raises(sw.errors.CommitRefusedError, match="written by another program"):
        sw.publish(second.store, "v", target)


def test_a_root_keeps_its_identity_and_a_torn_record_gets_a_new_one(tmp_path: Path) -> None:
    view = view_in(tmp_path, 1, is_early=True)
    record = tmp_path / "root" / NAME
    assert root_identity(view.writer.root) == ""
    first = start(view)
    assert start(view) == first == view.store.identity()
    document = json.loads(record.read_text())
    del document["identity"]
    record.write_text(json.dumps(document))
    second = start(view)
    assert second not in ("", first), "a root of an earlier version gets one at its next start"
    record.write_text("{")
    assert start(view) not in ("", first, second)
