"""Page of a table that may be too long to be read as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from state.errors import UsageError

_LARGEST_BATCH = 1_000


@dataclass(frozen=True)
class Page:
    """Consecutive rows of a table.

    Args:
        rows: the rows, at most `limit`.
        after: the argument `after` of the next page; None on the last page.
        matches: an upper bound of the rows on all pages: some rows may have changed since they matched.
    """

    rows: pa.Table
    after: str | None
    matches: int


def page_of(
    found: Sequence[pa.ChunkedArray], read: Callable[[list[bytes]], pa.Table], after: str | None, limit: int
) -> Page:
    """The first page behind a position.

    Args:
        found: the keys of candidate rows, in any order.
        read: returns the matching rows of keys, with their column `key`, in any order.
        after: `Page.after` of the previous page, or None.
        limit: the number of rows of a page, at least 1.

    Raises:
        UsageError: `after` does not come from a page, or the limit is not valid.
    """
    require_limit(limit)
    keys = pc.unique(pa.chunked_array([chunk for each in found for chunk in each.chunks], pa.binary()))
    matches, place = len(keys), place_of(after)
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
    return _cut(pa.concat_tables(parts), limit, matches)


def first_page(parts: Iterable[pa.Table], limit: int, matches: int) -> Page:
    """The first page of a long table; no part behind it is read.

    Args:
        parts: the rows behind a position, with their column `key`, in its order.
        limit: the number of rows of a page, at least 1.
        matches: the number of rows on all pages.
    """
    found: list[pa.Table] = []
    rows = 0
    for part in parts:
        found.append(part)
        rows += part.num_rows
        if rows > limit:
            break
    return _cut(pa.concat_tables(found), limit, matches)


def require_limit(limit: int) -> None:
    """Refuses a number of rows below 1.

    Raises:
        UsageError: it is.
    """
    if limit < 1:
        raise UsageError(f"limit={limit}: ask for 1 row or more")


def _cut(table: pa.Table, limit: int, matches: int) -> Page:
    rows = table.slice(0, limit)
    next_place = rows["key"][-1].as_py().hex() if table.num_rows > limit else None
    return Page(rows.drop_columns("key"), next_place, matches)


def place_of(after: str | None) -> bytes | None:
    """The key of a position.

    Raises:
        UsageError: it does not come from a page.
    """
    try:
        return None if after is None else bytes.fromhex(after)
    except ValueError:
        raise UsageError(
            f"after={after!r} is not a valid position in this table: give `after` of the previous page"
        ) from None
