"""A move loses no file: it is durable, replaces nothing, follows no link, and goes on after a kill at any step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import obstore
import pytest

from actors.file_errors import ObjectChanged, ObjectVanished
from actors.files import FileVersion
from actors.objects.archive_bucket import ArchiveBucket, Written
from actors.objects.object_changes import ObjectChanges
from actors.objects.object_store import ObjectStore
from slackwater.testing.servers.s3_server import S3Server
from state.errors import SlackwaterError, StorageUnavailableError, UsageError
from state.location import Location
from state.objects.object_client import object_client

PATH = "day=1/a.csv"
BIG = b"x" * (20 << 20)


class OverwrittenArchive(ArchiveBucket):
    """Another program replaces each copy as soon as it is written."""

    def __init__(self, location: Location, others: bytes) -> None:
        super().__init__(location)
        self._others = others
        self._looks = 0

    def _head(self, path: str) -> Any:
        self._looks += 1
        if self._looks == 2:  # the look after the copy
            obstore.put(object_client(self._location), path, self._others)
        return super()._head(path)


class Moved:
    """A directory with one file, and an archive next to it."""

    def __init__(self, room: Path, content: bytes = b"one") -> None:
        self.room, self.content = room, content
        self.file = room / "in" / PATH
        self.file.parent.mkdir(parents=True)
        self.file.write_bytes(content)
        self.archive = room / "archive"
        self.changes = ObjectChanges(Location(str(room / "in")))

    @property
    def version(self) -> FileVersion:
        found = ObjectStore(Location(str(self.room / "in"))).find("s", PATH)
        assert found is not None
        return found

    def move(self, target: Path | None = None) -> None:
        self.changes.move(self.version, Location(str(target or self.archive)))

    def files(self) -> dict[str, bytes]:
        return {str(each.relative_to(self.room)): each.read_bytes() for each in self.room.rglob("*") if each.is_file()}

    def is_moved(self) -> bool:
        return self.files() == {f"archive/{PATH}": self.content}

    def is_kept(self) -> bool:
        return self.file.read_bytes() == self.content


@pytest.fixture
def moved(tmp_path: Path) -> Moved:
    return Moved(tmp_path)


def test_the_copy_and_every_new_directory_are_synced_before_the_original_is_deleted(
    moved: Moved, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = list[str]()

    def recorded(name: str, of: Callable[[Any], str]) -> None:
        real = getattr(os, name)

        def call(*arguments: Any, **options: Any) -> Any:
            result = real(*arguments, **options)
            done.append(f"{name} {of(arguments[0])}")
            return result

        monkeypatch.setattr(os, name, call)

    def path(descriptor: int) -> str:
        return os.readlink(f"/proc/self/fd/{descriptor}").replace(str(moved.room), "").replace(part(), "PART")

    def part() -> str:
        return next((each.name for each in moved.room.rglob("*.part")), "PART")

    recorded("fsync", path)
    recorded("link", lambda _: "copy")
    recorded("unlink", lambda name: "original" if name.endswith(".deleting") else name)
    moved.move()
    steps = [each for each in done if "slackwater" not in each and not each.endswith(("fsync /", "pytest-of-root"))]
    wanted = [
        "fsync ",  # the room, which has the new directory `archive`
        "fsync /archive",  # which has the new directory `day=1`
        "fsync /archive/day=1/PART",
        "link copy",
        "fsync /archive/day=1",
        "unlink original",
    ]
    assert [each for each in steps if each in wanted] == wanted


@pytest.mark.parametrize("level", ["file", "below", "archive"])
def test_a_link_in_the_archive_is_not_followed(moved: Moved, level: str) -> None:
    outside = moved.room / "outside"
    (outside / "day=1").mkdir(parents=True)
    (outside / "victim").write_bytes(b"one")
    moved.archive.mkdir()
    other = Moved(moved.room / "other")
    moved.changes.copy(moved.version, Location(str(moved.archive)))  # the run has used the archive before
    (moved.archive / PATH).unlink()
    (moved.archive / "day=1").rmdir()
    if level == "file":
        (moved.archive / "day=1").mkdir()
        (moved.archive / PATH).symlink_to(outside / "victim")
    elif level == "below":
        (moved.archive / "day=1").symlink_to(outside / "day=1")
    else:
        moved.archive.rmdir()
        moved.archive.symlink_to(outside)
    with pytest.raises(UsageError, match="is a link"):
        moved.move()
    assert moved.is_kept() and other.is_kept()
    assert (outside / "victim").read_bytes() == b"one"
    assert list((outside / "day=1").iterdir()) == []


def test_an_archive_that_is_reached_by_a_link_is_the_directory_of_the_link(moved: Moved) -> None:
    (moved.room / "disk").mkdir()
    moved.archive.symlink_to(moved.room / "disk")
    moved.move()
    assert (moved.room / "disk" / PATH).read_bytes() == moved.content
    assert not moved.file.exists()


@pytest.mark.parametrize("how", ["same", "dots", "link", "hard link"])
def test_a_file_is_not_moved_onto_itself(moved: Moved, how: str) -> None:
    target = {"same": "in", "dots": "archive/../in"}.get(how, "archive")
    if how == "link":
        moved.archive.symlink_to(moved.room / "in")
    elif how == "hard link":
        (moved.archive / "day=1").mkdir(parents=True)
        os.link(moved.file, moved.archive / PATH)
    with pytest.raises(UsageError, match=r"is the place of .* itself"):
        moved.move(moved.room / target)
    assert moved.is_kept()
    assert not list(moved.room.rglob("*.part"))


def test_an_object_is_not_moved_onto_itself_by_another_name_of_its_server(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "in/a.csv", b"one")
    options = s3.storage_options
    here = Location(f"s3://{bucket}/in", options)
    there = Location(here.url, {**options, "endpoint": options["endpoint"].replace("127.0.0.1", "localhost")})
    file = ObjectStore(here).find("s", "a.csv")
    assert file is not None
    for target in (here, there):
        with pytest.raises(UsageError, match="is the same place as"):
            ObjectChanges(here).move(file, target)
    assert [each["Key"] for each in s3.client().list_objects_v2(Bucket=bucket)["Contents"]] == ["in/a.csv"]


@pytest.mark.more_after(1)
@pytest.mark.parametrize(
    "error", [StorageUnavailableError("broken off"), ObjectChanged("replaced")], ids=["net", "new"]
)
@pytest.mark.parametrize("target", ["disk", "bucket"])
def test_a_copy_that_breaks_off_has_no_name_and_the_next_try_moves_the_file(
    tmp_path: Path, request: pytest.FixtureRequest, target: str, error: SlackwaterError
) -> None:
    moved = Moved(tmp_path, BIG)
    archive = Location(str(moved.archive))
    if target == "bucket":
        s3: S3Server = request.getfixturevalue("s3")
        bucket: str = request.getfixturevalue("bucket")
        archive = Location(f"s3://{bucket}/archive", s3.storage_options)
    content = moved.changes._content

    def broken(file: FileVersion) -> Iterator[bytes]:
        yield next(content(file))
        raise error

    moved.changes._content = broken  # type: ignore[method-assign]
    with pytest.raises(type(error)):
        moved.changes.move(moved.version, archive)
    assert moved.files() == {f"in/{PATH}": BIG}
    moved.changes._content = content  # type: ignore[method-assign]
    if target == "bucket":
        assert ObjectStore(archive).find("s", PATH) is None
        assert "Uploads" not in s3.client().list_multipart_uploads(Bucket=bucket)
    moved.changes.move(moved.version, archive)
    copied = ObjectStore(archive).find("s", PATH)
    assert copied is not None
    assert ObjectStore(archive).open(copied).stream().read() == BIG
    assert not moved.file.exists()


@pytest.mark.more_after(1)
@pytest.mark.parametrize("content", [b"one", BIG], ids=["small", "parts"])
def test_an_object_that_appears_during_the_copy_stays(
    s3: S3Server, bucket: str, tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = Moved(tmp_path, content)
    archive = Location(f"s3://{bucket}/archive", s3.storage_options)
    real = moved.changes._content

    def meanwhile(file: FileVersion) -> Iterator[bytes]:
        s3.put(bucket, f"archive/{PATH}", b"another")
        yield from real(file)

    moved.changes._content = meanwhile  # type: ignore[method-assign]
    with pytest.raises(UsageError, match="has other content than"):
        moved.changes.move(moved.version, archive)
    assert moved.is_kept()
    assert s3.client().get_object(Bucket=bucket, Key=f"archive/{PATH}")["Body"].read() == b"another"


def test_a_file_that_appears_during_the_copy_stays(moved: Moved) -> None:
    real = moved.changes._content

    def meanwhile(file: FileVersion) -> Iterator[bytes]:
        (moved.archive / PATH).write_bytes(b"another")
        yield from real(file)

    moved.changes._content = meanwhile  # type: ignore[method-assign]
    with pytest.raises(UsageError, match="has other content than"):
        moved.move()
    assert moved.is_kept()
    assert (moved.archive / PATH).read_bytes() == b"another"


def test_other_bytes_on_the_disk_than_were_written_are_noticed(moved: Moved, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that loses a write: it has other bytes of the same number."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, part: write(file, b"?" * len(part)))
    with pytest.raises(StorageUnavailableError, match="the disk returned other bytes"):
        moved.move()
    monkeypatch.undo()
    assert moved.files() == {f"in/{PATH}": b"one"}


def test_a_version_that_the_store_replaces_before_the_deletion_stays(
    s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion itself carries the etag: the result of a HEAD just before does not matter."""
    here = Location(f"s3://{bucket}/in", s3.storage_options)
    s3.put(bucket, "in/a.csv", b"one")
    file = ObjectStore(here).find("s", "a.csv")
    assert file is not None
    sent = list[dict[str, str]]()
    changes = ObjectChanges(here)
    client = changes._bucket

    class Recorded:
        def delete_object(self, **request: str) -> Any:
            sent.append(request)
            return client.delete_object(**request)

    changes.__dict__["_bucket"] = Recorded()
    changes.delete(file)
    assert sent == [{"Bucket": bucket, "Key": "in/a.csv", "IfMatch": file.etag}]


