"""Index of the names that were handed on: version, and marks of the last listings; 25 bytes a name."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from state.errors import ProtocolError

_MERGE_AT = 65_536
_MERGE_SHARE = 128
_NAMES_PER_BUCKET = 16
_MOVED_AT_ONCE = 1 << 18
_SHOWN, _MISSING, _FORGOTTEN, _GONE = 1, 2, 4, 8

_Words = npt.NDArray[np.uint64]
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
    """It was handed on in this version, and was gone since."""


class SeenIndex:
    """Path fingerprint (16 bytes) → version fingerprint (8 bytes), and a byte of marks.

    Sorted arrays hold most names, a dictionary the recent ones; it is merged into the arrays when it grows.
    The arrays are sorted by the first 8 bytes of the path's fingerprint; the other 8 decide between equals.  Since
    fingerprints are spread evenly, a table with the start of every 16th of them replaces most of a binary search.

    A listing begins with `begin_listing`; every name that is looked up or put afterwards counts as shown.
    """

    def __init__(self, keys: Sequence[bytes] = (), versions: Sequence[bytes] = ()) -> None:
        self._recent: dict[bytes, bytes] = {}
        self._high: _Words
        self._low: _Words
        self._versions: _Words
        self._load(b"".join(keys), b"".join(versions))

    @classmethod
    def of_columns(cls, keys: pa.ChunkedArray, versions: pa.ChunkedArray) -> SeenIndex:
        """An index of two columns of the table `seen`; a million rows take a tenth of a second."""
        index = cls()
        index._load(_content(keys, 16), _content(versions, 8))
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
        is_same = self._versions[stored] == _words(b"".join(versions))[rows]
        was_shown = self._flags[stored] & _SHOWN == _SHOWN
        was_gone = self._flags[stored] & _GONE == _GONE
        known = np.where(was_gone, Sight.BACK, Sight.SAME)
        sights[rows] = np.where(is_same, known, np.where(was_shown, Sight.TWICE, Sight.CHANGED))
        self._flags[stored] = _SHOWN
        if self._recent:
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
        self._own_flags()
        np.bitwise_and(self._flags, ~np.uint8(_SHOWN), out=self._flags)

    def shows_all(self, skipped: int) -> bool:
        """Whether the listing has shown every name that is not missing; `skipped` of them were not looked up."""
        shown = int(np.count_nonzero(self._flags == _SHOWN))
        present = len(self._flags) - int(np.count_nonzero(self._flags & (_MISSING | _FORGOTTEN)))
        return shown + skipped == present

    def take_missing(self, limit: int) -> dict[bytes, bytes]:
        """Marks up to `limit` names that the listing has not shown as missing, until they are shown again.

        Returns:
            Path fingerprint → version, of the names that were not marked before.
        """
        at = np.flatnonzero(self._flags == 0)[:limit]
        self._own_flags()
        self._flags[at] = _MISSING
        keys = np.stack([self._high[at], self._low[at]], axis=1).astype(">u8").tobytes()
        versions = self._versions[at].astype(">u8").tobytes()
        return {keys[16 * row : 16 * (row + 1)]: versions[8 * row : 8 * (row + 1)] for row in range(len(at))}

    def take_back(self, key: bytes) -> bool:
        """Takes the marks of a missing name back: it is there; returns whether the ledger says that it was gone."""
        (at,) = self._find([key])
        if key in self._recent or at < 0 or not self._flags[at] & (_MISSING | _GONE):
            return False
        was_gone = bool(self._flags[at] & _GONE)
        self._own_flags()
        self._flags[at] = _SHOWN
        return was_gone

    def set_gone(self, keys: Sequence[bytes]) -> None:
        """Marks names as missing, and as gone in the ledger."""
        if keys:
            if any(key in self._recent for key in keys):
                self._merge()
            self._own_flags()
            at = self._find(keys)
            self._flags[at[at >= 0]] |= _MISSING | _GONE

    # -- inside ---------------------------------------------------------------------------------------------------

    def _find(self, keys: Sequence[bytes]) -> _Positions:
        """The position of each key in the arrays; -1 for a key that is not in them."""
        if not len(self._high) or not keys:
            return np.full(len(keys), -1, np.int64)
        words = _words(b"".join(keys))
        high, low = words[::2].copy(), words[1::2].copy()
        buckets = (high >> self._shift).astype(np.int64)
        first, last = self._starts[buckets].astype(np.int64), self._starts[buckets + 1].astype(np.int64)
        for _ in range(self._steps):
            middle = (first + last) >> 1
            is_less = self._high[np.minimum(middle, len(self._high) - 1)] < high
            open_ = first < last
            first, last = np.where(is_less & open_, middle + 1, first), np.where(is_less | ~open_, last, middle)
        at = np.minimum(first, len(self._high) - 1)
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

    def _load(self, keys: Buffer, versions: Buffer) -> None:
        pairs = np.frombuffer(keys, dtype=">u8").reshape(-1, 2)
        high = pairs[:, 0].astype(np.uint64)
        order = np.argsort(high)
        # One column after the other, so that no more than one exists twice.
        self._high = high[order]
        del high
        self._low = pairs[:, 1].astype(np.uint64)[order]
        self._versions = np.frombuffer(versions, dtype=">u8").astype(np.uint64)[order]
        self._flags = np.zeros(len(order), np.uint8)
        self._index()

    def _index(self) -> None:
        """Builds the table of the buckets' starts."""
        bits = max(1, (len(self._high) // _NAMES_PER_BUCKET).bit_length())
        self._shift = np.uint64(64 - bits)
        borders = np.arange(1 << bits, dtype=np.uint64) << self._shift
        self._starts = np.append(np.searchsorted(self._high, borders), len(self._high)).astype(np.uint32)
        longest = int(np.diff(self._starts.astype(np.int64)).max())
        self._steps = longest.bit_length()

    def _own_flags(self) -> None:
        # An array from Ray's object store is read-only, or belongs to a buffer that cannot grow.
        if not (self._flags.flags.writeable and self._flags.flags.owndata):
            self._flags = self._flags.copy()

    def _merge(self) -> None:
        """Puts the recent names among the others, in place: the arrays grow, and the values above move up."""
        recent, self._recent = self._recent, {}
        keys = list(recent)
        at = self._find(keys)
        versions = _words(b"".join(recent.values()))
        self._own_flags()
        for name in ("_high", "_low", "_versions"):
            array = getattr(self, name)
            if not (array.flags.writeable and array.flags.owndata):
                setattr(self, name, array.copy())
        known = at >= 0
        self._versions[at[known]], self._flags[at[known]] = versions[known], _SHOWN
        added = _words(b"".join(keys)).reshape(-1, 2)[~known]
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


def _words(content: Buffer) -> _Words:
    return np.frombuffer(content, dtype=">u8").astype(np.uint64)


def _content(column: pa.ChunkedArray, width: int) -> memoryview:
    """The values of a column of fingerprints in one buffer; each has `width` bytes.

    A column of any binary type has this buffer already; a cast by Arrow would take as long as sorting.
    """
    array = pa.concat_arrays(column.chunks or [pa.array([], pa.binary(width))])
    content = memoryview(array.buffers()[-1] or b"")
    if array.type == pa.binary(width):
        return content[array.offset * width : (array.offset + len(array)) * width]
    ends = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    if (np.diff(ends) != width).any():
        raise ProtocolError(f"table seen: a fingerprint does not have {width} bytes")
    return content[ends[0] : ends[-1]]
