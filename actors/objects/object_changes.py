"""Changes to objects of a location: deletion, a copy at another location, tags.  Each is for one version of an object.

Just before a deletion the version of the object is read and compared.  On S3 the request also carries the etag, which
AWS compares itself.  Other servers may ignore it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any

from obstore.exceptions import AlreadyExistsError

from actors.file_errors import ObjectChanged, ObjectVanished
from actors.files import FileVersion, is_same_object
from actors.objects.archive_bucket import ArchiveBucket, NameTakenError, Written
from actors.objects.archive_directory import ArchiveDirectory, Original
from actors.objects.bucket_client import ask_bucket, bucket_client, bucket_of
from actors.objects.object_store import ObjectStore
from actors.objects.store_errors import ask_store
from state.errors import AccessDeniedError, StorageUnavailableError, UsageError
from state.location import Location
from state.objects.etag import is_strong
from state.objects.object_client import object_client
from state.removal.claimed_file import recover
from state.removal.evidence import CreatedObject, FinishedFile
from state.removal.local_path import directory_of, stat_at
from state.removal.objects import create, delete_version, probe_names

_PART_BYTES = 8 << 20
# S3 copies no larger object in one request.
_MOST_COPIED_BYTES = 5 << 30
_COMMITTED = "its rows are committed, and every declared view has them"


class ObjectChanges:
    """Safe to use from many threads."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._objects = ObjectStore(location)
        self._lock = threading.Lock()
        self._directories: dict[str, ArchiveDirectory] = {}
        self._buckets: dict[str, ArchiveBucket] = {}
        self._other_places: set[str] = set()

    def delete(self, file: FileVersion) -> None:
        """Deletes a version of an object.

        Raises:
            ObjectVanished, ObjectChanged: the object does not exist, or has another version, which stays.
            UnreadableFile: its path leads over a link, or is not a valid path for the client.
            AccessDeniedError, StorageUnavailableError: the store refuses or does not answer.
        """
        location, path = self._location, file.path
        evidence = self._evidence(file)
        self._recover(evidence)
        if location.is_local or not is_strong(file.etag):
            self._require(file)
        request = partial(self._delete_in_s3, path) if location.scheme == "s3" else None
        client = None if location.is_local else self._client
        outcome = ask_store(partial(delete_version, evidence, client, request), location, path)
        if outcome == "absent":
            raise self._vanished(path)
        if outcome == "changed":
            raise self._changed(path)

    def _delete_in_s3(self, path: str, etag: str) -> None:
        # A weak etag never matches, by RFC 9110.
        condition = {"IfMatch": etag} if is_strong(etag) else {}
        name = {"Bucket": bucket_of(self._location), "Key": self._key(path)}
        ask_bucket(partial(self._bucket.delete_object, **name, **condition), self._location, path)

    def move(self, file: FileVersion, target: Location) -> None:
        """Moves a version of an object to the same path below another location: `copy`, then `delete`.

        Args, Raises: as `copy`.
        """
        self.copy(file, target)
        self.delete(file)

    def copy(self, file: FileVersion, target: Location) -> None:
        """Copies a version of an object to the same path below another location.

        The copy is complete, durable and compared with the original when this returns.  Within a bucket the store
        copies it; otherwise its bytes pass this process.  An existing copy with the same bytes is accepted:
        a move that was interrupted continues.

        Args:
            target: the other location.

        Raises:
            UsageError: another object has the name at the other location, or both locations are the same place.
            ObjectVanished, ObjectChanged, UnreadableFile, AccessDeniedError, StorageUnavailableError: as `delete`.
        """
        self._recover(self._evidence(file))
        self._require(file)
        if target.is_local:
            part, is_at = _part_name(file), partial(self._is_original, file)
            self._directory(target).put(Original(file.path, part, file.size, partial(self._content, file), is_at))
        else:
            self._require_other_place(target)
            near = self._location.host == target.host and file.size <= _MOST_COPIED_BYTES
            copy_near = partial(self._copy_near, file) if near and target.scheme == "s3" else None
            self._bucket_at(target).put(file.path, partial(self._content, file), file.size, copy_near)

    def tag(self, file: FileVersion, tags: Mapping[str, str]) -> None:
        """Adds tags to an object in S3; its other tags stay.

        Raises:
            ObjectVanished, ObjectChanged, AccessDeniedError, StorageUnavailableError: as `delete`.
        """
        self._require(file)
        location = self._location
        name: dict[str, Any] = {"Bucket": bucket_of(location), "Key": self._key(file.path)}
        answer = ask_bucket(partial(self._bucket.get_object_tagging, **name), location, file.path)
        present = {each["Key"]: each["Value"] for each in answer["TagSet"]}
        if {**present, **tags} == present:
            return
        wanted = [{"Key": key, "Value": value} for key, value in {**present, **tags}.items()]
        put = partial(self._bucket.put_object_tagging, Tagging={"TagSet": wanted}, **name)
        ask_bucket(put, location, file.path)

    def _evidence(self, file: FileVersion) -> FinishedFile:
        return FinishedFile(self._location, file.path, file.etag, _COMMITTED, file.last_modified)

    def _recover(self, evidence: FinishedFile) -> None:
        """Ends a deletion on a disk in which an earlier process was killed."""
        if self._location.is_local:
            ask_store(partial(recover, evidence), self._location, evidence.name)

    def _require(self, file: FileVersion) -> None:
        """Raises ObjectVanished or ObjectChanged if the object is not there in this version."""
        found = self._objects.find(file.source, file.path, exact_time=not is_strong(file.etag))
        if found is None:
            raise self._vanished(file.path)
        if not is_same_object(found, file):
            raise self._changed(file.path)

    def _vanished(self, path: str) -> ObjectVanished:
        return ObjectVanished(f"{self._location}/{path} does not exist any more")

    def _changed(self, path: str) -> ObjectChanged:
        return ObjectChanged(f"{self._location}/{path} has changed since it was listed")

    def _copy_near(self, file: FileVersion, client: Any, key: str) -> Written | None:
        """Has S3 copy an object within its bucket; None if it cannot do that without replacing another object."""
        location = self._location
        origin = {"Bucket": bucket_of(location), "Key": self._key(file.path)}
        call = partial(
            client.copy_object,
            Bucket=bucket_of(location),
            Key=key,
            CopySource=origin,
            CopySourceIfMatch=file.etag,
            IfNoneMatch="*",
        )
        try:
            answer = ask_bucket(call, location, file.path)
        except ObjectChanged:
            # Either condition: of the original, or of the copy.
            self._require(file)
            raise NameTakenError from None
        except StorageUnavailableError:
            return None  # the server does not know the condition; the bytes pass this process
        return Written(answer.get("CopyObjectResult", {}).get("ETag"), expected=file.etag)

    def _directory(self, target: Location) -> ArchiveDirectory:
        with self._lock:
            if target.url not in self._directories:
                self._directories[target.url] = ArchiveDirectory(target)
            return self._directories[target.url]

    def _bucket_at(self, target: Location) -> ArchiveBucket:
        # A client of boto3 takes 0.1 s of a processor.
        with self._lock:
            if target.url not in self._buckets:
                self._buckets[target.url] = ArchiveBucket(target)
            return self._buckets[target.url]

    def _is_original(self, file: FileVersion, directory: int, name: str) -> bool:
        """True if a name in an open directory is the original, or a new file in the directory of the original."""
        found = stat_at(directory, name)
        *above, last = file.path.split("/")
        part = _part_name(file)
        if not self._location.is_local:
            return name == part and self._objects.find(file.source, "/".join([*above, part])) is not None
        with directory_of(self._location.path, file.path) as (original, _):
            of_original = stat_at(original, last)
            if found is None or of_original is None:
                return False
            if os.path.samestat(found, of_original):
                return True
            # One directory that is mounted twice has two device numbers.
            return name == part and stat_at(original, part) is not None

    def _require_other_place(self, target: Location) -> None:
        """Checks once that a new object at the target does not appear at the location, also under a different URL.

        Raises:
            UsageError: it does: a move would delete the only copy of every object.
        """
        with self._lock:
            if target.url in self._other_places:
                return
            client = _client(target)
            created = ask_store(partial(_probe, client, target), target)
            try:
                is_same = self._objects.find("", created.name) is not None
            finally:
                try:
                    ask_store(partial(delete_version, created, client), target)
                except AccessDeniedError:
                    pass  # an archive that forbids deletions
            if is_same:
                raise UsageError(
                    f"{target} is the same place as {self._location}: move files to another place; they stay"
                )
            self._other_places.add(target.url)

    def _content(self, file: FileVersion) -> Iterator[bytes]:
        """The bytes of a version, part by part."""
        stream = self._objects.open(file).stream()
        while part := stream.read(_PART_BYTES):
            yield part

    def _key(self, path: str) -> str:
        return self._location.below_host + path

    @cached_property
    def _bucket(self) -> Any:
        return bucket_client(self._location)

    @cached_property
    def _client(self) -> Any:
        return _client(self._location)


def _client(location: Location) -> Any:
    return ask_store(partial(object_client, location), location)


def _part_name(file: FileVersion) -> str:
    """The name of the incomplete copy of a version."""
    name = f"{file.source}\0{file.path}\0".encode() + file.version
    return f".slackwater-{blake2b(name, digest_size=16).hexdigest()}.part"


def _probe(client: Any, target: Location) -> CreatedObject:
    for name in probe_names():
        try:
            return create(client, target, name, b"")
        except AlreadyExistsError:
            continue  # left by an earlier process with this pid
    raise AssertionError("the names have no end")
