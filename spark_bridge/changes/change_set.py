"""The changes of a view: the rows that leave and the rows that come, by the key of each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.datasets.added_rows import AddedRows
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.plans.view_plan import ViewPlan
from state.tables.group_key import KEY_COLUMN
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD, HASH_FIELD, ORIGIN_FIELD, WEIGHT_FIELD

if TYPE_CHECKING:
    import lance

LeafValues = Mapping[str, Mapping[str, pa.Array]]
"""Source or parent → column → the values of its rows that matter, each once, null among them."""

NO_VALUES: LeafValues = {}


@dataclass(frozen=True)
class ChangeSet:
    """The changes of one view.

    Rows are told apart by a key; several rows may have one.  Before the changes all rows with one of `keys` leave; then
    the added rows come, with these keys or with others.

    Args:
        keys: of the rows that leave, each once; a key may have no row.
        gone: the rows that leave, with the key in the first column if they have one; None if they must be looked up,
            as those with these keys in the rows before.
        added: the rows that come, with the same columns; many may be in the dataset alone.
        before: the rows before the changes; None without a handle on them.
        begun: the recorded version of these rows; None if it is not known.
    """

    keys: pa.Array
    gone: pa.Table | None
    added: pa.Table | AddedRows
    before: lance.LanceDataset | None = None
    begun: int | None = None

    @property
    def new(self) -> pa.Table:
        """The rows that come; many are read from the dataset."""
        return self.added.table if isinstance(self.added, AddedRows) else self.added

    def held(self) -> ChangeSet:
        """The same changes, with the rows that come in this process, also when the dataset lacks them later."""
        return replace(self, added=self.new)

    def then(self, later: ChangeSet) -> ChangeSet:
        """These changes and later ones as one."""
        gone = None
        if self.gone is not None and later.gone is not None and self._has_keys_of_new_rows:
            gone = pa.concat_tables([self.gone, _without(later.gone, self.keys)])
        keys = pa.concat_arrays([self.keys, later.keys]).unique()
        new = pa.concat_tables([_without(self.new, later.keys), later.new])
        return replace(self, keys=keys, gone=gone, added=new)

    @property
    def _has_keys_of_new_rows(self) -> bool:
        """Whether rows of this key that leave later were there before, or are among those that come now."""
        return self.new.num_rows == 0 or bool(pc.all(pc.is_in(self.new.column(0), value_set=self.keys)).as_py())


class Follower(Protocol):
    """Rows of a view in memory, one epoch behind the view while its changes are taken."""

    def follow(self, changes: ChangeSet | None) -> None:
        """Takes the changes of an epoch when those of the next one are taken from the log; None without any."""

    def expire(self, column: str, before_us: int) -> None:
        """Lets the rows go whose time is before a bound, in microseconds since 1970; nobody looks for them."""


class ChangeLog:
    """The changes of a view since they were taken last; nothing is kept of a view that no other one reads.

    Attributes:
        snapshot: gives a handle on the present rows of the view; None for a view without it.
        follower: rows that follow the changes, if there are some.
    """

    def __init__(self, snapshot: Callable[[], lance.LanceDataset] | None = None) -> None:
        self._is_kept = False
        self.snapshot = snapshot
        self.follower: Follower | None = None
        self._changes: ChangeSet | None = None
        self._taken: ChangeSet | None = None

    @property
    def is_kept(self) -> bool:
        """Whether other views read this one."""
        return self._is_kept

    @is_kept.setter
    def is_kept(self, is_kept: bool) -> None:
        self._is_kept = is_kept
        if not is_kept:
            self.follower = None

    def begin_to_follow(self, follower: Follower) -> None:
        """Gives a follower the changes of later epochs; it has those that were taken last, and is none behind yet."""
        self.follower, self._taken = follower, None

    def note(self, changes: ChangeSet) -> None:
        """Adds later changes."""
        if self.is_kept:
            self._changes = changes if self._changes is None else self._changes.then(changes)

    def expire(self, column: str, before_us: int) -> None:
        """Rows have left that are no part of the changes: nothing can meet them, see `Follower.expire`."""
        if self.follower is not None:
            self.follower.expire(column, before_us)

    def take(self) -> ChangeSet | None:
        """All changes since the last call; None without one.  The follower gets those of the last call."""
        if self.follower is not None:
            self.follower.follow(self._taken)
        changes, self._changes = self._changes, None
        self._taken = changes if self.follower is not None else None
        return changes


@dataclass(frozen=True)
class Parent:
    """A view that others read.

    Args:
        changes: of its rows up to this version; None without changes.
        begun: the version before the changes, if they are those of several epochs.
    """

    plan: ViewPlan
    version: ViewVersion
    changes: ChangeSet | None = None
    begun: ViewVersion | None = None

    @property
    def key_column(self) -> str:
        """The column of its dataset with the key of a row."""
        if self.plan.view_class == "aggregate":
            return KEY_COLUMN
        if self.plan.computed:
            return str(HASH_FIELD.name)
        return str((ORIGIN_FIELD if self.plan.parents else FILE_FIELD).name)

    @property
    def names_rows(self) -> bool:
        """Whether its rows have that key: rows of a source that is not materialized, which never leave, have none."""
        is_of_files = self.key_column == FILE_FIELD.name
        return not is_of_files or any(FILE_FIELD.name in columns for columns in self.plan.columns.values())

    @property
    def version_before(self) -> ViewVersion:
        """The version of its rows before the changes."""
        if self.begun is not None or self.changes is None:
            return self.begun or self.version
        assert self.changes.begun is not None, "changes of a projection view have the version before"
        return replace(self.version, version=self.changes.begun)

    def since(self, begun: ViewVersion, changes: ChangeSet | None) -> Parent:
        """The same view, with all changes since a version."""
        return replace(self, changes=changes and replace(changes, before=None), begun=begun)


class Changes(Protocol):
    """The changed rows that an aggregation reads: of corrected files, or of its parents."""

    def both(self, plan: ViewPlan, *, weighted: bool) -> EpochRows:
        """The rows that leave and those that come.

        Args:
            weighted: whether they have the column `__sw_weight`: -1 and 1.
        """

    def all(self, plan: ViewPlan, values: LeafValues = NO_VALUES) -> EpochRows:
        """All rows of its leaves, with the changes.

        Args:
            values: rows of a leaf with other values may be left out.
        """


def with_weights(gone: pa.Table, new: pa.Table) -> pa.Table:
    """The rows that leave with the weight -1, and those that come with the weight 1, in the last column."""
    weights = np.repeat(np.array([-1, 1]), [gone.num_rows, new.num_rows])
    return pa.concat_tables([gone, new]).append_column(WEIGHT_FIELD, pa.array(weights, WEIGHT_FIELD.type))


def _without(rows: pa.Table, keys: pa.Array) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows.column(0), value_set=keys))) if len(keys) else rows
