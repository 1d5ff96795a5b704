"""The parents of views in an epoch, and where their rows are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import lance
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from actors.formats.limits import row_bytes
from actors.schemas.ddl import quoted_name
from spark_bridge.changes.change_set import Parent
from spark_bridge.changes.leaf_queries import LeafQueries
from spark_bridge.changes.rows_before import OpenVersion, RowsBefore
from spark_bridge.changes.sides import Side, Sides
from spark_bridge.datasets.added_rows import AddedRows
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Plan
from spark_bridge.engine.execution.frame_queries import SEVERAL
from spark_bridge.engine.execution.leaves import LeafRows, Leaves
from spark_bridge.ingest.dataset_frame import AT_ONCE_BYTES, WantedRows, rows_of_dataset
from spark_bridge.ingest.epoch_rows import TASKS_A_CORE
from spark_bridge.plans.operator_plan import OperatorPlan
from spark_bridge.work_cost import count
from state.location import Location
from state.tables.epoch_trace import WorkCost
from state.tables.records import ViewVersion

_PARTITION_BYTES = 16 << 20


@dataclass(frozen=True)
class Parents:
    """They are given to all that computes with their rows, in one epoch.

    Args:
        root: the directory of the pipeline.
        by_name: name → parent, of all views that are read.
        open_version: opens their rows at a version.
        before: finds their rows before the changes.
        queries: of the joins, windows and limits over them.
    """

    catalyst: Catalyst
    root: Location
    by_name: Mapping[str, Parent]
    open_version: OpenVersion
    before: RowsBefore
    queries: LeafQueries

    def are_changed(self, names: Iterable[str]) -> bool:
        """Whether one of these has changes."""
        return any(self.by_name[each].changes is not None for each in names)

    def num_rows(self, name: str) -> int:
        """The number of stored rows of one at its version."""
        return int(self.dataset(name).count_rows())

    def dataset(self, name: str) -> lance.LanceDataset:
        """A handle on the stored rows of one at its version."""
        return self.open_version(self.by_name[name].version)

    def are_large(self, names: Iterable[str]) -> bool:
        """Whether one of these has new rows that are in no process."""
        changes = (self.by_name[each].changes for each in names)
        return any(each is not None and isinstance(each.added, AddedRows) and each.added.num_rows for each in changes)

    def new(self, name: str, columns: Sequence[str]) -> LeafRows:
        """Some columns of the rows of one that come, in this order."""
        changes, spark = self.by_name[name].changes, self.catalyst.spark
        assert changes is not None, "it has changes"
        added = changes.added
        if not isinstance(added, AddedRows):
            return LeafRows.of_table(spark, added.select(columns))
        count(WorkCost(given=added.num_rows))
        return rows_of_dataset(spark, added.location, added.dataset, columns, WantedRows(fragments=added.fragments))[0]

    def gone(self, name: str) -> pa.Table:
        """The rows of one that leave."""
        return self.before.gone(self.by_name[name])

    def side(self, name: str) -> Side:
        """The rows of one, by the hash of their key."""
        return self._sides.of(self.by_name[name])

    @cached_property
    def _sides(self) -> Sides:
        return Sides(self.before)

    def all(self, name: str, columns: Sequence[str], wanted: WantedRows) -> tuple[LeafRows, int]:
        """The stored rows of one at its version, or at least the wanted ones, and their size in bytes.

        Args:
            columns: those to read, in this order.
            wanted: rows that are not may be left out.
        """
        return self.all_at(self.by_name[name].version, columns, wanted)

    def all_at(self, version: ViewVersion, columns: Sequence[str], wanted: WantedRows) -> tuple[LeafRows, int]:
        """The stored rows of a view at another version.  Arguments and result as for `all`."""
        location, dataset = self.root.child(version.path), self.open_version(version)
        found, rows = rows_of_dataset(self.catalyst.spark, location, dataset, columns, wanted)
        count(WorkCost(given=rows))
        return found, rows * row_bytes(dataset.schema.field(each) for each in columns)

    def every(self, version: ViewVersion, columns: Sequence[str]) -> tuple[LeafRows, int]:
        """All stored rows of a view at a version, for a job in an epoch, and their size in bytes.

        Args:
            columns: those to read, in this order.
        """
        dataset = self.open_version(version)
        nbytes = int(dataset.count_rows()) * row_bytes(dataset.schema.field(each) for each in columns)
        if nbytes > AT_ONCE_BYTES:
            return self.all_at(version, columns, WantedRows())
        rows = dataset.to_table(columns=list(columns))
        count(WorkCost(given=rows.num_rows))
        return LeafRows.of_table(self.catalyst.spark, rows), rows.nbytes

    def staying(self, name: str, columns: Sequence[str], wanted: WantedRows | None = None) -> tuple[LeafRows, int]:
        """The rows of one that were there before its changes and stay, and the size of all before in bytes.

        Args:
            name: of a projection view.
            columns: those to read, in this order.
            wanted: rows that are not may be left out; None for all.
        """
        parent = self.by_name[name]
        keys, key = pa.nulls(0) if parent.changes is None else parent.changes.keys, parent.key_column
        read = [*columns, *([key] if len(keys) else [])]
        if wanted is None:
            rows, nbytes = self.every(parent.version_before, read)
        else:
            rows, nbytes = self.all_at(parent.version_before, read, wanted)
        if not len(keys):
            return rows, nbytes
        if rows.few is not None:
            found = rows.few.column(key)
            stay = rows.few.filter(pc.invert(pc.is_in(found, value_set=keys.cast(found.type))))
            return LeafRows.of_table(self.catalyst.spark, stay.select(list(columns))), nbytes
        leaving = LeafRows.of_table(self.catalyst.spark, pa.table([keys], names=[key]))
        stay = self.queries.of_frames(
            ("without", key, *columns),
            lambda rows, leaving: rows.join(F.broadcast(leaving), key, "left_anti").select(*map(quoted_name, columns)),
            rows,
            leaving,
        )
        return stay, nbytes

    def computed(
        self,
        operator: OperatorPlan,
        name: str,
        plan: Plan,
        leaves: Mapping[int, str],
        rows: Leaves,
        columns: Sequence[str],
        nbytes: int,
    ) -> LeafRows:
        """Some columns of a query of an operator, which is planned once for each number of partitions.

        Args:
            name: of the query, unique within the operator.
            plan: the analysed query, with empty leaves.
            leaves: id of a leaf's first attribute → its name.
            rows: name of a leaf → its rows.
            nbytes: size of these rows.
        """
        catalyst = self.catalyst_for(nbytes)

        def make() -> Plan:
            output = {str(each.name()): each for each in catalyst.trees.items(plan.output())}
            return catalyst.queries.analyse(catalyst.plans.project([output[each] for each in columns], plan))

        return self.queries.planned(catalyst, operator, (name, *columns), make, leaves).rows(rows, SEVERAL)

    def catalyst_for(self, nbytes: int) -> Catalyst:
        """A session whose shuffles have a partition for each 16 MiB of the input; that of the epochs has one for all.

        Args:
            nbytes: size of the rows that are shuffled.
        """
        at_once = TASKS_A_CORE * int(self.catalyst.spark.sparkContext.defaultParallelism)
        partitions = min(at_once, nbytes // _PARTITION_BYTES)
        return self.catalyst if partitions <= 1 else self.catalyst.of_session_with(partitions)
