"""Pins: small objects `<root>/pins/<name>.json` with which readers keep an epoch from expiring.

A pin is valid until `expires_at`, which its reader renews; the pin of a dead reader ends by itself.  Reader and owner
use their own clocks, which may differ by less than `LIFETIME_S - RENEWAL_S`.  A reader without write access cannot pin:
for it an epoch stays as long as the retention says.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import threading
from datetime import datetime, timedelta
from types import TracebackType

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import ObjectStore

from state.clock import Clock
from state.errors import StorageError
from state.json_document import json_of, moment_of
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.objects.stored_object import read_object
from state.removal.evidence import ReservedNames
from state.removal.names import PINS
from state.removal.objects import create, delete, delete_if, overwrite

RENEWAL_S = 20.0
LIFETIME_S = 120.0
_FOLDER = "pins"
_numbers = itertools.count(1)


class PinFile:
    """The object of one pin.

    Args:
        root: the root that the pipeline writes to.
        clock: the clock for the end of the pin.
        client: reaches the objects of the root; None for one of its own.
    """

    def __init__(self, root: Location, clock: Clock, epoch: int, client: ObjectStore | None = None) -> None:
        self._root, self._clock, self._epoch = root, clock, epoch
        self._client = object_client(root) if client is None else client
        self._name = ""

    def create(self) -> None:
        """Writes the pin.

        Raises:
            StorageError: the root cannot be written.
        """
        while not self._name:
            name = f"{_FOLDER}/{socket.gethostname()}-{os.getpid()}-{next(_numbers)}.json"
            try:
                create(self._client, self._root, name, self._body())
                self._name = name
            except AlreadyExistsError:
                continue  # left by an earlier process with this pid
            except (BaseError, OSError) as error:
                raise storage_error(error, self._root) from None

    def renew(self) -> None:
        """Moves the end of the pin forward.

        Raises:
            StorageError: the root cannot be written; the pin stays valid until its end.
        """
        try:
            overwrite(self._client, ReservedNames(self._root, PINS), self._name, self._body())
        except (BaseError, OSError) as error:
            raise storage_error(error, self._root) from None

    def delete(self) -> None:
        """Deletes the pin; if that fails, it ends by itself."""
        try:
            delete(ReservedNames(self._root, PINS), [self._name], self._client)
        except (BaseError, OSError):
            pass  # the pin ends by itself

    def _body(self) -> bytes:
        expires_at = self._clock.now() + timedelta(seconds=LIFETIME_S)
        return json.dumps({"epoch": str(self._epoch), "expires_at": expires_at.isoformat()}).encode()


class Pin:
    """Keeps one epoch from the vacuum while the context lasts.

    Args:
        root: the root that the pipeline writes to.
        clock: the clock for the end of the pin.
        epoch: the epoch to keep; the caller checks that it still exists after the pin is written.
    """

    def __init__(self, root: Location, clock: Clock, epoch: int) -> None:
        self._file = PinFile(root, clock, epoch)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_ended, name="pin", daemon=True)

    def __enter__(self) -> Pin:
        """Writes the pin.

        Raises:
            StorageError: the root cannot be written.
        """
        self._file.create()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._file.delete()

    def renew(self) -> None:
        """Moves the end of the pin forward.  Errors as `PinFile.renew`."""
        self._file.renew()

    def _renew_until_ended(self) -> None:
        while not self._ended.wait(RENEWAL_S):
            try:
                self.renew()
            except StorageError:
                continue  # the next renewal comes before the pin ends


def pinned_epochs(root: Location, clock: Clock, client: ObjectStore | None = None) -> frozenset[int]:
    """The epochs with a valid pin; expired pins are deleted.

    A torn pin, for example after a power cut, holds no epoch: a living reader writes it again.

    Args:
        root: the root that the pipeline writes to.
        clock: the clock for the end of a pin.
        client: reaches the objects of the root; None for one of its own.

    Raises:
        StorageError: the root cannot be read.
    """
    client = object_client(root) if client is None else client
    evidence = ReservedNames(root, PINS)
    now, epochs = clock.now(), set()
    try:
        for listed in [each for batch in obstore.list(client, f"{_FOLDER}/") for each in batch]:
            name = listed["path"]
            if not evidence.covers(name):
                continue  # not a pin
            try:
                found = read_object(client, root, name)
            except (FileNotFoundError, NotFoundError):
                continue  # deleted since it was listed
            epoch, expires_at = _read(found.content) or (None, listed["last_modified"] + timedelta(seconds=LIFETIME_S))
            if expires_at <= now:
                _delete_expired(client, evidence, name, found.version["e_tag"])
            elif epoch is not None:
                epochs.add(epoch)
    except (BaseError, OSError) as error:
        raise storage_error(error, root) from None
    return frozenset(epochs)


def _read(content: bytes) -> tuple[int, datetime] | None:
    """The epoch of a pin and its end; None if the content is torn."""
    try:
        pin = json_of(content)
        return int(pin["epoch"]), moment_of(pin["expires_at"])
    except (ValueError, TypeError, KeyError):
        return None


def _delete_expired(client: ObjectStore, evidence: ReservedNames, name: str, etag: str | None) -> None:
    """Deletes the version of a pin that was read: its reader may have renewed it since."""
    try:
        delete_if(evidence, name, etag, client)
    except (BaseError, OSError):
        pass  # it holds no epoch; the next reading tries again
