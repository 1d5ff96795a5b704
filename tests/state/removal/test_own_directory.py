"""Tests of temporary directories: what others put into them stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from state.errors import RemovalRefusedError
from state.removal.own_directory import OwnDirectory


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OwnDirectory:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    own = OwnDirectory("of-a-test-")
    own.write("a", "1")
    return own


def test_it_goes_with_the_files_that_were_written(own: OwnDirectory, tmp_path: Path) -> None:
    (own.path / "empty").mkdir()
    (own.path / "log").write_text("x")
    own.remove(["log", "absent"], ["empty"])
    assert list(tmp_path.iterdir()) == []


def test_what_others_put_into_it_stays(own: OwnDirectory, tmp_path: Path) -> None:
    (own.path / "warehouse" / "orders").mkdir(parents=True)
    (own.path / "warehouse" / "orders" / "part-0.parquet").write_text("the only copy")
    (own.path / "linked").symlink_to(tmp_path)
    own.remove(["linked"], ["warehouse"])
    assert [each.name for each in own.path.iterdir()] == ["warehouse"]
    assert (own.path / "warehouse" / "orders" / "part-0.parquet").exists()


def test_a_directory_that_took_its_name_is_left_alone(own: OwnDirectory, tmp_path: Path) -> None:
    own.path.rename(tmp_path / "moved")
    own.path.mkdir()
    (own.path / "a").write_text("of a user")
    own.remove()
    assert (own.path / "a").read_text() == "of a user"
    (own.path / "a").unlink()
    own.path.rmdir()
    own.path.symlink_to(tmp_path / "moved")
    own.remove()
    assert (tmp_path / "moved" / "a").exists()


@pytest.mark.parametrize("name", ["../a", "/a", "sub/../../a"])
def test_names_stay_inside(own: OwnDirectory, tmp_path: Path, name: str) -> None:
    (tmp_path / "a").write_text("of a user")
    with pytest.raises(RemovalRefusedError):
        own.remove([name])
    assert (tmp_path / "a").exists()
