"""The sides of a join in an epoch of many rows: tasks read them, and Spark joins them.

The rules are those of `joined_changes`, over rows that this process does not hold.  Beside few changed rows of one
side, only the rows of the other side that meet them are read, by the hashes of their keys.  Hashes are None if they are
too many to be looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from actors.formats.limits import row_bytes
from actors.schemas.ddl import quoted_name
from spark_bridge.changes.joined_positions import JoinKind
from spark_bridge.changes.parents import Parents
from spark_bridge.changes.sides import hashes_of, stored_names
from spark_bridge.engine.execution.leaves import LeafRows
from spark_bridge.ingest.dataset_frame import WantedRows
from state.tables.records import ViewVersion
from state.tables.stored_rows import JOIN_FIELD

MOST_HASHES = 5_000
"""Of the rows of one side; with more of them the other side is read as a whole."""
_JOIN = JOIN_FIELD.name


def few_hashes(*tables: pa.Table) -> pa.Array | None:
    """The hashes of rows, if they are few."""
    hashes = hashes_of(*tables)
    return hashes if len(hashes) <= MOST_HASHES else None


def _of_both(one: pa.Array | None, other: pa.Array | None) -> pa.Array | None:
    return None if one is None or other is None else pc.unique(pa.concat_arrays([one, other]))


class LargeSide:
    """The rows of one side; none of the results has the hash of the key.

    Args:
        parents: the side is among them.
        name: of the internal view with its rows.
    """

    def __init__(self, parents: Parents, name: str) -> None:
        self._parents, self._parent, self._name = parents, parents.by_name[name], name
        self._names = stored_names(self._parent)

    @cached_property
    def nbytes(self) -> int:
        """Estimated size of all rows in bytes."""
        return self._parents.num_rows(self._name) * row_bytes(self._parent.plan.schema)

    @cached_property
    def gone(self) -> pa.Table:
        """The rows that leave, with the hash."""
        if self._parent.changes is None:
            return self._parent.plan.schema.empty_table()
        return self._parents.gone(self._name)

    @property
    def has_new(self) -> bool:
        """Whether rows come."""
        changes = self._parent.changes
        return changes is not None and changes.added.num_rows > 0

    @property
    def gone_hashes(self) -> pa.Array | None:
        """The hashes of the rows that leave."""
        return few_hashes(self.gone)

    @property
    def new_hashes(self) -> pa.Array | None:
        """The hashes of the rows that come."""
        if not self.has_new:
            return pa.array([], JOIN_FIELD.type)
        new = self._new_with([_JOIN])
        return None if new.few is None else few_hashes(new.few)

    @cached_property
    def hashes(self) -> pa.Array | None:
        """The hashes of all rows that change."""
        return _of_both(self.gone_hashes, self.new_hashes)

    def leaving(self) -> LeafRows:
        """The rows that leave."""
        return self._of_table(self.gone)

    def coming(self) -> LeafRows:
        """The rows that come."""
        return self._new_with(self._names) if self.has_new else self._of_table(self.gone.slice(0, 0))

    def before(self, hashes: pa.Array | None) -> LeafRows:
        """The rows before, or at least those with these hashes."""
        return self._at(self._parent.version_before, self._names, hashes)

    def after(self, hashes: pa.Array | None) -> LeafRows:
        """The rows afterwards, or at least those with these hashes."""
        return self._at(self._parent.version, self._names, hashes)

    def staying(self, hashes: pa.Array | None) -> LeafRows:
        """The rows that stay, or at least those with these hashes."""
        return self._staying(self._names, hashes)

    def staying_beside(self, other: LargeSide) -> LeafRows:
        """The rows that stay and meet rows of the other side that change."""
        if other.hashes is not None:
            return self.staying(other.hashes)
        return self._meeting(self._staying([*self._names, _JOIN], None), other.changing())

    def world(self, *, after: bool, beside: LargeSide) -> LeafRows:
        """The rows before or afterwards that meet changed ones of either side; of those without a key the changed."""
        version = self._parent.version if after else self._parent.version_before
        hashes = _of_both(self.hashes, beside.hashes)
        if hashes is not None:
            keyed = self._at(version, self._names, hashes)
        else:
            both = LeafRows.together(self._parents.catalyst, [self.changing(), beside.changing()])
            keyed = self._meeting(self._at(version, [*self._names, _JOIN], None), both)
        return self._together(keyed, self._without_key(after=after))

    def changing(self) -> LeafRows:
        """The hashes of the rows that change."""
        rows = LeafRows.of_table(self._parents.catalyst.spark, self.gone.select([_JOIN]))
        return LeafRows.together(self._parents.catalyst, [rows, self._new_with([_JOIN])]) if self.has_new else rows

    def changed_beside(self, other: LargeSide) -> tuple[LeafRows, LeafRows]:
        """The rows that leave and those that come, with those that stay beside changed rows of the other."""
        if not other.has_new and not other.gone.num_rows:
            return self.leaving(), self.coming()
        staying = self.staying_beside(other)
        return self._together(self.leaving(), staying), self._together(self.coming(), staying)

    def _without_key(self, *, after: bool) -> LeafRows:
        if not after:
            return self._of_table(self.gone.filter(self.gone.column(_JOIN).is_null()))
        if not self.has_new:
            return self.coming()
        new = self._new_with([*self._names, _JOIN])
        return self._queried("rows without a key", lambda rows: rows.where(F.col(_JOIN).isNull()), new)

    def _at(self, version: ViewVersion, columns: list[str], hashes: pa.Array | None) -> LeafRows:
        if hashes is None:
            return self._parents.every(version, columns)[0]
        return self._parents.all_at(version, columns, _with(hashes))[0]

    def _staying(self, columns: list[str], hashes: pa.Array | None) -> LeafRows:
        wanted = None if hashes is None else _with(hashes)
        return self._parents.staying(self._name, columns, wanted)[0]

    def _new_with(self, columns: list[str]) -> LeafRows:
        return self._parents.new(self._name, columns)

    def _meeting(self, rows: LeafRows, hashes: LeafRows) -> LeafRows:
        return self._queried("rows that meet", lambda rows, hashes: rows.join(hashes, _JOIN, "left_semi"), rows, hashes)

    def _queried(self, name: str, make: Callable[..., DataFrame], *given: LeafRows) -> LeafRows:
        names = [quoted_name(each) for each in self._names]
        key = name, *names
        return self._parents.queries.of_frames(key, lambda *frames: make(*frames).select(*names), *given)

    def _of_table(self, rows: pa.Table) -> LeafRows:
        return LeafRows.of_table(self._parents.catalyst.spark, rows.select(self._names))

    def _together(self, one: LeafRows, other: LeafRows) -> LeafRows:
        if one.few is not None and other.few is not None:
            return self._of_table(pa.concat_tables([one.few, other.few.cast(one.few.schema)]))
        return LeafRows.together(self._parents.catalyst, [one, other])


def terms(kind: JoinKind, left: LargeSide, right: LargeSide) -> Iterator[tuple[int, LeafRows, LeafRows]]:
    """Yields the rows of both sides whose joins together are the changes, with the weight of each join."""
    if kind == "inner":
        if left.gone.num_rows:
            yield -1, left.leaving(), right.before(left.gone_hashes)
        if right.gone.num_rows:
            yield -1, left.staying(right.gone_hashes), right.leaving()
        if left.has_new:
            yield 1, left.coming(), right.after(left.new_hashes)
        if right.has_new:
            yield 1, left.staying(right.new_hashes), right.coming()
    elif kind == "full":
        yield -1, left.world(after=False, beside=right), right.world(after=False, beside=left)
        yield 1, left.world(after=True, beside=right), right.world(after=True, beside=left)
    else:
        gone, new = left.changed_beside(right)
        yield -1, gone, right.before(_of_both(left.gone_hashes, right.hashes))
        yield 1, new, right.after(_of_both(left.new_hashes, right.hashes))


def _with(hashes: pa.Array) -> WantedRows:
    return WantedRows(values={_JOIN: hashes})
