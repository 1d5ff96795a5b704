"""Rows that leave a table with a change: by their key, or as whole rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.reading.changes.view_changes import ViewChange
from state.equality.exact_rows import exact_rows, with_nulls
from state.equality.row_identity import exact, row_texts
from state.errors import CommitRefusedError
from state.tables.group_key import group_keys


class LeavingRows:
    """The rows that a change removes or replaces.

    With a key these are the rows of its groups.  Without a key they are whole rows: each removed row removes one
    equal row, from any part of the table.

    Args:
        change: the change; its tables have the columns of the view.
    """

    def __init__(self, change: ViewChange) -> None:
        self.columns = list(change.key or change.rows.column_names)
        parts = [change.removed, *([change.rows.select(self.columns)] if change.key else [])]
        # A column that is never null in the view may be nullable in the format.
        schema = with_nulls(change.rows.select(self.columns).schema)
        self._removed = pa.concat_tables([exact_rows(part, schema) for part in parts])
        self._keys = group_keys(self._removed.columns) if change.key else None
        self._left = Counter(() if change.key else row_texts(change.removed))
        self._wanted = frozenset(self._left)

    def __bool__(self) -> bool:
        return bool(self._removed.num_rows)

    def staying(self, rows: pa.Table) -> pa.Array:
        """True for each row of a part of the table that stays.  Each part is given once.

        Args:
            rows: the part, with `columns`.
        """
        rows = self._cast(rows)
        if self._keys is not None:
            return pc.invert(pc.is_in(group_keys(rows.columns), value_set=self._keys))
        stays = np.ones(rows.num_rows, bool)
        for at, text in self._equal(rows):
            if self._left[text] > 0:
                self._left[text] -= 1
                stays[at] = False
        return pa.array(stays)

    def equal(self, rows: pa.Table) -> pa.Table:
        """The rows, out of a part of the table, that are equal to a removed whole row."""
        rows = self._cast(rows)
        return rows.take(pa.array([at for at, _ in self._equal(rows)], pa.int64()))

    def require_found(self, place: object) -> None:
        """Checks, after all parts, that the table had each retracted whole row.

        Raises:
            CommitRefusedError: the table lacks rows of the view.
        """
        missing = sum(self._left.values())
        if missing:
            raise CommitRefusedError(
                f"{place} lacks {missing:,} rows that the view had at the epoch that the table names: another program "
                "has changed it; nothing was written; publish to a new table"
            )

    def _cast(self, rows: pa.Table) -> pa.Table:
        """The rows with the types of the view: a format may store them with other types."""
        return exact_rows(rows, self._removed.schema)

    def _equal(self, rows: pa.Table) -> list[tuple[int, str]]:
        """The position and text of rows that equal a removed row.  Columns are compared first: few rows become text."""
        maybe = pa.array(np.ones(rows.num_rows, bool))
        for name in self.columns:
            if not pa.types.is_nested(rows[name].type):
                removed = exact(self._removed[name]).combine_chunks()
                maybe = pc.and_(maybe, pc.is_in(exact(rows[name]), value_set=removed))
        positions = pc.indices_nonzero(maybe)
        texts = row_texts(rows.take(positions))
        return [(at, text) for at, text in zip(positions.to_pylist(), texts, strict=True) if text in self._wanted]
