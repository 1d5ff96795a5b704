"""A full view: recomputed as a whole from the stored rows of its sources and parents, beside the epochs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType

import lance
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from actors.schemas.ddl import quoted_name
from spark_bridge.datasets.dataset_paths import view_path
from spark_bridge.datasets.result_rows import Result, replace_by_result
from spark_bridge.datasets.view_table import ViewTable
from spark_bridge.engine.catalyst.arrow_frames import frame_of_table, spark_schema
from spark_bridge.engine.catalyst.current_rows import RowKeys
from spark_bridge.ingest.dataset_frame import frame_of_dataset
from spark_bridge.maintenance.recomputation import computed
from spark_bridge.plans.planned_view import PlannedView
from state.lance.lance_access import open_dataset, stored_bytes
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import is_stored_rows

_PARTITIONS_A_CORE = 4


@contextmanager
def _beside_the_epochs(spark: SparkSession) -> Iterator[SparkSession]:
    """A session for one large computation; its jobs share the cores with the jobs of the epochs."""
    context = spark.sparkContext
    session = spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "true")
    session.conf.set("spark.sql.shuffle.partitions", str(_PARTITIONS_A_CORE * int(context.defaultParallelism)))
    with in_pool_beside(spark):
        yield session


@contextmanager
def in_pool_beside(spark: SparkSession) -> Iterator[None]:
    """The jobs of this thread take turns with those of the epochs, task by task."""
    context = spark.sparkContext
    context.setLocalProperty("spark.scheduler.pool", "beside")
    try:
        yield
    finally:
        context._jsc.setLocalProperty("spark.scheduler.pool", None)


class FullView:
    """Recomputes one view.

    Args:
        spark: a session; the computation gets its own session in the same application.
        root: the directory of the pipeline.
        keys: the sources of which views see the last row of each key.
    """

    def __init__(
        self, spark: SparkSession, root: Location, planned: PlannedView, keys: RowKeys = MappingProxyType({})
    ) -> None:
        self.definition, self.plan = planned.definition, planned.plan
        self._spark, self._root, self._keys = spark, root, keys
        self._views, self._schemas = planned.views, planned.leaf_schemas
        self._table: ViewTable | None = None
        self.version: ViewVersion | None = None

    def create(self, epoch: int) -> ViewVersion:
        """Makes the dataset without rows; readers see it after the first recomputation."""
        path = view_path(self.plan.name, epoch)
        self._table = ViewTable.create(self._root.child(path), self.plan.schema.empty_table())
        self.version = ViewVersion(self.plan.name, path, self._table.version)
        return self.version

    def open(self, version: ViewVersion) -> None:
        """Continues from a recorded version."""
        self._table = ViewTable.open(self._root.child(version.path), version.version)
        self.version = replace(version, name=self.plan.name, pinned_epoch=None)

    @property
    def num_rows(self) -> int:
        """Number of rows of the view."""
        return 0 if self._table is None else self._table.num_rows

    def is_stale(self, stored: Mapping[str, ViewVersion]) -> bool:
        """Whether rows have changed since the version was computed.

        Args:
            stored: source or parent → the version of its stored rows.
        """
        return self.version is None or self.version.progress != _fingerprint(stored, self._datasets(stored))

    def refresh(self, epoch: int, stored: Mapping[str, ViewVersion]) -> ViewVersion:
        """Computes the view over all rows up to an epoch, and writes it.

        Args:
            stored: source or parent → the version of its stored rows; a missing source has no rows.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        assert self._table is not None and self.version is not None, "create or open comes first"
        datasets = self._datasets(stored)
        with _beside_the_epochs(self._spark) as session:
            frames = {
                source: self._frame(session, source, self._root.child(stored[source].path), datasets[source])
                if source in datasets
                else frame_of_table(session, self._schemas[source].empty_table())
                for source in self.plan.columns
            }
            with computed(session, self.definition, frames, self._views, self._keys) as frame:
                nbytes = sum(map(stored_bytes, datasets.values()))
                replace_by_result(self._table, Result(self.plan.schema, nbytes, lambda: frame))
        self.version = replace(
            self.version,
            version=self._table.version,
            reflects_epoch=epoch,
            progress=_fingerprint(stored, datasets),
        )
        return self.version

    def _frame(self, session: SparkSession, source: str, location: Location, dataset: lance.LanceDataset) -> DataFrame:
        schema = self._schemas[source]
        there = [name for name in schema.names if name in dataset.schema.names]
        frame = frame_of_dataset(session, location, dataset, there)
        # A dataset gets a column with the first rows that have it.
        null = {each.name: each.dataType for each in spark_schema(schema) if each.name not in there}
        return frame.select(
            [
                F.lit(None).cast(null[name]).alias(name) if name in null else F.col(quoted_name(name))
                for name in schema.names
            ]
        )

    def _datasets(self, stored: Mapping[str, ViewVersion]) -> dict[str, lance.LanceDataset]:
        found = {source: stored[source] for source in sorted(self.plan.columns) if source in stored}
        return {source: open_dataset(self._root.child(each.path), each.version) for source, each in found.items()}


def _fingerprint(stored: Mapping[str, ViewVersion], datasets: Mapping[str, lance.LanceDataset]) -> str:
    """The rows that a version was computed from, as text.

    A take-over makes another version of the same rows, so of a source the number of rows counts and not the version.
    A correction may keep the number of rows: the recorded progress names the epoch of the last correction.  Rows of a
    parent change in place, so its version counts.
    """
    rows = {
        name: [stored[name].path, dataset.count_rows(), stored[name].progress]
        if is_stored_rows(stored[name].name)
        else [stored[name].path, stored[name].version]
        for name, dataset in datasets.items()
    }
    return json.dumps(rows)
