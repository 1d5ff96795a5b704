"""Some views over one source, whose epochs are committed at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_bridge.ingest.epoch_rows import EpochViews
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.lance.lance_access import open_dataset
from state.location import Location
from state.tables.records import CatalogView
from tests.spark_bridge.followed_view import blocks

GOOD = pa.table({"k": ["a", "b"], "i": [1, 2], "s": ["1", "2"]})
TOTAL = ViewDefinition("total", "SELECT k, sum(i) AS n FROM t GROUP BY k")


class Root:
    """Some views, whose epochs are committed at once."""

    def __init__(self, spark: SparkSession, root: Path, definitions: list[ViewDefinition]) -> None:
        self.location, self.definitions = Location(str(root)), definitions
        self.materializer = Materializer(spark, self.location)
        self.known: dict[str, CatalogView] = {}
        self.epoch = 0
        self.done: EpochViews | None = None
        self.declare()

    def declare(self) -> None:
        self.materializer.declare(self.definitions, {"t": GOOD.schema}, self.known)

    def run(self, rows: pa.Table | None = None) -> EpochViews:
        self.epoch += 1
        done = self.materializer.run_epoch(self.epoch, {} if rows is None else {"t": blocks(rows)})
        self.known, self.done = done.catalog(self.known), done
        return done

    def rows(self, name: str) -> list[Any]:
        assert self.done is not None
        version = self.done.views[name]
        table = open_dataset(self.location.child(version.path), version.version).to_table()
        shown = table.select([each for each in table.column_names if not each.startswith("__sw_")])
        return sorted(shown.to_pylist(), key=repr)

    def close(self) -> None:
        self.materializer.close()
