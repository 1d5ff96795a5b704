"""Deletion of a user's file on a disk: a file that takes its name at any moment stays."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from state.errors import RemovalRefusedError
from state.location import Location
from state.objects.local_identity import file_at
from state.removal import claimed_file
from state.removal.claimed_file import recover
from state.removal.evidence import FinishedFile
from state.removal.objects import delete_version
from state.removal.part_file import rename_without_replacing

Rename = Callable[[int, str, str], None]


class Directory:
    """A directory with the file `a.csv`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.replace("first")
        self.evidence = FinishedFile(Location(str(path)), "a.csv", self.etag("a.csv"), "it is committed")

    def etag(self, name: str) -> str:
        directory = os.open(self.path, os.O_RDONLY)
        try:
            return file_at(directory, name).etag
        finally:
            os.close(directory)

    def replace(self, content: str) -> None:
        """Replaces the file by `rename`, as a careful producer does."""
        (self.path / "new").write_text(content)
        (self.path / "new").rename(self.path / "a.csv")

    @property
    def files(self) -> dict[str, str]:
        """Names and contents; the reserved name without its hash."""
        return {
            "claim" if each.name.endswith(".deleting") else each.name: each.read_text() for each in self.path.iterdir()
        }


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path)


def renames(monkeypatch: pytest.MonkeyPatch, *befores: Callable[[], object]) -> None:
    """Has a program act just before each of the renames of a deletion."""
    steps = iter(befores)

    def rename(directory: int, old: str, new: str) -> None:
        next(steps, lambda: None)()
        rename_without_replacing(directory, old, new)

    monkeypatch.setattr(claimed_file, "rename_without_replacing", rename)


def test_the_version_is_deleted(directory: Directory) -> None:
    assert delete_version(directory.evidence) == "deleted"
    assert directory.files == {}
    assert delete_version(directory.evidence) == "absent"


def test_a_file_that_takes_the_name_after_the_comparison_stays(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    renames(monkeypatch, lambda: directory.replace("second"))
    assert delete_version(directory.evidence) == "changed"
    assert directory.files == {"a.csv": "second"}


def test_two_files_that_take_the_name_both_stay(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    renames(monkeypatch, lambda: directory.replace("second"), lambda: directory.replace("third"))
    with pytest.raises(RemovalRefusedError, match=r"replaced twice .*\.slackwater-\w+\.deleting.* rename or delete it"):
        delete_version(directory.evidence)
    assert directory.files == {"a.csv": "third", "claim": "second"}
    with pytest.raises(RemovalRefusedError, match="replaced twice"):
        recover(directory.evidence)
    (directory.path / "a.csv").unlink()
    recover(directory.evidence)
    assert directory.files == {"a.csv": "second"}, "as soon as the name is free"


class Killed(BaseException):
    pass


def kill() -> None:
    raise Killed


def killed_after_the_rename(
    directory: Directory, monkeypatch: pytest.MonkeyPatch, *befores: Callable[[], object]
) -> None:
    with monkeypatch.context() as patch:
        renames(patch, *befores)
        patch.setattr(os, "unlink", lambda *_, **__: kill())
        with pytest.raises(Killed):
            delete_version(directory.evidence)
    assert "claim" in directory.files


def test_a_deletion_that_was_killed_is_repeated(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_after_the_rename(directory, monkeypatch)
    recover(directory.evidence)
    assert directory.files == {"a.csv": "first"}
    assert delete_version(directory.evidence) == "deleted"
    assert directory.files == {}


def test_a_deletion_that_was_killed_is_completed_if_the_name_is_taken(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_after_the_rename(directory, monkeypatch)
    directory.replace("second")
    recover(directory.evidence)
    assert delete_version(directory.evidence) == "changed"
    assert directory.files == {"a.csv": "second"}


def test_another_file_that_a_killed_process_has_renamed_gets_its_name_again(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        renames(patch, lambda: directory.replace("second"), kill)
        with pytest.raises(Killed):
            delete_version(directory.evidence)
    assert directory.files == {"claim": "second"}
    recover(directory.evidence)
    assert directory.files == {"a.csv": "second"}
    assert delete_version(directory.evidence) == "changed"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_that_cannot_rename_without_replacing_deletes_at_once(
    directory: Directory, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(directory: int, old: str, new: str) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(claimed_file, "rename_without_replacing", refuse)
    assert delete_version(directory.evidence) == "deleted"
    assert directory.files == {}


def test_a_file_without_its_directory_is_absent(directory: Directory, tmp_path: Path) -> None:
    gone = FinishedFile(Location(str(tmp_path)), "day=1/a.csv", directory.evidence.etag, "it is committed")
    recover(gone)
    assert delete_version(gone) == "absent"
