"""ArchiveBucket: a prefix of an object store that gets verified copies, and never in the place of other objects."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b, md5
from typing import Any

import obstore
from obstore.exceptions import AlreadyExistsError

from actors.file_errors import ObjectChanged, ObjectVanished
from actors.objects.bucket_client import ask_bucket, bucket_client, bucket_of
from actors.objects.store_errors import ask_store
from state.errors import SlackwaterError, StorageUnavailableError, UsageError
from state.location import Location
from state.objects.etag import same_etag
from state.objects.object_client import object_client
from state.removal.evidence import CreatedObject
from state.removal.objects import create, create_in_parts, delete_version

_PART_BYTES = 8 << 20
_MOST_PARTS = 9_000
# Larger objects are written in parts, which only S3 completes on the condition that the object does not exist.
_MOST_PUT_BYTES = 64 << 20


@dataclass(frozen=True)
class Written:
    """An object that this process has written.

    Args:
        etag: the etag of the written object, which identifies it later; None if the store returned no etag.
        expected: the etag that an object with the right content has; None if only the content can be compared.
    """

    etag: str | None
    expected: str | None = None


class NameTakenError(Exception):
    """An object has the name already."""


class ArchiveBucket:
    """Safe to use from many threads.

    Args:
        location: a prefix of `s3://`, `gs://` or `az://`.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._connecting = threading.Lock()
        self._connected: Any = None

    def put(
        self,
        path: str,
        content: Callable[[], Iterable[bytes]],
        size: int,
        copy_near: Callable[[Any, str], Written | None] | None,
    ) -> None:
        """Writes a copy, or accepts an existing copy with the same bytes.

        Args:
            path: of the copy, relative to the location.
            content: returns the bytes, part by part.
            copy_near: has the store copy the object, by its client, to a key; returns None if it was not copied.
                Without it, the bytes pass this process.

        Raises:
            UsageError: the name has other content.
            AccessDeniedError, StorageUnavailableError: the store refuses or does not answer.
            SlackwaterError: as `content`, for example because the original has vanished or changed.
        """
        if self._size_of(path) is None:
            try:
                self._write(path, content, size, copy_near)
                return
            except NameTakenError:
                pass  # another process was first
        if self._size_of(path) != size or self._hash_of(path) != _hash(content()):
            raise UsageError(
                f"{self._location}/{path} has other content than the object to be moved, which stays: rename one of "
                "them"
            )

    def _write(
        self,
        path: str,
        content: Callable[[], Iterable[bytes]],
        size: int,
        copy_near: Callable[[Any, str], Written | None] | None,
    ) -> None:
        written = None if copy_near is None else copy_near(self._bucket, self._key(path))
        digest: bytes | None = None
        if written is None:
            copied = blake2b()
            parts = _hashed(content(), copied.update)
            if self._location.scheme == "s3":
                written = self._put_in_s3(path, parts, size)
            else:
                written = Written(self._put(path, parts, size))
            digest = copied.digest()
        found = self._head(path)
        try:
            is_same = found is not None and found["size"] == size
            if is_same and not same_etag(found["e_tag"], written.expected):
                is_same = self._hash_of(path) == (digest or _hash(content()))
        except BaseException:
            self._take_back(path, found, written)
            raise
        if not is_same:
            self._take_back(path, found, written)
            raise StorageUnavailableError(
                f"{self._location}/{path}: the store has other bytes than were written; the original stays"
            )

    def _put_in_s3(self, path: str, content: Iterator[bytes], size: int) -> Written:
        """Writes an object of S3 that does not exist yet.  Its etag is the expected one if S3 does not encrypt it."""
        name = {"Bucket": bucket_of(self._location), "Key": self._key(path)}
        part_bytes = max(_PART_BYTES, -(-size // _MOST_PARTS))
        if size <= _PART_BYTES:
            body = b"".join(content)
            answer = self._ask(partial(self._bucket.put_object, Body=body, IfNoneMatch="*", **name), path)
            return Written(answer.get("ETag"), _md5(body).hex())
        upload = self._ask(partial(self._bucket.create_multipart_upload, **name), path)["UploadId"]
        name["UploadId"] = upload
        try:
            parts, sums = list[dict[str, Any]](), b""
            for number, body in enumerate(_grouped(content, part_bytes), 1):
                call = partial(self._bucket.upload_part, PartNumber=number, Body=body, **name)
                parts.append({"PartNumber": number, "ETag": self._ask(call, path)["ETag"]})
                sums += _md5(body)
            complete = partial(
                self._bucket.complete_multipart_upload, MultipartUpload={"Parts": parts}, IfNoneMatch="*", **name
            )
            answer = self._ask(complete, path)
        except BaseException:
            with suppress(SlackwaterError):
                self._ask(partial(self._bucket.abort_multipart_upload, **name), path)
            raise
        return Written(answer.get("ETag"), f"{_md5(sums).hex()}-{len(parts)}")

    def _put(self, path: str, content: Iterator[bytes], size: int) -> str | None:
        """Creates an object in a store other than S3; a large object after a check of its name.  Returns its etag."""
        if size <= _MOST_PUT_BYTES:
            body = b"".join(content)
            call = partial(create, self._client, self._location, path, body)
        else:
            call = partial(create_in_parts, self._client, self._location, path, content)
        created: CreatedObject = self._ask_store(partial(self._create, call), path)
        return created.version.get("e_tag")

    def _create(self, call: Callable[[], CreatedObject]) -> CreatedObject:
        try:
            return call()
        except AlreadyExistsError:
            raise NameTakenError from None

    def _take_back(self, path: str, found: Any, written: Written) -> None:
        """Deletes a copy of this call that is wrong, and no object that another program has put in its place."""
        if found is None or not same_etag(found["e_tag"], written.etag):
            return
        created = CreatedObject(self._location, path, {"e_tag": found["e_tag"], "version": found.get("version")})
        with suppress(SlackwaterError):
            self._ask_store(partial(delete_version, created, self._client), path)

    def _size_of(self, path: str) -> int | None:
        found = self._head(path)
        return None if found is None else int(found["size"])

    def _head(self, path: str) -> Any:
        try:
            return ask_store(partial(obstore.head, self._client, path), self._location, path)
        except ObjectVanished:
            return None

    def _hash_of(self, path: str) -> bytes:
        copied = self._ask_store(partial(obstore.get, self._client, path), path)  # noqa: TID251 - of a bucket
        return _hash(map(bytes, copied.stream(_PART_BYTES)))

    def _ask(self, call: Callable[[], Any], path: str) -> Any:
        """A request of boto3.  An error of the archive never means that the original has vanished or changed."""
        try:
            return ask_bucket(call, self._location, path)
        except ObjectChanged:
            raise NameTakenError from None
        except ObjectVanished as error:
            raise StorageUnavailableError(f"{error}; the original stays") from None

    def _ask_store(self, call: Callable[[], Any], path: str) -> Any:
        try:
            return ask_store(call, self._location, path)
        except (ObjectChanged, ObjectVanished) as error:
            raise StorageUnavailableError(f"{error}; the original stays") from None

    def _key(self, path: str) -> str:
        return self._location.below_host + path

    @property
    def _bucket(self) -> Any:
        with self._connecting:
            if self._connected is None:
                self._connected = bucket_client(self._location)
            return self._connected

    @cached_property
    def _client(self) -> Any:
        return ask_store(partial(object_client, self._location), self._location)


def _hashed(parts: Iterable[bytes], update: Callable[[bytes], None]) -> Iterator[bytes]:
    for part in parts:
        update(part)
        yield part


def _grouped(parts: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The same bytes in parts of one size, except for the last part."""
    waiting = bytearray()
    for part in parts:
        waiting += part
        while len(waiting) >= size:
            yield bytes(waiting[:size])
            del waiting[:size]
    if waiting:
        yield bytes(waiting)


def _hash(parts: Iterable[bytes]) -> bytes:
    content = blake2b()
    for part in parts:
        content.update(part)
    return content.digest()


def _md5(content: bytes) -> bytes:
    return md5(content, usedforsecurity=False).digest()
