"""Resolution of rows: from all rows as they were written to the current row of each key, without a loop over rows.

Of the rows with one key the last full one (put or delete) counts; the patches after it replace its fields by their
non-null fields.  A patch of a row that does not exist, or is deleted, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state.tables.tables import PATCH, PUT
from state.vnode import VNODES

_FINGERPRINT = 16
_PIECE_BYTES = 1 << 30  # Arrow's offsets have 32 bits
Indices = npt.NDArray[np.int64]


def resolve(table: str, rows: pa.Table) -> pa.Table:
    """The current rows of one table: columns key, vnode, epoch, and the table's fields.

    Args:
        table: a name of `TABLES`.
        rows: columns vnode, epoch, op, key, row, in any order of epochs, one row for a key and an epoch; `row` may
            have only some of the table's fields.
    """
    return current_rows(latest_by_key(table, rows))


def current_rows(latest: pa.Table) -> pa.Table:
    """The rows of `resolve` from the latest row of each key, without deleted rows.

    Args:
        latest: columns vnode, epoch, op, key, row.
    """
    is_current = pc.equal(latest["op"], pa.scalar(PUT, pa.uint8()))
    # `filter` copies, and the millions of rows of `seen` are usually all current.
    current = latest if pc.all(is_current).as_py() else latest.filter(is_current)
    row = current["row"]
    fields = dict(zip((field.name for field in row.type), row.flatten(), strict=True)) if current.num_rows else {}
    columns = {name: current[name] for name in ("key", "vnode", "epoch")}
    if not fields:
        fields = {field.name: pa.array([], field.type) for field in row.type}
    return pa.table({**columns, **fields})


def latest_by_key(table: str, rows: pa.Table) -> pa.Table:
    """One row per key: the last put or delete with the patches after it, or the patches alone as one patch.

    Args:
        table: a name of `TABLES`.
        rows: columns vnode, op, key, row and optionally epoch; of equal epochs the later row is the newer.
    """
    if rows.nbytes > _PIECE_BYTES and rows.num_rows > 1:
        return pa.concat_tables([_latest_of_piece(table, piece) for piece in _by_vnode(rows)])
    return _latest_of_piece(table, rows)


def _by_vnode(rows: pa.Table) -> Iterator[pa.Table]:
    """The rows in pieces of at most `_PIECE_BYTES`, as far as their vnodes allow; all rows of a key in one piece."""
    vnodes = rows["vnode"].to_numpy()
    pieces = min(-(-2 * rows.nbytes // _PIECE_BYTES), VNODES)
    for piece in range(pieces):
        yield rows.filter(pa.array(vnodes % pieces == piece))


def _latest_of_piece(table: str, rows: pa.Table) -> pa.Table:
    count = rows.num_rows
    keys = rows["key"].combine_chunks()
    if _are_distinct_fingerprints(keys):
        return rows
    codes = keys.dictionary_encode()
    if len(codes.dictionary) == count:
        return rows
    ops = rows["op"].to_numpy()
    ranks = [codes.indices.to_numpy()]
    if "epoch" in rows.column_names:
        ranks.insert(0, rows["epoch"].to_numpy())
    order = np.lexsort(ranks)  # stable: ties stay in the order of the rows
    groups = _Groups.of(ranks[-1][order], ops[order])
    result = rows.take(order[groups.base])
    if not len(groups.patched):
        return result
    row = _overlaid(table, rows["row"].combine_chunks(), order, groups)
    result = result.set_column(result.column_names.index("row"), "row", row)
    if "epoch" in rows.column_names:
        newest = rows["epoch"].take(order[groups.ends])
        result = result.set_column(result.column_names.index("epoch"), "epoch", newest)
    return result


def _are_distinct_fingerprints(keys: pa.Array) -> bool:
    """True if all keys have 16 bytes and no two begin with the same 8: then all are distinct.

    Sorting numbers is several times as fast as building a dictionary of bytes, which for millions of rows of `seen`
    took most of a recovery.
    """
    if not len(keys) or keys.type != pa.binary():
        return False
    ends = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1]
    if ends[-1] - ends[0] != _FINGERPRINT * len(keys) or (np.diff(ends) != _FINGERPRINT).any():
        return False
    words = np.frombuffer(keys.buffers()[2], np.uint64, count=2 * len(keys), offset=int(ends[0]))
    beginnings = np.sort(words[::2])
    return not (beginnings[1:] == beginnings[:-1]).any()


@dataclass(frozen=True)
class _Groups:
    """Groups of sorted rows with one key; all values are positions in the sorted order."""

    ends: Indices  # per group: its last row
    base: Indices  # per group: the row under the patches, the last full row or else the first patch
    patched: Indices  # groups with patches after their base

    @classmethod
    def of(cls, codes: npt.NDArray[np.int32], ops: npt.NDArray[np.uint8]) -> _Groups:
        count = len(codes)
        ends = np.flatnonzero(np.append(codes[1:] != codes[:-1], True))
        starts = np.append(0, ends[:-1] + 1)
        last_full = np.maximum.accumulate(np.where(ops != PATCH, np.arange(count), -1))[ends]
        base = np.maximum(last_full, starts)
        patched = np.flatnonzero(base < ends)
        return cls(ends, base, patched)


def _overlaid(table: str, row: pa.StructArray, order: Indices, groups: _Groups) -> pa.StructArray:
    values = row.flatten()
    fields = [value.take(pa.array(order[groups.base])) for value in values]
    depth = np.zeros(len(groups.ends), np.int64)
    depth[groups.patched] = (groups.ends - groups.base)[groups.patched]
    for step in range(1, int(depth.max()) + 1):
        has_step = depth >= step
        patches = pa.array(np.where(has_step, order[np.minimum(groups.base + step, groups.ends)], 0), mask=~has_step)
        fields = [pc.coalesce(value.take(patches), field) for value, field in zip(values, fields, strict=True)]
    missing = row.take(pa.array(order[groups.base])).is_null()
    return pa.StructArray.from_arrays(fields, fields=list(row.type), mask=missing)
