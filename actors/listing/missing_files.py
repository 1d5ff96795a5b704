"""Files that a complete listing does not show any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from actors.files import GoneFile
from actors.listing.instructions import ListInstruction as Instruction
from state.tables.fingerprint import path_fingerprint
from state.tables.keys import encode_key

if TYPE_CHECKING:
    from state.store.store import StateStore


from collections.abc import Iterable

from actors.listing.instructions import FindGone


@dataclass(frozen=True)
class GoneFound:
    """Path fingerprint → the rows of the ledger that do not say yet that the path is gone.

    What is still in a queue, or not yet in the store, is left out: it is found when it is finished.  `epoch` is the
    last committed one: of what was handed on later nothing is known.
    """

    epoch: int
    files: Mapping[bytes, tuple[GoneFile, ...]] = field(default_factory=dict)


def find_gone(store: StateStore, source: str, absent: Mapping[bytes, bytes]) -> GoneFound:
    """Looks for the paths of names that only `seen` knows, by their fingerprints.

    Args:
        store: as committed.
        source: whose they are.
        absent: path fingerprint → version fingerprint, as in `seen`.
    """
    ledger, queue = (_rows_of(store, table, source) for table in ("ledger", "queue"))
    versions = pa.array(list(absent.values()), pa.binary(8))
    may_be = pc.or_(pc.is_in(ledger["version"], value_set=versions), pc.is_valid(ledger["changed_epoch"]))
    unfinished = set(queue["path"].to_pylist())
    keys: dict[str, bytes] = {}
    for row in ledger.filter(may_be).select(["path", "version", "changed_epoch"]).to_pylist():
        key = path_fingerprint(source, row["path"])
        # The version that was handed on last has its row, or is noted in that of the version before.
        is_last = row["changed_epoch"] is not None or absent.get(key) == row["version"]
        if key in absent and is_last and row["path"] not in unfinished:
            keys[row["path"]] = key
    found: dict[bytes, list[GoneFile]] = {key: [] for key in keys.values()}
    own = ledger.filter(pc.is_in(ledger["path"], value_set=pa.array(list(keys), pa.string())))
    for row in own.filter(pc.is_null(own["gone_epoch"])).select(["path", "version"]).to_pylist():
        found[keys[row["path"]]].append(GoneFile(source, row["path"], row["version"]))
    return GoneFound(store.head.epoch, {key: tuple(files) for key, files in found.items()})


def _rows_of(store: StateStore, table: str, source: str) -> pa.Table:
    start = encode_key(source)
    return store.scan(table, start=start, end=start + b"\xff")


class MissingNames:
    """Asks the store for the files of absent names, for one batch of them at a time.

    `seen` knows fingerprints only.  What is still in a queue, or not yet in the store, the store does not tell: it is
    asked again when more is committed.

    Args:
        source: whose names they are.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        # Fingerprint of the name → that of the version, and the epoch in which the source last handed something on.
        self._names: dict[bytes, tuple[bytes, int]] = {}
        self._paths: dict[bytes, str] = {}
        self._asking = False
        self._asked_in: int | None = None
        self._asked_at, self._patience = 0, 1
        self._is_more_known = False

    def __bool__(self) -> bool:
        return bool(self._names)

    def add(self, key: bytes, version: bytes, marked_in: int, path: str | None = None) -> None:
        """A name is not there.

        Args:
            key: its fingerprint.
            version: what was handed on.
            marked_in: the epoch in which the source last handed something on.
            path: the name itself, if it is known.
        """
        self._names[key] = version, marked_in
        if path is not None:
            self._paths[key] = path
            self._is_more_known = True

    def discard(self, keys: Iterable[bytes]) -> list[str]:
        """These names are there, or are not known any more.  Returns the paths, as far as they were given."""
        if not self._names:
            return []
        gone = [key for key in keys if self._names.pop(key, None) is not None]
        return [self._paths.pop(key) for key in gone if key in self._paths]

    def on_committed(self) -> None:
        """The store knows more."""
        self._is_more_known = True

    def ask(self, epoch: int | None, listings: int) -> list[Instruction]:
        """After a listing: asks for what the store knows, unless it was asked in vain a short time ago.

        Args:
            epoch: that is open.
            listings: how many there were.
        """
        if not self._names or self._asking:
            return []
        if epoch == self._asked_in and listings < self._asked_at + self._patience:
            return []
        # What the store did not know yet it may know after the next commit, which may be that of an epoch before.
        self._patience = 2 * self._patience if epoch == self._asked_in else 1
        self._asked_in, self._asked_at = epoch, listings
        return self._ask()

    def ask_for_paths(self) -> list[Instruction]:
        """Asks for names that somebody waits for, if the store may know more than when it was asked last."""
        if not self._paths or self._asking or not self._is_more_known:
            return []
        return self._ask()

    def _ask(self) -> list[Instruction]:
        self._asking, self._is_more_known = True, False
        return [FindGone(self._source, {key: version for key, (version, _) in self._names.items()})]

    def on_found(self, found: GoneFound) -> tuple[tuple[GoneFile, ...], list[bytes], list[str]]:
        """What the store knows.

        Returns:
            The files that are gone, the names that are done with, and their paths as far as they were given.
        """
        self._asking = False
        # What was listed meanwhile is back; of what came back before, and went again, the store may know the past only.
        known = [key for key in found.files if key in self._names and self._names[key][1] <= found.epoch]
        return tuple(file for key in known for file in found.files[key]), known, self.discard(known)
