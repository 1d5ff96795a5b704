"""The files of a dataset on a disk: on it before a commit is acknowledged, and mended after a power cut.

Lance syncs nothing.  A power cut may leave a file that was not synced empty, full of zeroes, short, or not at all; the
name of a file is on the disk when its directory is synced.  So the files of rows are synced first, then the
manifest that names them: an intact manifest names intact files.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import lance
from lance import FragmentMetadata

from state.location import Location
from state.objects.storage_error import storage_error
from state.objects.stored_object import read_regular
from state.removal.evidence import ReservedNames
from state.removal.local_files import set_aside
from state.removal.names import DATASET
from state.removal.objects import delete

_AT_ONCE = 16
_LAST_VERSION = 2**64 - 1
_MANIFEST = ".manifest"
_MAGIC = b"LANC"
_FOOTER_BYTES = 16
_PAGE_BYTES = 4_096


class DatasetFiles:
    """The files of one dataset.

    Syncing does nothing in an object store, which acknowledges no write before it is durable, and with the durability
    `process`.  Files that are synced together share the journal's commit: side by side they take little longer than
    one.

    Args:
        location: the location of the dataset.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._path = location.path
        self._own = ReservedNames(location, DATASET)
        self._syncs = location.is_local and location.durability == "power_loss"
        self._known: set[Path] = {self._path}

    def sync_fragments(self, new: Iterable[FragmentMetadata], changed: Iterable[FragmentMetadata] = ()) -> None:
        """Syncs the files of fragments, before the commit that names them.

        Args:
            new: fragments with new rows.
            changed: fragments with new deletions only.

        Raises:
            StorageError: the disk refuses.
        """
        if self._syncs:
            new = list(new)
            rows = [self._path / "data" / file.path for fragment in new for file in fragment.files]
            self._sync([*rows, *self._deletion_files([*new, *changed])])

    def sync_version(self, version: int) -> None:
        """Syncs the manifest of a version, before the version is acknowledged.  Errors as `sync_fragments`."""
        if self._syncs:
            self._sync([self._manifest(version)])

    def sync_creation(self, version: int) -> None:
        """Syncs the first manifest, and the directories above the dataset.  Errors as `sync_fragments`."""
        if self._syncs:
            self._sync([self._manifest(version), *_ancestors(self._path)])

    @contextmanager
    def rewriting(self, dataset: lance.LanceDataset) -> Iterator[None]:
        """Syncs the files that commits of Lance's own add while the context lasts, and their manifests.

        Lance writes and commits in one step: before the end of the context, the versions may not survive a power cut.

        Args:
            dataset: the handle through which Lance commits.

        Raises:
            StorageError: the disk refuses.
        """
        if not self._syncs:
            yield
            return
        version, files = dataset.version, self._files(dataset)
        yield
        if dataset.version != version:
            manifests = [self._manifest(each) for each in range(version + 1, dataset.version + 1)]
            self._sync([*(self._files(dataset) - files), *manifests])

    def sync_tag(self, tag: str) -> None:
        """Syncs a tag.  Errors as `sync_fragments`."""
        if self._syncs:
            self._sync([self._path / "_refs" / "tags" / f"{tag}.json"])

    def settle(self, acknowledged: int = 0) -> None:
        """Drops the torn files that a power cut left, and syncs the versions that a killed process did not.

        Only for the next owner.  A torn manifest was never acknowledged: an acknowledged one was synced before.  It is
        renamed to end in `.torn`, and kept.

        Args:
            acknowledged: the last version that is known to be whole; 0 to look at the last versions until a whole one.

        Raises:
            StorageError: the disk refuses.
        """
        if not self._location.is_local or not self._path.is_dir():
            return
        try:
            with self._one_at_a_time():
                for version in self._versions_after(acknowledged):
                    if _is_torn(self._manifest(version)):
                        set_aside(self._own, self._name(self._manifest(version)), ".torn")
                    elif not acknowledged:
                        break
                self._drop_torn_tags()
        except OSError as error:
            raise storage_error(error, self._location) from None
        for version in self._versions_after(acknowledged)[: None if acknowledged else 1]:
            self.sync_version(version)

    def is_whole(self, version: int) -> bool:
        """True if the manifest of a version exists and is not torn: Lance reads one of zeroes as an empty dataset."""
        return not self._location.is_local or not _is_torn(self._manifest(version))

    def last_whole_version(self) -> int | None:
        """The last version whose manifest is whole; None without one.  For readers, who change nothing.

        Raises:
            StorageError: the disk refuses.
        """
        try:
            return next((each for each in self._versions_after(0) if not _is_torn(self._manifest(each))), None)
        except OSError as error:
            raise storage_error(error, self._location) from None

    def _versions_after(self, version: int) -> list[int]:
        """The versions after one that have a manifest, the last first."""
        names = (name for name in _names(self._path / "_versions") if name.endswith(_MANIFEST))
        numbers = (name.removesuffix(_MANIFEST) for name in names)
        found = (_LAST_VERSION - int(number) for number in numbers if number.isdecimal())
        return sorted((each for each in found if each > version), reverse=True)

    def _manifest(self, version: int) -> Path:
        return self._path / "_versions" / f"{_LAST_VERSION - version:020}{_MANIFEST}"

    def _deletion_files(self, fragments: Iterable[FragmentMetadata]) -> Iterator[Path]:
        for fragment in fragments:
            if fragment.deletion_file is not None:
                yield self._path / fragment.deletion_file.path(fragment.id)

    def _files(self, dataset: lance.LanceDataset) -> set[Path]:
        """The files that a version names."""
        fragments = [fragment.metadata for fragment in dataset.get_fragments()]
        files = {self._path / "data" / file.path for fragment in fragments for file in fragment.files}
        files.update(self._deletion_files(fragments))
        for index in dataset.describe_indices():
            for segment in index.segments:
                directory = self._path / "_indices" / str(segment.uuid)
                files.update(directory / name for name in _names(directory))
        return files

    def _drop_torn_tags(self) -> None:
        tags = self._path / "_refs" / "tags"
        for name in _names(tags):
            if not self._own.covers(self._name(tags / name)):
                continue
            try:
                json.loads(read_regular(tags / name))["version"]
            except (ValueError, KeyError, TypeError):
                delete(self._own, [self._name(tags / name)])

    def _name(self, file: Path) -> str:
        """The path of a file relative to the dataset."""
        return str(file.relative_to(self._path))

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Excludes other owners: a version that another owner has dropped and written again is not torn any more."""
        directory = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(directory, fcntl.LOCK_EX)
            except OSError:
                pass  # a file system without locks
            yield
        finally:
            os.close(directory)

    def _sync(self, files: list[Path]) -> None:
        """Syncs files and their directories, and at first use the directories above them, up to the dataset's."""
        directories = {above for file in files for above in self._directories(file)}
        paths = [*files, *directories]
        try:
            list(disk_threads().map(_sync, paths))
        except OSError as error:
            raise storage_error(error, self._location) from None
        self._known |= directories

    def _directories(self, file: Path) -> Iterator[Path]:
        if not file.is_relative_to(self._path) or file == self._path:
            return
        yield file.parent
        for above in file.parents:
            if above in self._known:
                return
            yield above.parent


