"""A physical plan over a few rows that runs in the driver's thread: put together and compiled once, without a job.

Spark makes the code of a stage anew for each job, cleans and ships the closures around it, and schedules a task: 20 to
30 ms for rows that take one.  A chain of RDDs without a shuffle passes the partition that is asked for down to its
leaf.  So the chain is made once, and each call asks it for a partition that holds the rows of the call.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from py4j.clientserver import ClientServer

from spark_bridge.catalyst.arrow_frames import table_of_rows
from spark_bridge.catalyst.catalyst import Catalyst, PhysicalPlan, parts_of, simple_name

_TASKS = count(1 << 48)
"""Numbers of tasks that no job has."""


class DriverPlan:
    """Runs the plan.

    Args:
        catalyst: of the session.
        chain: the RDD of the plan, a Java object.
        struct: StructType of the result, a Java object.
    """

    def __init__(self, catalyst: Catalyst, chain: Any, struct: Any) -> None:
        self._catalyst, self._chain, self._struct = catalyst, chain, struct
        self._task = _tasks_of(catalyst)
        # The compiled code writes into objects that all calls share.
        self._lock = Lock()

    @classmethod
    def of(cls, catalyst: Catalyst, plan: PhysicalPlan, struct: Any) -> DriverPlan | None:
        """Puts a plan together; None if it needs a shuffle, other partitions or a process of Python: it is a job.

        Args:
            catalyst: of the session.
            plan: over one leaf, which `Catalyst.rows_to_come` has made.
            struct: StructType of the result, a Java object; its names are free.
        """
        # Only a gateway of this kind keeps to one thread of Java, and the task belongs to the thread.
        if not isinstance(catalyst.spark.sparkContext._gateway, ClientServer):
            return None
        prepared = catalyst.prepared(plan)
        if any(map(_needs_job, parts_of(catalyst, prepared))):
            return None
        chain = prepared.execute()
        # An RDD that does not pass its partition down has a kind of its own, and those above it have that.
        kinds = [simple_name(each) for each in chain.partitions()]
        return cls(catalyst, chain, struct) if kinds == ["ParallelCollectionPartition"] else None

    def table(self, rows: Any, schema: pa.Schema) -> pa.Table:
        """The result over rows.

        Args:
            rows: a Scala Seq of internal rows of the leaf, see `CompiledRows.copied`.
            schema: as in `table_of_rows`.
        """
        with self._lock, self._task.running() as context:
            found = self._chain.iterator(self._task.partition(rows), context)
            return table_of_rows(self._catalyst.spark, found, self._struct, schema)


def _needs_job(node: PhysicalPlan) -> bool:
    name = str(node.getClass().getName())
    return ".exchange." in name or ".python." in name


class _Tasks:
    """Makes what Spark's operators expect of the task around them: memory, locks on blocks, an end of their work."""

    def __init__(self, jvm: Any) -> None:
        spark, java = jvm.org.apache.spark, jvm.java

        def constant(name: str) -> Any:
            return java.lang.Class.forName(f"{name}$").getField("MODULE$").get(None)

        self._memory, self._blocks = spark.SparkEnv.get().memoryManager(), spark.SparkEnv.get().blockManager()
        self._memory_of_task, self._context = spark.memory.TaskMemoryManager, spark.TaskContextImpl
        self._properties, self._metrics = java.util.Properties(), spark.executor.TaskMetrics.empty
        self._of_thread, self._nothing = constant("org.apache.spark.TaskContext"), constant("scala.None")
        self._resources = constant("scala.Predef").Map().empty()
        self._partition = spark.rdd.ParallelCollectionPartition
        self._any = constant("scala.reflect.ClassTag").Any()

    @contextmanager
    def running(self) -> Iterator[Any]:
        """The context of a task, which is that of this thread until the end."""
        number = next(_TASKS)
        memory = self._memory_of_task(self._memory, number)
        context = self._context(
            0, 0, 0, number, 0, 1, memory, self._properties, None, self._metrics(), 1, self._resources
        )
        self._blocks.registerTask(number)  # it may read a broadcast
        self._of_thread.setTaskContext(context)
        try:
            yield context
        finally:
            try:
                context.markTaskCompleted(self._nothing)
            finally:
                self._blocks.releaseAllLocksForTask(number)
                memory.cleanUpAllAllocatedMemory()
                self._of_thread.unset()

    def partition(self, rows: Any) -> Any:
        """A partition with these rows (a Scala Seq)."""
        return self._partition(0, 0, rows, self._any)


_tasks: WeakKeyDictionary[Catalyst, _Tasks] = WeakKeyDictionary()


def _tasks_of(catalyst: Catalyst) -> _Tasks:
    if catalyst not in _tasks:
        _tasks[catalyst] = _Tasks(catalyst.spark._jvm)
    return _tasks[catalyst]
