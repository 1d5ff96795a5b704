"""The halves of a view by its expectations have each of its rows once, also after corrections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_bridge.materializer import Materializer
from spark_bridge.plans.row_halves import half_of_frame, half_of_query
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import ViewError
from state.lance.lance_access import open_dataset
from state.location import Location
from tests.spark_bridge.followed_view import blocks

ROWS = pa.table({"name": ["a", "b'c", None, "a", "a"], "amount": pa.array([1, -1, None, 4, 4], pa.int64())})
CONDITIONS = {"amount is positive": "amount > 0", "it's \\ named": "name IS NOT NULL -- always"}
GOOD = [("a", 1), ("a", 4), ("a", 4)]
BAD = [("b'c", -1, "amount is positive"), (None, None, "amount is positive; it's \\ named")]
QUERY = "SELECT name, amount FROM t -- all of them\n;"


def bag(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in row if not name.startswith("__sw_")) for row in rows)


def test_the_halves_of_a_query_are_the_same_in_spark_and_duckdb(local_spark: SparkSession) -> None:
    rows = local_spark.createDataFrame([tuple(row.values()) for row in ROWS.to_pylist()], "name string, amount bigint")
    rows.createOrReplaceTempView("t")
    with duckdb.connect() as connection:
        connection.register("t", ROWS)
        for half, wanted in (("fulfilling", GOOD), ("violating", BAD)):
            text = half_of_query(QUERY, half, CONDITIONS)  # type: ignore[arg-type]
            assert Counter(tuple(row) for row in local_spark.sql(text).collect()) == Counter(wanted), text
            assert Counter(connection.sql(text).fetchall()) == Counter(wanted), text
            frame = half_of_frame(local_spark.table("t"), half, CONDITIONS)  # type: ignore[arg-type]
            assert Counter(map(tuple, frame.collect())) == Counter(wanted)


def as_function(t: DataFrame) -> DataFrame:
    return t.select("name", "amount")


@pytest.mark.more
@pytest.mark.parametrize("query", [QUERY, as_function])
def test_each_row_is_in_one_half(local_spark: SparkSession, tmp_path: Path, query: Any) -> None:
    options: dict[str, Any] = {"expect": CONDITIONS, "on_violation": "quarantine"}
    whole = (
        ViewDefinition("paid", query=query, **options)
        if isinstance(query, str)
        else ViewDefinition("paid", function=query, **options)
    )
    assert [each.name for each in whole.parts] == ["paid", "paid_quarantine"]
    root, materializer = Location(str(tmp_path)), Materializer(local_spark, Location(str(tmp_path)))
    materializer.declare(list(whole.parts), {"t": ROWS.schema}, {})
    done = materializer.run_epoch(1, {"t": blocks(ROWS)})
    found: Mapping[str, list[dict[str, Any]]] = {
        name: open_dataset(root.child(version.path), version.version).to_table().to_pylist()
        for name, version in done.views.items()
    }
    assert bag(found["paid"]) == Counter(GOOD)
    assert bag(found["paid_quarantine"]) == Counter(BAD)
    materializer.close()


@pytest.mark.more_after(2)
@pytest.mark.parametrize(
    ("query", "conditions", "said"),
    [
        ("SELECT name, sum(amount) AS a FROM t GROUP BY name", {"x": "a > 0"}, "takes single rows out, and in this"),
        ("SELECT name, amount FROM t", {"x": "amout > 0"}, "view 'paid': expectation 'x': .*amout.*write a condition"),
        ("SELECT name, amount FROM t", {"x": "true) OR (true"}, "view 'paid': expectation 'x': "),
        ("SELECT name AS violated FROM t", {"x": "true"}, "violated"),
    ],
)
def test_what_cannot_be_halved_is_refused(
    local_spark: SparkSession, tmp_path: Path, query: str, conditions: Mapping[str, str], said: str
) -> None:
    whole = ViewDefinition("paid", query=query, expect=conditions, on_violation="quarantine")
    materializer = Materializer(local_spark, Location(str(tmp_path)))
    with pytest.raises(ViewError, match=said):
        materializer.declare(list(whole.parts), {"t": ROWS.schema}, {})
    materializer.close()
