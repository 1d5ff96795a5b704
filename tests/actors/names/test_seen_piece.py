"""Pieces of the table `seen` become the index of a source."""

from __future__ import annotations

import pickle
import random
import tracemalloc

import numpy as np
import pyarrow as pa

from actors.names.seen_piece import SeenLoader, SeenPiece


def piece(rows: dict[bytes, bytes]) -> SeenPiece:
    # A column of either type, and one that begins within its buffer.
    keys = pa.array([b"x" * 16, *rows], pa.binary()).slice(1)
    versions = pa.array(rows.values(), pa.binary(8))
    return SeenPiece.of_columns("s", pa.chunked_array([keys]), pa.chunked_array([versions]))


def test_pieces_of_the_store_make_one_index() -> None:
    rng = random.Random(5)
    rows = dict(sorted((rng.randbytes(16), rng.randbytes(8)) for _ in range(100)))
    keys = list(rows)
    loader = SeenLoader()
    for some in (keys[:40], [], keys[40:41], keys[41:]):
        loader.add(pickle.loads(pickle.dumps(piece({key: rows[key] for key in some}))))
    index = loader.index()
    assert index.lookup(keys) == list(rows.values()) and len(index) == 100
    assert index.lookup([b"0" * 16]) == [None]
    assert len(SeenLoader().index()) == 0


def test_what_vanished_is_new_and_what_is_deleted_is_not_missing() -> None:
    rows = {bytes([number]) * 16: bytes([number]) * 8 for number in range(5)}
    keys, versions = list(rows), list(rows.values())
    loader = SeenLoader()
    loader.add(piece(rows))
    loader.add(SeenPiece.of_lists("s", keys[:2], [versions[0], b"another "], "vanished"))
    loader.add(SeenPiece.of_lists("s", keys[2:4], [versions[2], b"another "], "deleted"))
    loader.add(SeenPiece.of_lists("s", keys[3:], [b"another ", versions[4]], "unread"))
    index = loader.index()
    assert index.lookup(keys) == [None, *versions[1:]]
    assert index.unread(keys) == {4}
    index.begin_listing()
    assert list(index.take_missing(10)) == [keys[1], keys[3], keys[4]]


def test_names_are_in_memory_once_while_they_are_loaded() -> None:
    count, pieces = 1 << 16, 32
    loader = SeenLoader()
    tracemalloc.start()
    for number in range(pieces):
        high = np.arange(count * number, count * (number + 1), dtype=np.uint64)
        loader.add(SeenPiece("s", np.stack([high, high], axis=1), high))
    del high
    index = loader.index()
    kept, highest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(index) == count * pieces
    assert kept < 26 * len(index)
    assert highest < 1.3 * kept
