"""A physical plan over a few rows that runs in the driver's thread: put together and compiled once, without a job.

Spark makes the code of a stage again for each job, cleans and ships the closures around it, and schedules a task: 20 to
30 ms for rows that take one.  A chain of RDDs without a shuffle passes the partition that is asked for down to its
leaf.  So the chain is made once, and each call asks it for a partition that holds the rows of the call.
"""

from __future__ import annotations

from typing import Any

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import PhysicalPlan, parts_of, simple_name
from spark_bridge.engine.execution.row_chain import RowChain


def driver_plan(catalyst: Catalyst, below: RowChain, plan: PhysicalPlan, struct: Any) -> RowChain | None:
    """Puts a plan together; None if it needs a shuffle, other partitions or a process of Python: it is a job.

    Args:
        below: gives the rows.
        plan: over one leaf with the columns of these rows, which `Catalyst.rows_to_come` has made.
        struct: StructType of the result, a Java object; its names are free.
    """
    prepared = catalyst.physical.prepared(plan)
    if any(map(_needs_job, parts_of(catalyst.trees, prepared))):
        return None
    chain = prepared.execute()
    # An RDD that does not pass its partition down has a kind of its own, and those above it have that.
    kinds = [simple_name(each) for each in chain.partitions()]
    return below.through(chain, struct) if kinds == ["ParallelCollectionPartition"] else None


def _needs_job(node: PhysicalPlan) -> bool:
    name = str(node.getClass().getName())
    return ".exchange." in name or ".python." in name
