"""Digests of parts of a listing that have only known names; the next listing skips equal parts."""

from __future__ import annotations

from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_NAMES_PER_DIGEST = 32
_Words = npt.NDArray[np.uint64]
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class ListingDigest(NamedTuple):
    """The digest of consecutive rows of a page, from row `start` (inclusive) to row `stop` (exclusive)."""

    start: int
    stop: int
    digest: bytes


class ListingDigests:
    """Digests of the last listing, of rows in which every name was known in its version.

    The content decides after which row a digest ends (content-defined chunking, as in rsync and LBFS), not the number
    of rows: a new name changes the digest of its own rows, and moves no other.

    Attributes:
        skipped: number of handed-on names that this listing did not have to look up.
    """

    def __init__(self) -> None:
        self._last: dict[bytes, int] = {}
        self._now: dict[bytes, int] = {}
        self.skipped = 0

    def begin_listing(self) -> None:
        """A listing begins: the digests of the one before count."""
        self._last, self._now, self.skipped = self._now, {}, 0

    def forget(self) -> None:
        """Drops all digests: every name is looked up again."""
        self._last, self._now = {}, {}

    def unknown(self, rows: pa.RecordBatch) -> list[ListingDigest]:
        """The digests of those of these rows that have to be looked up; for the columns see `LISTED`."""
        unknown: list[ListingDigest] = []
        for each in _digests(rows):
            names = self._last.pop(each.digest, None)
            if names is None:
                unknown.append(each)
            else:
                self._now[each.digest] = names
                self.skipped += names
        return unknown

    def put(self, digest: ListingDigest, names: int) -> None:
        """Keeps the digest of rows that are all known; `names` of them were handed on, the others are left out."""
        self._now[digest.digest] = names


def _digests(rows: pa.RecordBatch) -> list[ListingDigest]:
    count = rows.num_rows
    if not count:
        return []
    paths, etags = _Texts(rows["path"]), _Texts(rows["etag"])
    sizes, times = (rows[name].to_numpy(zero_copy_only=True) for name in ("size", "modified_us"))
    mixed = (etags.beginnings() + sizes.view(np.uint64) + times.view(np.uint64)) * _SPREAD
    stops = np.flatnonzero((mixed >> np.uint64(32)) % np.uint64(_NAMES_PER_DIGEST) == 0) + 1
    borders = [0, *stops.tolist()]
    if borders[-1] != count:
        borders.append(count)
    lengths = paths.lengths | (etags.lengths << 32)
    numbers = np.stack([lengths, sizes, times], axis=1).data.cast("B")
    width = len(numbers) // count
    digests = []
    for start, stop in pairwise(borders):
        digest = blake2b(paths.content(start, stop), digest_size=16)
        digest.update(etags.content(start, stop))
        digest.update(numbers[start * width : stop * width])
        digests.append(ListingDigest(start, stop, digest.digest()))
    return digests


class _Texts:
    """The buffers of a text column."""

    def __init__(self, column: pa.StringArray) -> None:
        _, ends, content = column.buffers()
        self._ends = np.frombuffer(ends, np.int32)[column.offset :][: len(column) + 1].astype(np.int64)
        self._borders: list[int] = self._ends.tolist()
        self._content = memoryview(content or b"")
        self.lengths = np.diff(self._ends)

    def content(self, start: int, stop: int) -> memoryview:
        """The UTF-8 of these rows."""
        return self._content[self._borders[start] : self._borders[stop]]

    def beginnings(self) -> _Words:
        """8 bytes of each text from behind its quote on; they run into the next text where it is shorter."""
        last = len(self._content) - 8
        if last < 8:
            return np.zeros(len(self.lengths), np.uint64)
        # The word that begins at each byte.
        words: _Words = np.ndarray(last + 1, np.uint64, self._content, strides=(1,))
        return words[np.minimum(self._ends[:-1] + 1, last)]
