"""Tests of deleted datasets and branches: files of users, links and nested tables inside them stay."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from state.errors import RemovalRefusedError
from state.location import Location
from state.removal.datasets import (
    UnnamedVersions,
    delete_aged_versions,
    delete_listed,
    delete_tags,
    delete_versions,
)
from state.removal.evidence import DroppedBranch, UnnamedDataset

_ROWS = pa.table({"k": list(range(100))})


def _written(path: Path) -> lance.LanceDataset:
    """A dataset with files of every kind."""
    uri = Location(str(path)).lance_uri
    lance.write_dataset(_ROWS, uri)
    dataset = lance.write_dataset(_ROWS, uri, mode="append")
    dataset.create_scalar_index("k", "BTREE")
    dataset.delete("k = 3")
    dataset.tags.create("term-1", 2)
    return dataset


def _files(path: Path) -> list[str]:
    return sorted(str(each.relative_to(path)) for each in path.rglob("*") if each.is_file() or each.is_symlink())


def test_a_dataset_without_files_of_others_is_deleted_with_its_directories(tmp_path: Path) -> None:
    _written(tmp_path / "views" / "v-7.lance")
    gone = delete_listed(UnnamedDataset(Location(str(tmp_path)), "views/v-7.lance"))
    assert gone.objects > 8 and gone.bytes > 0 and gone.left == ()
    assert list((tmp_path / "views").iterdir()) == []


def test_files_of_others_in_a_dataset_stay(tmp_path: Path) -> None:
    root, users = tmp_path / "root", tmp_path / "users"
    path = root / "views" / "v-7.lance"
    _written(path)
    users.mkdir()
    (users / "x.lance").write_bytes(b"user")
    kept = [
        "_delta_log/0.json",
        "data/below/x.lance",
        "data/notes.txt",
        "raw/orders.csv",
        "views/v-8.lance/data/x.lance",
    ]
    for name in kept:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(b"user")
    (path / "_indices").rename(users / "_indices")
    (path / "_indices").symlink_to(users / "_indices")
    (path / "data" / "linked").symlink_to(users)
    linked = _files(users)
    gone = delete_listed(UnnamedDataset(Location(str(root)), "views/v-7.lance"))
    assert list(gone.left) == _files(path) == sorted([*kept, "_indices", "data/linked"])
    assert _files(users) == linked


@pytest.mark.parametrize("path", ["state.lance", "views", "../views/v-7.lance", "views/v-7.lance/data", "branches/b"])
def test_only_a_dataset_of_a_view_is_deleted(tmp_path: Path, path: str) -> None:
    with pytest.raises(RemovalRefusedError):
        delete_listed(UnnamedDataset(Location(str(tmp_path)), path))


def test_a_dropped_branch_keeps_what_others_wrote_below_it(tmp_path: Path) -> None:
    branch = tmp_path / "branches" / "b"
    for dataset in (
        "state.lance",
        "origin/state.lance",
        "views/v-7.lance",
        "view_state/v-7-distinct.lance",
        "after.lance",
    ):
        _written(branch / dataset)
    ours = ["owner.json", "owner.json.lock", "alerts.json", "pins/host-1-2.json", "tables/t/rows.parquet"]
    ours += ["commands/1700000000000-0123456789abcdef.json", "commands/1700000000000-0123456789abcdef.answer.json"]
    users = [
        "published/_delta_log/0.json",
        "raw/orders.csv",
        "branches/inner/state.lance/data/x.lance",
        "pins/notes.json",
    ]
    for name in (*ours, *users):
        (branch / name).parent.mkdir(parents=True, exist_ok=True)
        (branch / name).write_bytes(b"x")
    root = Location(str(tmp_path))
    assert delete_listed(DroppedBranch(root, "b", "state.lance")).left == ()
    assert not any(name.startswith("state.lance/") for name in _files(branch))
    assert "origin/state.lance/_refs/tags/term-1.json" in _files(branch)
    gone = delete_listed(DroppedBranch(root, "b"))
    assert _files(branch) == sorted(users) == list(gone.left)


@pytest.mark.parametrize("name", ["..", "", "b/../../x", "/"])
def test_a_branch_is_one_directory_below_its_root(tmp_path: Path, name: str) -> None:
    with pytest.raises(RemovalRefusedError):
        delete_listed(DroppedBranch(Location(str(tmp_path)), name))


def test_a_branch_without_files_is_dropped(tmp_path: Path) -> None:
    root = Location(str(tmp_path))
    assert delete_listed(DroppedBranch(root, "trial")).objects == 0
    (tmp_path / "branches").mkdir()
    assert delete_listed(DroppedBranch(root, "trial", "state.lance")).objects == 0


def test_a_named_version_is_not_deleted(tmp_path: Path) -> None:
    dataset, root = _written(tmp_path / "state.lance"), Location(str(tmp_path))
    with pytest.raises(RemovalRefusedError):
        delete_versions(dataset, UnnamedVersions(root, "state.lance", frozenset({1, 3}), 3))
    assert len(dataset.versions()) == 4
    unnamed = UnnamedVersions(root, "state.lance", frozenset({1, 2}), 3)
    assert delete_versions(dataset, unnamed).objects == 1, "2 has a tag"


@pytest.mark.parametrize("linked", ["state.lance/data", "views/v-7.lance", "views"])
def test_a_link_in_a_root_leads_a_vacuum_to_no_other_dataset(tmp_path: Path, linked: str) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    path = "state.lance" if linked.startswith("state") else "views/v-7.lance"
    _written(root / path)
    _written(other / path)
    old = (root / path).stat().st_mtime - 30 * 86_400
    for file in other.rglob("*"):
        os.utime(file, (old, old))
    # The link replaces a directory, whose own files are in the target of the link from now on.
    for file in (root / linked).rglob("*.*"):
        if file.is_file():
            target = other / linked / file.relative_to(root / linked)
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.read_bytes())
    (root / linked).rename(tmp_path / "before")
    (root / linked).symlink_to(other / linked)
    before = _files(other)
    dataset, location = lance.dataset(str(root / path)), Location(str(root))
    with pytest.raises(RemovalRefusedError, match="link"):
        delete_versions(dataset, UnnamedVersions(location, path, frozenset({1}), 2))
    if path != "state.lance":
        with pytest.raises(RemovalRefusedError, match="link"):
            delete_listed(UnnamedDataset(location, path))
    assert _files(other) == before
    assert lance.dataset(str(other / path)).count_rows() == 198


@pytest.mark.parametrize("path", ["../other/views/v-7.lance", "data.lance", "views/../state.lance", "/views/v-7.lance"])
def test_a_record_of_a_root_names_no_dataset_elsewhere(tmp_path: Path, path: str) -> None:
    dataset = _written(tmp_path / "other" / "views" / "v-7.lance")
    with pytest.raises(RemovalRefusedError):
        delete_versions(dataset, UnnamedVersions(Location(str(tmp_path / "root")), path, frozenset({1}), 2))
    assert len(dataset.versions()) == 4


def test_aged_versions_leave_the_latest_rows(tmp_path: Path) -> None:
    dataset, root = _written(tmp_path / "after.lance"), Location(str(tmp_path))
    assert delete_aged_versions(dataset, root, "after.lance", timedelta(hours=1)).objects == 0
    assert delete_aged_versions(dataset, root, "after.lance", timedelta(0)).objects == 2
    assert lance.dataset(str(tmp_path / "after.lance")).count_rows() == 198


def test_only_tags_of_the_kind_are_deleted(tmp_path: Path) -> None:
    dataset = _written(tmp_path / "d.lance")
    dataset.tags.create("of-a-user", 2)
    with pytest.raises(RemovalRefusedError):
        delete_tags(dataset, "term-", ["term-1", "of-a-user"])
    delete_tags(dataset, "term-", ["term-1"])
    assert list(dataset.tags.list()) == ["of-a-user"]
