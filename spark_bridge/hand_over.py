"""Blocks of rows to a Spark DataFrame: from Ray's object store inside the JVM, without pandas."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from actors.messages import Block
from spark_bridge.arrow_frames import frame_of_table
from state.errors import RunFailedError


def frame_of_blocks(spark: SparkSession, schema: pa.Schema, blocks: Sequence[Block]) -> DataFrame:
    """The rows of all blocks.

    The blocks' references must be held until the last job over the frame is over: the frame itself does not hold them.

    Args:
        spark: the session; one that RayDP started when the blocks are Ray's.
        schema: of the blocks, with types that survive the hand-over.
        blocks: at least one, of one source; a block may be a `pyarrow.Table` itself when there is no Ray.

    Raises:
        RunFailedError: the first block's owner has died.
    """
    tables = [block.ref for block in blocks if isinstance(block.ref, pa.Table)]
    if tables:
        return frame_of_table(spark, pa.concat_tables(tables).cast(schema))
    from ray.exceptions import ObjectLostError
    from raydp.spark.dataset import ray_dataset_to_spark_dataframe

    # RayDP fetches the first block to look at its type.
    smallest_first = sorted(blocks, key=lambda block: block.nbytes)
    try:
        return ray_dataset_to_spark_dataframe(spark, schema, [block.ref for block in smallest_first])
    except ObjectLostError as error:
        raise RunFailedError(
            f"source {blocks[0].source!r}: rows of an epoch are lost, since the actor that had read them died; "
            "the run goes on from the last epoch"
        ) from error
