"""Objects of a place of any kind: create, overwrite, delete.  On a disk no link is followed."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from stat import S_ISDIR
from typing import Any, Literal, TypeAlias

import obstore
from obstore.exceptions import AlreadyExistsError, NotFoundError, PreconditionError
from obstore.store import LocalStore, ObjectStore

from state.location import Location
from state.objects.etag import normal_etag, same_etag
from state.objects.local_identity import file_at
from state.objects.object_client import object_client
from state.objects.stored_object import read_object
from state.removal.claimed_file import delete_claimed, is_version
from state.removal.evidence import CreatedObject, Evidence, FinishedFile, ReservedNames, require_covered
from state.removal.local_path import directory_of, parts_of, stat_at

Removal: TypeAlias = Literal["deleted", "absent", "changed"]
"""deleted; the object does not exist; the object has another version, and stays."""

_BATCH = 1_000
_PART_BYTES = 8 << 20


def create(client: ObjectStore, place: Location, name: str, content: bytes) -> CreatedObject:
    """Writes an object that does not exist yet.

    Args:
        client: reaches the objects of the place.
        place: the location that the name is relative to.

    Returns:
        The evidence for a later `replace_version` or `delete_version` of exactly this object.

    Raises:
        RemovalRefusedError: see `require_own_path`.
        obstore.exceptions.AlreadyExistsError: the object exists, and was not changed.
        obstore.exceptions.BaseError, OSError: as obstore.
    """
    require_own_path(client, place, name)
    return CreatedObject(place, name, _version(obstore.put(client, name, content, mode="create")))


def create_in_parts(client: ObjectStore, place: Location, name: str, content: Iterator[bytes]) -> CreatedObject:
    """Writes a large object in parts, after a check of its name: only for stores that complete parts unconditionally.

    Args:
        client: reaches the objects of the place.
        place: the location that the name is relative to.
        content: its bytes, part by part; an error of it leaves no object.

    Returns:
        As `create`.

    Raises:
        RemovalRefusedError: see `require_own_path`.
        obstore.exceptions.AlreadyExistsError: the object exists, and was not changed.
        obstore.exceptions.BaseError, OSError: as obstore.
    """
    require_own_path(client, place, name)
    try:
        obstore.head(client, name)
    except (FileNotFoundError, NotFoundError):
        # A writer of obstore would complete the object when its block raises.
        return CreatedObject(place, name, _version(obstore.put(client, name, content, use_multipart=True)))
    raise AlreadyExistsError(f"{place}/{name} exists")


def create_same(client: ObjectStore, place: Location, name: str, content: bytes) -> CreatedObject:
    """As `create`, but takes an existing object with the same bytes: the answer to an earlier try may be lost.

    An object of more than 8 MiB is written in parts, after a check of its name: no other process may write the name.

    Raises:
        obstore.exceptions.AlreadyExistsError: the object exists with other bytes, and was not changed.
        obstore.exceptions.BaseError, OSError: as obstore.
    """
    try:
        if len(content) <= _PART_BYTES or _is_disk(place, client):
            return create(client, place, name, content)
        # One request for a large object exceeds the time limit of a request on a slow line.
        parts = (content[start : start + _PART_BYTES] for start in range(0, len(content), _PART_BYTES))
        return create_in_parts(client, place, name, parts)
    except AlreadyExistsError:
        found = read_object(client, place, name)
        if found.content != content:
            raise
        return CreatedObject(place, name, found.version)


def overwrite(client: ObjectStore, evidence: ReservedNames, name: str, content: bytes) -> None:
    """Writes an object with a name that only Slackwater writes, and replaces an earlier object.

    Args:
        client: reaches the objects of the place.
        evidence: the form of the names.
        name: of the object, relative to the place.

    Raises:
        RemovalRefusedError: the name has another form, or see `require_own_path`.
        obstore.exceptions.BaseError, OSError: as obstore.
    """
    require_covered(evidence, name)
    require_own_path(client, evidence.place, name)
    obstore.put(client, name, content)


def replace_version(
    client: ObjectStore, place: Location, name: str, content: bytes, version: Mapping[str, str | None]
) -> Mapping[str, str | None]:
    """Replaces one version of an object: a compare-and-swap.

    A disk compares just before the write: the caller excludes other processes, for example by a lock.

    Args:
        client: reaches the objects of the place.
        place: the location that the name is relative to.
        version: the version that was read: `e_tag` and `version`.

    Returns:
        The new version.

    Raises:
        RemovalRefusedError: see `require_own_path`.
        obstore.exceptions.PreconditionError: the object has another version, and was not changed.
        obstore.exceptions.BaseError, OSError: as obstore.
    """
    require_own_path(client, place, name)
    if _is_disk(place, client):
        if read_object(client, place, name).version != dict(version):
            raise PreconditionError(f"{place}/{name} has changed")
        return _version(obstore.put(client, name, content))
    update: Any = {key: value for key, value in version.items() if value is not None}
    return _version(obstore.put(client, name, content, mode=update))


def require_own_path(client: ObjectStore, place: Location, name: str) -> None:
    """Checks the name of an object that is to be written: on a disk, a linked directory leads to files of others.

    Args:
        client: reaches the objects of the place.
        place: the location that the name is relative to, which itself may be reached through links.

    Raises:
        RemovalRefusedError: a directory of its path is a link, or the name is not valid, see `parts_of`.
        OSError: a directory cannot be opened.
    """
    parts_of(name)
    if _is_disk(place, client):
        with suppress(FileNotFoundError), directory_of(place.path, name):
            pass


def probe(client: ObjectStore, place: Location) -> None:
    """Writes and deletes a small object of a new name.

    Raises:
        obstore.exceptions.BaseError, OSError: the place cannot be written.
    """
    for name in probe_names():
        try:
            created = create(client, place, name, b"")
        except AlreadyExistsError:
            continue  # left by an earlier process with this pid
        delete(created, [name], client)
        return


def probe_names() -> Iterator[str]:
    """Names for an object of this process that is written and deleted at once."""
    return (f"_slackwater_check-{socket.gethostname()}-{os.getpid()}-{number}" for number in itertools.count())


def delete(evidence: Evidence, names: Iterable[str], client: ObjectStore | None = None) -> int:
    """Deletes objects that a record covers.  Objects that do not exist are skipped.

    Every name is checked before the first object is deleted.

    Args:
        names: relative to `evidence.place`.
        client: reaches the objects of the place; None for one of its own.

    Returns:
        The number of deleted objects; in an object store, the number of requested deletions.

    Raises:
        RemovalRefusedError: the evidence does not cover a name, or a directory of its path is a link.
        obstore.exceptions.BaseError, OSError: as obstore.
    """
    names = list(names)
    for name in names:
        require_covered(evidence, name)
    place = evidence.place
    if _is_disk(place, client):
        return sum(_unlinked(place, name) for name in names)
    client = object_client(place) if client is None else client
    for start in range(0, len(names), _BATCH):
        obstore.delete(client, names[start : start + _BATCH])
    return len(names)


def delete_version(
    evidence: FinishedFile | CreatedObject,
    client: ObjectStore | None = None,
    request: Callable[[str], None] | None = None,
) -> Removal:
    """Deletes an object if it still has the version that its evidence names.  Arguments and errors as `delete_if`."""
    if isinstance(evidence, FinishedFile):
        if _is_disk(evidence.place, client):
            require_covered(evidence, evidence.name)
            return _delete_local_version(evidence.place, evidence.name, evidence.etag, claims=True)
        return delete_if(evidence, evidence.name, evidence.etag, client, request, modified=evidence.modified)
    return delete_if(evidence, evidence.name, evidence.version.get("e_tag"), client, request)


def delete_if(
    evidence: Evidence,
    name: str,
    etag: str | None,
    client: ObjectStore | None = None,
    request: Callable[[str], None] | None = None,
    *,
    modified: datetime | None = None,
) -> Removal:
    """Deletes an object if it still has a version.

    A disk compares the identity of the file in the open directory just before; see `claimed_file` for files of users.
    An object store compares by HEAD just before; pass `request` where the store can compare by itself.

    Args:
        evidence: the record that covers the name.
        name: of the object, relative to the place of the evidence.
        etag: of the version, as obstore and `state.objects.local_identity` give it; with or without quotes.
        client: reaches the objects of the place; None for one of its own.
        request: sends a conditional deletion of the version with this etag, for example S3's `DeleteObject` with
            `IfMatch`, and raises PreconditionError where the store refuses it.
        modified: the time of the version, compared in whole seconds, as a HEAD rounds it; None for any time.  A disk
            has the times in the etag.

    Raises:
        RemovalRefusedError: the evidence does not cover the name, or a directory of its path is a link.
        obstore.exceptions.BaseError, OSError: as obstore.
    """
    require_covered(evidence, name)
    if _is_disk(evidence.place, client):
        return _delete_local_version(evidence.place, name, etag)
    client = object_client(evidence.place) if client is None else client
    try:
        found = obstore.head(client, name)
        is_later = modified is not None and int(found["last_modified"].timestamp()) != int(modified.timestamp())
        if is_later or not same_etag(found["e_tag"], etag):
            return "changed"
        if request is None:
            obstore.delete(client, name)
        else:
            request(str(etag))
    except (FileNotFoundError, NotFoundError):
        return "absent"
    except PreconditionError:
        return "changed"
    return "deleted"


def remove_empty_directories(place: Location, names: Iterable[str] = ()) -> bool:
    """Removes directories of a local place that are empty, the deepest first, and then the place if it is empty.

    An object store has no directories: nothing happens there.

    Args:
        names: the files that were deleted; only directories on their paths are tried.

    Returns:
        True if the place does not exist any more.

    Raises:
        OSError: a directory cannot be opened.
    """
    if not place.is_local:
        return True
    above = {"/".join(parts[:depth]) for parts in map(parts_of, names) for depth in range(1, len(parts))}
    for directory in sorted(above, key=lambda each: -each.count("/")):
        _remove_directory(place, directory)
    try:
        os.rmdir(place.path)
    except FileNotFoundError:
        return True
    except OSError:
        return False  # it is not empty, or a link
    return True


def _remove_directory(place: Location, name: str) -> None:
    try:
        with directory_of(place.path, name) as (directory, last):
            os.rmdir(last, dir_fd=directory)
    except OSError:
        pass  # it has other entries, or another process was first


def _is_disk(place: Location, client: ObjectStore | None) -> bool:
    """True if the objects are files: the simulator keeps the objects of a local place in memory."""
    return place.is_local and (client is None or isinstance(client, LocalStore))


def _unlinked(place: Location, name: str) -> bool:
    try:
        with directory_of(place.path, name) as (directory, last):
            found = stat_at(directory, last)
            if found is None or S_ISDIR(found.st_mode):
                return False
            os.unlink(last, dir_fd=directory)
    except FileNotFoundError:
        return False
    return True


def _delete_local_version(place: Location, name: str, etag: str | None, *, claims: bool = False) -> Removal:
    try:
        with directory_of(place.path, name) as (directory, last):
            if claims:
                return "deleted" if delete_claimed(directory, last, etag) else "changed"
            if not is_version(file_at(directory, last), etag):
                return "changed"
            os.unlink(last, dir_fd=directory)
    except FileNotFoundError:
        return "absent"
    return "deleted"


def _version(answer: Any) -> Mapping[str, str | None]:
    return {"e_tag": normal_etag(answer.get("e_tag")) or None, "version": answer.get("version")}
