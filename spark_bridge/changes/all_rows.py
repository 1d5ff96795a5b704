"""All stored rows of a view that others read."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from actors.formats.limits import row_bytes
from spark_bridge.catalyst.catalyst import Catalyst
from spark_bridge.catalyst.leaves import LeafRows
from spark_bridge.changes.change_set import Parent
from spark_bridge.hand_over.dataset_frame import WantedRows, rows_of_dataset
from spark_bridge.work_cost import count
from state.lance.lance_access import open_dataset
from state.location import Location
from state.tables.epoch_trace import WorkCost

_PARTITION_BYTES = 16 << 20
_TASKS_A_CORE = 4


def for_large(catalyst: Catalyst, nbytes: int) -> Catalyst:
    """A session whose shuffles have a partition for each 16 MiB of the input; that of the epochs has one for all.

    Args:
        catalyst: of the session of the epochs.
        nbytes: size of the rows that are shuffled.
    """
    at_once = _TASKS_A_CORE * int(catalyst.spark.sparkContext.defaultParallelism)
    partitions = min(at_once, nbytes // _PARTITION_BYTES)
    return catalyst if partitions <= 1 else catalyst.of_session_with(partitions)


def all_rows(
    spark: SparkSession, root: Location, parent: Parent, columns: Sequence[str], wanted: WantedRows
) -> tuple[LeafRows, int]:
    """The rows of a parent at its version, or at least the wanted ones, and their size in bytes.

    Args:
        spark: the session.
        root: the directory of the pipeline.
        parent: the view.
        columns: those to read, in this order.
        wanted: rows that are not may be left out.
    """
    location = root.child(parent.version.path)
    dataset = open_dataset(location, parent.version.version)
    found, rows = rows_of_dataset(spark, location, dataset, columns, wanted)
    count(WorkCost(given=rows))
    return found, rows * row_bytes(dataset.schema.field(each) for each in columns)
