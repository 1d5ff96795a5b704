"""A part of a table that may be too long to be read as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from state.errors import UsageError

_LARGEST_BATCH = 1_000


@dataclass(frozen=True)
class Page:
    """Some rows, in the order of the table.

    Args:
        rows: no more than were asked for.
        after: what to ask for the next page with; None on the last one.
        matches: how many rows there are on all pages, at most: of those that fit by what was once written for them,
            some may have changed since.
    """

    rows: pa.Table
    after: str | None
    matches: int


def page_of(
    found: Sequence[pa.ChunkedArray], read: Callable[[list[bytes]], pa.Table], after: str | None, limit: int
) -> Page:
    """The first rows behind a place.

    Args:
        found: the keys of rows that may belong to the pages, in any order.
        read: the rows of some keys that do, with their column `key`, in any order.
        after: what the page before says, or None.
        limit: rows of a page, at least 1.

    Raises:
        UsageError: `after` was never said by a page, or the limit is no such number.
    """
    if limit < 1:
        raise UsageError(f"limit={limit}: ask for 1 row or more")
    keys = pc.unique(pa.chunked_array([chunk for each in found for chunk in each.chunks], pa.binary()))
    matches, place = len(keys), _place(after)
    parts: list[pa.Table] = []
    missing, size = limit + 1, limit + 1
    while missing > 0:
        keys = keys if place is None else keys.filter(pc.greater(keys, pa.scalar(place, pa.binary())))
        batch = keys.take(pc.select_k_unstable(keys, size, sort_keys=[("", "ascending")])).to_pylist()
        if parts and not batch:
            break
        rows = read(batch).sort_by("key")
        parts.append(rows)
        if not batch:
            break
        missing, place, size = missing - rows.num_rows, batch[-1], min(4 * size, max(size, _LARGEST_BATCH))
    table = pa.concat_tables(parts)
    rows = table.slice(0, limit)
    next_place = rows["key"][-1].as_py().hex() if table.num_rows > limit else None
    return Page(rows.drop_columns("key"), next_place, matches)


def _place(after: str | None) -> bytes | None:
    try:
        return None if after is None else bytes.fromhex(after)
    except ValueError:
        raise UsageError(f"after={after!r} is no place in this table: take `after` of the page before") from None
