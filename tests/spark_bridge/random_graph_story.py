"""A random story of a graph of views: files come, are replaced and forgotten; views come and go; attempts end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from actors.sources.row_key import Key
from tests.spark_bridge.corrected_view import Files
from tests.spark_bridge.duckdb_answers import DuckDbAnswers
from tests.spark_bridge.keyed_graph import ORIGIN, KeyedGraph, with_origin
from tests.spark_bridge.random_graph import RandomGraph
from tests.spark_bridge.random_rows import SCHEMA, random_rows
from tests.spark_bridge.same_rows import difference
from tests.spark_bridge.view_graph import ViewGraph
from tests.spark_bridge.ways_of_rows import as_if_many, kept_at_once

EPOCHS_OF_A_STORY = 40
_VIEWS = 6
_REOPENED, _CHANGED, _TIDIED, _MANY = 0.05, 0.15, 0.3, 0.1
_KEY = Key(("k", "g"), order_by="i", deleted="b")
_KEYED = pa.schema([*SCHEMA, *ORIGIN])


@dataclass
class Compared:
    """Numbers of answers that were compared with those of the views.

    Attributes:
        spark: answers of Spark.
        duckdb: answers of DuckDB.
    """

    spark: int = 0
    duckdb: int = 0


def tell_graph(spark: SparkSession, directory: Path, seed: int, epochs: int) -> Compared:
    """Plays one story.  At every epoch, each view must have the rows that Spark and DuckDB compute.

    Spark computes them from the present files; DuckDB, where the dialects agree, from the rows of what the view reads.
    In some epochs rows go to Spark as if they were many, and in half of the stories all the sides of joins are in
    memory at once.  In a quarter the source has a key.

    Args:
        spark: a session.
        directory: of the views.
        seed: of views, rows and epochs.
        epochs: their number, without those that show a view that was added late.

    Raises:
        AssertionError: a view differs.
    """
    chance = random.Random(seed)
    graph = RandomGraph(chance, is_keyed=seed % 8 in (3, 4))
    for _ in range(chance.randint(3, _VIEWS)):
        graph.grow()
    compared = Compared()
    with (
        DuckDbAnswers() as duckdb,
        kept_at_once() if seed % 2 else nullcontext(),
        _closing(spark, directory, graph) as story,
    ):
        for number in range(epochs):
            with as_if_many() if chance.random() < _MANY else nullcontext():
                _epoch(story, graph, number)
            story.check()
            compared.spark += len(graph.views)
            compared.duckdb += _check_in_duckdb(story, graph, duckdb)
    return compared


@contextmanager
def _closing(spark: SparkSession, directory: Path, graph: RandomGraph) -> Iterator[ViewGraph]:
    if graph.is_keyed:
        story: ViewGraph = KeyedGraph(spark, directory, graph.views, {"t": _KEYED}, _KEY, lambda row: bool(row["b"]))
    else:
        story = ViewGraph(spark, directory, graph.views)
    try:
        yield story
    finally:
        story.materializer.close()


def _epoch(story: ViewGraph, graph: RandomGraph, number: int) -> None:
    chance = graph.chance
    if number and chance.random() < _REOPENED:
        story.reopen()
    if number and chance.random() < _CHANGED:
        _change(story, graph)
    story.correct(*_files(story, graph))
    if chance.random() < _TIDIED:
        story.materializer.tidy()


def _check_in_duckdb(story: ViewGraph, graph: RandomGraph, duckdb: DuckDbAnswers) -> int:
    """Returns the number of answers that were compared."""
    rows = {**story.seen(), **{each.name: story.shown(each.name) for each in graph.views}}
    compared = 0
    for each in graph.views:
        read = {name: rows[name] for name in each.mentions(rows.keys() - {each.name})}
        answer = duckdb.answer(each.query or "", read, rows[each.name].schema)
        if answer is not None:
            wrong = difference(rows[each.name], answer, (), {})
            assert wrong is None, f"{each.name} at epoch {story.epoch}, by DuckDB: {wrong}"
            compared += 1
    return compared


def _change(story: ViewGraph, graph: RandomGraph) -> None:
    """Drops a view, or adds one, which an epoch without files shows."""
    if graph.chance.random() < 0.4 and (gone := graph.prune()) is not None:
        story.declare(graph.views, [gone])
    elif graph.has_stored:
        graph.grow(is_late=True)
        story.declare(graph.views)
        story.settle()


def _files(story: ViewGraph, graph: RandomGraph) -> tuple[Files, dict[tuple[str, str], pa.Table | None]]:
    """New files, and replaced ones; None for a file that is forgotten."""
    chance = graph.chance

    def rows(path: str, count: int) -> pa.Table:
        made = random_rows(chance, count)
        if not graph.is_keyed:
            return made
        has_key = [all(row[name] is not None for name in _KEY.required) for row in made.to_pylist()]
        return with_origin(made.filter(pa.array(has_key, pa.bool_())), path)

    sizes = chance.choice([[], [0], [1], [8], [30], [3, 12]])
    new: Files = {("t", path): rows(path, size) for at, size in enumerate(sizes) if (path := f"f{story.epoch}-{at}")}
    known = sorted(story.files)
    replaced: dict[tuple[str, str], pa.Table | None] = {}
    for file in chance.sample(known, min(len(known), chance.choice([0, 0, 1, 2]))):
        replaced[file] = chance.choice([None, rows(file[1], chance.choice([0, 3, 12]))])
    return new, replaced