# -- kills ------------------------------------------------------------------------------------------------------------

_KILLED = """
import os, signal, sys
from pathlib import Path
from tests.actors.objects.test_moves import Moved

room, step = Path(sys.argv[1]), sys.argv[2]
moved = Moved.__new__(Moved)
moved.room, moved.archive = room, room / "archive"
from actors.objects.object_changes import ObjectChanges
from state.location import Location
from tests.actors.objects.test_moves import PATH
moved.changes = changes = ObjectChanges(Location(str(room / "in")))

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def after(owner, name, times=1):
    real, calls = getattr(owner, name), [0]
    def call(*arguments, **options):
        result = real(*arguments, **options)
        calls[0] += 1
        if calls[0] == times:
            die()
        return result
    setattr(owner, name, call)

def parts(file):
    yield b"x" * 10
    die()

match step:
    case "before the copy":
        changes._directory = die
    case "within the copy":
        changes._content = parts
    case "before the file is synced":
        real = os.fsync
        os.fsync = lambda file: die() if os.readlink(f"/proc/self/fd/{file}").endswith(".part") else real(file)
    case "after the link":
        after(os, "link")
    case "before the deletion":
        changes.delete = die
    case "after the deletion":
        after(changes, "delete")
moved.move()
"""
_STEPS = (
    "before the copy",
    "within the copy",
    "before the file is synced",
    "after the link",
    "before the deletion",
    "after the deletion",
)


