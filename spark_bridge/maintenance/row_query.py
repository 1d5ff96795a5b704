"""The query of a projection view over new rows, with or without the origin of each row."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_bridge.datasets.result_rows import Result
from spark_bridge.engine.catalyst.carried_column import with_carried_column
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Plan
from spark_bridge.engine.execution.compiled_rows import compiled_rows
from spark_bridge.engine.execution.leaves import RowsOver, graft, rows_over
from spark_bridge.engine.execution.row_chain import RowChain
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.plans.view_plan import ViewPlan
from state.tables.stored_rows import FILE_FIELD, FILE_HALVES


class RowQuery:
    """Makes the rows of a view from rows of its leaves.

    Attributes:
        schema: of the result, with the origin at the end.

    Args:
        origin: the column with the origin of a row, which the leaves have too; None without it.
    """

    def __init__(self, catalyst: Catalyst, plan: ViewPlan, origin: pa.Field | None) -> None:
        self._catalyst, self._view, self._origin = catalyst, plan, origin
        self._plan = plan.plan if origin is None else with_carried_column(catalyst, plan.plan, origin)
        self.schema: pa.Schema = plan.schema if origin is None else plan.schema.append(origin)

    @cached_property
    def _compiled(self) -> RowChain | None:
        return compiled_rows(self._catalyst, self._plan)

    def over(self, rows: EpochRows) -> Result:
        """The result over these rows, not computed yet; call it next."""
        times = self._view.timestamps
        times.set_time(rows.time_us)
        over = rows_over(self._catalyst, self._plan, self._view.leaves, rows.frames, has_time=times.are_used)
        few = None
        if over.few is not None and self._compiled is not None:
            few = partial(self._compiled.table, over.few, self.schema)
        return Result(self.schema, rows.nbytes, partial(self._frame, over, rows.tasks == 1), few, self._halved(rows))

    def _halved(self, rows: EpochRows) -> Callable[[], DataFrame] | None:
        """Makes the result with `FILE_HALVES` in place of the file; None if a leaf does not have them."""
        frames = {name: each.halved for name, each in rows.frames.items() if each is not None}
        if self._origin is None or self._origin.name != FILE_FIELD.name or None in frames.values():
            return None
        leaves = self._view.leaves
        return lambda: self._catalyst.queries.frame(graft(self._catalyst, self._with_halves, leaves, frames))

    @cached_property
    def _with_halves(self) -> Plan:
        plan = self._view.plan
        for field in FILE_HALVES:
            plan = with_carried_column(self._catalyst, plan, field)
        return plan

    def _frame(self, over: RowsOver, one_partition: bool) -> DataFrame:
        return self._catalyst.queries.frame(
            self._catalyst.plans.one_partition(over.plan) if one_partition else over.plan
        )
