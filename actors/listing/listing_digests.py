"""What the last listing showed and was all known, by digests of chunks: a steady bucket need not be looked up."""

from __future__ import annotations

from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_NAMES_PER_CHUNK = 64
_Words = npt.NDArray[np.uint64]
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class ListingDigest(NamedTuple):
    """Consecutive rows of a page."""

    start: int
    stop: int
    digest: bytes


class ListingDigests:
    """Chunks of the last listing in which every name was known in its version, by a digest of all that was listed.

    Chunks end where their content says so (content-defined chunking, as in rsync and LBFS), not at every 64th name:
    a new name changes its own chunk, and moves no other.

    `skipped` counts the known names in chunks that this listing did not have to look up.
    """

    def __init__(self) -> None:
        self._last: dict[bytes, int] = {}
        self._now: dict[bytes, int] = {}
        self.skipped = 0

    def begin_listing(self) -> None:
        """What the listing before showed counts from here on."""
        self._last, self._now, self.skipped = self._now, {}, 0

    def forget(self) -> None:
        """Every name is looked up again."""
        self._last, self._now = {}, {}

    def unknown(self, rows: pa.RecordBatch) -> list[ListingDigest]:
        """The chunks of these rows that have to be looked up."""
        unknown: list[ListingDigest] = []
        for chunk in _chunks(rows):
            names = self._last.pop(chunk.digest, None)
            if names is None:
                unknown.append(chunk)
            else:
                self._now[chunk.digest] = names
                self.skipped += names
        return unknown

    def put(self, chunk: ListingDigest, names: int) -> None:
        """All that the chunk tells is known; so many of its names were handed on."""
        self._now[chunk.digest] = names


def _chunks(rows: pa.RecordBatch) -> list[ListingDigest]:
    count = rows.num_rows
    if not count:
        return []
    paths, etags = _Texts(rows["path"]), _Texts(rows["etag"])
    sizes, times = (rows[name].to_numpy(zero_copy_only=True) for name in ("size", "modified_us"))
    mixed = (etags.beginnings() + sizes.view(np.uint64) + times.view(np.uint64)) * _SPREAD
    stops = np.flatnonzero((mixed >> np.uint64(32)) % np.uint64(_NAMES_PER_CHUNK) == 0) + 1
    borders = [0, *stops.tolist()]
    if borders[-1] != count:
        borders.append(count)
    chunks = []
    for start, stop in pairwise(borders):
        digest = blake2b(paths.content(start, stop), digest_size=16)
        digest.update(paths.lengths[start:stop].data)
        digest.update(etags.content(start, stop))
        digest.update(etags.lengths[start:stop].data)
        for column in (sizes, times):
            digest.update(column[start:stop].data)
        chunks.append(ListingDigest(start, stop, digest.digest()))
    return chunks


class _Texts:
    """The parts of a text column."""

    def __init__(self, column: pa.StringArray) -> None:
        _, ends, content = column.buffers()
        self._ends: npt.NDArray[np.int32] = np.frombuffer(ends, np.int32)[column.offset :][: len(column) + 1]
        self._borders: list[int] = self._ends.tolist()
        self._content = np.frombuffer(content or b"", np.uint8)
        self.lengths = np.diff(self._ends)

    def content(self, start: int, stop: int) -> memoryview:
        """The UTF-8 of these rows."""
        return self._content[self._borders[start] : self._borders[stop]].data

    def beginnings(self) -> _Words:
        """The first 8 bytes behind the quote of each text, or of what follows it."""
        if len(self._content) < 16:
            return np.zeros(len(self.lengths), np.uint64)
        at = np.minimum(self._ends[:-1] + 1, len(self._content) - 8)
        words: _Words = self._content[at[:, None] + np.arange(8, dtype=at.dtype)].view(np.uint64)
        return words.ravel()
