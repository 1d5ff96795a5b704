"""Deltas: the changes of one epoch to the tables, gathered by the actors, merged and written by the coordinator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from state.errors import ProtocolError
from state.tables.resolve import latest_by_key
from state.tables.tables import DELETE, PATCH, PUT, TABLES, Op, row_type


class Change(NamedTuple):
    """The change of one row by an epoch.

    Args:
        op: `PUT`, `PATCH` or `DELETE`.
        vnode: the vnode of the row.
        fields: the named fields only.
    """

    op: Op
    vnode: int
    fields: Mapping[str, Any]

    def over(self, earlier: Change) -> Change:
        """One change that equals the earlier change of this row, followed by this one."""
        if self.op != PATCH:
            return self
        if earlier.op == DELETE:
            return earlier
        given = {name: value for name, value in self.fields.items() if value is not None}
        return Change(earlier.op, earlier.vnode, {**earlier.fields, **given})


Changes = Mapping[bytes, Change]
Part: TypeAlias = Changes | pa.Table


@dataclass(frozen=True)
class StagedRows:
    """Rows that are already durable and become visible with the commit of their epoch.

    Args:
        epoch: the only epoch whose commit accepts them.
        content: their place, as the store that staged them names it.
    """

    epoch: int
    rows: int
    content: str


@dataclass(frozen=True)
class Delta:
    """Changes of one epoch, one for each key of a table.

    Inside a process the changes stay Python objects, which is cheap; pickling and writing turns them into Arrow.

    Args:
        parts: table name -> its changes by key, or an Arrow table with the columns vnode, op, key and row.
        staged: rows that do not travel with the delta; no other change of the epoch has one of their keys.
    """

    parts: Mapping[str, Part] = field(default_factory=dict)
    staged: tuple[StagedRows, ...] = ()

    @cached_property
    def tables(self) -> Mapping[str, pa.Table]:
        """Table name -> Arrow table with the columns vnode, op, key and row, one row per key."""
        return {table: _as_arrow(table, part) for table, part in self.parts.items()}

    @cached_property
    def changes(self) -> Mapping[str, Changes]:
        """Table name -> its changes by key."""
        return {table: part if isinstance(part, Mapping) else _as_changes(part) for table, part in self.parts.items()}

    @property
    def is_empty(self) -> bool:
        return not self.staged and not any(len(part) for part in self.parts.values())

    @property
    def nbytes(self) -> int:
        """Bytes as Arrow, without the staged rows."""
        return sum(rows.nbytes for rows in self.tables.values())

    @classmethod
    def merge(cls, deltas: Sequence[Delta]) -> Delta:
        """One delta out of several of the same epoch.

        Of two changes of one key the later in the list wins; a patch is laid over the change before it.
        """
        parts: dict[str, list[Part]] = {}
        for delta in deltas:
            for table, part in delta.parts.items():
                parts.setdefault(table, []).append(part)
        merged = {table: _merged(table, each) for table, each in parts.items()}
        return cls(merged, tuple(rows for delta in deltas for rows in delta.staged))

    def __reduce__(self) -> tuple[type[Delta], tuple[Any, ...]]:
        return Delta, (self.tables, self.staged)


class DeltaBuilder:
    """Gathers the changes of one epoch.

    Within one builder the later change of a key wins, and a patch is laid over the change before it.
    """

    def __init__(self) -> None:
        self._pending: dict[str, _Pending] = {}

    def put(self, table: str, key: bytes, vnode: int, **fields: Any) -> None:
        """Writes a whole row; the other fields are null."""
        self._of(table).add(key, Change(PUT, vnode, fields))

    def patch(self, table: str, key: bytes, vnode: int, **fields: Any) -> None:
        """Changes the named fields of a row; the other fields, and fields given as None, keep their values."""
        self._of(table).add(key, Change(PATCH, vnode, fields))

    def delete(self, table: str, key: bytes, vnode: int) -> None:
        """Deletes a row; a missing row stays missing."""
        self._of(table).add(key, Change(DELETE, vnode, {}))

    def put_many(
        self, table: str, keys: Sequence[bytes], vnodes: Sequence[int], columns: Mapping[str, Sequence[Any]]
    ) -> None:
        """Writes many rows, given as columns of equal length; the other columns are null."""
        self._of(table).add_columns(keys, vnodes, columns)

    def changes(self, table: str) -> Changes:
        """The pending changes of one table, by key; the builder keeps them."""
        pending = self._pending.get(table)
        return {} if pending is None else Delta({table: pending.build()}).changes[table]

    def build(self) -> Delta:
        """All pending changes; the builder is empty afterwards."""
        pending, self._pending = self._pending, {}
        return Delta({table: rows.build() for table, rows in pending.items()})

    def _of(self, table: str) -> _Pending:
        pending = self._pending.get(table)
        if pending is None:
            if table not in TABLES:
                raise ProtocolError(f"{table!r} is not a valid table of the store; the tables are {', '.join(TABLES)}")
            pending = self._pending[table] = _Pending(table)
        return pending


class _Pending:
    """The changes of one table, in the order of their calls."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._names = _FIELD_NAMES[table]
        self._before: list[Part] = []
        self._changes: dict[bytes, Change] = {}

    def add(self, key: bytes, change: Change) -> None:
        if not change.fields.keys() <= self._names:
            self._refuse(change.fields)
        earlier = self._changes.get(key)
        self._changes[key] = change if earlier is None else change.over(earlier)

    def add_columns(self, keys: Sequence[bytes], vnodes: Sequence[int], columns: Mapping[str, Sequence[Any]]) -> None:
        if not columns.keys() <= self._names:
            self._refuse(columns)
        count = len(keys)
        fields = list(row_type(self._table))
        values = [
            pa.array(columns[each.name], each.type) if each.name in columns else pa.nulls(count, each.type)
            for each in fields
        ]
        row = pa.StructArray.from_arrays(values, fields=fields)
        rows = _rows(pa.repeat(pa.scalar(PUT, pa.uint8()), count), keys, vnodes, row)
        self._before += [self._changes, latest_by_key(self._table, rows)]
        self._changes = {}

    def build(self) -> Part:
        return _merged(self._table, [*self._before, self._changes])

    def _refuse(self, fields: Mapping[str, Any]) -> None:
        unknown = ", ".join(sorted(fields.keys() - self._names))
        raise ProtocolError(
            f"the table {self._table!r} has no field {unknown}; it has {', '.join(TABLES[self._table].names)}"
        )


