"""The probe of a store: some requests on objects of its own, each of which only an honest store answers rightly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError, PreconditionError
from obstore.exceptions import NotFoundError as ObjectNotFoundError
from obstore.store import ObjectStore

from state.errors import StorageUnavailableError
from state.location import Location
from state.objects.etag import normal_etag
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.objects.store_faults import FailedRequest, StoreFault
from state.removal.evidence import ReservedNames
from state.removal.names import PROBES
from state.removal.objects import delete, overwrite, remove_empty_directories, require_own_path

FOLDER = "probes"
_WRITERS = 4
_BODY_BYTES = 4_096
_RANGE = (1_000, 1_100)


class Capability(Enum):
    """An ability of a store; the value is its name in messages and in the record."""

    CREATE_IF_ABSENT = "conditional creation (If-None-Match: *)"
    REPLACE_IF_MATCH = "conditional replacement (If-Match)"
    RANGED_READS = "ranged reads (Range)"
    LIST_AFTER_WRITE = "listings that show new objects"
    READ_AFTER_WRITE = "reads that return what was written last"


CONSEQUENCES: Mapping[Capability, str] = {
    Capability.CREATE_IF_ABSENT: "two runs can commit the same epoch, and one of the commits is lost",
    Capability.REPLACE_IF_MATCH: "two runs can own one root",
    Capability.RANGED_READS: "tables and large files cannot be read",
    Capability.LIST_AFTER_WRITE: "a reader can miss the last commit, and an owner a pin or a command",
    Capability.READ_AFTER_WRITE: "a run can read an older state than it has written",
}
"""The consequence of a missing capability."""

ROOT_NEEDS = tuple(Capability)
"""The capabilities that a root needs."""

TABLE_NEEDS = (Capability.CREATE_IF_ABSENT, Capability.RANGED_READS, Capability.LIST_AFTER_WRITE)
"""The capabilities that a published table needs."""


@dataclass(frozen=True)
class Probed:
    """The result of a probe.

    Args:
        violations: missing capability → the observed behaviour of the store.
        written_at: the time of the probe's object by the clock of the store; it was written during the probe.
        left: the name of the probe's object and the error, if the store has refused to delete it; else empty.
    """

    violations: Mapping[Capability, str]
    written_at: datetime
    left: str = ""

    @property
    def missing(self) -> tuple[Capability, ...]:
        """The capabilities that the store lacks."""
        return tuple(self.violations)


def probe(location: Location, unique: str, needs: Sequence[Capability] = ROOT_NEEDS) -> Probed:
    """Asks a store for its capabilities, and leaves nothing behind.

    A lost answer does not count as a violation: the checks begin again, once, with another object.  A client cannot
    repeat a creation by itself, as it does not know whether the store applied the first.

    Args:
        location: the root or the table, which need not exist.
        unique: a part of the name of the probe's objects that no other process uses.
        needs: the capabilities that are checked.

    Raises:
        StorageError: the store does not answer, denies access, or the bucket does not exist; or the directory of the
            probe's objects is a link.
    """
    with _directories(location):
        try:
            client = object_client(location)  # it makes the directory of a local place
        except OSError as error:
            raise storage_error(error, location) from None
        try:
            return _probed(location, client, [f"{FOLDER}/{unique}"], needs)
        except StorageUnavailableError:
            # The store may apply a write, or refuse a deletion, after the end of the first attempt.
            return _probed(location, client, [f"{FOLDER}/{unique}-again", f"{FOLDER}/{unique}"], needs)


def _probed(location: Location, client: ObjectStore, names: Sequence[str], needs: Sequence[Capability]) -> Probed:
    """Probes with the object of the first name, and deletes all of the objects."""
    name = names[0]
    require_own_path(client, location, name)
    left = ""
    try:
        checks = _Checks(location, client, name)
        found = {each: violation for each in needs if (violation := checks.violation(each))}
    except (BaseError, OSError) as error:
        raise storage_error(error, location) from None
    finally:
        try:
            delete(ReservedNames(location, PROBES), names, client)
        except (BaseError, OSError) as error:
            left = f"{location}/{name}: {storage_error(error, location)}"
    return Probed(found, checks.written_at, left)


class _Checks:
    """The requests of one probe, in any order; the first request creates the object."""

    def __init__(self, location: Location, client: ObjectStore, name: str) -> None:
        self._location, self._client, self._name = location, client, name
        self._version: Any = None
        self._body = b""
        self.written_at = datetime.fromtimestamp(0, UTC)
        self._created = self._create()

    def violation(self, capability: Capability) -> str:
        """The observed violation of a capability; empty if the store has the capability."""
        match capability:
            case Capability.CREATE_IF_ABSENT:
                return self._created
            case Capability.REPLACE_IF_MATCH:
                return self._replace()
            case Capability.RANGED_READS:
                return self._read_range()
            case Capability.LIST_AFTER_WRITE:
                return self._list()
            case Capability.READ_AFTER_WRITE:
                return self._read()

    def _create(self) -> str:
        """Several writers create the object at once, and then one more."""
        bodies = [bytes([65 + writer]) * _BODY_BYTES for writer in range(_WRITERS)]
        with ThreadPoolExecutor(_WRITERS, thread_name_prefix="probe") as threads:
            results = list(threads.map(self._put_new, bodies))
        if any(result is None for result in results):
            self._overwrite(bodies[0])  # for the other checks
            self._accept_read(bodies[0], obstore.head(self._client, self._name))
            return "it does not support a write that may only create an object"
        won = [(body, result) for body, result in zip(bodies, results, strict=True) if result]
        late = self._put_new(b"late" * (_BODY_BYTES // 4))
        read = obstore.get(self._client, self._name)
        self._accept_read(bytes(read.bytes()), read.meta)
        if late:
            return "a write that may only create an object replaced an existing one"
        if len(won) > 1:
            return f"{len(won)} of {_WRITERS} writers that created one object at once were all accepted"
        return ""

    def _put_new(self, body: bytes) -> Any:
        """The answer to a creation; False if the object exists, None if the store does not support creations."""
        try:
            return obstore.put(self._client, self._name, body, mode="create", use_multipart=False)
        except (AlreadyExistsError, PreconditionError):
            return False
        except (NotImplementedError, NotSupportedError):
            return None

    def _replace(self) -> str:
        """The present version is replaced once; a writer that names the earlier version is refused."""
        if self._location.is_local:
            return ""  # processes take turns by a lock
        stale = self._version
        if not any(stale.values()):
            return "it gives no ETag for an object"
        try:
            self._accept(b"next" * (_BODY_BYTES // 4), self._put_at(b"next" * (_BODY_BYTES // 4), stale))
        except PreconditionError:
            return "a write that names the present ETag of an object was refused"
        except (NotImplementedError, NotSupportedError):
            return "it does not support a write that names a version"
        body = b"last" * (_BODY_BYTES // 4)
        try:
            self._accept(body, self._put_at(body, stale))
        except (AlreadyExistsError, PreconditionError, ObjectNotFoundError):
            return ""
        return "a write that names an old ETag of an object replaced the object"

    def _put_at(self, body: bytes, version: Any) -> Any:
        return obstore.put(self._client, self._name, body, mode=version, use_multipart=False)

    def _read_range(self) -> str:
        start, end = _RANGE
        try:
            part = bytes(obstore.get_range(self._client, self._name, start=start, end=end))
        except BaseError as error:
            if FailedRequest(error).has(StoreFault.NO_RANGED_READS):
                return "it answers a request for a part of an object with the whole object"
            raise
        if part != self._body[start:end]:
            return f"it returned {len(part):,} other bytes for a part of {end - start} bytes"
        return ""

    def _list(self) -> str:
        names = [each["path"] for batch in obstore.list(self._client, FOLDER) for each in batch]
        return "" if self._name in names else "a listing lacks an object that was written before"

    def _read(self) -> str:
        body = b"read" * (_BODY_BYTES // 4)
        self._overwrite(body)
        found = bytes(obstore.get(self._client, self._name).bytes())
        return "" if found == body else "an object was read in an older version than the one that was written last"

    def _overwrite(self, body: bytes) -> None:
        overwrite(self._client, ReservedNames(self._location, PROBES), self._name, body)

    def _accept_read(self, body: bytes, meta: Any) -> None:
        self.written_at = meta["last_modified"]
        self._accept(body, meta)

    def _accept(self, body: bytes, answer: Any) -> None:
        self._body = body
        version = {"e_tag": normal_etag(answer.get("e_tag")), "version": answer.get("version")}
        self._version = {key: value for key, value in version.items() if value}


@contextmanager
def _directories(location: Location) -> Iterator[None]:
    """Removes the directories of a local location that did not exist before, unless others have used them."""
    made = [*_missing_directories(location)]
    try:
        yield
    finally:
        if location.is_local:
            remove_empty_directories(location.child(FOLDER))
            for each in made:
                remove_empty_directories(Location(str(each)))


def _missing_directories(location: Location) -> Iterator[Path]:
    path = location.path if location.is_local else Path("/")
    while not path.exists() and path != path.parent:
        yield path
        path = path.parent
