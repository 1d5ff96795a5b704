"""Deletion, moves and tags of one version of an object: on a disk, and in a real S3 server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import obstore
import pytest

from actors.file_errors import ObjectChanged, ObjectVanished
from actors.files import FileVersion
from actors.objects.local_listing import list_directory
from actors.objects.object_changes import ObjectChanges
from actors.objects.object_file import ObjectFile
from actors.objects.object_store import ObjectStore
from slackwater.testing.servers.s3_server import S3Server
from state.errors import AccessDeniedError, UsageError
from state.location import Location
from state.objects.object_client import object_client

BIG = 20 << 20


class Place:
    """A location with files, on a disk or in a bucket."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self.objects = ObjectStore(location)

    def put(self, path: str, content: bytes) -> FileVersion:
        if self.location.is_local:
            file = self.location.path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        else:
            obstore.put(object_client(self.location), path, content)
        return self.version(path)

    def version(self, path: str) -> FileVersion:
        found = self.find(path)
        assert found is not None
        return found

    def find(self, path: str) -> FileVersion | None:
        return self.objects.find("s", path)

    def read(self, path: str) -> bytes:
        return bytes(self.objects.open(self.version(path)).stream().read())


@pytest.fixture(params=["disk", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "disk":
        (tmp_path / "in").mkdir()
        return Place(Location(str(tmp_path / "in")))
    s3: S3Server = request.getfixturevalue("s3")
    bucket: str = request.getfixturevalue("bucket")
    return Place(Location(f"s3://{bucket}/in", s3.storage_options))


@pytest.fixture
def archive(place: Place, tmp_path: Path) -> Place:
    """A location on the same disk, or in the same bucket."""
    url = str(tmp_path / "archive") if place.location.is_local else f"{place.location.host.url}/archive"
    if place.location.is_local:
        (tmp_path / "archive").mkdir()
    return Place(Location(url, place.location.storage_options))


def test_the_version_is_deleted_and_no_other_one(place: Place) -> None:
    first = place.put("day=1/a.csv", b"one")
    other = place.put("day=1/b.csv", b"two")
    ObjectChanges(place.location).delete(first)
    assert place.find("day=1/a.csv") is None
    assert place.find("day=1/b.csv") == other
    with pytest.raises(ObjectVanished):
        ObjectChanges(place.location).delete(first)


@pytest.mark.parametrize("is_move", [False, True], ids=["delete", "move"])
def test_a_deletion_on_a_disk_in_which_a_process_was_killed_is_repeated(tmp_path: Path, is_move: bool) -> None:
    place, archive = Place(Location(str(tmp_path / "in"))), Location(str(tmp_path / "archive"))
    file = place.put("day=1/a.csv", b"one")

    class Killed(BaseException):
        pass

    def kill(name: str, **options: Any) -> None:
        if name.endswith(".deleting"):
            raise Killed
        real(name, **options)

    real = os.unlink
    changes = ObjectChanges(place.location)

    def act() -> None:
        if is_move:
            changes.move(file, archive)
        else:
            changes.delete(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "unlink", kill)
        with pytest.raises(Killed):
            act()
    [left] = (tmp_path / "in" / "day=1").iterdir()
    pages = list(list_directory(tmp_path / "in", 1_000))
    assert left.name.endswith(".deleting") and [page.table.num_rows for page in pages] == [0], "no source reads it"
    act()
    assert list((tmp_path / "in" / "day=1").iterdir()) == []


def test_another_version_stays(place: Place, archive: Place) -> None:
    old = place.put("a.csv", b"one")
    new = place.put("a.csv", b"three")
    changes = ObjectChanges(place.location)
    for change in (changes.delete, lambda file: changes.move(file, archive.location)):
        with pytest.raises(ObjectChanged):
            change(old)
    assert place.find("a.csv") == new
    assert archive.find("a.csv") is None


@pytest.mark.parametrize("content", [b"", b"one", b"x" * BIG], ids=["empty", "small", "parts"])
def test_a_move_within_a_place_takes_the_bytes_and_the_path(place: Place, archive: Place, content: bytes) -> None:
    ObjectChanges(place.location).move(place.put("day=1/a b.csv", content), archive.location)
    assert place.find("day=1/a b.csv") is None
    assert archive.read("day=1/a b.csv") == content


@pytest.mark.more_after(1)
@pytest.mark.parametrize("content", [b"", b"one", b"x" * BIG], ids=["empty", "small", "parts"])
def test_a_move_to_another_store_takes_the_bytes(s3: S3Server, bucket: str, tmp_path: Path, content: bytes) -> None:
    disk, there = Place(Location(str(tmp_path))), Place(Location(f"s3://{bucket}/a", s3.storage_options))
    ObjectChanges(disk.location).move(disk.put("day=1/a.csv", content), there.location)
    assert (disk.find("day=1/a.csv"), there.read("day=1/a.csv")) == (None, content)
    ObjectChanges(there.location).move(there.version("day=1/a.csv"), disk.location)
    assert (there.find("day=1/a.csv"), disk.read("day=1/a.csv")) == (None, content)


def test_a_move_that_was_broken_off_goes_on(place: Place, archive: Place) -> None:
    file = place.put("a.csv", b"one")
    archive.put("a.csv", b"one")
    ObjectChanges(place.location).move(file, archive.location)
    assert (place.find("a.csv"), archive.read("a.csv")) == (None, b"one")


def test_a_move_overwrites_no_other_object(place: Place, archive: Place) -> None:
    for other in (b"two", b"longer"):
        file = place.put("a.csv", b"one")
        archive.put("a.csv", other)
        with pytest.raises(UsageError, match="has other content than"):
            ObjectChanges(place.location).move(file, archive.location)
        assert (place.read("a.csv"), archive.read("a.csv")) == (b"one", other)


def test_a_copy_that_breaks_off_leaves_nothing(
    tmp_path: Path, s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, there = Place(Location(str(tmp_path))), Place(Location(f"s3://{bucket}/a", s3.storage_options))
    file = disk.put("a.csv", b"x" * BIG)
    changes = ObjectChanges(disk.location)
    read = ObjectFile.stream

    def written_meanwhile(opened: ObjectFile) -> object:
        stream = read(opened)
        disk.put("a.csv", b"y" * BIG)
        return stream

    monkeypatch.setattr(ObjectFile, "stream", written_meanwhile)
    with pytest.raises(ObjectChanged):
        changes.move(file, there.location)
    monkeypatch.undo()
    assert disk.read("a.csv") == b"y" * BIG
    assert there.find("a.csv") is None


def test_tags_are_added_to_those_that_are_there(s3: S3Server, bucket: str) -> None:
    place = Place(Location(f"s3://{bucket}/in", s3.storage_options))
    file = place.put("a.csv", b"one")
    client = s3.client()
    client.put_object_tagging(Bucket=bucket, Key="in/a.csv", Tagging={"TagSet": [{"Key": "team", "Value": "x"}]})
    for _ in range(2):
        ObjectChanges(place.location).tag(file, {"read": "yes"})
    tags = client.get_object_tagging(Bucket=bucket, Key="in/a.csv")["TagSet"]
    assert {each["Key"]: each["Value"] for each in tags} == {"team": "x", "read": "yes"}
    assert place.find("a.csv") == file, "a tag is no new version"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    outside, inside = Place(Location(str(tmp_path / "out"))), Place(Location(str(tmp_path / "in")))
    file = outside.put("d/a.csv", b"one")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "d").symlink_to(tmp_path / "out" / "d")
    with pytest.raises(ObjectVanished):
        ObjectChanges(inside.location).delete(file)
    assert outside.read("d/a.csv") == b"one"


def test_refused_credentials_are_told(s3: S3Server, bucket: str) -> None:
    place = Place(Location(f"s3://{bucket}/in", s3.storage_options))
    file = place.put("a.csv", b"one")
    wrong = {**s3.storage_options, "secret_access_key": "wrong"}
    with pytest.raises(AccessDeniedError):
        ObjectChanges(Location(place.location.url, wrong)).delete(file)
    assert place.find("a.csv") == file
