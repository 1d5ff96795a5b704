"""Pieces of the table `seen`, on their way from the store to the index of one source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from actors.names.seen_index import SeenIndex, Words, words_of
from state.errors import ProtocolError


@dataclass(frozen=True)
class SeenPiece:
    """Versions of one source that were handed on.

    Args:
        source: the name of the source.
        keys: the path fingerprints, two words each.
        versions: the version fingerprints, one word each.
        now: `there` for rows of `seen`, in the order of their keys.  Behind all of them come the versions that had
            `vanished` before a row of them was read, which are new if they are back, and those that are known to be
            `deleted`, which are not reported again.  `deleted` versions are read again when they are back, `missing`
            ones are not.  See `SeenIndex.set_unread` for `unread`.
    """

    source: str
    keys: Words
    versions: Words
    now: Literal["there", "vanished", "unread", "deleted", "missing"] = "there"

    @classmethod
    def of_columns(cls, source: str, keys: pa.ChunkedArray, versions: pa.ChunkedArray) -> SeenPiece:
        """Rows of `seen`.

        Args:
            source: the name of the source.
            keys: their keys, ascending.
            versions: the version fingerprints.
        """
        return cls(source, words_of(_content(keys, 16)).reshape(-1, 2), words_of(_content(versions, 8)))

    @classmethod
    def of_lists(
        cls,
        source: str,
        keys: Sequence[bytes],
        versions: Sequence[bytes],
        now: Literal["vanished", "unread", "deleted", "missing"],
    ) -> SeenPiece:
        """Versions that are not there; see the class."""
        return cls(source, words_of(b"".join(keys)).reshape(-1, 2), words_of(b"".join(versions)), now)

    def part(self, rows: npt.NDArray[np.int64]) -> SeenPiece:
        """The piece of these rows only; the rows ascend."""
        return replace(self, keys=self.keys[rows], versions=self.versions[rows])


class SeenLoader:
    """Makes an index of pieces: no more than one piece is in memory twice."""

    def __init__(self) -> None:
        self._columns = [np.empty(0, np.uint64) for _ in range(3)]
        self._count = 0
        self._loaded: SeenIndex | None = None

    def add(self, piece: SeenPiece) -> None:
        """Adds a piece; the keys of those that are `there` are higher than all before."""
        if piece.now == "there":
            self._append(piece)
            return
        index = self._loaded = self.index()
        keys, versions = _fingerprints(piece.keys, 16), _fingerprints(piece.versions, 8)
        if piece.now == "vanished":
            for key, version in zip(keys, versions, strict=True):
                index.forget(key, version)
        else:
            seen = zip(keys, index.lookup(keys), versions, strict=True)
            own = [key for key, known, version in seen if known == version]
            if piece.now == "deleted":
                index.set_deleted(own)
            elif piece.now == "unread":
                index.set_unread(own)
            else:
                index.set_missing(own)

    def index(self) -> SeenIndex:
        """The index of all pieces; the loader is empty afterwards."""
        if self._loaded is not None:
            index, self._loaded = self._loaded, None
            return index
        for column in self._columns:
            column.resize(self._count, refcheck=False)
        high, low, versions = self._columns
        self._columns, self._count = [np.empty(0, np.uint64) for _ in range(3)], 0
        return SeenIndex.of_words(high, low, versions)

    def _append(self, piece: SeenPiece) -> None:
        end = self._count + len(piece.keys)
        if end > len(self._columns[0]):
            for column in self._columns:
                column.resize(max(end, end + end // 8), refcheck=False)
        for column, some in zip(self._columns, (*piece.keys.T, piece.versions), strict=True):
            column[self._count : end] = some
        self._count = end


def _fingerprints(words: Words, width: int) -> list[bytes]:
    content = words.astype(">u8").tobytes()
    return [content[start : start + width] for start in range(0, len(content), width)]


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