def disk_threads() -> ThreadPoolExecutor:
    """The threads of this process that wait for its disk, or for an object store."""
    return _threads(os.getpid())


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """The threads of one process; a forked process does not inherit them."""
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="disk")


def _ancestors(path: Path) -> Iterator[Path]:
    """A directory and its parents, as long as they are readable and on the same file system."""
    device = path.stat().st_dev
    for each in (path, *path.parents):
        if each.stat().st_dev != device or not os.access(each, os.R_OK):
            return
        yield each


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _is_torn(manifest: Path) -> bool:
    """True if a manifest cannot be whole, or does not exist.

    Its footer is the position of its message, a version and Lance's mark; the message begins with its length, and ends
    where the footer begins (https://lance.org/format/table/).  A page of zeroes is one that was never written.
    """
    try:
        content = read_regular(manifest)
    except FileNotFoundError:
        return True
    if len(content) < _FOOTER_BYTES or content[-4:] != _MAGIC:
        return True
    position = int.from_bytes(content[-16:-8], "little")
    length = int.from_bytes(content[position : position + 4], "little")
    if position + 4 + length != len(content) - _FOOTER_BYTES:
        return True
    pages = (content[start : start + _PAGE_BYTES] for start in range(0, len(content), _PAGE_BYTES))
    return any(not any(page) for page in pages)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # of a file system that cannot sync
            raise
    finally:
        os.close(file)
