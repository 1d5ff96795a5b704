"""Branches: they share the files of an epoch, live by themselves, and end without a trace."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import obstore
import pytest

import slackwater as sw
from slackwater.branching import branch as branch_module
from slackwater.commands.maintenance import run_as_owner
from slackwater.testing.servers.s3_server import S3Server
from state.capabilities.store_record import require_capable
from state.clock import SystemClock
from state.lance.branch_files import BranchFiles
from state.lance.lance_access import open_dataset
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.objects.object_client import object_client
from state.ownership.owner import Owner, Ownership, read_owner
from state.places.marker import read_marker
from state.upkeep.branches import dropping_tag
from state.upkeep.tags import put_tag
from tests.cases import few
from tests.slackwater.branching.branched_root import Writer, branched, contents, opened, vacuum_now
from tests.slackwater.branching.killed import deaths
from tests.slackwater.reading.written_root import WrittenRoot, by_carrier, late, write_root


@pytest.fixture(params=few(["local", "s3"], "local"))
def written(request: pytest.FixtureRequest, tmp_path: Path) -> WrittenRoot:
    if request.param == "local":
        return write_root(Location(str(tmp_path / "a root% of")), Location(str(tmp_path / "raw")))
    server: S3Server = request.getfixturevalue("s3")
    bucket: str = request.getfixturevalue("bucket")
    return write_root(server.location(bucket, "root"), server.location(bucket, "raw"))


@pytest.fixture
def local(tmp_path: Path) -> WrittenRoot:
    return write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))


def files_of(root: Location) -> list[str]:
    """The names of all objects below a place."""
    return [each["path"] for batch in obstore.list(object_client(root)) for each in batch]


def test_a_branch_begins_with_an_epoch_and_copies_no_rows(written: WrittenRoot) -> None:
    third = written.epochs[2]
    expected = contents(written.root, third)
    branch = branched(written.root, epoch=third)
    assert branch.url == f"{written.root.url}/branches/trial"
    assert contents(branch) == expected
    assert opened(branch).epochs()["epoch"].to_pylist() == [third]
    assert not [each for each in files_of(branch) if each.startswith("views/") and "/data/" in each]
    head = LanceStateStore.open(branch, SystemClock(), read_only=True).head
    tagged = open_dataset(branch.child(head.views["late"].path), "committed")
    assert tagged.count_rows() == 2, "for plain readers of Lance"
    with pytest.raises(sw.errors.EpochExpiredError) as raised:
        opened(written.root).snapshot(written.epochs[0] - 1)
    assert "it is a branch" not in str(raised.value)
    [row] = opened(written.root).branches().to_pylist()
    assert row == {"branch": "trial", "epoch": third, "latest_epoch": third, "state": "ready", "url": branch.url}
    with pytest.raises(sw.errors.EpochExpiredError, match=r"epochs before its first one are at .*"):
        opened(branch).snapshot(written.epochs[1])


def test_root_and_branch_change_and_vacuum_without_harm_to_each_other(written: WrittenRoot) -> None:
    branch = branched(written.root)
    first = contents(branch)
    above, below = Writer(written.root), Writer(branch)
    above.delete("by_carrier", "carrier = 'AA'")
    above.append("late", late(7))
    above.commit()
    below.delete("by_carrier", "carrier = 'AA'")
    below.delete("by_carrier", "carrier IS NULL")
    below.append("by_carrier", by_carrier({"BB": 5}))
    below.add("more", late(1, 2, 3))
    below.commit()
    expected = contents(written.root), contents(branch)
    assert expected[1]["by_carrier"] == sorted(
        map(repr, [{"carrier": "o'hare|1", "n": 101}, {"carrier": "BB", "n": 5}])
    )
    for _ in range(2):
        vacuum_now(branch)
        vacuum_now(written.root)
        assert (contents(written.root), contents(branch)) == expected
    assert contents(written.root, written.epochs[-1]) == first, "the epoch of the branch stays"
    assert opened(branch).epochs().num_rows == 1 and opened(written.root).epochs().num_rows == 2

    sw.drop_branch(written.root.url, "trial", storage_options=written.root.storage_options)
    vacuum_now(written.root)
    assert contents(written.root) == expected[0]
    assert opened(written.root).epochs().num_rows == 1
    assert not [each for each in files_of(written.root) if each.startswith("branches/")]


@pytest.mark.more
def test_a_death_at_any_step_leaves_no_wrong_branch_and_the_next_try_ends_it(
    local: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, root = contents(local.root, local.epochs[2]), contents(local.root)
    states: list[str] = []
    run_as_owner(local.root.url, {}, lambda store, _: put_tag(store, "kept", local.epochs[2]))
    for _ in deaths(monkeypatch, lambda: branched(local.root, "b", local.epochs[2])):
        rows = opened(local.root).branches().to_pylist()
        states += [row["state"] for row in rows] or ["none"]
        vacuum_now(local.root)
        assert contents(local.root) == root
        if states[-1] != "ready":
            with pytest.raises(sw.errors.StoreNotFoundError):
                sw.open(local.root.child("branches/b").url)
            branched(local.root, "b", local.epochs[2])
        assert contents(local.root.child("branches/b")) == expected
        sw.drop_branch(local.root.url, "b")
    assert list(dict.fromkeys(states)) == ["none", "missing", "unfinished", "ready"]
    assert len(states) > 10


@pytest.mark.more
def test_a_branch_whose_dropping_died_at_any_step_is_dropped_by_the_next_try(
    local: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    branched(local.root, "b")
    expected = contents(local.root)
    states = set()
    for _ in deaths(monkeypatch, lambda: sw.drop_branch(local.root.url, "b")):
        assert contents(local.root) == expected
        rows = opened(local.root).branches().to_pylist()
        if not rows:  # it died after its last commit
            break
        states |= {row["state"] for row in rows}
        if "dropping" in states:
            with pytest.raises(sw.errors.UsageError, match="is being dropped: finish that"):
                branched(local.root, "b")
    assert states == {"ready", "dropping"}
    assert not opened(local.root).branches().num_rows
    assert contents(branched(local.root, "b")) == expected


@pytest.mark.more
def test_a_branch_of_a_branch_is_a_branch(local: WrittenRoot) -> None:
    branch = branched(local.root)
    writer = Writer(branch)
    writer.append("late", late(9))
    writer.commit()
    second = branched(branch, "second")
    expected = contents(second)
    assert expected["late"] == contents(branch)["late"] != contents(local.root)["late"]
    for each in (second, branch, local.root):
        vacuum_now(each)
    assert contents(second) == expected
    with pytest.raises(sw.errors.UsageError, match="has branches itself, drop these first: second"):
        sw.drop_branch(local.root.url, "trial")
    sw.drop_branch(branch.url, "second")
    sw.drop_branch(local.root.url, "trial")


@pytest.mark.more
def test_a_branch_has_an_identity_of_its_own(local: WrittenRoot) -> None:
    root = require_capable(local.root, SystemClock(), "probe", lambda: True)
    trial = sw.branch(local.root.path, "trial")
    marker = read_marker(Location(trial.root))
    assert trial.identity() not in ("", root.identity)
    assert marker is not None and marker.identity == trial.identity()
    sw.drop_branch(local.root.path, "trial")
    assert not (local.root.path / "branches" / "trial").exists()


@pytest.mark.more
def test_a_branch_that_was_deleted_by_other_means_is_let_go(local: WrittenRoot) -> None:
    branch = branched(local.root)
    shutil.rmtree(branch.path)
    assert opened(local.root).branches()["state"].to_pylist() == ["missing"]
    vacuum_now(local.root)
    assert opened(local.root).epochs().num_rows == 1
    sw.drop_branch(local.root.url, "trial")
    assert opened(local.root).branches().num_rows == 0


@pytest.mark.more
def test_names_that_exist_or_are_no_names_are_refused(local: WrittenRoot) -> None:
    branched(local.root, epoch=local.epochs[2])
    for epoch in (None, local.epochs[2], local.epochs[3]):
        with pytest.raises(sw.errors.UsageError, match="exists, at epoch"):
            branched(local.root, epoch=epoch)
    for name in ("", "../x", "a/b", "1", "a b"):
        with pytest.raises(sw.errors.UsageError, match="not a valid name of a branch"):
            branched(local.root, name)
    local.root.child("branches/mine").path.mkdir(parents=True)
    (local.root.child("branches/mine").path / "notes.txt").write_text("x")
    with pytest.raises(sw.errors.UsageError, match="has files already"):
        branched(local.root, "mine")
    with pytest.raises(sw.errors.NotFoundError, match="has no branch 'mine'; its branches are: trial"):
        sw.drop_branch(local.root.url, "mine")
    with pytest.raises(sw.errors.EpochExpiredError):
        branched(local.root, "old", local.epochs[0] - 1)
    assert opened(local.root).branches()["branch"].to_pylist() == ["trial"]


@pytest.mark.more
def test_names_that_begin_alike_are_branches_apart(written: WrittenRoot) -> None:
    expected, names = contents(written.root), ("ab", "a.b", "a", "A-b")
    for name in names:
        branched(written.root, name)
    sw.drop_branch(written.root.url, "a", storage_options=written.root.storage_options)
    assert opened(written.root).branches()["state"].to_pylist() == ["ready"] * 3
    for name in ("ab", "a.b", "A-b"):
        assert contents(written.root.child(f"branches/{name}")) == expected
    assert contents(branched(written.root, "a")) == expected


@pytest.mark.more
def test_the_tags_of_branches_are_not_those_of_users(local: WrittenRoot) -> None:
    branch = branched(local.root)
    run_as_owner(local.root.url, {}, lambda store, _: put_tag(store, "audit", local.epochs[1]))
    assert opened(local.root).tags() == {"audit": local.epochs[1]}
    Writer(local.root).commit()
    second = branched(local.root, "second")
    assert opened(branch).tags() == opened(second).tags() == {}
    with pytest.raises(sw.errors.UsageError, match="exists, at epoch"):
        run_as_owner(local.root.url, {}, lambda store, _: put_tag(store, "branch/trial", local.epochs[1]))


@pytest.mark.more
def test_a_view_that_catches_up_is_not_in_a_branch(local: WrittenRoot) -> None:
    writer = Writer(local.root)
    writer.add("more", late(1))
    more = writer.views.pop("more")
    writer.views["more.next"] = replace(more, name="more.next", pinned_epoch=local.epochs[1])
    writer.commit()
    branch = branched(local.root)
    head = LanceStateStore.open(branch, SystemClock(), read_only=True).head
    assert sorted(head.views) == ["by_carrier", "late"]
    assert not branch.child(more.path).path.exists()
    assert contents(branch) == contents(local.root)


@pytest.mark.more
def test_the_rest_of_a_branch_that_has_lived_is_not_a_branch_in_the_making(local: WrittenRoot) -> None:
    branch = branched(local.root)
    writer = Writer(branch)
    writer.append("late", late(9))
    writer.commit()
    shutil.rmtree(branch.child("state.lance").path)
    with pytest.raises(sw.errors.UsageError, match=r"exists, and is not version .* delete the rest of that branch"):
        branched(local.root)
    sw.drop_branch(local.root.url, "trial")
    assert contents(branched(local.root)) == contents(local.root)


@pytest.mark.more
def test_a_branch_with_a_running_owner_is_not_dropped(local: WrittenRoot) -> None:
    branch = branched(local.root)
    ownership = Ownership(branch, SystemClock(), run_id="a run", pipeline="flights")
    ownership.acquire()
    try:
        with pytest.raises(sw.errors.OwnedError):
            sw.drop_branch(local.root.url, "trial")
        run_as_owner(local.root.url, {}, lambda store, _: put_tag(store, dropping_tag("trial"), local.epochs[-1]))
        with pytest.raises(sw.errors.OwnedError):  # also after a drop that noted itself and did no more
            sw.drop_branch(local.root.url, "trial")
        assert contents(branch) == contents(local.root)
    finally:
        ownership.release()


@pytest.mark.more
def test_a_branch_whose_store_is_half_deleted_is_dropped_by_the_next_try(local: WrittenRoot) -> None:
    branch = branched(local.root)
    writer = Writer(branch)
    writer.add("more", late(1))
    writer.commit()
    writer.commit()
    run_as_owner(local.root.url, {}, lambda store, _: put_tag(store, dropping_tag("trial"), local.epochs[-1]))
    *older, _ = sorted((branch.child("state.lance/data").path).iterdir(), key=lambda file: file.stat().st_mtime_ns)
    for file in older:
        file.unlink()
    with pytest.raises(sw.errors.NotFoundError):
        contents(branch)
    assert opened(local.root).branches()["state"].to_pylist() == ["dropping"]
    sw.drop_branch(local.root.url, "trial")
    assert opened(local.root).branches().num_rows == 0 and not branch.path.exists()


@pytest.mark.more
def test_no_run_begins_on_a_branch_that_is_dropped(local: WrittenRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    branch = branched(local.root)
    change, delete, owners = branch_module._change_tag, BranchFiles.delete_store, list[Owner | None]()

    def changed(root: Location, tag: str, *arguments: Any) -> None:
        owners.append(read_owner(branch))
        change(root, tag, *arguments)

    def deleted(files: BranchFiles) -> None:
        delete(files)
        owners.append(read_owner(branch))

    monkeypatch.setattr(branch_module, "_change_tag", changed)
    monkeypatch.setattr(BranchFiles, "delete_store", deleted)
    sw.drop_branch(local.root.url, "trial")
    first, second, *later = owners
    for owner in (first, second):
        assert owner is not None and not owner.released, "the branch is owned until its store is deleted"
    assert later == [None, None], "its file is deleted, too"
    assert not branch.path.exists()


@pytest.mark.more
def test_a_branch_that_is_dropped_while_it_is_made_leaves_nothing(
    local: WrittenRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = BranchFiles.make

    def made(files: BranchFiles, *arguments: Any) -> None:
        sw.drop_branch(local.root.url, "trial")
        make(files, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(BranchFiles, "make", made)
        with pytest.raises(sw.errors.UsageError, match="was dropped while it was made"):
            branched(local.root)
    assert opened(local.root).branches().num_rows == 0
    assert contents(branched(local.root)) == contents(local.root)


@pytest.mark.more
def test_of_many_at_once_each_makes_the_same_branch_or_is_refused(local: WrittenRoot) -> None:
    def attempt(_: int) -> Any:
        try:
            return branched(local.root)
        except (sw.errors.UsageError, sw.errors.OwnedError, sw.errors.FencedError) as error:
            return error

    with ThreadPoolExecutor(6) as threads:
        results = list(threads.map(attempt, range(6)))
    assert any(isinstance(each, Location) for each in results), results
    assert contents(local.root.child("branches/trial")) == contents(local.root)
    vacuum_now(local.root)
    assert contents(local.root.child("branches/trial")) == contents(local.root)
