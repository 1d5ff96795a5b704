"""The names that were handed on, as the store has them: each list actor gets its own, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from actors.files import FileKey
from actors.names.seen_index import SeenIndex
from actors.names.seen_piece import SeenLoader, SeenPiece
from state.store.store import StateStore
from state.tables.fingerprint import path_fingerprint, path_fingerprints
from state.tables.keys import encode_key
from state.tables.row_selection import Clue

_DELETED_AT_ONCE = 65_536


@dataclass(frozen=True)
class SeenNames:
    """The versions of the declared sources that were handed on.

    Args:
        store: a handle on the store; None without one: then no name was handed on.
        sources: the names of the sources.
        vanished: versions that had vanished before a row of them was read, and that are not in the queue.
        unread: the versions of `vanished` that were to replace rows which are still in the views.
        queued: the keys of the queue: a queued file has not vanished.
        removing: the sources whose views drop the rows of deleted files, and read a file again when it returns.
    """

    store: StateStore | None
    sources: Sequence[str]
    vanished: Sequence[FileKey] = ()
    unread: Sequence[FileKey] = ()
    queued: pa.Array | None = None
    removing: frozenset[str] = frozenset()

    def pieces(self) -> Iterator[SeenPiece]:
        """The pieces of all sources, each read when it is needed.

        Raises:
            StorageError: the store cannot be read.
        """
        if self.store is None:
            return
        for rows in self.store.slices("seen", fields=["source", "version"]):
            for source in self.sources:
                own = rows.filter(pc.equal(rows["source"], source))
                if own.num_rows:
                    yield SeenPiece.of_columns(source, own["key"], own["version"])
        unread = frozenset(self.unread)
        yield from self._absent([each for each in self.vanished if each not in unread], "vanished")
        yield from self._absent(self.unread, "unread")
        yield from self._deleted(self.store)

    def _absent(self, files: Sequence[FileKey], now: Literal["vanished", "unread"]) -> Iterator[SeenPiece]:
        for source in self.sources:
            own = [(path_fingerprint(of, path), version) for of, path, version in files if of == source]
            if own:
                keys, versions = zip(*own, strict=True)
                yield SeenPiece.of_lists(source, keys, versions, now)

    def indexes(self) -> dict[str, SeenIndex]:
        """Source → the index of its names."""
        loaders = {source: SeenLoader() for source in self.sources}
        for piece in self.pieces():
            loaders[piece.source].add(piece)
        return {source: loader.index() for source, loader in loaders.items()}

    def _deleted(self, store: StateStore) -> Iterator[SeenPiece]:
        where = [Clue("deleted_epoch", is_set=True)]
        unread = pa.array([encode_key(*each) for each in self.unread], pa.binary())
        for rows in store.slices("ledger", where=where, fields=["source", "path", "version"]):
            # A queued file is read again, and `_absent` has the unread ones.
            deleted = rows.filter(pc.invert(pc.is_in(rows["key"], value_set=self.queued)))
            deleted = deleted.filter(pc.invert(pc.is_in(deleted["key"], value_set=unread)))
            for source in self.sources:
                for batch in deleted.filter(pc.equal(deleted["source"], source)).to_batches(_DELETED_AT_ONCE):
                    keys = path_fingerprints(source, batch["path"])
                    now: Literal["deleted", "missing"] = "deleted" if source in self.removing else "missing"
                    yield SeenPiece.of_lists(source, keys, batch["version"].to_pylist(), now)
