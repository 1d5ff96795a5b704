"""Versions, tags and files of Lance datasets that records of ours no longer name."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

import obstore

from state.errors import RemovalRefusedError
from state.location import Location
from state.objects.object_client import object_client
from state.removal.evidence import DroppedBranch, UnnamedDataset
from state.removal.local_path import directory_of, require_no_links, stat_at
from state.removal.names import DATASETS_OF_ROOT
from state.removal.objects import delete, remove_empty_directories


@dataclass(frozen=True)
class UnnamedVersions:
    """Versions of a dataset that no retained epoch record names, and that no later record can name.

    Args:
        path: of the dataset, relative to the root.
        named_after: a version after all `versions`, which a record names or which is the latest version.
    """

    root: Location
    path: str
    versions: frozenset[int]
    named_after: int


@dataclass(frozen=True)
class Deleted:
    """The result of a deletion.

    Args:
        objects: the number of deleted objects or versions.
        left: names of objects that are not ours, and stay; at most `MOST_NAMED`.
    """

    objects: int
    bytes: int
    left: tuple[str, ...] = ()


MOST_NAMED = 10


def delete_versions(dataset: Any, evidence: UnnamedVersions) -> Deleted:
    """Deletes versions of a Lance dataset, and the files that only they use.  Tagged versions stay.

    Lance follows links to directories, so a dataset with one is refused.  It also deletes files of its own layout that
    no version names after seven days: rows of writers that died.

    Args:
        dataset: a handle of the dataset.

    Raises:
        RemovalRefusedError: a version is not older than `named_after`, the path does not belong to a dataset of a root,
            or the dataset is or has a link to a directory.
        OSError, ValueError, RuntimeError: as Lance.
    """
    if any(version >= evidence.named_after for version in evidence.versions):
        raise RemovalRefusedError(
            f"{evidence.path}: versions {sorted(evidence.versions)} are not all older than {evidence.named_after}; "
            "nothing was deleted; report this"
        )
    if not evidence.versions:
        return Deleted(0, 0)
    # The path comes from a record, which anybody who can write to the root can make.
    if not DATASETS_OF_ROOT.covers(evidence.path):
        raise RemovalRefusedError(
            f"{evidence.path!r} is not one of {DATASETS_OF_ROOT.about} {evidence.root}; nothing was deleted"
        )
    if evidence.root.is_local:
        require_no_links(evidence.root.path, evidence.path)
    # Never `delete_unverified`: it deletes the files of a commit in flight.
    gone = dataset.cleanup_old_versions(versions=sorted(evidence.versions), error_if_tagged_old_versions=False)
    return Deleted(gone.old_versions, gone.bytes_removed)


def delete_aged_versions(dataset: Any, root: Location, path: str, age: timedelta) -> Deleted:
    """Deletes the versions of a dataset without epoch records that are older than the latest one by an age.

    Args:
        dataset: a handle of a dataset that only Slackwater writes, and whose latest version has all rows.
        path: of the dataset, relative to the root.
        age: the time between the commit of a version and the commit of the latest version.

    Raises:
        OSError, ValueError, RuntimeError: as Lance.
    """
    committed = {int(each["version"]): each["timestamp"] for each in dataset.versions()}
    latest = max(committed)
    aged = frozenset(number for number, at in committed.items() if number < latest and at < committed[latest] - age)
    return delete_versions(dataset, UnnamedVersions(root, path, aged, latest))


def delete_tags(dataset: Any, prefix: str, tags: Iterable[str]) -> None:
    """Deletes tags of a Lance dataset that Slackwater has set.

    Args:
        dataset: a handle of the dataset.
        prefix: the beginning of all tags of this kind; not empty.

    Raises:
        RemovalRefusedError: a tag has another beginning.
        OSError, ValueError, RuntimeError: as Lance.
    """
    tags = list(tags)
    if not prefix or not all(tag.startswith(prefix) for tag in tags):
        raise RemovalRefusedError(f"tags {tags} are not all of the kind {prefix!r}; nothing was deleted")
    for tag in tags:
        dataset.tags.delete(tag)


def drop_index(dataset: Any, name: str) -> None:
    """Drops an index of a Lance dataset.  Its rows stay; a vacuum deletes the files of the index later.

    Raises:
        OSError, ValueError, RuntimeError: as Lance.
    """
    dataset.drop_index(name)


def delete_listed(evidence: UnnamedDataset | DroppedBranch) -> Deleted:
    """Deletes the objects of a dataset or a branch whose names have the form of its layout.

    Objects with other names stay, and so do links and the directories above them: `Deleted.left` names them.

    Args:
        evidence: the record that shows that the dataset or the branch is no longer used.

    Raises:
        RemovalRefusedError: a directory on the way from the root to the dataset is a link, or became one meanwhile.
        obstore.exceptions.BaseError, OSError: as obstore.
    """
    place = evidence.place
    if place.is_local:
        # A link in the place of `views` leads to the datasets of another root.
        try:
            with directory_of(evidence.root.path, f"{place.path.relative_to(evidence.root.path)}/x"):
                pass
        except FileNotFoundError:
            return Deleted(0, 0)  # nothing was written there yet
    sizes, left = dict[str, int](), list[str]()
    for name, size in list(_local(place.path) if place.is_local else _remote(place)):
        if size is not None and evidence.covers(name):
            sizes[name] = size
        elif not _is_beside(evidence, name):
            left.append(name)
    delete(evidence, sizes)
    remove_empty_directories(place, [*sizes, *_empty_directories(place, sizes)])
    return Deleted(len(sizes), sum(sizes.values()), tuple(sorted(left)[:MOST_NAMED]))


def _remote(place: Location) -> Iterator[tuple[str, int | None]]:
    for batch in obstore.list(object_client(place)):
        for each in batch:
            yield each["path"], each["size"]


def _local(path: Path) -> Iterator[tuple[str, int | None]]:
    """The files below a directory with their sizes, and the links with the size None.  No link is followed."""
    for above, directories, files, descriptor in os.fwalk(path, follow_symlinks=False):
        prefix = "" if above == str(path) else os.path.relpath(above, path) + "/"
        for name in (*directories, *files):
            found = stat_at(descriptor, name)
            if found is None or S_ISDIR(found.st_mode):
                continue
            yield prefix + name, found.st_size if S_ISREG(found.st_mode) else None


def _is_beside(evidence: UnnamedDataset | DroppedBranch, name: str) -> bool:
    """True for an object of a branch that only a later step deletes."""
    return isinstance(evidence, DroppedBranch) and bool(evidence.below) and not name.startswith(f"{evidence.below}/")


def _empty_directories(place: Location, names: Collection[str]) -> Iterable[str]:
    """Names below directories that Lance makes and leaves empty, for `remove_empty_directories`."""
    if not place.is_local:
        return ()
    datasets = {name.partition(".lance/")[0] + ".lance/" for name in names if ".lance/" in name} or {""}
    layout = ("data", "_versions", "_transactions", "_deletions", "_indices", "_refs/tags")
    return [f"{dataset}{directory}/x" for dataset in datasets for directory in layout]
