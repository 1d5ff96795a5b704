"""Difference between two versions of a view, at the cost of the rows that were written in between.

A version names its fragments, and each fragment names its deleted rows.  Parts that both versions name alike are shared
and not read.  The other rows of either side are candidates: written or deleted since, or rewritten by a compaction.
Candidates are compared by the key of their group, or as whole rows without a key; values are compared by identity, see
`state.equality`.  Every other row is in both versions,
so the result is exact.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.reading.view_reader import ViewReader
from state.equality.exact_rows import with_nulls
from state.equality.row_identity import differ, first_rows, kinds_of
from state.lance.deletion_vector import Offsets, deleted_offsets
from state.lance.row_address import FRAGMENT_BITS, at_addresses
from state.tables.group_key import KEY_COLUMN

_FILES_AT_ONCE = 16


def difference(before: ViewReader, after: ViewReader, key: tuple[str, ...]) -> tuple[pa.Table, pa.Table]:
    """The new and changed rows of `after`, and the removed rows of `before`.

    Args:
        before: a version of a view's dataset.
        after: another version of the same dataset.
        key: the columns of the result by which a group is looked up; empty without groups.

    Returns:
        Rows with the columns of the result; then, with a key, the keys of the removed groups, and without a key whole
        removed rows, also replaced ones: a row that appears twice counts twice.

    Raises:
        EpochExpiredError: one of the versions is no longer retained.
        StorageError: the root cannot be read.
    """
    columns = after.schema.names
    keyed = KEY_COLUMN in after.dataset.schema.names
    read = [*columns, KEY_COLUMN] if keyed else columns
    with before.errors(), after.errors():
        old, new = _candidates(before, after, read)
    if not keyed:
        old, new = _without_common_rows(old, new)
        return new, old
    at = pc.index_in(new[KEY_COLUMN], value_set=old[KEY_COLUMN])
    changed = _changed(old.select(columns), new.select(columns), at)
    stays = pc.is_in(old[KEY_COLUMN], value_set=new[KEY_COLUMN])
    rows = new.filter(changed).select(columns)
    if key:
        return rows, old.filter(pc.invert(stays)).select(list(key))
    replaced = at.filter(changed).drop_null()
    return rows, pa.concat_tables([old.filter(pc.invert(stays)), old.take(replaced)]).select(columns)


def differing_rows(left: ViewReader, right: ViewReader, columns: list[str]) -> tuple[pa.Table, pa.Table]:
    """The rows of each side that the other side lacks, as bags; the two may be datasets of different roots.

    Args:
        left: a version of a dataset.
        right: a version of the same dataset, or of another dataset.
        columns: the columns to compare, which both have.

    Raises:
        EpochExpiredError: one of the versions is no longer retained.
        StorageError: a root cannot be read.
    """
    return surplus(*candidates(left, right, columns))


def surplus(left: pa.Table, right: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows of each table that the other table lacks, as bags; both have the same columns.

    A row is repeated for each copy that the other table lacks.
    """
    # A column may have nulls in one table alone.  A cast would refuse a null struct with a field without nulls.
    schema = with_nulls(left.schema)
    both = pa.concat_tables([pa.Table.from_arrays(side.columns, schema=schema) for side in (left, right)])
    kinds = kinds_of(both)
    sides = np.repeat(np.array([1, -1]), [left.num_rows, right.num_rows])
    more = np.bincount(kinds, sides).astype(np.int64)
    first = first_rows(kinds)
    times = (np.repeat(first, np.maximum(sign * more, 0)) for sign in (1, -1))
    of_left, of_right = (both.take(pa.array(each)) for each in times)
    return of_left, of_right


def candidates(before: ViewReader, after: ViewReader, columns: list[str]) -> tuple[pa.Table, pa.Table]:
    """The candidates of each version: the rows that the two may not share.

    Raises:
        EpochExpiredError: one of the versions is no longer retained.
        StorageError: a root cannot be read.
    """
    with before.errors(), after.errors():
        return _candidates(before, after, columns)


