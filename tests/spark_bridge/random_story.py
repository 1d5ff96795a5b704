"""A random story: random queries as views, over rows in random epochs, compared with Spark's own answers."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from actors.protocol.blocks import Block
from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, frame_of_table, table_of_frame
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.lance.lance_access import open_dataset
from state.location import Location
from state.tables.records import ViewVersion
from tests.spark_bridge.random_query import RandomQuery, random_query
from tests.spark_bridge.random_table import SCHEMA, random_table
from tests.spark_bridge.same_rows import difference

QUERIES_OF_A_STORY = 10
_LARGE_BYTES = 8 << 20


@dataclass
class StoryReport:
    """The result of a story.

    Args:
        seed: of the story; it repeats it.
        queries: number of compared queries.
        skipped: queries at which Spark itself raises, with its message.
        differences: query and first difference of each wrong view.
    """

    seed: int
    queries: int = 0
    skipped: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


def tell(spark: SparkSession, directory: Path, seed: int) -> StoryReport:
    """Plays one story, and compares all its views at the end, and sometimes in between.

    Args:
        spark: a session.
        directory: of the views.
        seed: of queries, rows, epochs and partitions.
    """
    return _Story(spark, directory, seed).play()


class _Story:
    def __init__(self, spark: SparkSession, directory: Path, seed: int) -> None:
        self._spark = spark
        self._root = Location(str(directory))
        self._chance = random.Random(seed)
        self._report = StoryReport(seed)
        self._queries = {f"v{at}": random_query(self._chance) for at in range(QUERIES_OF_A_STORY)}
        self._rows = {name: SCHEMA.empty_table() for name in "tu"}
        self._versions: Mapping[str, ViewVersion] = {}

    def play(self) -> StoryReport:
        chance = self._chance
        materializer = Materializer(self._spark, self._root)
        # Some stories have a shuffle, even on one core.
        materializer._rows.parallelism = chance.choice([1, 1, 1, 2])
        definitions = [ViewDefinition(name, query.text) for name, query in self._queries.items()]
        try:
            materializer.declare(definitions, dict.fromkeys("tu", SCHEMA), {})
            sizes = [
                chance.choice([0, 0, 1, 5]),
                chance.randint(20, 90),
                chance.choice([0, 1, 40]),
                chance.randint(1, 60),
            ]
            reopened, checked = chance.randrange(len(sizes)), chance.randrange(3 * len(sizes))
            for epoch, size in enumerate(sizes):
                if epoch == reopened:
                    materializer.open(self._versions)
                self._versions = materializer.run_epoch(epoch + 1, self._blocks(size)).views
                if epoch in (checked, len(sizes) - 1):
                    self._compare()
        finally:
            materializer.close()
        return self._report

    def _blocks(self, size: int) -> dict[str, list[Block]]:
        blocks = {}
        for name in "tu":
            rows = size if name == "t" else self._chance.choice([0, size // 2])
            first_id = sum(table.num_rows for table in self._rows.values())
            table = random_table(self._chance, rows, first_id)
            self._rows[name] = pa.concat_tables([self._rows[name], table])
            nbytes = self._chance.choice([1, _LARGE_BYTES])
            step = max(1, -(-rows // self._chance.randint(1, 3)))
            cuts = [table.slice(start, step) for start in range(0, rows, step)]
            blocks[name] = [Block("test", "any", cut, cut.num_rows, nbytes, tuple(cut.column_names)) for cut in cuts]
        return blocks

    def _compare(self) -> None:
        for name, table in self._rows.items():
            frame_of_table(self._spark, table).createOrReplaceTempView(name)
        try:
            for name, query in self._queries.items():
                self._compare_one(name, query)
        finally:
            for name in self._rows:
                self._spark.catalog.dropTempView(name)

    def _compare_one(self, name: str, query: RandomQuery) -> None:
        try:
            frame = self._spark.sql(query.truth)
            truth = table_of_frame(frame, arrow_schema(frame.schema))
        except PySparkException as error:
            self._report.skipped.append(f"{query.text}: {error}")
            return
        self._report.queries += 1
        version = self._versions[name]
        stored = open_dataset(self._root.child(version.path), version.version).to_table()
        ours = stored.select([column for column in stored.column_names if not column.startswith("__sw_")])
        found = difference(ours, truth, query.key, query.compares)
        if found is not None:
            self._report.differences.append(f"{query.text}\n    {found}")
