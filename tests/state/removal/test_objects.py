"""Tests of deletions and overwrites: the evidence covers the name, no link is followed, the version is the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, PreconditionError

from state.errors import RemovalRefusedError
from state.location import Location
from state.objects.local_identity import file_at
from state.objects.object_client import object_client
from state.removal.evidence import CreatedObject, FinishedFile, ListedFiles, ReservedNames
from state.removal.names import PINS
from state.removal.objects import (
    create,
    create_in_parts,
    create_same,
    delete,
    delete_version,
    overwrite,
    remove_empty_directories,
    replace_version,
)


def etag_of(file: Path) -> str:
    directory = os.open(file.parent, os.O_RDONLY)
    try:
        return file_at(directory, file.name).etag
    finally:
        os.close(directory)


def _listed(place: Path, *names: str) -> ListedFiles:
    return ListedFiles(Location(str(place)), "_manifest.json", frozenset(names))


@pytest.mark.parametrize("name", ["../outside", "/outside", "a/../../outside", "a//b", "", ".", "a/.", "a\0b"])
def test_a_name_that_leads_out_of_its_place_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "place" / "a").mkdir(parents=True)
    (tmp_path / "outside").write_bytes(b"user")
    with pytest.raises(RemovalRefusedError):
        delete(_listed(tmp_path / "place", name), [name])
    assert (tmp_path / "outside").read_bytes() == b"user"


def test_nothing_is_deleted_if_one_name_is_not_covered(tmp_path: Path) -> None:
    for name in ("ours", "users"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(RemovalRefusedError, match="does not name it"):
        delete(_listed(tmp_path, "ours"), ["ours", "users"])
    assert sorted(each.name for each in tmp_path.iterdir()) == ["ours", "users"]


def test_a_directory_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    users, place = tmp_path / "users", tmp_path / "place"
    users.mkdir()
    place.mkdir()
    (users / "epoch-1.parquet").write_bytes(b"user")
    (place / "day=1").symlink_to(users)
    with pytest.raises(RemovalRefusedError, match="link"):
        delete(_listed(place, "day=1/epoch-1.parquet"), ["day=1/epoch-1.parquet"])
    assert (users / "epoch-1.parquet").exists()


@pytest.mark.parametrize("write", ["create", "create_in_parts", "overwrite", "replace_version"])
def test_a_write_below_a_linked_directory_is_refused(tmp_path: Path, write: str) -> None:
    users, root = tmp_path / "users", Location(str(tmp_path / "root"))
    users.mkdir()
    root.path.mkdir()
    (users / "host-1-1.json").write_bytes(b"user")
    (root.path / "pins").symlink_to(users)
    client, name = object_client(root), "pins/host-1-1.json" if write != "create" else "pins/host-1-2.json"
    writes: dict[str, Callable[[], object]] = {
        "create": lambda: create(client, root, name, b"ours"),
        "create_in_parts": lambda: create_in_parts(client, root, name, iter([b"ours"])),
        "overwrite": lambda: overwrite(client, ReservedNames(root, PINS), name, b"ours"),
        "replace_version": lambda: replace_version(client, root, name, b"ours", {"e_tag": "1"}),
    }
    with pytest.raises(RemovalRefusedError, match="link"):
        writes[write]()
    assert {each.name: each.read_bytes() for each in users.iterdir()} == {"host-1-1.json": b"user"}


def test_a_link_in_the_place_of_a_file_loses_only_itself(tmp_path: Path) -> None:
    (tmp_path / "users").write_bytes(b"user")
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "ours").symlink_to(tmp_path / "users")
    assert delete(_listed(tmp_path / "place", "ours"), ["ours"]) == 1
    assert (tmp_path / "users").read_bytes() == b"user"


def test_absent_files_and_directories_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "directory" / "below").mkdir(parents=True)
    evidence = _listed(tmp_path, "directory", "gone", "gone/below")
    assert delete(evidence, ["directory", "gone", "gone/below"]) == 0
    assert (tmp_path / "directory" / "below").is_dir()


def test_a_reserved_form_covers_only_whole_names(tmp_path: Path) -> None:
    evidence = ReservedNames(Location(str(tmp_path)), PINS)
    assert evidence.covers("pins/host-12-3.json")
    assert not any(map(evidence.covers, ("pins/notes.json", "pins/host-12-3.json.bak", "x/pins/host-12-3.json")))


def test_create_never_overwrites(tmp_path: Path) -> None:
    place = Location(str(tmp_path))
    client = object_client(place)
    create(client, place, "a", b"1")
    with pytest.raises(AlreadyExistsError):
        create(client, place, "a", b"2")
    assert (tmp_path / "a").read_bytes() == b"1"
    assert create_same(client, place, "a", b"1").name == "a"
    with pytest.raises(AlreadyExistsError):
        create_same(client, place, "a", b"2")


@pytest.mark.parametrize("size", [8 << 20, (16 << 20) + 1])
def test_a_large_object_of_a_bucket_is_created_whole_and_once(size: int) -> None:
    client, place, content = obstore.store.MemoryStore(), Location("s3://bucket"), bytes(range(256)) * (size // 256 + 1)
    created = create_same(client, place, "a", content)
    assert bytes(obstore.get(client, "a").bytes()) == content
    assert create_same(client, place, "a", content) == created
    with pytest.raises(AlreadyExistsError):
        create_same(client, place, "a", content[:-1])
    assert bytes(obstore.get(client, "a").bytes()) == content


def test_only_the_created_version_is_overwritten_or_deleted(tmp_path: Path) -> None:
    place = Location(str(tmp_path))
    client = object_client(place)
    created = create(client, place, "a", b"1")
    version = replace_version(client, place, "a", b"22", created.version)
    (tmp_path / "a").write_bytes(b"of a user")
    with pytest.raises(PreconditionError):
        replace_version(client, place, "a", b"333", version)
    assert delete_version(created, client) == "changed"
    assert (tmp_path / "a").read_bytes() == b"of a user"


def test_a_write_without_a_version_needs_a_reserved_name(tmp_path: Path) -> None:
    place = Location(str(tmp_path))
    client = object_client(place)
    for content in (b"1", b"2"):
        overwrite(client, ReservedNames(place, PINS), "pins/host-1-1.json", content)
    assert (tmp_path / "pins" / "host-1-1.json").read_bytes() == b"2"
    (tmp_path / "notes.json").write_bytes(b"of a user")
    with pytest.raises(RemovalRefusedError):
        overwrite(client, ReservedNames(place, PINS), "notes.json", b"3")
    assert (tmp_path / "notes.json").read_bytes() == b"of a user"


def test_only_the_finished_version_of_a_file_is_deleted(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b.csv"
    file.parent.mkdir()
    file.write_bytes(b"1")
    first = FinishedFile(Location(str(tmp_path)), "a/b.csv", etag_of(file), "epoch 1")
    file.write_bytes(b"12")
    assert delete_version(first) == "changed"
    second = FinishedFile(Location(str(tmp_path)), "a/b.csv", etag_of(file), "epoch 2")
    assert delete_version(second) == "deleted"
    assert delete_version(second) == "absent"
    assert file.parent.is_dir()


def test_a_finished_file_needs_a_version(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    with pytest.raises(RemovalRefusedError):
        delete_version(FinishedFile(Location(str(tmp_path)), "a", "", "epoch 1"))
    assert (tmp_path / "a").exists()


def test_only_empty_directories_go(tmp_path: Path) -> None:
    place = tmp_path / "place"
    for name in ("day=1/a", "day=2/a", "day=2/of a user"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(b"x")
    names = ["day=1/a", "day=2/a"]
    delete(_listed(place, *names), names)
    assert not remove_empty_directories(Location(str(place)), names)
    assert [str(each.relative_to(place)) for each in sorted(place.rglob("*"))] == ["day=2", "day=2/of a user"]


def test_an_object_of_a_bucket_is_deleted_only_in_its_version() -> None:
    client = obstore.store.MemoryStore()
    place = Location("s3://bucket")
    created = create(client, place, "a", b"1")
    obstore.put(client, "a", b"of a user")
    assert delete_version(created, client) == "changed"
    newest = CreatedObject(place, "a", {"e_tag": obstore.head(client, "a")["e_tag"]})
    assert delete_version(newest, client) == "deleted"
    assert delete_version(newest, client) == "absent"
