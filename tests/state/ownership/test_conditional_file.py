from __future__ import annotations

import fcntl
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from slackwater.testing.servers.s3_server import S3Server
from state.errors import StorageUnavailableError
from state.location import Location
from state.ownership import conditional_file
from state.ownership.conditional_file import ConditionalFile, FileChangedError


@pytest.fixture(params=["local", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "local":
        return Location(str(tmp_path / "root"))
    server: S3Server = request.getfixturevalue("s3")
    return Location(f"s3://{request.getfixturevalue('bucket')}/root", server.storage_options)


def replaces(file: ConditionalFile, content: bytes, version: conditional_file.Version | None) -> bool:
    try:
        file.replace(content, version)
    except FileChangedError:
        return False
    return True


def test_of_many_that_replace_one_version_exactly_one_does(root: Location) -> None:
    writers = 4
    with ThreadPoolExecutor(writers) as threads:
        for _ in range(8):
            found = ConditionalFile(root, "file").read()
            version = None if found is None else found.version
            contents = [os.urandom(8) for _ in range(writers)]
            done = list(
                threads.map(lambda each, now=version: replaces(ConditionalFile(root, "file"), each, now), contents)
            )
            after = ConditionalFile(root, "file").read()
            assert after is not None and done.count(True) == 1
            assert after.content == contents[done.index(True)]


def test_a_file_that_was_deleted_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    file = ConditionalFile(Location(str(tmp_path)), "file")
    file.replace(b"a", None)
    found = file.read()
    assert found is not None and found.content == b"a"
    (tmp_path / "file").unlink()
    assert not replaces(file, b"b", found.version)
    assert replaces(file, b"b", None)


def test_a_lock_that_a_frozen_process_holds_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditional_file, "_POLLS", 3)
    lock = os.open(tmp_path / "file.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    file = ConditionalFile(Location(str(tmp_path)), "file")
    with pytest.raises(StorageUnavailableError, match=r"file\.lock is held by another process"):
        file.replace(b"a", None)
    os.close(lock)
    file.replace(b"a", None)


def test_without_a_lock_the_file_is_still_compared(tmp_path: Path) -> None:
    (tmp_path / "file.lock").mkdir(mode=stat.S_IRWXU)  # a directory cannot be opened for writing
    file = ConditionalFile(Location(str(tmp_path)), "file")
    assert [replaces(file, b"a", None), replaces(file, b"b", None)] == [True, False]
