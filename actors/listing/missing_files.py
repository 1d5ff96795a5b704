"""Missing files: handed on before, and not in the bucket any more, as two signs say.

The two signs are two complete listings in a row, or an event, or a listing, and the look that follows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from actors.files import DeletedFile
from actors.listing.instructions import FindDeleted, ListInstruction
from state.tables.keys import encode_key

if TYPE_CHECKING:
    from state.store.store import StateStore


@dataclass(frozen=True)
class DeletedFound:
    """Answer of the store to a `FindDeleted`.

    Args:
        epoch: the last committed epoch; of files that were handed on later the store knows nothing.
        files: path fingerprint → the versions in the ledger that are not marked as deleted yet.  A path that is still
            in a queue, or not in the store, is left out: it is found when it is finished.
    """

    epoch: int
    files: Mapping[bytes, tuple[DeletedFile, ...]] = field(default_factory=dict)


def find_deleted(store: StateStore, source: str, missing: Mapping[bytes, bytes]) -> DeletedFound:
    """Finds the files of missing names, by the paths that `seen` keeps for their fingerprints.

    Args:
        store: the store, as committed.
        source: the name of the source.
        missing: path fingerprint → version fingerprint, as in `seen`.
    """
    seen = store.scan("seen", keys=missing.keys(), fields=["path"])
    keys = dict(zip(seen["path"].to_pylist(), seen["key"].to_pylist(), strict=True))
    prefixes = [encode_key(source, path) for path in keys]
    unfinished = set(store.scan("queue", prefixes=prefixes, fields=["path"])["path"].to_pylist())
    fields = ["path", "version", "changed_epoch", "deleted_epoch"]
    ledger = store.scan("ledger", prefixes=prefixes, fields=fields).select(fields).to_pylist()
    # The version that was handed on last has its own row, or is noted in the row of the version before.
    known = {
        row["path"]
        for row in ledger
        if row["changed_epoch"] is not None or missing[keys[row["path"]]] == row["version"]
    } - unfinished
    found: dict[bytes, list[DeletedFile]] = {key: [] for path, key in keys.items() if path in known}
    for row in ledger:
        if row["deleted_epoch"] is None and row["path"] in known:
            found[keys[row["path"]]].append(DeletedFile(source, row["path"], row["version"]))
    return DeletedFound(store.head.epoch, {key: tuple(files) for key, files in found.items()})


class MissingNames:
    """Names that are not in the bucket any more, until the store has told their files.

    A name that one listing lacks is suspected, and confirmed by the next one.  `seen` keeps fingerprints only, so the
    store is asked for all confirmed names, one request at a time.  It does not find a name that is still in a queue or
    not committed: then it is asked again later.

    Args:
        source: the name of the source.

    Attributes:
        awaits_answer: whether a request to the store is under way.
        uncounted: number of further names that the last listing lacks.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        # Path fingerprint → version fingerprint, and the epoch in which the source last handed a file on.
        self._suspected: dict[bytes, tuple[bytes, int]] = {}
        self._names: dict[bytes, tuple[bytes, int]] = {}
        self._paths: dict[bytes, str] = {}
        self._deleted: set[bytes] = set()
        self.awaits_answer = False
        self.uncounted = 0
        self._asked_in: int | None = None
        self._asked_at, self._patience = 0, 1
        self._is_more_known = False

    @property
    def count(self) -> int:
        """The number of missing names, with the uncounted names, and without the names that are marked as deleted."""
        return len(self._suspected) + len(self._names) + self.uncounted - len(self._deleted)

    @property
    def is_suspecting(self) -> bool:
        """True if a second listing must confirm a name."""
        return bool(self._suspected)

    @property
    def is_confirmed(self) -> bool:
        """True if a name is confirmed."""
        return bool(self._names)

    @property
    def needs_listing(self) -> bool:
        """True if a restart must list to find all of these names again: no message of the queue names them."""
        return len(self._suspected) + len(self._names) + self.uncounted > len(self._paths)

    @property
    def may_ask_for_paths(self) -> bool:
        """True if messages wait for an answer, and a commit was made since the last request."""
        return bool(self._paths) and not self.awaits_answer and self._is_more_known

    def suspect(self, key: bytes, version: bytes, last_epoch: int) -> None:
        """Adds a name that a complete listing lacks.

        Args:
            key: its fingerprint.
            version: the version that was handed on.
            last_epoch: the epoch in which the source last handed a file on.
        """
        names = self._names if key in self._names else self._suspected
        names[key] = version, last_epoch

    def confirm(self) -> None:
        """Another complete listing lacks the suspected names."""
        self._names |= self._suspected
        self._suspected = {}

    def add(self, key: bytes, version: bytes, last_epoch: int, path: str, *, is_deleted: bool = False) -> None:
        """Adds a name that a look did not find: messages of the queue of events wait for the answer.

        Args:
            key: its fingerprint.
            version: the version that was handed on.
            last_epoch: the epoch in which the source last handed a file on.
            is_deleted: whether it is marked as deleted, and the message is about an earlier removal.
        """
        self._suspected.pop(key, None)
        if is_deleted:
            self._deleted.add(key)
        self._names[key] = version, last_epoch
        self._paths[key] = path
        self._is_more_known = True

    def discard(self, keys: Sequence[bytes]) -> list[str]:
        """Removes names, which are there again or were forgotten; returns the paths that are known of them."""
        if not self._names and not self._suspected:
            return []
        self._deleted.difference_update(keys)
        for key in keys:
            self._suspected.pop(key, None)
            self._names.pop(key, None)
        return [self._paths.pop(key) for key in keys if key in self._paths]

    def take_paths(self) -> list[str]:
        """Takes the known paths: their names wait for a listing, and messages wait no longer."""
        paths, self._paths = list(self._paths.values()), {}
        return paths

    def on_committed(self) -> None:
        """An epoch was committed: the store may know more names."""
        self._is_more_known = True

    def ask(self, epoch: int | None, listings: int) -> list[ListInstruction]:
        """Asks the store after a listing, unless it was asked in vain a short time ago.

        Args:
            listings: number of complete listings.
        """
        if not self._names or self.awaits_answer:
            return []
        if epoch == self._asked_in and listings < self._asked_at + self._patience:
            return []
        # Any commit may bring the names, also the commit of an earlier epoch.
        self._patience = 2 * self._patience if epoch == self._asked_in else 1
        self._asked_in, self._asked_at = epoch, listings
        return self._ask()

    def ask_for_paths(self) -> list[ListInstruction]:
        """Asks the store if `may_ask_for_paths`."""
        return self._ask() if self.may_ask_for_paths else []

    def _ask(self) -> list[ListInstruction]:
        self.awaits_answer, self._is_more_known = True, False
        return [FindDeleted(self._source, {key: version for key, (version, _) in self._names.items()})]

    def on_found(self, found: DeletedFound) -> tuple[tuple[DeletedFile, ...], list[bytes], list[str]]:
        """Takes the answer of the store.

        Returns:
            The deleted files, the fingerprints of the names that the store found, and the paths known of them.
        """
        self.awaits_answer = False
        # A name that was listed meanwhile is back.  Of one that came back and went again after the last commit, the
        # store knows only the past.
        known = [key for key in found.files if key in self._names and self._names[key][1] <= found.epoch]
        return tuple(file for key in known for file in found.files[key]), known, self.discard(known)
