"""The columns of a view: those that it uses suffice, and those that it sees stay the same."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.plans.columns import columns_to_read, visible_schemas
from spark_bridge.plans.view_definition import ViewDefinition
from state.tables.records import CatalogView
from tests.spark_bridge.followed_view import FollowedView
from tests.spark_bridge.random_rows import SCHEMA, random_rows

USES = {
    "SELECT k, count(*) AS n FROM t GROUP BY k": {"k"},
    "SELECT count(*) AS n FROM t": set(),
    "SELECT 1 AS one FROM t": set(),
    "SELECT * FROM t": set(SCHEMA.names),
    "SELECT k FROM (SELECT * FROM t) WHERE i > 1": {"k", "i"},
    "WITH q AS (SELECT * FROM t) SELECT k, max(i) AS m FROM q GROUP BY k HAVING min(i) < 3": {"k", "i"},
}
LONGER = pa.schema([("a", pa.int64()), ("b", pa.string()), ("added", pa.int8())])


@pytest.mark.more
@pytest.mark.parametrize("query", USES)
@pytest.mark.parametrize("pieces", [1, 3])
def test_a_view_over_the_columns_that_it_uses_is_sparks_answer_over_all(
    local_spark: SparkSession, tmp_path: Path, query: str, pieces: int
) -> None:
    chance = random.Random(5)
    view = FollowedView(local_spark, tmp_path, ViewDefinition("v", query), {"t": SCHEMA})
    assert view.plan.columns == {"t": frozenset(USES[query])}
    for _ in range(2):
        view.run({"t": random_rows(chance, 30)}, pieces)
        view.check()


def test_blocks_with_different_columns_are_united_by_name_for_every_name(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    schema = pa.schema([("z", pa.string()), ("a.b", pa.int64()), ("c`d", pa.float64()), ("y", pa.int64())])
    view = FollowedView(
        local_spark, tmp_path, ViewDefinition("v", "SELECT `c``d` AS c, `a.b` AS a FROM t"), {"t": schema}
    )
    rows = [{"z": "z" * n, "a.b": n, "c`d": n / 2, "y": -n} for n in range(9)]
    view.run({"t": pa.Table.from_pylist(rows, schema)}, 3)
    view.check()


def test_the_rows_of_a_source_are_counted_by_its_cheapest_column() -> None:
    schema = pa.schema([("text", pa.string()), ("wide", pa.int64()), ("small", pa.int8()), ("also_small", pa.bool_())])
    assert columns_to_read(schema, [frozenset(), frozenset()]) == ("small",)
    assert columns_to_read(schema, [frozenset({"wide"}), frozenset(), frozenset({"text"})]) == ("text", "wide")


def test_a_view_sees_the_columns_of_its_creation() -> None:
    view = CatalogView("v", "append", "", "", ("s",), (), 1, visible={"s": ("a", "b")})
    assert visible_schemas({"s": LONGER, "t": LONGER, "u": None}, view) == {
        "s": pa.schema([("a", pa.int64()), ("b", pa.string())]),
        "t": LONGER,
        "u": None,
    }


def test_a_new_view_and_one_without_recorded_columns_see_everything() -> None:
    assert visible_schemas({"s": LONGER}, None) == {"s": LONGER}
    assert visible_schemas({"s": LONGER}, CatalogView("v", "append", "", "", ("s",), (), 1)) == {"s": LONGER}
