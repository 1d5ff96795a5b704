"""Sets of versions of objects: 8 bytes for each, by vnode."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from actors.files import FileKey
from actors.protocol.vnode_mapping import vnode_of_file
from state.tables.keys import encode_key

_MERGE_AT = 256
_MERGE_SHARE = 16
_ROWS_AT_ONCE = 65_536
_Hashes = npt.NDArray[np.uint64]
_NONE = np.empty(0, np.uint64)


class VersionSet:
    """A set of versions, of which only a hash of 64 bits is kept.

    A version is asked for when its object changes.  Then another version of its vnode is taken for it with a
    probability of 2⁻⁶⁴ for each one in the set.

    Args:
        ordered: the sources that have an order: all their files have one vnode.
    """

    def __init__(self, ordered: Iterable[str] = (), keys: Iterable[FileKey] = ()) -> None:
        self._ordered = frozenset(ordered)
        self._by_vnode: dict[int, _HashSet] = {}
        for key in keys:
            self.add(key)

    @classmethod
    def of_ledger(cls, ordered: Iterable[str], rows: pa.Table) -> VersionSet:
        """The versions of rows of the ledger, with the columns `key`, `source` and `path`."""
        made = cls(ordered)
        hashes, vnodes = np.empty(rows.num_rows, np.uint64), np.empty(rows.num_rows, np.uint8)
        at = 0
        for batch in rows.to_batches(_ROWS_AT_ONCE):
            for key, source, path in zip(*(batch[name].to_pylist() for name in ("key", "source", "path")), strict=True):
                hashes[at], vnodes[at] = _hash(key), vnode_of_file(source, path, made._ordered)
                at += 1
        for vnode in np.unique(vnodes).tolist():
            made._by_vnode[vnode] = _HashSet(hashes[vnodes == vnode])
        return made

    def __len__(self) -> int:
        return sum(map(len, self._by_vnode.values()))

    def __contains__(self, key: FileKey) -> bool:
        hashes = self._by_vnode.get(self._vnode(key))
        return hashes is not None and _hash(encode_key(*key)) in hashes

    def add(self, key: FileKey) -> None:
        """Adds a version."""
        self._by_vnode.setdefault(self._vnode(key), _HashSet(_NONE)).add(_hash(encode_key(*key)))

    def discard(self, key: FileKey) -> None:
        """Removes a version, if it is here."""
        hashes = self._by_vnode.get(self._vnode(key))
        if hashes is not None:
            hashes.discard(_hash(encode_key(*key)))

    def of(self, vnodes: Container[int]) -> VersionSet:
        """The versions of some vnodes, which share their memory with this set."""
        part = VersionSet(self._ordered)
        part._by_vnode = {vnode: hashes for vnode, hashes in self._by_vnode.items() if vnode in vnodes}
        return part

    def give(self, vnodes: Collection[int]) -> VersionSet:
        """Removes the versions of some vnodes, and returns them."""
        part = self.of(vnodes)
        for vnode in part._by_vnode:
            del self._by_vnode[vnode]
        return part

    def take(self, given: VersionSet) -> None:
        """Adds the versions of vnodes of which none is here."""
        self._by_vnode |= given._by_vnode

    def _vnode(self, key: FileKey) -> int:
        return vnode_of_file(*key[:2], self._ordered)


class _HashSet:
    """A sorted array, and the changes since it was made: it is made again when they are many."""

    def __init__(self, hashes: _Hashes) -> None:
        self._sorted = np.unique(hashes)
        self._changes: dict[int, bool] = {}

    def __len__(self) -> int:
        self._merge()
        return len(self._sorted)

    def __contains__(self, each: int) -> bool:
        is_here = self._changes.get(each)
        if is_here is not None:
            return is_here
        at = int(np.searchsorted(self._sorted, np.uint64(each)))
        return at < len(self._sorted) and int(self._sorted[at]) == each

    def add(self, each: int) -> None:
        self._change(each, is_here=True)

    def discard(self, each: int) -> None:
        if each in self:
            self._change(each, is_here=False)

    def _change(self, each: int, *, is_here: bool) -> None:
        self._changes[each] = is_here
        if len(self._changes) >= max(_MERGE_AT, len(self._sorted) // _MERGE_SHARE):
            self._merge()

    def _merge(self) -> None:
        changes, self._changes = self._changes, {}
        added = np.array([each for each, is_here in changes.items() if is_here], np.uint64)
        removed = np.array([each for each, is_here in changes.items() if not is_here], np.uint64)
        self._sorted = np.union1d(np.setdiff1d(self._sorted, removed, assume_unique=True), added)


def _hash(key: bytes) -> int:
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big")
