"""A disk that records its writes, and the possible states after a power cut.

The model is that of POSIX, stricter than any file system: the content of a file survives when the file was synced, its
name when its directory was.  Of all other writes, in any order, each survives, is lost, or leaves a torn file: empty,
full of zeroes, or half.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass(frozen=True)
class _Entry:
    """A file or directory at one moment.

    Args:
        inode: the number of the file.
        content: of a file; None for a directory.
        names: name → inode, of a directory.
    """

    inode: int
    content: bytes | None
    names: Mapping[str, int] = field(default_factory=dict)


_Tree = Mapping[int, _Entry]
"""Inode → entry; the root of the tree is the first."""


@dataclass(frozen=True)
class Cut:
    """A power cut: the tree at that moment, and the entries as they were synced last.

    Args:
        syncs: the number of syncs before it.
        now: all entries at that moment.
        synced: those on the disk for certain.
    """

    syncs: int
    now: _Tree
    synced: _Tree


TEARS: Mapping[str, Callable[[bytes], bytes]] = {
    "whole": lambda content: content,
    "empty": lambda content: b"",
    "zeroes": lambda content: bytes(len(content)),
    "half": lambda content: content[: len(content) // 2],
}


class RecordedDisk:
    """Records every sync below a directory, with all that was written until then.

    Args:
        root: the directory.
        monkeypatch: replaces `os.fsync`; nothing is really synced.

    Attributes:
        syncs: the number of syncs so far.
        cuts: the moment before each of them.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root, self._lock = root, threading.Lock()
        self._contents: dict[bytes, bytes] = {}
        self._synced: dict[int, _Entry] = {}
        self._held: list[int] = []
        self.syncs = 0
        self.cuts: list[Cut] = []
        root.mkdir()
        top = self._tree()
        self._synced[self._top] = top[self._top]
        monkeypatch.setattr(os, "fsync", self._fsync)

    def close(self) -> None:
        """Releases the files that it holds."""
        for descriptor in self._held:
            os.close(descriptor)

    def cut(self) -> None:
        """Records the present moment, too."""
        with self._lock:
            self.cuts.append(Cut(self.syncs, self._tree(), dict(self._synced)))

    def begin(self) -> None:
        """Forgets the moments so far: the power is cut from now on."""
        self.cuts.clear()

    @property
    def _top(self) -> int:
        return self._root.stat().st_ino

    def _fsync(self, descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        with self._lock:
            now = self._tree()
            self.cuts.append(Cut(self.syncs, now, dict(self._synced)))
            self.syncs += 1
            if inode in now:
                self._synced[inode] = now[inode]
                self._held.append(os.dup(descriptor))  # so that no other file gets this inode

    def _tree(self) -> _Tree:
        tree: dict[int, _Entry] = {}
        for directory, subdirectories, files in os.walk(self._root):
            paths = {name: Path(directory, name) for name in (*subdirectories, *files)}
            names = {name: path.stat().st_ino for name, path in paths.items()}
            inode = Path(directory).stat().st_ino
            tree[inode] = _Entry(inode, None, names)
            for name in files:
                tree[names[name]] = _Entry(names[name], self._content(paths[name]))
        return tree

    def _content(self, path: Path) -> bytes:
        content = path.read_bytes()
        return self._contents.setdefault(content, content)


@dataclass(frozen=True)
class _Write:
    """One write that was not synced: a name in a directory, or the content of a file."""

    inode: int
    name: str | None = None


@dataclass(frozen=True)
class Outcome:
    """The state of a disk after a power cut.

    Args:
        cut: the power cut.
        rest: what is left of the unsynced writes, one of `TEARS`; None if they are lost.
        but: the writes of which something else is left.
    """

    cut: Cut
    rest: str | None
    but: Mapping[_Write, str | None] = field(default_factory=dict)

    def files(self) -> dict[str, bytes | None]:
        """Path → content; None for a directory."""
        top = next(iter(self.cut.now))
        return dict(self._below("", top))

    def _below(self, path: str, inode: int) -> Iterator[tuple[str, bytes | None]]:
        now, synced = self.cut.now.get(inode), self.cut.synced.get(inode)
        entry = now or synced
        if entry is None or entry.content is not None:
            yield path, self._left_of(inode, now, synced)
            return
        if path:
            yield path, None
        before = {} if synced is None else synced.names
        after = entry.names
        for name in sorted({*before, *after}):
            child = before.get(name)
            if child != after.get(name) and self._left(_Write(inode, name)) is not None:
                child = after.get(name)
            if child is not None:
                yield from self._below(f"{path}/{name}" if path else name, child)

    def _left_of(self, inode: int, now: _Entry | None, synced: _Entry | None) -> bytes:
        on_disk = b"" if synced is None else synced.content or b""
        if now is None or now.content is None or now == synced:
            return on_disk  # it was deleted meanwhile, and the deletion is lost
        left = self._left(_Write(inode))
        return on_disk if left is None else TEARS[left](now.content)

    def _left(self, write: _Write) -> str | None:
        return self.but.get(write, self.rest)


def unsynced(cut: Cut) -> list[_Write]:
    """The writes that a power cut may take."""
    writes: list[_Write] = []
    for inode, entry in cut.now.items():
        synced = cut.synced.get(inode)
        if entry.content is not None:
            if synced is None or synced.content != entry.content:
                writes.append(_Write(inode))
        else:
            before = {} if synced is None else synced.names
            names = sorted({*before, *entry.names})
            writes += [_Write(inode, name) for name in names if before.get(name) != entry.names.get(name)]
    return writes


def outcomes(cut: Cut, before: Cut | None, chance: random.Random, randoms: int) -> Iterator[Outcome]:
    """The states after a power cut: nothing, all, all torn, each new write alone, all but one; and random ones.

    Args:
        cut: the power cut.
        before: the recorded moment before it: a write is new if it came after that.
        chance: draws the random ones.
        randoms: the number of random ones.
    """
    writes = unsynced(cut)
    known = set(() if before is None else unsynced(before))
    yield Outcome(cut, None)
    for tear in TEARS:
        yield Outcome(cut, tear)
    names: dict[_Write, str | None] = {write: "whole" for write in writes if write.name is not None}
    for each in [write for write in writes if write not in known]:
        for tear in TEARS if each.name is None else ("whole",):
            yield Outcome(cut, None, {**names, each: tear})
            yield Outcome(cut, "whole", {each: tear})
        yield Outcome(cut, None, {each: "whole"})
        yield Outcome(cut, "whole", {each: None})
    for _ in range(randoms):
        yield Outcome(cut, None, {write: chance.choice([None, *TEARS]) for write in writes})


def write_files(root: Path, files: Mapping[str, bytes | None]) -> None:
    """Makes a directory with exactly these files."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for path, content in files.items():
        if content is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(content)


@dataclass(frozen=True)
class State:
    """A state of the disk after a power cut.

    Args:
        syncs: the number of syncs before the power cut.
        before: the number of the last acknowledgement before it; None before the first.
        after: the number of the next one; of the last if there is none.
    """

    syncs: int
    before: int | None
    after: int


def replayed(disk: RecordedDisk, acknowledged: Sequence[int], place: Path, randoms: int) -> Iterator[State]:
    """Writes each state in which a power cut may leave the disk to a directory; yields when it is there.

    Args:
        disk: the recorded disk.
        acknowledged: the number of syncs before each acknowledgement, ascending.
        place: the directory.
        randoms: see `outcomes`.
    """
    chance, seen, before = random.Random(1), set[int](), None
    for cut in disk.cuts:
        count = bisect_right(acknowledged, cut.syncs)
        for outcome in outcomes(cut, before, chance, randoms):
            files = outcome.files()
            digest = hash((count, tuple(files.items())))
            if digest not in seen:
                seen.add(digest)
                write_files(place, files)
                yield State(cut.syncs, count - 1 if count else None, min(count, len(acknowledged) - 1))
        before = cut


@contextmanager
def memory_directory(otherwise: Path) -> Iterator[Path]:
    """A directory in memory if the machine has a file system for it: a thousand states are written there.

    Args:
        otherwise: a directory to make it in.
    """
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else otherwise) as directory:
        yield Path(directory) / "state"
