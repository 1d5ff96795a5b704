"""Missing files: handed on before, and not shown by a complete listing or by a look any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from actors.files import GoneFile
from actors.listing.instructions import FindGone, ListInstruction
from state.tables.fingerprint import path_fingerprint
from state.tables.keys import encode_key

if TYPE_CHECKING:
    from state.store.store import StateStore


@dataclass(frozen=True)
class GoneFound:
    """Answer of the store to a `FindGone`.

    Args:
        epoch: the last committed epoch; of files that were handed on later the store knows nothing.
        files: path fingerprint → the versions in the ledger that are not marked as gone yet.  A path that is still in
            a queue, or not in the store, is left out: it is found when it is finished.
    """

    epoch: int
    files: Mapping[bytes, tuple[GoneFile, ...]] = field(default_factory=dict)


def find_gone(store: StateStore, source: str, absent: Mapping[bytes, bytes]) -> GoneFound:
    """Finds the files of missing names in the ledger by their fingerprints, which are all that `seen` keeps.

    Args:
        store: the store, as committed.
        source: the name of the source.
        absent: path fingerprint → version fingerprint, as in `seen`.
    """
    ledger, queue = (_rows_of(store, table, source) for table in ("ledger", "queue"))
    versions = pa.array(list(absent.values()), pa.binary(8))
    may_be = pc.or_(pc.is_in(ledger["version"], value_set=versions), pc.is_valid(ledger["changed_epoch"]))
    unfinished = set(queue["path"].to_pylist())
    keys: dict[str, bytes] = {}
    for row in ledger.filter(may_be).select(["path", "version", "changed_epoch"]).to_pylist():
        key = path_fingerprint(source, row["path"])
        # The version that was handed on last has its own row, or is noted in the row of the version before.
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
    """Names that are not in the bucket any more, until the store has told their files.

    `seen` keeps fingerprints only, so the store is asked for all of them, one request at a time.  It does not find a
    name that is still in a queue or not committed: then it is asked again later.

    Args:
        source: the name of the source.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        # Path fingerprint → version fingerprint, and the epoch in which the source last handed a file on.
        self._names: dict[bytes, tuple[bytes, int]] = {}
        self._paths: dict[bytes, str] = {}
        self._awaits_answer = False
        self._asked_in: int | None = None
        self._asked_at, self._patience = 0, 1
        self._is_more_known = False

    def __bool__(self) -> bool:
        return bool(self._names)

    def add(self, key: bytes, version: bytes, last_epoch: int, path: str | None = None) -> None:
        """Adds a missing name.

        Args:
            key: its fingerprint.
            version: the version that was handed on.
            last_epoch: the epoch in which the source last handed a file on.
            path: the name itself, if it is known: then messages of the queue of events wait for the answer.
        """
        self._names[key] = version, last_epoch
        if path is not None:
            self._paths[key] = path
            self._is_more_known = True

    def discard(self, keys: Iterable[bytes]) -> list[str]:
        """Removes names, which are there again or were forgotten; returns the paths that are known of them."""
        if not self._names:
            return []
        removed = [key for key in keys if self._names.pop(key, None) is not None]
        return [self._paths.pop(key) for key in removed if key in self._paths]

    def on_committed(self) -> None:
        """An epoch was committed: the store may know more names."""
        self._is_more_known = True

    def ask(self, epoch: int | None, listings: int) -> list[ListInstruction]:
        """Asks the store after a listing, unless it was asked in vain a short time ago.

        Args:
            epoch: the open epoch.
            listings: number of complete listings.
        """
        if not self._names or self._awaits_answer:
            return []
        if epoch == self._asked_in and listings < self._asked_at + self._patience:
            return []
        # Any commit may bring the names, also the commit of an earlier epoch.
        self._patience = 2 * self._patience if epoch == self._asked_in else 1
        self._asked_in, self._asked_at = epoch, listings
        return self._ask()

    def ask_for_paths(self) -> list[ListInstruction]:
        """Asks the store if messages wait for an answer and a commit was made since the last request."""
        if not self._paths or self._awaits_answer or not self._is_more_known:
            return []
        return self._ask()

    def _ask(self) -> list[ListInstruction]:
        self._awaits_answer, self._is_more_known = True, False
        return [FindGone(self._source, {key: version for key, (version, _) in self._names.items()})]

    def on_found(self, found: GoneFound) -> tuple[tuple[GoneFile, ...], list[bytes], list[str]]:
        """Takes the answer of the store.

        Returns:
            The gone files, the fingerprints of the names that the store found, and the paths known of them.
        """
        self._awaits_answer = False
        # A name that was listed meanwhile is back.  Of one that came back and went again after the last commit, the
        # store knows only the past.
        known = [key for key in found.files if key in self._names and self._names[key][1] <= found.epoch]
        return tuple(file for key in known for file in found.files[key]), known, self.discard(known)
