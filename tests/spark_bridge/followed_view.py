"""A view that is maintained epoch by epoch, and Spark's own answer over all rows so far."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from pyspark.sql import SparkSession

from actors.protocol.blocks import Block
from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, frame_of_table, table_of_frame
from spark_bridge.ingest.epoch_rows import EpochViews
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.lance.lance_access import open_dataset
from state.location import Location
from state.tables.records import ViewVersion


def blocks(table: pa.Table, pieces: int = 1, columns: Sequence[str] | None = None) -> list[Block]:
    """The table as blocks of about equal size; every other block has only these columns."""
    step = max(1, -(-table.num_rows // pieces))
    cuts = [table.slice(start, step) for start in range(0, table.num_rows, step)]
    cuts = [each if index % 2 or columns is None else each.select(columns) for index, each in enumerate(cuts)]
    return [Block("test", "any", each, each.num_rows, each.nbytes, tuple(each.column_names)) for each in cuts]


class FollowedView:
    """One view over growing tables; `schemas` names the sources."""

    def __init__(
        self, spark: SparkSession, root: Path, definition: ViewDefinition, schemas: Mapping[str, pa.Schema]
    ) -> None:
        self.spark = spark
        self.root = Location(str(root))
        self.definition = definition
        self.schemas = schemas
        self.rows = {name: schema.empty_table() for name, schema in schemas.items()}
        self.epoch = 0
        self.views: Mapping[str, ViewVersion] = {}
        self.materializer = self.new_materializer()

    def new_materializer(self) -> Materializer:
        materializer = Materializer(self.spark, self.root)
        declaration = materializer.declare([self.definition], self.schemas, {})
        self.plan = declaration.plans[self.definition.name]
        return materializer

    def run(self, rows: Mapping[str, pa.Table], pieces: int = 1) -> EpochViews:
        """Runs an epoch."""
        self.epoch += 1
        for source, table in rows.items():
            self.rows[source] = pa.concat_tables([self.rows[source], table])
        columns = self.materializer.columns()
        views = self.materializer.run_epoch(
            self.epoch, {source: blocks(table, pieces, columns.get(source)) for source, table in rows.items()}
        )
        self.views = views.views
        return views

    @property
    def version(self) -> ViewVersion:
        return self.views[self.definition.name]

    def dataset(self) -> lance.LanceDataset:
        return self.open(self.root, self.version)

    @staticmethod
    def open(root: Location, version: ViewVersion) -> lance.LanceDataset:
        return open_dataset(root.child(version.path), version.version)

    def stored(self) -> pa.Table:
        """The view's rows without the columns stored beside them."""
        table = self.dataset().to_table()
        return table.select([name for name in table.column_names if not name.startswith("__sw_")])

    def in_one_batch(self) -> pa.Table:
        """Spark's answer over all rows so far."""
        frames = {name: frame_of_table(self.spark, table) for name, table in self.rows.items()}
        if self.definition.function is not None:
            frame = self.definition.function(**{name: frames[name] for name in self.definition.parameters})
        else:
            for name, source in frames.items():
                source.createOrReplaceTempView(name)
            frame = self.spark.sql(self.definition.query or "")
        answer = table_of_frame(frame, arrow_schema(frame.schema))
        for name in frames:
            self.spark.catalog.dropTempView(name)
        return answer

    def check(self) -> None:
        """Asserts that the view equals Spark's answer: names, types, nullability and rows."""
        stored, batch = self.stored(), self.in_one_batch()
        assert stored.schema == batch.schema == self.plan.schema
        assert stored.num_rows == batch.num_rows
        for ours, sparks in zip(_sorted(stored), _sorted(batch), strict=True):
            assert all(_same(left, right) for left, right in zip(ours, sparks, strict=True)), (ours, sparks)


def _sorted(table: pa.Table) -> list[tuple[Any, ...]]:
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return sorted(rows, key=lambda row: ([repr(v) for v in row if not isinstance(v, float)], [_rough(v) for v in row]))


def _rough(value: Any) -> str:
    return f"{value + 0.0:.6g}" if isinstance(value, float) else ""


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-6 if max(abs(left), abs(right)) < 1e-3 else 0.0)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)
