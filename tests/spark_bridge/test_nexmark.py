"""Nexmark, epoch by epoch: persons, auctions and bids arrive as files in no order; some are replaced or forgotten."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession, functions

from benchmarks.nexmark_events import SCHEMAS, Nexmark, side_table
from benchmarks.nexmark_queries import CLOSED, QUERIES, SOURCES
from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, frame_of_table, table_of_frame
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.location import Location
from tests.spark_bridge.corrected_view import Files
from tests.spark_bridge.followed_view import FollowedView, blocks
from tests.spark_bridge.keyed_graph import ORIGIN, with_origin
from tests.spark_bridge.same_rows import difference
from tests.spark_bridge.view_graph import ViewGraph

_CLOSED = {
    **CLOSED,
    "q11": (QUERIES["q11"], "SELECT bidder, count(*) AS sessions, sum(bids) AS bids FROM counts GROUP BY bidder"),
}
EPOCHS = 20
PARTS, EVENTS = 12, 300
EVENTS_OF = Nexmark(seed=3, start=datetime(2026, 3, 1, 23, 59, tzinfo=UTC), gap_us=30_000)
"""108 seconds of events in all parts, with midnight among them."""

QUICK = "q3"

Changed = Mapping[tuple[str, str], pa.Table | None]


def story() -> list[tuple[Files, Changed]]:
    """New files and corrected files of each epoch."""
    chance = random.Random(1)
    parts = [EVENTS_OF.events(number * EVENTS, EVENTS) for number in range(PARTS)]
    files = [(name, number) for name in ("person", "auction", "bid") for number in range(PARTS)]
    chance.shuffle(files)
    side = side_table()
    epochs: list[tuple[Files, Changed]] = [({("side", "all"): side.slice(0, 1_200)}, {})]
    for number in range(PARTS):
        new = {(name, f"{part}"): parts[part][name] for name, part in files[number::PARTS]}
        epochs.append((new, {}))
    bids, auctions, persons = ([part[name] for part in parts] for name in ("bid", "auction", "person"))
    epochs.append(({}, {("side", "all"): side, ("bid", "3"): bids[3].slice(0, 100)}))
    epochs.append(({("bid", "again"): bids[5]}, {("auction", "4"): None}))
    epochs.append(({}, {("bid", "6"): None, ("person", "2"): persons[2].slice(1)}))
    epochs.append(({("auction", "again"): auctions[4]}, {("auction", "7"): moved(auctions[7])}))
    epochs.append(({}, {("bid", "again"): None, ("person", "0"): None}))
    epochs.append(({("person", "again"): persons[0]}, {("bid", "0"): pa.concat_tables([bids[0], bids[6]])}))
    epochs.append(({}, {("side", "all"): side.slice(1_100), ("auction", "7"): auctions[7]}))
    assert len(epochs) == EPOCHS
    return epochs


def moved(auctions: pa.Table) -> pa.Table:
    """The auctions in other categories."""
    at = auctions.schema.get_field_index("category")
    return auctions.set_column(at, "category", pc.subtract(24, auctions["category"]))


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([QUICK], id=QUICK),
        pytest.param([name for name in QUERIES if name != QUICK], id="all others", marks=pytest.mark.more),
    ],
)
def test_every_query_is_sparks_answer_at_every_epoch(
    local_spark: SparkSession, tmp_path: Path, names: list[str]
) -> None:
    definitions = [ViewDefinition(name, QUERIES[name]) for name in names]
    read = [name for name in SCHEMAS if any(name in SOURCES.get(each, ("bid",)) for each in names)]
    graph = ViewGraph(local_spark, tmp_path, definitions, read, {name: SCHEMAS[name] for name in read})
    for name in names:
        assert {*graph.plans[name].sources} == {*SOURCES.get(name, ("bid",))}
    for new, changed in story():
        graph.correct(
            {file: rows for file, rows in new.items() if file[0] in read},
            {file: rows for file, rows in changed.items() if file[0] in read},
        )
        graph.check()
    for name, answer in graph.answers(names).items():
        assert answer.num_rows, f"{name} has rows to compare"
    graph.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize("name", _CLOSED)
def test_windows_that_close_are_sparks_answer_over_the_closed_ones(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    windows, query = _CLOSED[name]
    schema = pa.schema([*SCHEMAS["bid"], *ORIGIN])
    materializer = Materializer(local_spark, Location(str(tmp_path)), event_times={"bid": "at"})
    views = [ViewDefinition("counts", windows, emit="on_close"), ViewDefinition("v", query)]
    materializer.declare(views, {"bid": schema}, {})
    rows, watermarks, shown = schema.empty_table(), dict[str, int](), set[int]()
    for epoch in range(1, EPOCHS + 1):
        new = with_origin(EVENTS_OF.events(epoch * EVENTS, EVENTS)["bid"], f"{epoch}")
        rows = pa.concat_tables([rows, new])
        done = materializer.run_epoch(epoch, {"bid": blocks(new)}, (), watermarks)
        frame_of_table(local_spark, rows).createOrReplaceTempView("bid")
        every = local_spark.sql(windows)
        # Spark would take a condition on sessions for one on rows.
        every = frame_of_table(local_spark, table_of_frame(every, arrow_schema(every.schema)))
        end, closed = functions.unix_micros("until"), watermarks.get("bid", 0)
        every.where(end < closed if name == "q11" else end <= closed).createOrReplaceTempView("counts")
        answer = local_spark.sql(query)
        expected = table_of_frame(answer, arrow_schema(answer.schema))
        stored = FollowedView.open(Location(str(tmp_path)), done.views["v"]).to_table(columns=expected.column_names)
        wrong = difference(stored, expected, (), {})
        assert wrong is None, f"epoch {epoch}: {wrong}"
        shown.add(stored.num_rows)
        watermarks = {"bid": pc.max(rows["at"]).value}
    assert len(shown) > EPOCHS / 2, "windows close in most epochs"
    for view in ("bid", "counts"):
        local_spark.catalog.dropTempView(view)
    materializer.close()
