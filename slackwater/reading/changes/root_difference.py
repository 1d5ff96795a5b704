"""Difference of a view between two roots, as bags of rows."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from slackwater.reading.changes.view_difference import differing_rows
from slackwater.reading.view_reader import ViewReader
from state.errors import UsageError


@dataclass(frozen=True)
class ViewDifference:
    """The rows of a view that only one of two roots has.

    Args:
        view: the name of the view.
        epoch: the epoch of the first root.
        other_epoch: the epoch of the other root.
        rows: the number of rows in the first root.
        other_rows: the number of rows in the other root.
        only_here: the number of rows that only the first root has.
        only_there: the number of rows that only the other root has.
        rows_here: the first of the rows that only the first root has.
        rows_there: the first of the rows that only the other root has.
        columns_here: columns, with their types, that only the first root has; they are not compared.
        columns_there: the same of the other root.
    """

    view: str
    epoch: int
    other_epoch: int
    rows: int
    other_rows: int
    only_here: int
    only_there: int
    rows_here: pa.Table
    rows_there: pa.Table
    columns_here: tuple[str, ...]
    columns_there: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        """True if both have the same rows and columns."""
        return not (self.only_here or self.only_there or self.columns_here or self.columns_there)


def view_difference(here: ViewReader, there: ViewReader, epochs: tuple[int, int], limit: int) -> ViewDifference:
    """See `Store.diff`."""
    left, right = here.schema, there.schema
    shared = [field.name for field in left if field.name in right.names and right.field(field.name).type == field.type]
    if not shared:
        raise UsageError(f"view {here.name!r} has no column in both roots: there is nothing to compare")
    only_here, only_there = differing_rows(here, there, shared)
    return ViewDifference(
        here.name,
        *epochs,
        int(here.dataset.count_rows()),
        int(there.dataset.count_rows()),
        only_here.num_rows,
        only_there.num_rows,
        only_here.slice(0, limit),
        only_there.slice(0, limit),
        tuple(f"{field.name} {field.type}" for field in left if field.name not in shared),
        tuple(f"{field.name} {field.type}" for field in right if field.name not in shared),
    )