def _candidates(before: ViewReader, after: ViewReader, columns: list[str]) -> tuple[pa.Table, pa.Table]:
    """The candidates of each version: the rows that the two may not share."""
    left, right = _Side.of(before), _Side.of(after)
    shared = {at for at in left.fragments.keys() & right.fragments.keys() if left.files(at) == right.files(at)}
    touched = sorted(at for at in shared if left.deletions(at) != right.deletions(at))
    with ThreadPoolExecutor(_FILES_AT_ONCE) as threads:
        files = [threads.submit(side.deleted, at) for side in (left, right) for at in touched]
        deleted = [each.result() for each in files]
    of_left, of_right = (
        dict(zip(touched, deleted, strict=False)),
        dict(zip(touched, deleted[len(touched) :], strict=True)),
    )
    return left.read(shared, of_left, of_right, columns), right.read(shared, of_right, of_left, columns)


@dataclass(frozen=True)
class _Side:
    """One of the two versions, with its fragments in their order."""

    reader: ViewReader
    fragments: Mapping[int, lance.LanceFragment]

    @classmethod
    def of(cls, reader: ViewReader) -> _Side:
        return cls(reader, {each.fragment_id: each for each in reader.dataset.get_fragments()})

    def files(self, at: int) -> dict[str, Any]:
        """The files of a fragment, without its deletions; no two files have the same name, in any dataset."""
        description: dict[str, Any] = self.fragments[at].metadata.to_json()
        description["files"] = [{**file, "base_id": None} for file in description["files"]]
        return {name: value for name, value in description.items() if name != "deletion_file"}

    def deletions(self, at: int) -> Any:
        file = self.fragments[at].metadata.to_json()["deletion_file"]
        return file and {**file, "base_id": None}

    def deleted(self, at: int) -> Offsets:
        return deleted_offsets(self.reader.location, self.reader.dataset, self.fragments[at])

    def read(
        self, shared: Collection[int], mine: Mapping[int, Offsets], others: Mapping[int, Offsets], columns: list[str]
    ) -> pa.Table:
        """The rows of fragments that are not shared, and the rows of shared ones that the other side deleted."""
        dataset = self.reader.dataset
        tables = [pa.schema([dataset.schema.field(name) for name in columns]).empty_table()]
        whole = [fragment for at, fragment in self.fragments.items() if at not in shared]
        if whole:
            tables.append(dataset.scanner(columns=columns, fragments=whole).to_table())
        gone = [
            (at << FRAGMENT_BITS) + np.setdiff1d(others[at], mine[at], assume_unique=True).astype(np.int64)
            for at in mine
        ]
        addresses = np.concatenate([np.empty(0, np.int64), *gone]).tolist()
        if addresses:
            # A condition, which Lance turns into a selection of rows: its `take` can stall for minutes when the rows
            # are in many fragments and the machine is busy.
            condition = at_addresses(addresses)
            tables.append(dataset.to_table(columns=columns, filter=condition))
        return pa.concat_tables(tables)


def _changed(old: pa.Table, new: pa.Table, at: pa.ChunkedArray) -> pa.ChunkedArray:
    """True for each new row without an old one, or different from it; `at` has the positions of the old rows."""
    changed = pc.is_null(at)
    earlier = old.take(pc.fill_null(at, 0)) if old.num_rows else None
    if earlier is None:
        return changed
    for name in new.column_names:
        changed = pc.or_(changed, differ(earlier[name], new[name]))
    return changed


def _without_common_rows(old: pa.Table, new: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows of each table that the other lacks, as bags.

    A view that only grows has its new rows behind the old ones, since a compaction keeps the order.  A comparison by
    columns finds that case quickly, and is exact in any case.
    """
    if old.num_rows <= new.num_rows:
        first = new.slice(0, old.num_rows)
        if not any(pc.any(differ(old[name], first[name])).as_py() for name in new.column_names):
            return old.slice(old.num_rows), new.slice(old.num_rows)
    only_new, only_old = surplus(new, old)
    return only_old, only_new
