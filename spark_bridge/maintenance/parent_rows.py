"""The rows of a view's parents: all of them at one version, or those that an epoch changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from actors.schemas.ddl import quoted_name
from spark_bridge.changes.change_set import NO_VALUES, ChangeSet, LeafValues, Parent, with_weights
from spark_bridge.changes.parents import Parents
from spark_bridge.datasets.added_rows import AddedRows
from spark_bridge.engine.execution.leaves import LeafRows
from spark_bridge.ingest.dataset_frame import WantedRows
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.operators.operator import OperatorInput
from spark_bridge.operators.registry import Operators
from spark_bridge.plans.columns import columns_to_read
from spark_bridge.plans.operator_plan import OperatorPlan
from spark_bridge.plans.view_plan import ViewPlan
from spark_bridge.work_cost import count
from state.tables.epoch_trace import WorkCost
from state.tables.stored_rows import FILE_FIELD, ORIGIN_FIELD, WEIGHT_FIELD


class ParentRows:
    """The rows that a view gets from its parents, see `Changes`.

    Args:
        parents: of all views that are read.
        operators: make the rows of operators.
        parallelism: number of tasks that the session runs at once.
        time_us: time of the epoch, see `EpochRows`.
        begun_us: the time at which the rows of a view were right before the changes; that of the epoch by default.
        watermarks: source → its watermark, which is the time of filters by a time to live.
    """

    def __init__(
        self,
        parents: Parents,
        operators: Operators,
        parallelism: int,
        time_us: int,
        begun_us: int | None = None,
        watermarks: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._parents, self._operators = parents, operators
        self._given = OperatorInput(parents, time_us, begun_us, watermarks)
        self._parallelism, self.time_us = parallelism, time_us

    def since(self, begun_us: int | None) -> ParentRows:
        """The same, for a view whose rows were right at another time."""
        return ParentRows(
            self._parents, self._operators, self._parallelism, self.time_us, begun_us, self._given.watermarks
        )

    def new(self, plan: ViewPlan) -> EpochRows:
        """The rows of its parents that come."""
        changes = self._changes(plan, plan.columns)
        return self._epoch_rows({name: self._new(plan, name, each) for name, each in changes.items()})

    def both(self, plan: ViewPlan, *, weighted: bool) -> EpochRows:
        """The rows of its parents that leave, and those that come."""
        changes = self._changes(plan, plan.columns)
        rows = {name: self._both(plan, name, each) for name, each in changes.items()}
        for name, leaf in plan.computed.items():
            if self._is_changed(leaf):
                rows[name] = self._operators.of(leaf).changed(self._given, leaf, _used_of(plan, leaf))
        if not weighted:
            rows = {name: (self._without_weights(each), size) for name, (each, size) in rows.items()}
        return self._epoch_rows(rows)

    def all(self, plan: ViewPlan, values: LeafValues = NO_VALUES) -> EpochRows:
        """All rows of its parents, or at least those with these values."""
        frames, nbytes = {}, 0
        for name, leaf in plan.computed.items():
            operator = self._operators.of(leaf)
            frames[name], size = operator.all(self._given, leaf, _used_of(plan, leaf), values.get(name, {}))
            nbytes += size
        for name in plan.parents:
            if name not in plan.columns:
                continue  # it is a side of a join, or below a window or a limit
            parent = self._parents.by_name[name]
            used = _used(plan, name, parent)
            columns, wanted = [*used, *_keys_of(plan, parent)], WantedRows(values=values.get(name, {}))
            rows, size = self._parents.all(name, columns, wanted)
            frames[name] = self._with_origins(plan, name, parent, rows)
            nbytes += size
        return EpochRows(frames, nbytes, self._parallelism, self.time_us)

    def none(self) -> EpochRows:
        """No rows."""
        return EpochRows({}, 0, self._parallelism, self.time_us)

    def count(self, plan: ViewPlan) -> int:
        """The number of all rows of a view's parents."""
        return sum(map(self._parents.num_rows, plan.parents))

    def are_changed(self, plan: ViewPlan) -> bool:
        """Whether a parent of a view has changes, or the time reaches a row of one."""
        return bool(self._changes(plan, plan.parents)) or any(map(self._is_due, plan.computed.values()))

    def are_large(self, plan: ViewPlan) -> bool:
        """Whether a parent of a view has new rows that are in no process."""
        return self._parents.are_large(plan.parents)

    def origins(self, plan: ViewPlan) -> pa.Array:
        """The origins of a view's rows that may change, each once: the changed rows of its parents."""
        changes = self._changes(plan, plan.columns)
        origins = [_origins(plan.origin_of(name), each.keys) for name, each in changes.items()]
        return pa.concat_arrays([pa.array([], ORIGIN_FIELD.type), *origins])

    def _is_changed(self, leaf: OperatorPlan) -> bool:
        return self._parents.are_changed(leaf.sides) or self._is_due(leaf)

    def _is_due(self, leaf: OperatorPlan) -> bool:
        """Whether the time reaches a row of an operator."""
        return self._operators.of(leaf).is_due(self._given, leaf)

    def _without_weights(self, rows: LeafRows) -> LeafRows:
        if rows.few is None:
            return rows  # a query takes the columns of its leaves
        return LeafRows.of_table(self._parents.catalyst.spark, rows.few.drop_columns(WEIGHT_FIELD.name))

    def _changes(self, plan: ViewPlan, names: Collection[str]) -> dict[str, ChangeSet]:
        """Name → changes of each parent among some names that has some."""
        changes = {name: self._parents.by_name[name].changes for name in plan.parents if name in names}
        return {name: each for name, each in changes.items() if each is not None}

    def _new(self, plan: ViewPlan, name: str, changes: ChangeSet) -> tuple[LeafRows, int]:
        """The rows of a parent that come, and their size."""
        parent, added = self._parents.by_name[name], changes.added
        used = _used(plan, name, parent)
        if isinstance(added, AddedRows):
            rows = self._parents.new(name, [*used, *_keys_of(plan, parent)])
            return self._with_origins(plan, name, parent, rows), added.nbytes
        table = added.select(used)
        if _has_origins(plan):
            keys = added.column(parent.key_column) if parent.names_rows else pa.nulls(added.num_rows, pa.string())
            table = table.append_column(ORIGIN_FIELD, _origins(plan.origin_of(name), keys))
        return self._few(table)

    def _both(self, plan: ViewPlan, name: str, changes: ChangeSet) -> tuple[LeafRows, int]:
        """The rows of a parent that leave and those that come, with their weights at the end, and their size."""
        used, added = _used(plan, name, self._parents.by_name[name]), changes.added
        gone = self._parents.gone(name).select(used)
        if not isinstance(added, AddedRows):
            return self._few(with_weights(gone, added.select(used)))
        catalyst = self._parents.catalyst
        both = [(self._parents.new(name, used), 1)]
        if gone.num_rows:
            both.append((LeafRows.of_table(catalyst.spark, gone), -1))
        weighted = [rows.with_constant(catalyst, WEIGHT_FIELD, weight) for rows, weight in both]
        return LeafRows.together(catalyst, weighted), added.nbytes + gone.nbytes

    def _with_origins(self, plan: ViewPlan, name: str, parent: Parent, rows: LeafRows) -> LeafRows:
        """Rows of a parent, with their origins in place of their keys if the view stores these."""
        if not _has_origins(plan):
            return rows
        used, origin = _used(plan, name, parent), plan.origin_of(name)
        if rows.few is not None:
            table = rows.few
            keys = table.column(parent.key_column) if parent.names_rows else pa.nulls(table.num_rows, pa.string())
            few = table.select(used).append_column(ORIGIN_FIELD, _origins(origin, keys))
            return LeafRows.of_table(self._parents.catalyst.spark, few)
        names = [quoted_name(each) for each in used]
        key = _key_text(parent)
        return self._parents.queries.of_frames(
            ("rows with origins", origin, key, *names),
            lambda rows: rows.select(*names, F.concat(F.lit(f"{origin}|"), F.expr(key)).alias(ORIGIN_FIELD.name)),
            rows,
        )

    def _few(self, table: pa.Table) -> tuple[LeafRows, int]:
        count(WorkCost(given=table.num_rows))
        return LeafRows.of_table(self._parents.catalyst.spark, table), table.nbytes

    def _epoch_rows(self, rows: Mapping[str, tuple[LeafRows, int]]) -> EpochRows:
        frames = {name: each for name, (each, _) in rows.items()}
        return EpochRows(frames, sum(size for _, size in rows.values()), self._parallelism, self.time_us)


