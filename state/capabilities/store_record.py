"""`<root>/store.json`: the capabilities of the store of a root, as the last probe found them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version

import obstore
from obstore.exceptions import BaseError, NotFoundError

from state.capabilities.probe import CONSEQUENCES, ROOT_NEEDS, Capability, Probed, probe
from state.clock import Clock
from state.errors import BucketNotFoundError, StoreCapabilityError
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.removal.evidence import ReservedNames
from state.removal.names import STORE_RECORD
from state.removal.objects import overwrite

NAME = "store.json"
_REMEDY = "use a store that has it"


@dataclass(frozen=True)
class StoreRecord:
    """The result of a probe, as a root keeps it.

    Args:
        probed_at: the time of the probe.
        slackwater: the version of Slackwater that probed.
        capabilities: the names of the capabilities that were found.
        missing: the names of the missing capabilities.
        violations: the observed behaviour of the store, one text for each missing capability.
    """

    probed_at: datetime
    slackwater: str
    capabilities: tuple[str, ...]
    missing: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()

    def warning(self, root: Location) -> str:
        """The warning about a root on a store without a capability; empty if it has all."""
        if not self.missing:
            return ""
        return (
            f"the store of {root} lacks {', '.join(self.missing)}: {'; '.join(self.violations)}; commits can be lost: "
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
            read = json.loads(content)
            texts = {name: tuple(map(str, read[name])) for name in ("capabilities", "missing", "violations")}
            return cls(datetime.fromisoformat(read["probed_at"]), str(read["slackwater"]), **texts)
        except (ValueError, TypeError, KeyError, RecursionError):
            return None


def read_record(root: Location) -> StoreRecord | None:
    """The record of a root; None if no probe was recorded.

    Raises:
        StorageError: the root cannot be read.
    """
    if root.is_local and not root.path.is_dir():
        return None
    try:
        return StoreRecord.of_json(bytes(obstore.get(object_client(root), NAME).bytes()))
    except (FileNotFoundError, NotFoundError) as error:
        reason = storage_error(error, root)
        if isinstance(reason, BucketNotFoundError):
            raise reason from None
        return None
    except (BaseError, OSError) as error:
        raise storage_error(error, root) from None


def require_capable(root: Location, clock: Clock, unique: str, exists: Callable[[], bool]) -> StoreRecord:
    """The record of a root; without one, or with missing capabilities, the store is probed and the result recorded.

    Args:
        root: the root.
        clock: the clock for the time of the probe.
        unique: see `probe`.
        exists: whether the root has a store: then it is never refused.  Called only for a missing capability.

    Raises:
        StoreCapabilityError: the root is new, and its store lacks a capability; nothing was written.
        StorageError: the root cannot be read or written.
    """
    record = read_record(root)
    if record is not None and not record.missing:
        return record
    probed = probe(root, unique)
    if probed.missing and not exists():
        raise refused(f"root {root}", probed)
    record = _record(probed, clock)
    try:
        overwrite(object_client(root), ReservedNames(root, STORE_RECORD), NAME, record.to_json())
    except (BaseError, OSError) as error:
        raise storage_error(error, root) from None
    return record


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
