"""Tests of files of one directory: only names of ours are replaced, set aside or deleted."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from state.errors import RemovalRefusedError
from state.location import Location
from state.removal.evidence import ListedFiles
from state.removal.local_files import delete_at, new_file, replace_at, set_aside
from state.removal.names import ReservedForm

_FORM = ReservedForm("the files of the test", re.compile(r"[0-9a-f]{4}(\.part)?"))


@pytest.fixture
def directory(tmp_path: Path) -> int:
    return os.open(tmp_path, os.O_RDONLY)


@pytest.mark.parametrize("name", ["notes", "0123.txt", "../0123", "sub/0123", ""])
def test_other_names_are_refused(tmp_path: Path, directory: int, name: str) -> None:
    with pytest.raises(RemovalRefusedError):
        delete_at(directory, name, _FORM)
    with pytest.raises(RemovalRefusedError):
        replace_at(directory, "0123.part", name, _FORM)
    with pytest.raises(RemovalRefusedError):
        replace_at(directory, name, "0123", _FORM)


def test_only_regular_files_are_deleted_and_replaced(tmp_path: Path, directory: int) -> None:
    (tmp_path / "users").mkdir()
    (tmp_path / "0123").symlink_to(tmp_path / "users")
    (tmp_path / "4567").mkdir()
    (tmp_path / "89ab.part").write_bytes(b"x")
    for name in ("0123", "4567"):
        with pytest.raises(RemovalRefusedError):
            delete_at(directory, name, _FORM)
        with pytest.raises(RemovalRefusedError):
            replace_at(directory, "89ab.part", name, _FORM)
    replace_at(directory, "89ab.part", "89ab", _FORM)
    assert delete_at(directory, "89ab", _FORM) and not delete_at(directory, "89ab", _FORM)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["0123", "4567", "users"]


def test_a_file_is_set_aside_without_replacing_an_earlier_one(tmp_path: Path) -> None:
    evidence = ListedFiles(Location(str(tmp_path)), "a torn manifest", frozenset({"v/1.manifest"}))
    (tmp_path / "v").mkdir()
    for content in (b"1", b"2"):
        (tmp_path / "v" / "1.manifest").write_bytes(content)
        set_aside(evidence, "v/1.manifest", ".torn")
    found = {each.name: each.read_bytes() for each in (tmp_path / "v").iterdir()}
    assert found == {"1.manifest.torn": b"1", "1.manifest.torn.1": b"2"}


def test_a_new_file_never_replaces_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"of a user")
    with pytest.raises(FileExistsError), new_file(tmp_path / "a"):
        pass
    assert (tmp_path / "a").read_bytes() == b"of a user"


def test_a_failed_new_file_is_deleted_but_not_one_that_took_its_name(tmp_path: Path) -> None:
    with pytest.raises(KeyError), new_file(tmp_path / "a"):
        raise KeyError
    assert not (tmp_path / "a").exists()
    with pytest.raises(KeyError), new_file(tmp_path / "b"):
        (tmp_path / "b").rename(tmp_path / "moved")
        (tmp_path / "b").write_bytes(b"of a user")
        raise KeyError
    assert (tmp_path / "b").read_bytes() == b"of a user"
