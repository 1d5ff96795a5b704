"""The query of a row-by-row view over new rows, with or without the origin of each row."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.catalyst.carried_column import with_carried_column
from spark_bridge.catalyst.catalyst import Catalyst
from spark_bridge.catalyst.leaves import graft
from spark_bridge.hand_over.epoch_rows import EpochRows


class RowQuery:
    """Makes the rows of a view from rows of its leaves.

    Attributes:
        schema: of the result, with the origin at the end.

    Args:
        catalyst: of the session.
        plan: of the view.
        origin: the column with the origin of a row, which the leaves have too; None without it.
    """

    def __init__(self, catalyst: Catalyst, plan: ViewPlan, origin: pa.Field | None) -> None:
        self._catalyst, self._view = catalyst, plan
        self._plan = plan.plan if origin is None else with_carried_column(catalyst, plan.plan, origin)
        self.schema: pa.Schema = plan.schema if origin is None else plan.schema.append(origin)

    def frame(self, rows: EpochRows) -> DataFrame:
        """The result over these rows, not computed yet."""
        self._view.timestamps.set_time(rows.time_us)
        plan = graft(self._catalyst, self._plan, self._view.leaves, rows.frames)
        if rows.one_partition:
            plan = self._catalyst.one_partition(plan)
        return self._catalyst.frame(plan)
