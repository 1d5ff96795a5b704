"""Which names were handed on, and in which version: 24 bytes a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_MERGE_AT = 65_536
_Words = npt.NDArray[np.uint64]
Buffer = Union[bytes, memoryview]


class SeenIndex:
    """Path fingerprint (16 bytes) → version fingerprint (8 bytes).

    Sorted arrays hold the many, a dictionary the recent, which is merged into the arrays when it grows.
    The arrays are sorted by the first 8 bytes of the path's fingerprint; the other 8 decide between equals.
    """

    def __init__(self, keys: Sequence[bytes] = (), versions: Sequence[bytes] = ()) -> None:
        self._recent: dict[bytes, bytes] = {}
        self._high: _Words
        self._low: _Words
        self._versions: _Words
        self._load(b"".join(keys), b"".join(versions))

    @classmethod
    def of_columns(cls, keys: pa.ChunkedArray, versions: pa.ChunkedArray) -> SeenIndex:
        """An index of two columns of the table `seen`, a million rows in a tenth of a second."""
        index = cls()
        index._load(_content(keys, 16), _content(versions, 8))
        return index

    def __len__(self) -> int:
        return len(self._high) + sum(1 for key in self._recent if self._stored_at(key) is None)

    def lookup(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The version of each key, None for a key that was never handed on."""
        if not keys:
            return []
        high = np.frombuffer(b"".join(keys), dtype=">u8")[::2].astype(np.uint64)
        candidates = np.searchsorted(self._high, high)
        return [self._version(key, int(at)) for key, at in zip(keys, candidates, strict=True)]

    def put(self, key: bytes, version: bytes) -> None:
        self._recent[key] = version
        if len(self._recent) >= _MERGE_AT:
            self._merge()

    def forget(self, key: bytes, version: bytes) -> None:
        """The key is new again, if this is its version."""
        if self.lookup([key]) != [version]:
            return
        self._recent.pop(key, None)
        at = self._stored_at(key)
        if at is not None:
            keep = np.arange(len(self._high)) != at
            self._high, self._low, self._versions = self._high[keep], self._low[keep], self._versions[keep]

    def _version(self, key: bytes, at: int) -> bytes | None:
        if (recent := self._recent.get(key)) is not None:
            return recent
        found = self._position(key, at)
        return None if found is None else int(self._versions[found]).to_bytes(8, "big")

    def _stored_at(self, key: bytes) -> int | None:
        return self._position(key, int(np.searchsorted(self._high, np.uint64(int.from_bytes(key[:8], "big")))))

    def _position(self, key: bytes, at: int) -> int | None:
        high, low = int.from_bytes(key[:8], "big"), int.from_bytes(key[8:], "big")
        while at < len(self._high) and int(self._high[at]) == high:
            if int(self._low[at]) == low:
                return at
            at += 1
        return None

    def _load(self, keys: Buffer, versions: Buffer) -> None:
        pairs = np.frombuffer(keys, dtype=">u8").reshape(-1, 2).astype(np.uint64)
        self._store(pairs[:, 0], pairs[:, 1], np.frombuffer(versions, dtype=">u8").astype(np.uint64))

    def _store(self, high: _Words, low: _Words, versions: _Words) -> None:
        order = np.argsort(high, kind="stable")
        self._high, self._low, self._versions = high[order], low[order], versions[order]

    def _merge(self) -> None:
        recent, self._recent = self._recent, {}
        # What came through Ray's object store is read-only.
        self._versions = self._versions.copy()
        added = []
        for key, version in recent.items():
            at = self._stored_at(key)
            if at is None:
                added.append((key, version))
            else:
                self._versions[at] = int.from_bytes(version, "big")
        pairs = np.frombuffer(b"".join(key for key, _ in added), dtype=">u8").reshape(-1, 2).astype(np.uint64)
        versions = np.frombuffer(b"".join(version for _, version in added), dtype=">u8").astype(np.uint64)
        self._store(
            np.concatenate([self._high, pairs[:, 0]]),
            np.concatenate([self._low, pairs[:, 1]]),
            np.concatenate([self._versions, versions]),
        )


def _content(column: pa.ChunkedArray, width: int) -> memoryview:
    """The values of a column one behind the other; each has `width` bytes."""
    array = pa.concat_arrays(column.cast(pa.binary(width)).chunks or [pa.array([], pa.binary(width))])
    return memoryview(array.buffers()[1] or b"")[array.offset * width : (array.offset + len(array)) * width]
