"""Ingest of the rows of an epoch, or of a piece of history, into Spark: once, for all views."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from actors.protocol.blocks import Block
from spark_bridge.engine.execution.leaves import LeafRows
from spark_bridge.engine.session.spark_jobs import SparkJobs
from spark_bridge.ingest.blocks import rows_of_blocks
from spark_bridge.ingest.dataset_frame import rows_of_span
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.ingest.history import HistoryPiece, PutBlock, StoredSpan
from spark_bridge.plans.columns import columns_to_read
from spark_bridge.plans.view_plan import ViewPlan
from state.epoch import epoch_time_us
from state.tables.stored_rows import FILE_FIELD


class RowIngest:
    """Makes DataFrames from blocks.

    Args:
        materialized: the sources whose rows have `__sw_file`.
        put_block: makes a block of rows of this process.
    """

    def __init__(
        self, spark: SparkSession, jobs: SparkJobs, materialized: Collection[str], put_block: PutBlock
    ) -> None:
        self._spark, self._jobs, self._materialized, self._put_block = spark, jobs, materialized, put_block
        self.parallelism = int(spark.sparkContext.defaultParallelism)
        self.schemas: Mapping[str, pa.Schema | None] = {}

    def columns(self, plans: Iterable[ViewPlan]) -> dict[str, tuple[str, ...]]:
        """Source → the columns that these views use together."""
        used: dict[str, list[frozenset[str]]] = {}
        for plan in plans:
            for source, columns in plan.columns.items():
                if source not in plan.parents:
                    used.setdefault(source, []).append(columns)
        return {source: columns_to_read(self._schema(source), each) for source, each in used.items()}

    def epoch(
        self, epoch: int, blocks: Mapping[str, Sequence[Block]], sources: Collection[str], doing: str
    ) -> EpochRows:
        """The rows of an epoch.

        Args:
            blocks: source → its blocks; the caller holds the references.
            sources: the sources that views read.
            doing: see `SparkJobs.run`.
        """
        frames = {
            source: partial(rows_of_blocks, self._spark, self._schema(source), each)
            for source, each in blocks.items()
            if source in sources
        }
        return EpochRows(
            frames=self._jobs.run("source", doing, frames),
            nbytes=sum(block.nbytes for each in blocks.values() for block in each),
            parallelism=self.parallelism,
            time_us=epoch_time_us(epoch),
            counts={source: sum(block.rows for block in each) for source, each in blocks.items()},
        )

    def piece(self, epoch: int, piece: HistoryPiece) -> EpochRows:
        """The rows of a piece of history, with the time of this epoch."""
        frames, blocks = dict[str, LeafRows](), list[Block]()
        for source, rows in piece.rows.items():
            if isinstance(rows, StoredSpan):
                frames[source] = rows_of_span(self._spark, rows, self.parallelism)
            else:
                blocks.append(self._put_block(source, rows))
                frames[source] = rows_of_blocks(self._spark, self._schema(source), blocks[-1:])
        return EpochRows(frames, piece.nbytes, self.parallelism, epoch_time_us(epoch), tuple(blocks))

    def _schema(self, source: str) -> pa.Schema:
        """The schema with every column that a block may have."""
        schema = self.schemas[source]
        assert schema is not None, "a view has a plan only after its sources have schemas"
        return schema.append(FILE_FIELD) if source in self._materialized else schema