@pytest.mark.more_after(2)
@pytest.mark.parametrize("step", _STEPS)
def test_a_move_that_is_killed_loses_nothing_and_the_next_one_goes_on(tmp_path: Path, step: str) -> None:
    moved = Moved(tmp_path, b"some rows\n" * 1_000)
    command = [sys.executable, "-c", _KILLED, str(tmp_path), step]
    ended = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "PYTHONPATH": os.getcwd()})
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    whole = [name for name, content in moved.files().items() if content == moved.content]
    assert whole
    named = moved.archive / PATH
    assert not named.exists() or named.read_bytes() == moved.content, "a broken copy never has the final name"
    if step == "after the deletion":
        with pytest.raises(ObjectVanished):
            moved.changes.move(FileVersion("s", PATH, b"", '"1-1-1"', 1, moved_at()), Location(str(moved.archive)))
    else:
        moved.move()
    assert moved.is_moved(), "neither the original nor an incomplete file is left"


def moved_at() -> Any:
    from datetime import UTC, datetime

    return datetime.now(UTC)


# -- concurrency ------------------------------------------------------------------------------------------------------


def test_threads_that_move_the_same_file_make_one_copy(tmp_path: Path) -> None:
    errors = list[BaseException]()
    for number in range(20):
        moved = Moved(tmp_path / str(number), os.urandom(100_000))
        file, start = moved.version, threading.Barrier(4)

        def move(file: FileVersion = file, start: threading.Barrier = start, moved: Moved = moved) -> None:
            start.wait()
            try:
                ObjectChanges(Location(str(moved.room / "in"))).move(file, Location(str(moved.archive)))
            except (ObjectVanished, StorageUnavailableError) as error:
                errors.append(error)

        threads = [threading.Thread(target=move) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if moved.file.exists():
            moved.move()
        assert moved.is_moved()
    assert errors, "the threads did meet"


# -- file systems -----------------------------------------------------------------------------------------------------

_MOVE = """
import sys
from pathlib import Path
from actors.objects.object_changes import ObjectChanges
from actors.objects.object_store import ObjectStore
from state.errors import SlackwaterError
from state.location import Location
from tests.actors.objects.test_moves import PATH

room = Path(sys.argv[1])
place = Location(str(room / "in"))
file = ObjectStore(place).find("s", PATH)
try:
    ObjectChanges(place).move(file, Location(str(room / "archive")))
    print("moved", (room / "archive" / PATH).read_bytes() == b"one" * 100_000)
except SlackwaterError as error:
    print(type(error).__name__, error)
print(sorted(str(each.relative_to(room)) for each in room.rglob("*") if each.is_file()))
"""


def _with_mount(room: Path, mount: str) -> str:
    """The output of a process that moves the file while the archive is mounted by `mount`."""
    command = f'{mount.format(archive=room / "archive", source=room / "in")} && exec "$0" -c "$1" "$2"'
    ended = subprocess.run(
        ["unshare", "--mount", "sh", "-c", command, sys.executable, _MOVE, str(room)],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


_MAY_MOUNT = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.more_after(1)
@pytest.mark.skipif(not _MAY_MOUNT, reason="the user may not mount file systems")
@pytest.mark.parametrize(
    ("mount", "said", "left"),
    [
        ("mount -t tmpfs none {archive}", "moved True", [f"archive/{PATH}"]),
        ("mount -t tmpfs -o size=64k none {archive}", "StorageUnavailableError", [f"in/{PATH}"]),
        ("mount -t tmpfs -o ro none {archive}", "AccessDeniedError", [f"in/{PATH}"]),
        ("mount --bind {source} {archive}", "UsageError", [f"archive/{PATH}", f"in/{PATH}"]),
    ],
    ids=["another file system", "full", "read-only", "the source again"],
)
def test_an_archive_on_a_mount(tmp_path: Path, mount: str, said: str, left: list[str]) -> None:
    moved = Moved(tmp_path, b"one" * 100_000)
    moved.archive.mkdir()
    first, files = _with_mount(tmp_path, mount).splitlines()
    assert first.startswith(said)
    assert files == str(left)
    if said == "StorageUnavailableError":
        assert "the disk is full" in first


@pytest.mark.more_after(1)
@pytest.mark.parametrize("size", [3, 9 << 20])
@pytest.mark.parametrize("near", [False, True])
def test_a_copy_that_another_program_replaces_is_not_deleted(s3: S3Server, bucket: str, size: int, near: bool) -> None:
    location, others = s3.location(bucket, "archive"), b"o" * size
    content = b"x" * size

    def copied(client: Any, key: str) -> Written:
        answer = client.put_object(Bucket=bucket, Key=key, Body=content)
        return Written(answer["ETag"], expected=answer["ETag"])

    archive = OverwrittenArchive(location, others)
    with pytest.raises(StorageUnavailableError, match="the original stays"):
        archive.put("a.csv", lambda: [content], size, copied if near else None)
    assert bytes(obstore.get(object_client(location), "a.csv").bytes()) == others