_FIELD_NAMES = {table: frozenset(fields.names) for table, fields in TABLES.items()}


def _merged(table: str, parts: Sequence[Part]) -> Part:
    parts = [part for part in parts if len(part)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, Mapping) for part in parts):
        return _overlaid(parts)
    return latest_by_key(table, pa.concat_tables([_as_arrow(table, part) for part in parts]))


def _overlaid(parts: Iterable[Changes]) -> Changes:
    merged: dict[bytes, Change] = {}
    for part in parts:
        for key, change in part.items():
            earlier = merged.get(key)
            merged[key] = change if earlier is None else change.over(earlier)
    return merged


def _as_arrow(table: str, part: Part) -> pa.Table:
    if not isinstance(part, Mapping):
        return part
    changes = part.values()
    fields = [None if change.op == DELETE else change.fields for change in changes]
    row = pa.array(fields, row_type(table))
    return _rows([change.op for change in changes], list(part), [change.vnode for change in changes], row)


def _as_changes(rows: pa.Table) -> Changes:
    return {
        row["key"]: Change(row["op"], row["vnode"], {n: v for n, v in (row["row"] or {}).items() if v is not None})
        for row in rows.to_pylist()
    }


def _rows(ops: Any, keys: Any, vnodes: Any, row: pa.StructArray) -> pa.Table:
    return pa.table(
        {
            "vnode": pa.array(vnodes, pa.uint8()),
            "op": pa.array(ops, pa.uint8()),
            "key": pa.array(keys, pa.binary()),
            "row": row,
        }
    )
