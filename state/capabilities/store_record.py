"""`<root>/store.json`: the identity of a root, and the capabilities of its store, as the last probe found them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import version
from uuid import uuid4  # noqa: TID251 - no two roots may have one identity

from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError, PreconditionError

from state.capabilities.probe import CONSEQUENCES, ROOT_NEEDS, Capability, Probed, probe
from state.clock import Clock
from state.errors import BucketNotFoundError, StorageUnavailableError, StoreCapabilityError
from state.json_document import json_of, moment_of
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.objects.stored_object import read_object
from state.removal.evidence import ReservedNames
from state.removal.names import STORE_RECORD
from state.removal.objects import create, overwrite, replace_version
from state.visible import one_line

NAME = "store.json"
_REMEDY = "use a store that has it"
_TRIES = 5


@dataclass(frozen=True)
class StoreRecord:
    """The result of a probe, as a root keeps it.

    Args:
        probed_at: the time of the probe.
        slackwater: the version of Slackwater that probed.
        capabilities: the names of the capabilities that were found.
        missing: the names of the missing capabilities.
        violations: the observed behaviour of the store, one text for each missing capability.
        identity: a random UUID, made with the root; a copy of the root has the same UUID.  Empty in a root of an
            earlier version until its next start.
    """

    probed_at: datetime
    slackwater: str
    capabilities: tuple[str, ...]
    missing: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    identity: str = ""

    def warning(self, root: Location) -> str:
        """The warning about a root on a store without a capability; empty if it has all."""
        if not self.missing:
            return ""
        missing, violations = one_line(", ".join(self.missing)), one_line("; ".join(self.violations))
        return (
            f"the store of {root} lacks {missing}: {violations}; commits can be lost: "
            "copy the root to another store, and run only one process on it until then"
        )

    def to_json(self) -> bytes:
        """The content of the file."""
        document = {**vars(self), "probed_at": self.probed_at.isoformat()}
        return json.dumps(document, indent=1).encode()

    @classmethod
    def of_json(cls, content: bytes) -> StoreRecord | None:
        """Reads `to_json`; None if the content is torn."""
        try:
            read = json_of(content)
            texts = {name: tuple(map(str, read[name])) for name in ("capabilities", "missing", "violations")}
            probed_at, identity = moment_of(read["probed_at"]), str(read.get("identity", ""))
            return cls(probed_at, str(read["slackwater"]), **texts, identity=identity)
        except (ValueError, TypeError, KeyError):
            return None


def read_record(root: Location) -> StoreRecord | None:
    """The record of a root; None if no probe was recorded.

    Raises:
        StorageError: the root cannot be read.
    """
    found = _found(root)
    return None if found is None else StoreRecord.of_json(found[0])


def root_identity(root: Location) -> str:
    """The identity of a root; empty if the root does not exist, or was not started since roots have identities.

    Raises:
        StorageError: the root cannot be read.
    """
    record = read_record(root)
    return "" if record is None else record.identity


def require_capable(root: Location, clock: Clock, unique: str, exists: Callable[[], bool]) -> StoreRecord:
    """The record of a root; without one, or with missing capabilities, the store is probed and the result recorded.

    A root without an identity gets one.

    Args:
        clock: the clock for the time of the probe.
        unique: see `probe`.
        exists: whether the root has a store: then it is never refused.  Called only for a missing capability.

    Raises:
        StoreCapabilityError: the root is new, and its store lacks a capability; nothing was written.
        StorageError: the root cannot be read or written.
    """
    record = read_record(root)
    if record is not None and not record.missing and record.identity:
        return record
    if record is None or record.missing:
        probed = probe(root, unique)
        if probed.missing and not exists():
            raise refused(f"root {root}", probed)
        record = _record(probed, clock)
    return _recorded(root, record)


def record_branch(root: Location, branch: Location) -> StoreRecord | None:
    """Gives a new branch the record of its root, with an identity of its own; None if the root has no record.

    Raises:
        StorageError: the root or the branch cannot be read or written.
    """
    record = read_record(root)
    return None if record is None else _recorded(branch, replace(record, identity=""))


def _recorded(root: Location, record: StoreRecord) -> StoreRecord:
    """Writes a record with the identity that the root has, or with a new one.

    Two processes that start on a new root at once agree on one identity: the second accepts the identity of the first.
    """
    client = object_client(root)
    try:
        for _ in range(_TRIES):
            found = _found(root)
            before = None if found is None else StoreRecord.of_json(found[0])
            written = replace(record, identity=(before.identity if before is not None else "") or str(uuid4()))
            try:
                if record.missing:  # such a store may not understand a condition
                    overwrite(client, ReservedNames(root, STORE_RECORD), NAME, written.to_json())
                elif found is None:
                    create(client, root, NAME, written.to_json())
                else:
                    replace_version(client, root, NAME, written.to_json(), found[1])
                return written
            except (AlreadyExistsError, PreconditionError):
                continue  # another process has started on the root meanwhile
    except (BaseError, OSError) as error:
        raise storage_error(error, root) from None
    raise StorageUnavailableError(f"{root}/{NAME}: other processes write it again and again; try again later")


def _found(root: Location) -> tuple[bytes, Mapping[str, str | None]] | None:
    """The content of the file and its version; None if it does not exist.

    Raises:
        StorageError: the root cannot be read.
    """
    if root.is_local and not root.path.is_dir():
        return None
    try:
        read = read_object(object_client(root), root, NAME)
    except (FileNotFoundError, NotFoundError) as error:
        reason = storage_error(error, root)
        if isinstance(reason, BucketNotFoundError):
            raise reason from None
        return None
    except (BaseError, OSError) as error:
        raise storage_error(error, root) from None
    return read.content, read.version


def require_table_store(table: Location, unique: str, needs: Sequence[Capability] = ROOT_NEEDS) -> None:
    """Probes the store of a published table that does not exist yet.

    Args:
        table: the location of the table.
        unique: see `probe`.
        needs: the capabilities that its format needs.

    Raises:
        StoreCapabilityError: the store lacks a capability; nothing was written.
        StorageError: the place cannot be read or written.
    """
    probed = probe(table, unique, needs)
    if probed.missing:
        raise refused(f"table {table}", probed)


def refused(place: str, probed: Probed) -> StoreCapabilityError:
    """The refusal of a place on a store without capabilities.

    Args:
        place: the root or the table, in words.
        probed: the result of its probe, with at least one violation.
    """
    capability, violation = next(iter(probed.violations.items()))
    others = [each.value for each in probed.missing[1:]]
    also = f" (and {', '.join(others)})" if others else ""
    return StoreCapabilityError(
        f"{place}: its store lacks {capability.value}{also}: {violation}, so {CONSEQUENCES[capability]}; nothing was "
        f"written: {_REMEDY}, and check it with `slackwater doctor`"
    )


def _record(probed: Probed, clock: Clock) -> StoreRecord:
    return StoreRecord(
        clock.now(),
        version("slackwater"),
        tuple(each.value for each in Capability if each not in probed.violations),
        tuple(each.value for each in probed.missing),
        tuple(probed.violations.values()),
    )
