"""Ingest of Arrow blocks into Spark: tasks read Ray's object store inside the JVM, without pandas.

This process fetches a few small blocks itself, without a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from actors.fast_start.choice import uses_private_ray
from actors.protocol.blocks import Block
from spark_bridge.engine.catalyst.queries import analysed
from spark_bridge.engine.execution.leaves import FEW_BYTES, LeafRows
from spark_bridge.engine.execution.task_rows import TaskRows, rows_of_messages
from spark_bridge.engine.session.spark_errors import OWNER_DIED, rows_lost

# Ray restores hundreds of MB from a disk in a second; an epoch has 128 MB.
_RESTORE_WITHIN_S = 60.0
# Ray cuts requests at 10,000.
_ASKED_AT_ONCE = 1_000


def rows_of_blocks(spark: SparkSession, schema: pa.Schema, blocks: Sequence[Block]) -> LeafRows:
    """The rows of all blocks of one source, with the columns that at least one block has, in the source's order.

    Hold the blocks' references until the last job over the frame is over: the frame does not hold them.

    Args:
        spark: the session; for blocks in Ray's object store, a session of RayDP.
        schema: of the source, with types that survive the ingest.
        blocks: at least one block; without Ray a block holds a `pyarrow.Table` in place of a reference.

    Raises:
        RunFailedError: blocks are gone: a file to which Ray had spilled them, or the actor that had read a few small
            ones.  If the owner of a large one has died, the jobs over the frame fail.
    """
    tables = [block.ref for block in blocks if isinstance(block.ref, pa.Table)]
    if not tables and sum(block.nbytes for block in blocks) <= FEW_BYTES:
        tables = _fetched(blocks)
    if tables:
        return LeafRows.of_table(spark, _united(schema, blocks, tables))
    _check_spilled(blocks)
    by_columns: dict[tuple[str, ...], list[Any]] = {}
    for block in blocks:
        by_columns.setdefault(block.columns, []).append(block.ref)
    parts = [_rows_of_objects(spark, _with_columns(schema, columns), each) for columns, each in by_columns.items()]
    return LeafRows.of_parts(spark, lambda: parts)


def _united(schema: pa.Schema, blocks: Sequence[Block], tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of all blocks; one may lack a column that no view used when it was read, or that came later."""
    cast = [table.cast(_with_columns(schema, block.columns)) for block, table in zip(blocks, tables, strict=True)]
    rows = pa.concat_tables(cast, promote_options="default")
    return rows.select([name for name in schema.names if name in rows.column_names])


def _with_columns(schema: pa.Schema, columns: tuple[str, ...]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in columns]) if columns else schema


def _fetched(blocks: Sequence[Block]) -> list[pa.Table]:
    """The rows of a few small blocks, in this process: a job whose tasks fetch them takes longer."""
    import ray

    try:
        objects = ray.get([block.ref for block in blocks], timeout=_RESTORE_WITHIN_S)
    except ray.exceptions.GetTimeoutError as error:
        why = f"because Ray did not give its {len(blocks)} blocks within {_RESTORE_WITHIN_S:g} s"
        raise rows_lost(f"source {blocks[0].source!r}", why) from error
    except ray.exceptions.ObjectLostError as error:
        raise rows_lost(f"source {blocks[0].source!r}", OWNER_DIED) from error
    return [pa.ipc.open_stream(each).read_all() for each in objects]


def _rows_of_objects(spark: SparkSession, schema: pa.Schema, references: Sequence[Any]) -> TaskRows:
    """Rows of Ray objects, which Spark's tasks fetch: one partition for each object.

    RayDP's own function fetches an object to find its type, and so moves rows to the driver's node.
    The plain start uses it.
    """
    if not uses_private_ray():
        from raydp.spark.dataset import ray_dataset_to_spark_dataframe

        frame = ray_dataset_to_spark_dataframe(spark, schema, list(references))
        return TaskRows(analysed(frame).rdd(), schema)
    from actors.fast_start.private_parts import owner_addresses

    jvm: Any = spark._jvm
    objects = [each.binary() for each in references]
    messages = jvm.org.apache.spark.rdd.RayDatasetRDD(spark._jsc, objects, owner_addresses(references))
    return rows_of_messages(spark, messages, schema)


def _check_spilled(blocks: Sequence[Block]) -> None:
    """Fetches spilled blocks within a limit: Ray waits without a limit for an object whose file is gone."""
    import ray

    spilled = [each for references in _requests(blocks) for each in _spilled(references)]
    if not spilled:
        return
    _, missing = ray.wait(spilled, num_returns=len(spilled), timeout=_RESTORE_WITHIN_S, fetch_local=True)
    if missing:
        raise rows_lost(
            f"source {blocks[0].source!r}",
            f"because Ray had spilled {len(missing)} of {len(blocks)} blocks to a disk and did not restore them within "
            f"{_RESTORE_WITHIN_S:g} s: check whether a program cleans Ray's temporary directory",
        )


def _requests(blocks: Sequence[Block]) -> Iterator[list[Any]]:
    """Yields groups of references for one request each.

    Ray 2.60 aborts the process ("Promise already satisfied") when it asks more than one owner, or one owner in more
    than one request, and the first answer is there before the second request has left.
    """
    by_owner: dict[str, list[Any]] = {}
    for block in blocks:
        by_owner.setdefault(block.origin, []).append(block.ref)
    for references in by_owner.values():
        for start in range(0, len(references), _ASKED_AT_ONCE):
            yield references[start : start + _ASKED_AT_ONCE]


def _spilled(references: list[Any]) -> list[Any]:
    from ray.experimental import get_object_locations

    known = get_object_locations(references)
    return [each for each in references if each in known and known[each]["did_spill"]]
