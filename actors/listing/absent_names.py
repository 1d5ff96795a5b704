"""Names that were handed on and are not there any more, until the ledger has been asked about them."""

from __future__ import annotations

from collections.abc import Iterable

from actors.files import GoneFile
from actors.listing.gone_files import GoneFound
from actors.listing.instructions import FindGone
from actors.protocol.instructions import Instruction


class AbsentNames:
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
