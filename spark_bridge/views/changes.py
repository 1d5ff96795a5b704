"""The changes of a view: the rows that leave and the rows that come, by the key of each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.hand_over.epoch_rows import EpochRows
from state.tables.group_key import KEY_COLUMN
from state.tables.records import ViewVersion
from state.tables.stored_rows import ORIGIN_FIELD

LeafValues = Mapping[str, Mapping[str, pa.Array]]
"""Source or parent → column → the values of its rows that matter, each once, null among them."""

NO_VALUES: LeafValues = {}


@dataclass(frozen=True)
class ChangeSet:
    """The changes of one view.

    Args:
        keys: the keys of the rows that were written or deleted, each once.
        gone: their rows before, with the key in the first column; a key may have several rows, or none.
        new: their rows after, with the same columns.
    """

    keys: pa.Array
    gone: pa.Table
    new: pa.Table

    def then(self, later: ChangeSet) -> ChangeSet:
        """These changes and later ones as one: for each key its first rows before, and its last rows after."""
        return ChangeSet(
            pa.concat_arrays([self.keys, later.keys]).unique(),
            pa.concat_tables([self.gone, _without(later.gone, self.keys)]),
            pa.concat_tables([_without(self.new, later.keys), later.new]),
        )


class ChangeLog:
    """The changes of a view since they were taken last; nothing is kept of a view that no other one reads."""

    def __init__(self) -> None:
        self.is_kept = False
        self._changes: ChangeSet | None = None

    def note(self, changes: ChangeSet) -> None:
        """Adds later changes."""
        if self.is_kept:
            self._changes = changes if self._changes is None else self._changes.then(changes)

    def take(self) -> ChangeSet | None:
        """All changes since the last call; None without one."""
        changes, self._changes = self._changes, None
        return changes


@dataclass(frozen=True)
class Parent:
    """A view that others read.

    Args:
        plan: of the view.
        version: of its rows.
        changes: of its rows up to this version; None without changes.
    """

    plan: ViewPlan
    version: ViewVersion
    changes: ChangeSet | None = None

    @property
    def key_column(self) -> str:
        """The column of its dataset with the key of a row."""
        return KEY_COLUMN if self.plan.view_class == "aggregate" else ORIGIN_FIELD.name


class Changes(Protocol):
    """The changed rows that a grouping reads: of corrected files, or of its parents."""

    def both(self, plan: ViewPlan, *, weighted: bool) -> EpochRows:
        """The rows that leave and those that come.

        Args:
            plan: of the view.
            weighted: whether they have the column `__sw_weight`: -1 and 1.
        """

    def all(self, plan: ViewPlan, values: LeafValues = NO_VALUES) -> EpochRows:
        """All rows of its leaves, with the changes.

        Args:
            plan: of the view.
            values: rows of a leaf with other values may be left out.
        """


def _without(rows: pa.Table, keys: pa.Array) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows.column(0), value_set=keys)))
