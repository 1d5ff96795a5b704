"""The query of a row-by-row view over new rows, with or without the origin of each row."""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.catalyst.arrow_frames import table_of_frame
from spark_bridge.catalyst.carried_column import with_carried_column
from spark_bridge.catalyst.catalyst import Catalyst
from spark_bridge.catalyst.compiled_rows import CompiledRows
from spark_bridge.catalyst.leaves import RowsOver, rows_over
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

    @cached_property
    def compiled(self) -> CompiledRows | None:
        """The query as compiled code; None if it has to be planned over each epoch's rows."""
        return None if self._view.timestamps.are_used else CompiledRows.of(self._catalyst, self._plan)

    def over(self, rows: EpochRows) -> RowResult:
        """The result over these rows, not computed yet."""
        return RowResult(
            self._catalyst, self, rows, rows_over(self._catalyst, self._plan, self._view.leaves, rows.frames)
        )

    def set_time(self, rows: EpochRows) -> None:
        """Sets the time for the next job."""
        self._view.timestamps.set_time(rows.time_us)


class RowResult:
    """The result of such a query, see `spark_bridge.datasets.result_rows.Result`.

    Args:
        catalyst: of the session.
        query: the query.
        rows: the new rows of an epoch.
        over: its plan over them.
    """

    def __init__(self, catalyst: Catalyst, query: RowQuery, rows: EpochRows, over: RowsOver) -> None:
        self._catalyst, self._query, self._rows, self._over = catalyst, query, rows, over
        self.schema, self.nbytes = query.schema, rows.nbytes

    def table(self) -> pa.Table:
        """All rows, in this process."""
        if self._over.few is not None and self._query.compiled is not None:
            return self._query.compiled.table(self._over.few, self.schema)
        return table_of_frame(self.frame(), self.schema)

    def frame(self) -> DataFrame:
        """All rows, not computed yet."""
        self._query.set_time(self._rows)
        plan = self._over.plan
        return self._catalyst.frame(self._catalyst.one_partition(plan) if self._rows.one_partition else plan)
