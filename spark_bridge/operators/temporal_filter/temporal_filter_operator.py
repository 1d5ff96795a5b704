"""Temporal filters: their rows, all of them or those that an epoch changes.  Nobody stores them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from spark_bridge.engine.catalyst.trees import Plan
from spark_bridge.engine.execution.leaves import LeafRows
from spark_bridge.ingest.dataset_frame import WantedRows
from spark_bridge.operators.cut import Cut
from spark_bridge.operators.operator import Operator, OperatorInput
from spark_bridge.operators.temporal_filter.temporal_filter_cut import TIMED, cut_temporal_filter
from spark_bridge.operators.temporal_filter.temporal_filter_plan import TemporalFilterPlan, watermark_time
from spark_bridge.operators.temporal_filter.temporal_filter_rows import TemporalFilterRows


class TemporalFilterOperator(Operator[TemporalFilterPlan]):
    """Filters by the time of the epoch, or by a watermark."""

    plan_type, inner_rows = TemporalFilterPlan, (TIMED,)

    def __init__(self) -> None:
        self._rows = TemporalFilterRows()

    def cut(self, cut: Cut, plan: Plan) -> Plan | None:
        """See `cut_temporal_filter`."""
        return cut_temporal_filter(cut, plan)

    def changed(self, given: OperatorInput, plan: TemporalFilterPlan, columns: list[str]) -> tuple[LeafRows, int]:
        """Changed rows, and those that the time has reached.  See `Operator.changed`."""
        rows = self._rows.changed(given.parents, plan, columns, *_times(given, plan))
        return LeafRows.of_table(given.parents.catalyst.spark, rows), rows.nbytes

    def all(
        self, given: OperatorInput, plan: TemporalFilterPlan, columns: list[str], values: Mapping[str, pa.Array]
    ) -> tuple[LeafRows, int]:
        """See `Operator.all`."""
        kept = self._rows.kept(plan, _times(given, plan)[1])
        return given.parents.all(plan.rows, columns, WantedRows(values=values, also=kept))

    def is_due(self, given: OperatorInput, plan: TemporalFilterPlan) -> bool:
        """Whether the time reaches a row.  See `Operator.is_due`."""
        return self._rows.are_due(given.parents, plan, *_times(given, plan))


def _times(given: OperatorInput, plan: TemporalFilterPlan) -> tuple[int, int]:
    """The time at which the rows of a filter were right before the changes, and its time in the epoch."""
    begun_us = given.begun_us
    time_us = given.time_us if plan.clock is None else watermark_time(plan.clock, given.watermarks, begun_us)
    return time_us if begun_us is None else begun_us, time_us