def _used(plan: ViewPlan, name: str, parent: Parent) -> tuple[str, ...]:
    return columns_to_read(parent.plan.schema, [plan.columns[name]])


def _has_origins(plan: ViewPlan) -> bool:
    """Whether each row of a view names the row of a parent that it is made of."""
    return plan.view_class == "append" and not plan.computed


def _used_of(plan: ViewPlan, leaf: OperatorPlan) -> list[str]:
    """The columns of a operator that a view uses; any one of them if it counts rows."""
    return [name for name in leaf.names if name in plan.columns[leaf.name]] or leaf.names[:1]


def _keys_of(plan: ViewPlan, parent: Parent) -> list[str]:
    return [parent.key_column] if _has_origins(plan) and parent.names_rows else []


def _key_text(parent: Parent) -> str:
    """The text of a row's key, as an expression of Spark's SQL."""
    if not parent.names_rows:
        return "''"
    key = quoted_name(parent.key_column)
    return f"hex({key})" if parent.key_column == FILE_FIELD.name else f"CAST({key} AS STRING)"


def _origins(name: str, keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The origins of rows by their keys; a row without a key has the view for it."""
    if pa.types.is_binary(keys.type):
        files = keys.unique()
        texts = pa.array([None if file is None else file.hex().upper() for file in files.to_pylist()], pa.string())
        keys = texts.take(pc.index_in(keys, value_set=files))
    texts = pc.binary_join_element_wise(name, pc.fill_null(keys.cast(pa.string()), ""), "|")
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
