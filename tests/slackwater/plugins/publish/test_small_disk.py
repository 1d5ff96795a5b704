"""A root on a small file system: without room, without inodes, read-only.  Acknowledged epochs stay whole."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slackwater.reading.store import Store
from state.clock import SystemClock
from state.errors import SlackwaterError
from state.lance.lance_store import LanceStateStore
from state.location import Location
from tests.slackwater.plugins.publish.growing_view import GrowingView, events

_EPOCHS, _READ_ONLY_AT = 400, 10


def mount(path: Path, options: str) -> bool:
    if shutil.which("mount") is None:
        return False
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], capture_output=True, check=False)
    return done.returncode == 0


def remount(path: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", path], check=True)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "small"
    path.mkdir()
    if not mount(path, "size=1m"):
        pytest.skip("no right to mount a file system")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def _nothing(path: Path) -> None:
    pass


def _read_only(path: Path) -> None:
    remount(path, "ro")


@pytest.mark.more
@pytest.mark.parametrize(
    ("options", "middle", "said"),
    [
        ("size=2m", _nothing, ("has no room left", "the disk, or its quota, is full", "make room")),
        ("size=64m,nr_inodes=200", _nothing, ("has no room left", "no inodes left", "delete files")),
        ("size=64m", _read_only, ("mounted read-only", "mount it writable")),
    ],
    ids=["no room", "no inodes", "read-only"],
)
def test_acknowledged_epochs_are_whole_and_the_error_says_the_next_step(
    small: Path, options: str, middle: Callable[[Path], None], said: tuple[str, ...]
) -> None:
    remount(small, f"rw,{options}")
    root = Location(str(small / "root"))
    view = GrowingView(root)
    acknowledged, rows = {view.create(events(0)): 1}, 1
    with pytest.raises(SlackwaterError) as failed:
        for number in range(1, _EPOCHS):
            if number == _READ_ONLY_AT:
                middle(small)
            view.table.append(events(*[number] * 50))
            acknowledged[view.commit()] = (rows := rows + 50)
    for part in (*said, str(root.path)):
        assert part in str(failed.value), failed.value
    remount(small, "rw,size=64m,nr_inodes=100000")
    store = Store(root, SystemClock())
    assert store.epochs()["epoch"].to_pylist() == list(acknowledged)
    counts = {epoch: store.snapshot(epoch).view("v").to_arrow().num_rows for epoch in acknowledged}
    assert counts == acknowledged
    owner = LanceStateStore.open(root, SystemClock())
    owner.take_over()
    assert owner.head.epoch == max(acknowledged)
