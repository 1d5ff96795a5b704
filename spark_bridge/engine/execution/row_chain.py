"""Few rows through Spark's compiled code, and through the RDDs of a plan, in the driver: one call into the JVM.

Each call from Python takes 0.1 ms, and this path had twenty.  So the path is a Java class, `row_chain.java`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from spark_bridge.engine.catalyst.arrow_frames import Messages, table_of_messages, write_stream
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.java_classes import java_instance
from spark_bridge.engine.catalyst.trees import Plan
from state.tables.lance_layout import with_schema

_SOURCE = Path(__file__).with_suffix(".java")


class RowChain:
    """Passes rows of a leaf through compiled projections and predicates, and then through a plan.

    Args:
        leaf: the leaf, whose columns the rows have.
        steps: Spark's projections and predicates of internal rows, Java objects.
        struct: the StructType of the result, a Java object.
        plan: the RDD of a plan over one partition of such rows, without a shuffle, a Java object; None without a plan.
    """

    def __init__(self, catalyst: Catalyst, leaf: Plan, steps: Sequence[Any], struct: Any, plan: Any = None) -> None:
        self._catalyst, self._leaf, self._steps = catalyst, leaf, steps
        self._schema: pa.Schema = catalyst.schemas.arrow_schema(leaf)
        self._run = java_instance(catalyst.spark, _SOURCE, "RowChain").of(leaf.schema(), list(steps), plan, struct).run

    def through(self, plan: Any, struct: Any) -> RowChain:
        """This chain with a plan at its end.  Arguments as for the class."""
        return RowChain(self._catalyst, self._leaf, self._steps, struct, plan)

    def table(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        """The result over rows of the leaf; a column that they lack is null.

        Args:
            rows: those of the leaf, with its columns by name.
            schema: of the result; only Arrow's names of the types may differ.
        """
        present: Mapping[str, Any] = dict(zip(rows.column_names, rows.columns, strict=True))
        arrays = [
            present[each.name] if each.name in present else pa.nulls(rows.num_rows, each.type) for each in self._schema
        ]
        with _scratch() as (file, path):
            write_stream(file, with_schema(pa.table(arrays, names=self._schema.names), self._schema))
            self._run(path)
            file.seek(0)
            return table_of_messages(Messages().load_stream(file), schema)


@contextmanager
def _scratch() -> Iterator[tuple[IO[bytes], str]]:
    """Yields an empty file, and the path by which the JVM finds it: in memory, where the system has such files."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("slackwater-rows"), "w+b") as file:
            yield file, f"/proc/{os.getpid()}/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile(prefix="slackwater-", suffix=".arrow") as named:
            yield named, named.name
