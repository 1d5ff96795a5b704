"""A private directory belongs to this user alone, whatever was at its path before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from state.errors import SettingsError
from state.private_directory import open_private, private_directory


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def directory_of_another(tmp_path: Path) -> Path:
    """A directory of another user: one that root gives away, or one of root."""
    if os.geteuid():
        return Path("/usr/share")
    directory = tmp_path / "other"
    directory.mkdir()
    os.chown(directory, 65534, 65534)
    return directory


def test_missing_directory_is_made_for_this_user_alone(tmp_path: Path) -> None:
    assert private_directory(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert _mode(tmp_path / "a" / "b") == 0o700


def test_own_directory_that_others_may_read_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    private_directory(tmp_path / "a")
    assert _mode(tmp_path / "a") == 0o700


def test_own_directory_that_others_may_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o770)
    with pytest.raises(SettingsError, match=r"a can be written by other users: remove it"):
        open_private(tmp_path / "a")


def test_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="belongs to user"):
        open_private(directory_of_another(tmp_path))


def test_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(SettingsError, match="link is a link"):
        open_private(tmp_path / "link")


def test_private_directory_below_one_that_others_may_write_needs_its_sticky_bit(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    with pytest.raises(SettingsError, match=r"below .*shared, whose entries other users can rename"):
        private_directory(tmp_path / "shared" / "a")
    (tmp_path / "shared").chmod(0o1777)
    private_directory(tmp_path / "shared" / "a")


def test_private_directory_below_one_of_another_user_is_refused(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a directory away")
    with pytest.raises(SettingsError, match="whose entries other users can rename"):
        private_directory(directory_of_another(tmp_path) / "a")


def test_private_directory_is_not_reached_over_a_link_of_another_user(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a link away")
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    private_directory(tmp_path / "link" / "a")
    os.lchown(tmp_path / "link", 65534, 65534)
    with pytest.raises(SettingsError, match="whose entries other users can rename"):
        private_directory(tmp_path / "link" / "a")


def test_descriptor_stays_on_the_directory_when_another_takes_its_name(tmp_path: Path) -> None:
    descriptor = open_private(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "a").mkdir()
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=descriptor))
    os.close(descriptor)
    assert [each.name for each in (tmp_path / "b").iterdir()] == ["file"]
