"""What is different between two versions of a view, at the cost of what was written in between.

A version names its fragments, and each fragment the rows that were taken out of it.  What both versions name alike they
share, and it is not read.  The other rows are the candidates, on either side: written or taken out since, or written
again as they were, by a compaction.  They are compared: by the key of their group, or without one as a whole.  A row
that is no candidate is in both versions, so what is found is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.view_reader import ViewReader
from state.group_key import KEY_COLUMN

_OFFSETS = 0xFFFFFFFF  # of a row in its fragment: the lower half of its address


def difference(before: ViewReader, after: ViewReader, key: tuple[str, ...]) -> tuple[pa.Table, pa.Table]:
    """The rows of `after` that `before` does not have so, and what is gone of `before`.

    Args:
        before: a version of a view's dataset.
        after: another version of the same dataset.
        key: the columns of the result that a group is looked up by; none if there are none.

    Returns:
        Rows with the columns of the result.  With a key, then the keys of the groups that are gone; otherwise whole
        rows, also those that others have replaced: a row that is there twice counts twice.

    Raises:
        EpochExpiredError: one of the versions is no longer retained.
        StorageError: the root cannot be read.
    """
    columns = after.schema.names
    keyed = KEY_COLUMN in after.dataset.schema.names
    read = [*columns, KEY_COLUMN] if keyed else columns
    with before.errors(), after.errors():
        old, new = _candidates(before.dataset, after.dataset, read)
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


def _candidates(before: lance.LanceDataset, after: lance.LanceDataset, columns: list[str]) -> tuple[pa.Table, pa.Table]:
    """The rows that the two versions do not share for certain, of each, in its order."""
    left = {each.fragment_id: each for each in before.get_fragments()}
    right = {each.fragment_id: each for each in after.get_fragments()}
    same_files = {at for at in left.keys() & right.keys() if _files(left[at]) == _files(right[at])}
    sides = ((before, left, right), (after, right, left))
    old, new = (_not_shared(dataset, mine, others, same_files, columns) for dataset, mine, others in sides)
    return old, new


def _not_shared(
    dataset: lance.LanceDataset,
    mine: Mapping[int, lance.LanceFragment],
    others: Mapping[int, lance.LanceFragment],
    same_files: Collection[int],
    columns: list[str],
) -> pa.Table:
    tables = [pa.schema([dataset.schema.field(name) for name in columns]).empty_table()]
    for at in same_files:
        if _deletions(mine[at]) != _deletions(others[at]):
            taken_out = _not_in(mine[at], others[at])
            if taken_out:
                tables.append(mine[at].take(taken_out, columns=columns).select(columns))
    whole = [fragment for at, fragment in mine.items() if at not in same_files]
    if whole:
        tables.append(dataset.scanner(columns=columns, fragments=whole).to_table())
    return pa.concat_tables(tables)


def _files(fragment: lance.LanceFragment) -> dict[str, Any]:
    """What a fragment is, but for the rows that were taken out of it."""
    description: dict[str, Any] = fragment.metadata.to_json()
    return {name: value for name, value in description.items() if name != "deletion_file"}


def _deletions(fragment: lance.LanceFragment) -> Any:
    return fragment.metadata.to_json()["deletion_file"]


def _not_in(fragment: lance.LanceFragment, other: lance.LanceFragment) -> list[int]:
    """Which of the rows of a fragment, counted without deleted ones, another version of it does not have."""
    present = np.zeros(fragment.physical_rows, dtype=bool)
    present[_row_offsets(other)] = True
    positions: list[int] = np.flatnonzero(~present[_row_offsets(fragment)]).tolist()
    return positions


def _row_offsets(fragment: lance.LanceFragment) -> npt.NDArray[np.uint64]:
    addresses = fragment.scanner(columns=[], with_row_address=True).to_table()["_rowaddr"].to_numpy()
    offsets: npt.NDArray[np.uint64] = addresses & np.uint64(_OFFSETS)
    return offsets


def _changed(old: pa.Table, new: pa.Table, at: pa.ChunkedArray) -> pa.ChunkedArray:
    """For each new row whether it has no old one, which `at` has the place of, or differs from it."""
    changed = pc.is_null(at)
    earlier = old.take(pc.fill_null(at, 0)) if old.num_rows else None
    if earlier is None:
        return changed
    for name in new.column_names:
        changed = pc.or_(changed, _differ(earlier[name], new[name]))
    return changed


def _differ(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether two values are not the same; nulls are the same, and so are NaNs."""
    try:
        differ = pc.fill_null(pc.not_equal(left, right), False)
    except pa.ArrowNotImplementedError:  # of a nested type
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return pa.chunked_array([[repr(one) != repr(other) for one, other in pairs]], pa.bool_())
    if pa.types.is_floating(left.type):
        both_nan = pc.and_(pc.fill_null(pc.is_nan(left), False), pc.fill_null(pc.is_nan(right), False))
        differ = pc.and_(differ, pc.invert(both_nan))
    return pc.or_(differ, pc.xor(pc.is_null(left), pc.is_null(right)))


def _without_common_rows(old: pa.Table, new: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows that only one of the tables has, each as often as it has it more than the other.

    A view that only grows has its new rows behind the old ones, since a compaction keeps their order: seen by columns
    that is quick, and true or false whatever has happened.
    """
    if old.num_rows <= new.num_rows:
        first = new.slice(0, old.num_rows)
        if not any(pc.any(_differ(old[name], first[name])).as_py() for name in new.column_names):
            return old.slice(old.num_rows), new.slice(old.num_rows)
    counts = Counter(_texts(new))
    counts.subtract(_texts(old))
    return _surplus(old, {text: -count for text, count in counts.items()}), _surplus(new, counts)


def _surplus(table: pa.Table, more: dict[str, int]) -> pa.Table:
    left, kept = dict(more), []
    for at, text in enumerate(_texts(table)):
        if left[text] > 0:
            left[text] -= 1
            kept.append(at)
    return table.take(pa.array(kept, pa.int64()))


def _texts(table: pa.Table) -> Iterable[str]:
    """A text for each row; rows that are the same have the same."""
    for batch in table.to_batches():
        yield from map(repr, zip(*(column.to_pylist() for column in batch.columns), strict=True))
