"""The rows of an internal view in an epoch, by the hash of their key: a side of a join, or the rows below a window."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.changes.change_set import Parent
from spark_bridge.changes.joined_positions import Positions, meeting
from spark_bridge.changes.rows_before import FoundRows, RowsBefore
from spark_bridge.work_cost import count
from state.tables.epoch_trace import WorkCost
from state.tables.stored_rows import JOIN_FIELD

_JOIN = JOIN_FIELD.name
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Found:
    """Rows that were looked up: all of them, and those that stay."""

    before: pa.Table
    stay: pa.Table


@dataclass(frozen=True)
class Pairs:
    """Rows of two sides that meet by the hash of their key.

    Args:
        left: rows of the left side.
        right: rows of the right side.
        at: the positions of each pair in both.
        weight: -1 if the pairs leave, 1 if they come.
    """

    left: pa.Table
    right: pa.Table
    at: Positions
    weight: int

    @classmethod
    def of(cls, left: pa.Table, right: pa.Table, weight: int) -> Pairs:
        """All pairs of these rows."""
        return cls(left, right, meeting(left.column(_JOIN), right.column(_JOIN)), weight)


class _OnceEach(Generic[_Made]):
    """Makes one thing for each object; whoever wants it meanwhile waits."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._made: dict[int, tuple[object, Future[_Made]]] = {}

    def get(self, of: object, make: Callable[[], _Made]) -> _Made:
        """The thing of an object, by its identity.  An error is raised to all who want the thing."""
        with self._lock:
            is_first = id(of) not in self._made
            _, made = self._made.setdefault(id(of), (of, Future()))
        if is_first:
            try:
                made.set_result(make())
            except BaseException as error:
                made.set_exception(error)
        return made.result()


@dataclass(frozen=True)
class Side:
    """The rows of one side in an epoch.

    Args:
        gone: those that leave.
        new: those that come.
        keys: of the rows that leave, see `ChangeSet`.
        key_column: the column of these keys; None if no row leaves.
    """

    gone: pa.Table
    new: pa.Table
    before: FoundRows
    keys: pa.Array
    key_column: str | None
    _found: _OnceEach[Found] = field(default_factory=lambda: _OnceEach(), repr=False)
    _pairs: _OnceEach[list[Pairs]] = field(default_factory=lambda: _OnceEach(), repr=False)

    @classmethod
    def of(cls, parent: Parent, before: RowsBefore) -> Side:
        """The rows of a parent."""
        changes, names = parent.changes, [*stored_names(parent), _JOIN]
        rows = before.of(parent)
        if changes is None:
            nothing = parent.plan.schema.empty_table().select(names)
            return cls(nothing, nothing, rows, pa.nulls(0), None)
        key_column = parent.key_column if len(changes.keys) else None
        gone = before.gone(parent).select(names)
        return cls(gone, changes.new.select(names), rows, changes.keys, key_column)

    @cached_property
    def hashes(self) -> pa.Array:
        """Of the keys of the rows that change, each once."""
        return hashes_of(self.gone, self.new)

    def rows_before(self, hashes: pa.Array) -> Found:
        """The rows before with these hashes; they are looked up once for one array."""
        return self._found.get(hashes, lambda: self._look_up(hashes))

    def pairs(self, right: Side) -> list[Pairs]:
        """The pairs with the rows of a right side that leave and those that come; they are made once."""
        return self._pairs.get(right, lambda: self._changed_pairs(right))

    def _changed_pairs(self, right: Side) -> list[Pairs]:
        partners = right.rows_before(self.hashes)
        staying = self.rows_before(right.hashes).stay
        return [
            Pairs.of(self.gone, partners.before, -1),
            Pairs.of(staying, right.gone, -1),
            Pairs.of(self.new, right.rows_after(partners, self.hashes), 1),
            Pairs.of(staying, right.new, 1),
        ]

    def _look_up(self, hashes: pa.Array) -> Found:
        columns = [*self.new.schema.names, *([self.key_column] if self.key_column else [])]
        rows = self.before.with_keys(_JOIN, hashes, columns)
        count(WorkCost(found=rows.num_rows))
        stay = rows
        if self.key_column:
            stay = rows.filter(pc.invert(pc.is_in(rows.column(self.key_column), value_set=self.keys)))
        schema = self.new.schema
        return Found(rows.select(schema.names).cast(schema), stay.select(schema.names).cast(schema))

    def rows_after(self, found: Found, hashes: pa.Array) -> pa.Table:
        """The rows afterwards with these hashes."""
        return with_hashes(pa.concat_tables([found.stay, self.new]), hashes)


class Sides:
    """The sides of one epoch: each is made once, for all views that read it.

    Args:
        before: finds rows before the changes.
    """

    def __init__(self, before: RowsBefore) -> None:
        self._before = before
        self._sides: _OnceEach[Side] = _OnceEach()

    def of(self, parent: Parent) -> Side:
        """The rows of a parent, by the hash of their key."""
        return self._sides.get(parent, lambda: Side.of(parent, self._before))


def stored_names(parent: Parent) -> list[str]:
    """The columns of a side, without the hash."""
    return [name for name in parent.plan.schema.names if name != _JOIN]


def hashes_of(*tables: pa.Table) -> pa.Array:
    """The hashes of rows, each once."""
    columns = pa.chunked_array([chunk for each in tables for chunk in each.column(_JOIN).chunks], JOIN_FIELD.type)
    return pc.unique(columns).drop_null()


def with_hashes(rows: pa.Table, hashes: pa.Array) -> pa.Table:
    """Those of the rows that have one of these hashes."""
    return rows.filter(pc.is_in(rows.column(_JOIN), value_set=hashes))
