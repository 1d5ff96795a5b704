"""What one epoch changes in the tables: gathered by the actors, merged and written by the coordinator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from state.errors import ProtocolError
from state.resolve import fold
from state.tables import DELETE, PATCH, PUT, TABLES, row_type


@dataclass(frozen=True)
class Delta:
    """Changes of one epoch: table name -> Arrow table with the columns vnode, op, key and row, one row per key."""

    tables: Mapping[str, pa.Table] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not any(rows.num_rows for rows in self.tables.values())

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(rows.nbytes for rows in self.tables.values())

    @classmethod
    def merge(cls, deltas: Sequence[Delta]) -> Delta:
        """One delta out of several of the same epoch.

        Of two changes of one key the later in the list wins, and a patch is laid over what comes before it.
        """
        tables = {}
        for table in TABLES:
            parts = [delta.tables[table] for delta in deltas if table in delta.tables]
            if parts:
                rows = parts[0] if len(parts) == 1 else pa.concat_tables(parts)
                tables[table] = fold(table, rows)
        return cls(tables)


class DeltaBuilder:
    """Gathers the changes of one epoch.

    Within one builder the later change of a key wins, and a patch is laid over the change before it.
    """

    def __init__(self) -> None:
        self._pending: dict[str, _Pending] = {}

    def put(self, table: str, key: bytes, vnode: int, **fields: Any) -> None:
        """Writes a whole row; fields that are not named are null."""
        self._of(table).add(PUT, key, vnode, fields)

    def patch(self, table: str, key: bytes, vnode: int, **fields: Any) -> None:
        """Changes the named fields of the row; the others, and those given as None, stay as they are."""
        self._of(table).add(PATCH, key, vnode, fields)

    def delete(self, table: str, key: bytes, vnode: int) -> None:
        """Removes the row; nothing happens if there is none."""
        self._of(table).add(DELETE, key, vnode, None)

    def put_many(
        self, table: str, keys: Sequence[bytes], vnodes: Sequence[int], columns: Mapping[str, Sequence[Any]]
    ) -> None:
        """Writes many rows, given by columns of equal length; columns that are not named are null."""
        self._of(table).add_columns(keys, vnodes, columns)

    def build(self) -> Delta:
        """The changes so far; the builder is empty afterwards."""
        pending, self._pending = self._pending, {}
        return Delta.merge([Delta({table: rows.build()}) for table, rows in pending.items()])

    def _of(self, table: str) -> _Pending:
        pending = self._pending.get(table)
        if pending is None:
            if table not in TABLES:
                raise ProtocolError(f"there is no table {table!r} in the store; the tables are {', '.join(TABLES)}")
            pending = self._pending[table] = _Pending(table)
        return pending


class _Pending:
    """The changes of one table, in the order in which they came."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._names = frozenset(TABLES[table].names)
        self._parts: list[pa.Table] = []
        self._clear()

    def _clear(self) -> None:
        self._ops: list[int] = []
        self._keys: list[bytes] = []
        self._vnodes: list[int] = []
        self._fields: list[Mapping[str, Any] | None] = []

    def add(self, op: int, key: bytes, vnode: int, fields: Mapping[str, Any] | None) -> None:
        if fields is not None and not fields.keys() <= self._names:
            self._refuse(fields)
        self._ops.append(op)
        self._keys.append(key)
        self._vnodes.append(vnode)
        self._fields.append(fields)

    def add_columns(self, keys: Sequence[bytes], vnodes: Sequence[int], columns: Mapping[str, Sequence[Any]]) -> None:
        if not columns.keys() <= self._names:
            self._refuse(columns)
        self._flush()
        count = len(keys)
        fields = list(row_type(self._table))
        values = [
            pa.array(columns[each.name], each.type) if each.name in columns else pa.nulls(count, each.type)
            for each in fields
        ]
        row = pa.StructArray.from_arrays(values, fields=fields)
        self._parts.append(_rows(self._table, pa.repeat(pa.scalar(PUT, pa.uint8()), count), keys, vnodes, row))

    def build(self) -> pa.Table:
        self._flush()
        return pa.concat_tables(self._parts)

    def _flush(self) -> None:
        if self._ops:
            row = pa.array(self._fields, row_type(self._table))
            self._parts.append(_rows(self._table, self._ops, self._keys, self._vnodes, row))
            self._clear()

    def _refuse(self, fields: Mapping[str, Any]) -> None:
        unknown = ", ".join(sorted(fields.keys() - self._names))
        raise ProtocolError(
            f"the table {self._table!r} has no field {unknown}; it has {', '.join(TABLES[self._table].names)}"
        )


def _rows(table: str, ops: Any, keys: Any, vnodes: Any, row: pa.StructArray) -> pa.Table:
    return pa.table(
        {
            "vnode": pa.array(vnodes, pa.uint8()),
            "op": pa.array(ops, pa.uint8()),
            "key": pa.array(keys, pa.binary()),
            "row": row,
        }
    )
