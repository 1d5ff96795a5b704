"""Changes to objects of a location: deletion, a move to another location, tags.  Each is for one version of an object.

On S3 a deletion carries the etag, which AWS compares; other servers may not.  There, and on other stores, the version
is compared just before.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any

import obstore

from actors.file_errors import ObjectChanged, ObjectVanished
from actors.files import FileVersion
from actors.objects.bucket_client import ask_bucket, bucket_client, bucket_of
from actors.objects.local_file import directory_of, local_etag
from actors.objects.object_store import ObjectStore
from actors.objects.store_errors import ask_store
from state.errors import UsageError
from state.location import Location
from state.objects.object_client import object_client
from state.tables.fingerprint import is_strong

_PART_BYTES = 8 << 20
# S3 copies no larger object in one request.
_MOST_COPIED_BYTES = 5 << 30


class ObjectChanges:
    """Safe to use from many threads.

    Args:
        location: where the objects are.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._objects = ObjectStore(location)

    def delete(self, file: FileVersion) -> None:
        """Deletes a version of an object.

        Raises:
            ObjectVanished, ObjectChanged: the object is not there, or in another version, which stays.
            UnreadableFile: its path leads over a link, or is no path for the client.
            AccessDeniedError, StorageUnavailableError: the store refuses or does not answer.
        """
        self._require(file)
        location, path = self._location, file.path
        if location.is_local:
            ask_store(partial(_unlink, location, file), location, path)
        elif location.scheme == "s3":
            condition = {"IfMatch": file.etag} if is_strong(file.etag) else {}
            call = partial(self._bucket.delete_object, Bucket=bucket_of(location), Key=self._key(path), **condition)
            ask_bucket(call, location, path)
        else:
            ask_store(partial(obstore.delete, self._client, path), location, path)

    def move(self, file: FileVersion, target: Location) -> None:
        """Moves a version of an object to the same path below another location: `copy`, then `delete`.

        Args, Raises: as `copy`.
        """
        self.copy(file, target)
        self.delete(file)

    def copy(self, file: FileVersion, target: Location) -> None:
        """Copies a version of an object to the same path below another location.

        Within a bucket the store copies it; otherwise its bytes pass this process.  A copy that is there already, with
        the same bytes, is taken: a move that was broken off goes on.

        Args:
            file: the version.
            target: the other location.

        Raises:
            UsageError: another object has the name at the other location.
            ObjectVanished, ObjectChanged, UnreadableFile, AccessDeniedError, StorageUnavailableError: as `delete`.
        """
        self._require(file)
        other = _client(target)
        if (there := _size(other, target, file.path)) is None:
            self._copy(file, target, other)
        elif there != file.size or not self._is_copy(file, target, other):
            raise UsageError(
                f"{target}/{file.path} has other content than {self._location}/{file.path}, which stays: rename one of "
                "them"
            )

    def tag(self, file: FileVersion, tags: Mapping[str, str]) -> None:
        """Adds tags to an object in S3, beside those that it has.

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

    def _require(self, file: FileVersion) -> None:
        """Raises ObjectVanished or ObjectChanged if the object is not there in this version."""
        found = self._objects.find(file.source, file.path, exact_time=not is_strong(file.etag))
        if found is None:
            raise ObjectVanished(f"{self._location}/{file.path} is no longer there")
        if found.version != file.version:
            raise ObjectChanged(f"{self._location}/{file.path} has changed since it was listed")

    def _copy(self, file: FileVersion, target: Location, other: Any) -> None:
        source, host = self._location, target.host
        is_near = source.host == host and not source.is_local and file.size <= _MOST_COPIED_BYTES
        if not is_near:
            ask_store(partial(self._pass, file, other), target, file.path)
            return
        names = source.below_host + file.path, target.below_host + file.path
        ask_store(partial(obstore.copy, _client(host), *names), source, file.path)
        try:
            self._require(file)
        except (ObjectChanged, ObjectVanished):
            ask_store(partial(obstore.delete, other, file.path), target, file.path)
            raise

    def _pass(self, file: FileVersion, other: Any) -> None:
        """Copies the bytes through this process, all or none.  Reading is conditional on the version."""
        with obstore.open_writer(other, file.path) as writer:
            for part in self._content(file):
                writer.write(part)

    def _is_copy(self, file: FileVersion, target: Location, other: Any) -> bool:
        copied = ask_store(partial(obstore.get, other, file.path), target, file.path)
        return _hash(self._content(file)) == _hash(map(bytes, copied.stream(_PART_BYTES)))

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


def _size(client: Any, location: Location, path: str) -> int | None:
    """The size of an object; None if it does not exist."""
    try:
        return int(ask_store(partial(obstore.head, client, path), location, path)["size"])
    except ObjectVanished:
        return None


def _hash(parts: Iterable[bytes]) -> bytes:
    content = blake2b()
    for part in parts:
        content.update(part)
    return content.digest()


def _unlink(location: Location, file: FileVersion) -> None:
    with directory_of(location.path, file.path) as (directory, name):
        if local_etag(os.stat(name, dir_fd=directory, follow_symlinks=False)) != file.etag:
            raise ObjectChanged(f"{location}/{file.path} has changed since it was listed")
        os.unlink(name, dir_fd=directory)
