"""The identity of local files: a new file is another version with any inode and time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import obstore
import pytest
from obstore.store import LocalStore

from state.objects.local_identity import LocalFile, file_at, open_file

MODIFIED_NS = 1_700_000_000_123_456_000


@contextmanager
def opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def identity(path: Path) -> LocalFile:
    with opened(path.parent) as directory:
        return file_at(directory, path.name)


def arrive(path: Path, content: bytes = b"n\n1\n") -> os.stat_result:
    """Writes a file as `rsync -t` does: under a temporary name, with the time of the original."""
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    os.utime(part, ns=(MODIFIED_NS, MODIFIED_NS))
    part.rename(path)
    return path.stat()


def test_files_that_return_with_their_old_time_are_new_versions(tmp_path: Path) -> None:
    path = tmp_path / "daily.csv"
    arrive(path)
    if not identity(path).born_us:
        pytest.skip("the file system keeps no birth times")
    path.unlink()
    etags, stats = [], []
    for _ in range(50):
        stats.append(arrive(path))
        etags.append(identity(path).etag)
        path.unlink()
    assert len({(each.st_mtime_ns, each.st_size) for each in stats}) == 1
    assert len(set(etags)) == 50, f"{len({each.st_ino for each in stats})} inodes, etags: {etags[:3]}"


def test_names_permissions_and_links_make_no_other_version(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    arrive(path)
    before = identity(path)
    path.chmod(0o400)
    path.rename(tmp_path / "b.csv")
    os.link(tmp_path / "b.csv", tmp_path / "c.csv")
    assert identity(tmp_path / "b.csv").etag == before.etag
    with opened(tmp_path / "b.csv") as descriptor:
        assert open_file(descriptor).etag == before.etag


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts")
def test_a_file_of_an_image_stays_the_same_version_when_its_permissions_change(tmp_path: Path) -> None:
    """Overlayfs copies the file into the upper layer, with another birth time."""
    layers = tmp_path / "layers"
    layers.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", layers], check=True)
    try:
        for name in ("lower", "upper", "work", "merged"):
            (layers / name).mkdir()
        arrive(layers / "lower" / "a.csv")
        options = ",".join(f"{name}dir={layers / name}" for name in ("lower", "upper", "work"))
        mounted = subprocess.run(["mount", "-t", "overlay", "none", "-o", options, layers / "merged"], check=False)
        if mounted.returncode:
            pytest.skip("the system has no overlayfs")
        try:
            path = layers / "merged" / "a.csv"
            before = identity(path).etag
            path.chmod(0o400)
            assert (layers / "upper" / "a.csv").exists()
            assert identity(path).etag == before
        finally:
            subprocess.run(["umount", layers / "merged"], check=True)
    finally:
        subprocess.run(["umount", layers], check=True)


def test_a_listing_with_birth_times_and_a_reader_without_them_agree() -> None:
    listed, read = LocalFile(0o100644, 7, 4, 1_000, born_us=500), LocalFile(0o100644, 7, 4, 1_000)
    assert read.has_etag(listed.etag) and listed.has_etag(read.etag) and listed.has_etag(listed.etag)
    assert not replace(listed, born_us=501).has_etag(listed.etag)
    for other in (replace(read, inode=8), replace(read, size=5), replace(read, modified_us=1_001)):
        assert not other.has_etag(listed.etag) and not replace(other, born_us=500).has_etag(read.etag)


def test_a_write_in_place_is_another_version(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    arrive(path)
    before = identity(path)
    path.write_bytes(b"n\n2\n")
    after = identity(path)
    assert after.etag != before.etag and after.inode == before.inode and after.born_us == before.born_us


def test_it_agrees_with_python_and_with_obstore(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    found = arrive(path)
    file = identity(path)
    assert (file.inode, file.size, file.mode) == (found.st_ino, found.st_size, found.st_mode)
    assert file.modified_us == MODIFIED_NS // 1_000 and file.is_regular
    assert file.etag_of_obstore == obstore.head(LocalStore(tmp_path), "a.csv")["e_tag"]
    (tmp_path / "link").symlink_to(path)
    assert not identity(tmp_path / "link").is_regular
    assert not identity(tmp_path).is_regular
    with pytest.raises(FileNotFoundError, match="gone"):
        identity(tmp_path / "gone")
