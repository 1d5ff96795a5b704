"""A small file of a root that is replaced only while it still is the one that was read."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError, PreconditionError
from obstore.store import ObjectStore

from state.errors import BucketNotFoundError, StorageUnavailableError
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.objects.stored_object import read_object
from state.removal.objects import create, replace_version

_POLL_S = 0.01
_POLLS = 500

Version = Mapping[str, str | None]
"""The version of a file, as the store names it."""


class FileChangedError(Exception):
    """The file is no longer the one that was read."""


@dataclass(frozen=True)
class ReadFile:
    """The content of a file, and its version."""

    content: bytes
    version: Version


class ConditionalFile:
    """One small file, with a compare-and-swap.

    An object store compares the version by itself.  On a disk, processes take turns by a lock on `<name>.lock`, which
    holds between all processes of a machine, and on NFS between machines.

    Args:
        root: the location of its directory.
        name: the name of the file.
        client: reaches the objects of the root; None for one of its own.
    """

    def __init__(self, root: Location, name: str, client: ObjectStore | None = None) -> None:
        self._root, self._name, self._client = root, name, client

    def read(self) -> ReadFile | None:
        """The content and the version; None if the file does not exist.

        Raises:
            StorageError: the root cannot be read.
        """
        if self._root.is_local and not self._root.path.is_dir():
            return None
        try:
            found = read_object(self._reach(), self._root, self._name)
        except (FileNotFoundError, NotFoundError) as error:
            reason = storage_error(error, self._root)
            if isinstance(reason, BucketNotFoundError):
                raise reason from None
            return None
        except (BaseError, OSError) as error:
            raise storage_error(error, self._root) from None
        return ReadFile(found.content, found.version)

    def replace(self, content: bytes, version: Version | None) -> None:
        """Writes the file if it still has a version.

        Args:
            version: the version that was read; None if the file did not exist.

        Raises:
            FileChangedError: the file was replaced, or an earlier try of this request was carried out.
            StorageError: the root cannot be written.
        """
        client = self._reach()  # it makes the directory of a local root
        try:
            if self._root.is_local:
                with self._turn():
                    found = self.read()
                    if (None if found is None else found.version) != version:
                        raise FileChangedError(f"{self._root}/{self._name} was written by another process")
                    if version is None:
                        create(client, self._root, self._name, content)
                    else:
                        replace_version(client, self._root, self._name, content, version)
            elif version is None:
                create(client, self._root, self._name, content)
            else:
                replace_version(client, self._root, self._name, content, version)
        except (AlreadyExistsError, PreconditionError) as error:
            raise FileChangedError(f"{self._root}/{self._name} was written by another process") from error
        except (BaseError, OSError) as error:
            raise storage_error(error, self._root) from None

    def _reach(self) -> ObjectStore:
        return object_client(self._root) if self._client is None else self._client

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Excludes other processes for as long as the context lasts."""
        lock = self._open_lock()
        try:
            if lock is not None:
                self._wait_for(lock)
            yield
        finally:
            if lock is not None:
                os.close(lock)

    def _open_lock(self) -> int | None:
        """The lock file; None if it cannot be opened: without turns, the head of the store alone decides."""
        try:
            return os.open(self._root.path / f"{self._name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            return None

    def _wait_for(self, lock: int) -> None:
        pause = threading.Event()
        for _ in range(_POLLS):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                pause.wait(_POLL_S)
            except OSError:
                return  # a file system without locks
        raise StorageUnavailableError(
            f"{self._root}/{self._name}.lock is held by another process for {_POLLS * _POLL_S:.0f} s: look for a "
            "frozen process that runs on this root, and end it"
        )
