"""A random story of a graph of views: files come, are replaced and forgotten; views come and go; attempts end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from actors.sources.row_key import RowKey
from state.tables.stored_rows import declared_name
from tests.spark_bridge.corrected_view import Files
from tests.spark_bridge.keyed_graph import ORIGIN, KeyedGraph, with_origin
from tests.spark_bridge.random_graph import RandomGraph
from tests.spark_bridge.random_rows import SCHEMA, random_rows
from tests.spark_bridge.view_graph import ViewGraph
from tests.spark_bridge.ways_of_rows import as_if_many, kept_at_once

EPOCHS_OF_A_STORY = 10
_VIEWS = 6
_KEY = RowKey(("k", "g"), ("i",), "b")
_KEYED = pa.schema([*SCHEMA, *ORIGIN])


def tell_graph(spark: SparkSession, directory: Path, seed: int, epochs: int) -> int:
    """Plays one story.  At every epoch, each view must have the rows that Spark computes from the present files.

    In half of the stories rows go to Spark as if they were many, and in half of all the sides of joins are in memory
    at once.  In a quarter the source has a key.

    Args:
        spark: a session.
        directory: of the views.
        seed: of views, rows and epochs.
        epochs: their number, without those that show a view that was added late.

    Returns:
        The number of answers that were compared.

    Raises:
        AssertionError: a view differs.
    """
    chance = random.Random(seed)
    graph = RandomGraph(chance, is_keyed=seed % 8 in (3, 4))
    for _ in range(chance.randint(3, _VIEWS)):
        graph.grow()
    with ExitStack() as ways:
        if seed % 2:
            ways.enter_context(as_if_many())
        if seed % 4 < 2:
            ways.enter_context(kept_at_once())
        story = ways.enter_context(_closing(spark, directory, graph))
        return sum(_epoch(story, graph, number) for number in range(epochs))


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


def _epoch(story: ViewGraph, graph: RandomGraph, number: int) -> int:
    """Plays one epoch.  Returns the number of answers that were compared."""
    chance = graph.chance
    if number and chance.random() < 0.15:
        story.reopen()
    if number and chance.random() < 0.2:
        _change(story, graph)
    story.correct(*_files(story, graph))
    story.check()
    if chance.random() < 0.3:
        story.materializer.tidy()
    return len(graph.views)


def _change(story: ViewGraph, graph: RandomGraph) -> None:
    """Drops a view, or adds one, which an epoch without files shows."""
    if graph.chance.random() < 0.4 and (gone := graph.prune()) is not None:
        story.materializer.drop(gone)
        story.catalog = {name: each for name, each in story.catalog.items() if declared_name(name) != gone}
        story.declare(graph.views)
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
