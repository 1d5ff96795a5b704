"""Index of the names that were handed on: version, and marks of the last listings; 25 bytes a name."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt

_MERGE_AT = 65_536
_MERGE_SHARE = 128
_NAMES_PER_BUCKET = 16
_MOVED_AT_ONCE = 1 << 18
_SHOWN, _MISSING, _FORGOTTEN, _DELETED, _UNREAD = 1, 2, 4, 8, 16

Words = npt.NDArray[np.uint64]
_Positions = npt.NDArray[np.int64]
Buffer = bytes | memoryview


class Sight(IntEnum):
    """The state of a name in the index when a listing shows it."""

    NEW = 0
    SAME = 1
    CHANGED = 2
    TWICE = 3
    """This listing has shown it before in another version: two names have one fingerprint."""
    BACK = 4
    """It was handed on in this version, and deleted since: its rows were retracted, it was not read, or the run has
    deleted it."""


class SeenIndex:
    """Path fingerprint (16 bytes) → version fingerprint (8 bytes), and a byte of marks.

    Sorted arrays hold most names, a dictionary the recent ones; it is merged into the arrays when it grows.
    The arrays are sorted by the first 8 bytes of the path's fingerprint; the other 8 decide between equals.  Since
    fingerprints are spread evenly, a table with the start of every 16th of them replaces most of a binary search.

    A listing begins with `begin_listing`; every name that is looked up or put afterwards counts as shown.
    """

    def __init__(self, keys: Sequence[bytes] = (), versions: Sequence[bytes] = ()) -> None:
        self._recent: dict[bytes, bytes] = {}
        # Of the names whose object the run has deleted, the delivery that it has deleted.
        self._run_deletions: SeenIndex | None = None
        self._has_deleted = False
        pairs = words_of(b"".join(keys)).reshape(-1, 2)
        order = np.argsort(pairs[:, 0])
        self._high: Words = pairs[:, 0][order]
        self._low: Words = pairs[:, 1][order]
        self._versions: Words = words_of(b"".join(versions))[order]
        self._flags = np.zeros(len(order), np.uint8)
        self._index()

    @classmethod
    def of_words(cls, high: Words, low: Words, versions: Words) -> SeenIndex:
        """An index of arrays, which it keeps and changes.

        Args:
            high: the first 8 bytes of each path fingerprint, ascending.
            low: the other 8.
            versions: the version fingerprints.
        """
        index = cls()
        index._high, index._low, index._versions = high, low, versions
        index._flags = np.zeros(len(high), np.uint8)
        index._index()
        return index

    def __len__(self) -> int:
        stored = self._find(list(self._recent))
        forgotten = int(np.count_nonzero(self._flags & _FORGOTTEN))
        back = int(np.count_nonzero(self._flags[stored[stored >= 0]] & _FORGOTTEN))
        return len(self._high) - forgotten + int(np.count_nonzero(stored < 0)) + back

    def lookup(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The version of each key; None for a key that was never handed on."""
        found: list[bytes | None] = []
        for key, at in zip(keys, self._find(keys).tolist(), strict=True):
            is_stored = at >= 0 and not self._flags[at] & _FORGOTTEN
            stored = int(self._versions[at]).to_bytes(8, "big") if is_stored else None
            found.append(self._recent.get(key, stored))
        return found

    def show(self, keys: Sequence[bytes], versions: Sequence[bytes]) -> npt.NDArray[np.uint8]:
        """A listing shows these names in these versions.

        Returns:
            The `Sight` of each.
        """
        at = self._find(keys)
        sights = np.full(len(keys), Sight.NEW, np.uint8)
        rows = np.flatnonzero(at >= 0)
        rows = rows[self._flags[at[rows]] & _FORGOTTEN == 0]
        stored = at[rows]
        is_same = self._versions[stored] == words_of(b"".join(versions))[rows]
        was_shown = self._flags[stored] & _SHOWN == _SHOWN
        was_deleted = self._flags[stored] & (_DELETED | _UNREAD) != 0
        known = np.where(was_deleted, Sight.BACK, Sight.SAME)
        sights[rows] = np.where(is_same, known, np.where(was_shown, Sight.TWICE, Sight.CHANGED))
        # The reader of the page may leave the name to a later look.
        self._flags[stored] = _SHOWN | (self._flags[stored] & _UNREAD)
        if not self._recent.keys().isdisjoint(keys):
            for row, key in enumerate(keys):
                recent = self._recent.get(key)
                if recent is not None:
                    sights[row] = Sight.SAME if recent == versions[row] else Sight.TWICE
        return sights

    def put(self, key: bytes, version: bytes) -> None:
        """The name is handed on in this version."""
        self._recent[key] = version
        if len(self._recent) >= max(_MERGE_AT, len(self._high) // _MERGE_SHARE):
            self._merge()

    def forget(self, key: bytes, version: bytes) -> bool:
        """Makes the key new again if this is its version; returns whether it is."""
        if self.lookup([key]) != [version]:
            return False
        self._recent.pop(key, None)
        (at,) = self._find([key])
        if at >= 0:
            self._flags[at] = _FORGOTTEN
        return True

    # -- missing names ------------------------------------------------------------------------------------------

    def begin_listing(self) -> None:
        """A listing begins: no name counts as shown yet."""
        if self._recent:
            self._merge()
        np.bitwise_and(self._flags, ~np.uint8(_SHOWN), out=self._flags)

    def count_present(self) -> int:
        """The number of names that are neither forgotten nor marked as deleted.  A name that is only missing counts."""
        stored = self._find(list(self._recent))
        away = self._flags & (_FORGOTTEN | _DELETED) != 0
        back = int(np.count_nonzero(away[stored[stored >= 0]]))
        return len(self._flags) - int(np.count_nonzero(away)) + back + int(np.count_nonzero(stored < 0))

    def count_unshown(self, skipped: int) -> int:
        """Number of names that the listing lacks and that are not marked as missing.

        Args:
            skipped: number of names that the listing has shown, and that were not looked up.
        """
        shown = int(np.count_nonzero(self._flags & (_SHOWN | _MISSING | _FORGOTTEN) == _SHOWN))
        present = len(self._flags) - int(np.count_nonzero(self._flags & (_MISSING | _FORGOTTEN)))
        return present - shown - skipped

    def take_missing(self, limit: int) -> dict[bytes, bytes]:
        """Marks up to `limit` names that the listing has not shown as missing, until they are shown again.

        Returns:
            Path fingerprint → version, of the names that were not marked before.
        """
        at = np.flatnonzero(self._flags & (_SHOWN | _MISSING | _FORGOTTEN) == 0)[:limit]
        self._flags[at] |= _MISSING
        keys = np.stack([self._high[at], self._low[at]], axis=1).astype(">u8").tobytes()
        versions = self._versions[at].astype(">u8").tobytes()
        return {keys[16 * row : 16 * (row + 1)]: versions[8 * row : 8 * (row + 1)] for row in range(len(at))}

    def take_back(self, key: bytes) -> bool:
        """Takes the marks of a missing name back: it is there; returns whether the ledger says that it was deleted."""
        (at,) = self._find([key])
        if key in self._recent or at < 0 or not self._flags[at] & (_MISSING | _DELETED):
            return False
        was_deleted = bool(self._flags[at] & _DELETED)
        self._flags[at] = _SHOWN
        return was_deleted

    def set_missing(self, keys: Sequence[bytes]) -> None:
        """Marks names as missing: a look did not find them, or the ledger has noted it."""
        rest = [key for key in keys if key not in self._recent]
        at = self._find(rest)
        self._flags[at[at >= 0]] |= _MISSING

    def is_gone(self, key: bytes) -> bool:
        """True if the version of a name is read again when the file returns."""
        (at,) = self._find([key])
        return key not in self._recent and at >= 0 and bool(self._flags[at] & (_DELETED | _UNREAD))

    def set_deleted(self, keys: Sequence[bytes]) -> None:
        """Marks names as missing, and their versions as to be read again when they are back."""
        if keys:
            self._has_deleted = True
            if any(key in self._recent for key in keys):
                self._merge()
            at = self._find(keys)
            at = at[at >= 0]
            self._flags[at] = (self._flags[at] & ~np.uint8(_UNREAD)) | _MISSING | _DELETED

    def set_unread(self, keys: Sequence[bytes]) -> None:
        """Marks names whose version vanished before its rows could replace the rows of an earlier version.

        The version is read again when it is listed again.  Until then the views have the earlier rows, so a listing
        that lacks the name reports it as missing.  The next `put` or `set_deleted` removes the mark.
        """
        if any(key in self._recent for key in keys):
            self._merge()
        self._has_deleted = True
        at = self._find(keys)
        self._flags[at[at >= 0]] |= _UNREAD

    def unread(self, keys: Sequence[bytes]) -> set[int]:
        """The rows of the names that `set_unread` has marked."""
        if not self._has_deleted or not keys or not len(self._high):
            return set()
        at = self._find(keys)
        rows = np.flatnonzero((at >= 0) & (self._flags[at] & _UNREAD == _UNREAD)).tolist()
        return {row for row in rows if keys[row] not in self._recent}

    def set_deleted_by_run(self, keys: Sequence[bytes], versions: Sequence[bytes], deliveries: Sequence[bytes]) -> None:
        """Records versions that the run has deleted: other deliveries with these names are read.

        Args:
            keys: the fingerprints of the paths.
            versions: the deleted versions; the entry of a name with another version does not change.
            deliveries: the deleted deliveries, see `state.tables.fingerprint`.
        """
        if any(key in self._recent for key in keys):
            self._merge()
        known = self.lookup(keys)
        own = [row for row, version in enumerate(versions) if known[row] == version]
        if not own:
            return
        self._has_deleted = True
        self._flags[self._find([keys[row] for row in own])] |= _DELETED
        deletions = self._run_deletions = self._run_deletions or SeenIndex()
        for row in own:
            deletions.put(keys[row], deliveries[row])

    def deleted(self, keys: Sequence[bytes]) -> dict[int, bytes | None]:
        """Row → the deleted delivery, or None if it is not known, of the names for which `is_deleted` holds."""
        if not self._has_deleted or not keys or not len(self._high):
            return {}
        at = self._find(keys)
        is_deleted = (at >= 0) & (self._flags[at] & (_DELETED | _UNREAD) != 0)
        rows = [row for row in np.flatnonzero(is_deleted).tolist() if keys[row] not in self._recent]
        unknown: list[bytes | None] = [None] * len(rows)
        deliveries = unknown if self._run_deletions is None else self._run_deletions.lookup([keys[row] for row in rows])
        return dict(zip(rows, deliveries, strict=True))

    # -- inside ---------------------------------------------------------------------------------------------------

    def _find(self, keys: Sequence[bytes]) -> _Positions:
        """The position of each key in the arrays; -1 for a key that is not in them."""
        if not len(self._high) or not keys:
            return np.full(len(keys), -1, np.int64)
        words = words_of(b"".join(keys))
        high, low = words[::2].copy(), words[1::2].copy()
        at = self._starts[(high >> self._shift).astype(np.int64)].astype(np.int64)
        # A step behind the end of a bucket meets a higher name, and is not taken.
        for step in self._halves:
            is_lower = self._high.take(at + (step - 1), mode="clip") < high
            np.add(at, step, out=at, where=is_lower)
        np.minimum(at, len(self._high) - 1, out=at)
        is_found = self._high[at] == high
        is_other = is_found & (self._low[at] != low)
        for row in np.flatnonzero(is_other).tolist():
            at[row] = self._among_equals(int(at[row]), high[row], low[row])
        return np.where(is_found, at, -1)

    def _among_equals(self, at: int, high: np.uint64, low: np.uint64) -> int:
        while at < len(self._high) and self._high[at] == high:
            if self._low[at] == low:
                return at
            at += 1
        return -1

    def _index(self) -> None:
        """Builds the table of the buckets' starts."""
        bits = max(1, (len(self._high) // _NAMES_PER_BUCKET).bit_length())
        self._shift = np.uint64(64 - bits)
        borders = np.arange(1 << bits, dtype=np.uint64) << self._shift
        self._starts = np.append(np.searchsorted(self._high, borders), len(self._high)).astype(np.uint32)
        longest = int(np.diff(self._starts.astype(np.int64)).max())
        self._halves = [1 << bit for bit in reversed(range(longest.bit_length()))]

    def _merge(self) -> None:
        """Puts the recent names among the others, in place: the arrays grow, and the values above move up."""
        recent, self._recent = self._recent, {}
        keys = list(recent)
        at = self._find(keys)
        versions = words_of(b"".join(recent.values()))
        known = at >= 0
        self._versions[at[known]], self._flags[at[known]] = versions[known], _SHOWN
        added = words_of(b"".join(keys)).reshape(-1, 2)[~known]
        # The dictionary takes as much room as the merge.
        del recent, keys
        order = np.argsort(added[:, 0])
        added, versions = added[order], versions[~known][order]
        places = np.searchsorted(self._high, added[:, 0])
        flags = np.full(len(added), _SHOWN, np.uint8)
        _insert(self._high, places, added[:, 0].copy())
        _insert(self._low, places, added[:, 1].copy())
        _insert(self._versions, places, versions)
        _insert(self._flags, places, flags)
        self._index()


def _insert(array: npt.NDArray[np.generic], places: _Positions, values: npt.NDArray[np.generic]) -> None:
    """Inserts as `numpy.insert`, but in place: only a part of the array is copied at a time."""
    end, count = len(array), len(values)
    array.resize(end + count, refcheck=False)
    while count:
        start = max(0, end - _MOVED_AT_ONCE)
        first = int(np.searchsorted(places, start, side="left")) if start else 0
        moved = np.insert(array[start:end], places[first:count] - start, values[first:count])
        array[start + first : end + count] = moved
        end, count = start, first


def words_of(content: Buffer) -> Words:
    """The 8-byte words of fingerprints."""
    return np.frombuffer(content, dtype=">u8").astype(np.uint64)
