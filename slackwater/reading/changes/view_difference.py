"""Difference between two versions of a view, at the cost of the rows that were written in between.

A version names its fragments, and each fragment names its deleted rows.  Parts that both versions name alike are shared
and not read.  The other rows of either side are candidates: written or deleted since, or rewritten by a compaction.
Candidates are compared by the key of their group, or as whole rows without a key.  Every other row is in both versions,
so the result is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.reading.view_reader import ViewReader
from state.lance.deletion_vector import Offsets, deleted_offsets
from state.lance.row_address import FRAGMENT_BITS, at_addresses
from state.tables.exact_rows import in_plain_numbers
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
    """The rows of each side that the other one lacks, as bags; the two may be datasets of different roots.

    Args:
        left: a version of a dataset.
        right: a version of the same dataset, or of another one.
        columns: the columns to compare, which both have.

    Raises:
        EpochExpiredError: one of the versions is no longer retained.
        StorageError: a root cannot be read.
    """
    return surplus(*candidates(left, right, columns))


def surplus(left: pa.Table, right: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows of each table that the other one lacks, as bags; both have the same columns."""
    try:
        return _surplus_by_groups(left, right)
    except pa.ArrowNotImplementedError:  # a nested type
        only_right, only_left = _without_common_rows(right, left)
        return only_left, only_right


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
        """The files of a fragment, without its deletions; no two files have one name, whatever dataset they are in."""
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
        changed = pc.or_(changed, _differ(earlier[name], new[name]))
    return changed


def _differ(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.ChunkedArray:
    """True where two values differ; nulls are equal, and so are NaNs."""
    try:
        differ = pc.fill_null(pc.not_equal(left, right), False)
    except pa.ArrowNotImplementedError:  # of a nested type
        pairs = zip(in_plain_numbers(left).to_pylist(), in_plain_numbers(right).to_pylist(), strict=True)
        return pa.chunked_array([[repr(one) != repr(other) for one, other in pairs]], pa.bool_())
    if pa.types.is_floating(left.type):
        both_nan = pc.and_(pc.fill_null(pc.is_nan(left), False), pc.fill_null(pc.is_nan(right), False))
        differ = pc.and_(differ, pc.invert(both_nan))
        # Zeros of either sign are equal, but not the same value.
        differ = pc.or_(differ, pc.fill_null(_have_other_signs(left, right), False))
    return pc.or_(differ, pc.xor(pc.is_null(left), pc.is_null(right)))


def _have_other_signs(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.ChunkedArray:
    """True where one of two zeros is negative."""
    zeros = pc.and_(pc.equal(left, 0), pc.equal(right, 0))
    signs = [pc.less(pc.divide(pa.scalar(1.0, side.type), side), 0) for side in (left, right)]
    return pc.and_(zeros, pc.xor(*signs))


def _without_common_rows(old: pa.Table, new: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows of each table that the other lacks, as bags.

    A view that only grows has its new rows behind the old ones, since a compaction keeps the order.  A comparison by
    columns finds that case quickly, and is exact in any case.
    """
    if old.num_rows <= new.num_rows:
        first = new.slice(0, old.num_rows)
        if not any(pc.any(_differ(old[name], first[name])).as_py() for name in new.column_names):
            return old.slice(old.num_rows), new.slice(old.num_rows)
    counts = Counter(row_texts(new))
    counts.subtract(row_texts(old))
    return _surplus(old, {text: -count for text, count in counts.items()}), _surplus(new, counts)


def _surplus_by_groups(left: pa.Table, right: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows of each table that the other lacks, as bags; each row comes once for each time that it is missing."""
    names = [f"c{number}" for number in range(left.num_columns)]
    sides = [
        table.rename_columns(names).append_column("side", pa.repeat(pa.scalar(side, pa.int64()), table.num_rows))
        for table, side in ((left, 1), (right, -1))
    ]
    # A column that has no nulls on one side may have some on the other.
    groups = pa.concat_tables(sides, promote_options="default").group_by(names).aggregate([("side", "sum")])
    surplus = groups["side_sum"].to_numpy()
    schema = pa.schema([field.with_nullable(True) for field in left.schema])
    rows = groups.select(names).rename_columns(left.column_names).cast(schema)
    times = [np.repeat(np.arange(len(surplus)), np.maximum(side * surplus, 0)) for side in (1, -1)]
    return rows.take(pa.array(times[0])), rows.take(pa.array(times[1]))


def _surplus(table: pa.Table, more: dict[str, int]) -> pa.Table:
    left, kept = dict(more), []
    for at, text in enumerate(row_texts(table)):
        if left[text] > 0:
            left[text] -= 1
            kept.append(at)
    return table.take(pa.array(kept, pa.int64()))


def row_texts(table: pa.Table) -> Iterable[str]:
    """A text for each row; equal rows have equal texts."""
    for batch in table.to_batches():
        yield from map(repr, zip(*(in_plain_numbers(column).to_pylist() for column in batch.columns), strict=True))
