"""A local file that is written while it is read gives no bytes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from obstore.store import LocalStore

from actors.file_errors import ObjectChanged
from actors.objects.local_file import read_local
from actors.objects.object_store import ObjectStore
from actors.settings import RequestSettings
from state.location import Location

_SIZE = 10_000


def _rewrite(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(b"B" * _SIZE)


def _replace(file: Path) -> None:
    other = file.with_name("other")
    other.write_bytes(b"B" * _SIZE)
    os.utime(other, ns=(file.stat().st_mtime_ns,) * 2)
    other.replace(file)


def _lengthen(file: Path) -> None:
    with file.open("ab") as opened:
        opened.write(b"B")


@pytest.mark.parametrize("block_bytes", [_SIZE, 1_000])
@pytest.mark.parametrize("write", [_rewrite, _lengthen])
def test_bytes_of_two_versions_are_never_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None], block_bytes: int
) -> None:
    (tmp_path / "x").write_bytes(b"A" * _SIZE)
    os.utime(tmp_path / "x", (0, 0))
    store = ObjectStore(
        Location(str(tmp_path)), requests=RequestSettings(whole_object_bytes=block_bytes, block_bytes=block_bytes)
    )
    found = store.find("s", "x")
    assert found is not None
    pread, reads = os.pread, 0

    def pread_and_write(file: int, nbytes: int, start: int) -> bytes:
        nonlocal reads
        reads += 1
        half = pread(file, min(nbytes, 500), start)
        if reads == 1:
            write(tmp_path / "x")
        return half

    monkeypatch.setattr(os, "pread", pread_and_write)
    with pytest.raises(ObjectChanged, match="/x has changed since it was listed"):
        store.open(found).stream().read()
    assert reads, "the test writes between two reads of one range"


def test_another_file_of_the_same_size_and_time_is_another_version(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"A" * _SIZE)
    store = ObjectStore(Location(str(tmp_path)))
    found = store.find("s", "x")
    _replace(tmp_path / "x")
    assert found is not None
    with pytest.raises(ObjectChanged):
        store.open(found).stream()


def test_a_file_that_another_machine_has_listed_without_birth_times_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"A" * _SIZE)
    listed = LocalStore(tmp_path).head("x")["e_tag"]
    assert listed is not None
    assert read_local(tmp_path, "x", listed, (0, _SIZE)) == b"A" * _SIZE
    _replace(tmp_path / "x")
    with pytest.raises(ObjectChanged):
        read_local(tmp_path, "x", listed, (0, _SIZE))


def test_a_directory_in_the_place_of_a_file_is_another_version(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"A" * _SIZE)
    store = ObjectStore(Location(str(tmp_path)))
    found = store.find("s", "x")
    (tmp_path / "x").unlink()
    (tmp_path / "x").mkdir()
    assert found is not None
    with pytest.raises(ObjectChanged):
        store.open(found).stream()
