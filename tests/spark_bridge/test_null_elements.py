"""Nulls within arrays, maps and structs reach interpreted functions and copies of rows in each way of transport."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.arrow_frames import frame_of_table
from spark_bridge.plans.view_definition import ViewDefinition
from tests.cases import few
from tests.spark_bridge.corrected_view import CorrectedView
from tests.spark_bridge.view_graph import ViewGraph

KINDS: Mapping[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [1, None]),
    "bigint": (pa.int64(), [1, None]),
    "double": (pa.float64(), [0.5, None]),
    "boolean": (pa.bool_(), [True, None]),
    "date": (pa.date32(), [1, None]),
    "timestamp": (pa.timestamp("us", "UTC"), [1, None]),
    "decimal": (pa.decimal128(20, 2), [1, None]),
    "string": (pa.string(), ["a", None]),
    "array": (pa.list_(pa.int64()), [[1, None], None, []]),
    "struct": (pa.struct([("f", pa.int64())]), [{"f": 1}, {"f": None}, None]),
}
QUERIES = {
    "transform": "SELECT transform(a, x -> x IS NULL) AS y FROM t",
    "filter": "SELECT filter(a, x -> x IS NOT NULL) AS y FROM t",
    "exists": "SELECT exists(a, x -> x IS NULL) AS y FROM t",
    "map_values": "SELECT transform_values(m, (k, x) -> x IS NULL) AS y FROM t",
    "group": "SELECT a, count(*) AS n FROM t GROUP BY a",
    "limit": "SELECT id, a FROM t ORDER BY id LIMIT 3",
    "window": "SELECT id, a, count(*) OVER (PARTITION BY id % 2) AS n FROM t",
    "join": "SELECT p.id, q.a FROM t p LEFT JOIN t q ON p.a = q.a",
    "beside": "SELECT id, a FROM t WHERE id < (SELECT max(id) FROM t)",
}


def rows_of(kind: str, start: int = 0) -> pa.Table:
    """Rows with arrays and maps of these values, and of nulls alone, empty ones and null ones."""
    data_type, values = KINDS[kind]
    arrays: list[Any] = [values, [None], [], None, values[::-1]]
    maps = [each if each is None else [(str(at), value) for at, value in enumerate(each)] for each in arrays]
    return pa.table(
        {
            "id": pa.array(range(start, start + len(arrays)), pa.int64()),
            "a": pa.array(arrays, pa.list_(data_type)),
            "m": pa.array(maps, pa.map_(pa.string(), data_type)),
        }
    )


@pytest.mark.parametrize("kind", few(KINDS, "bigint"))
@pytest.mark.parametrize("query", few(QUERIES, "transform", "limit"))
def test_a_view_over_null_elements_equals_spark(
    local_spark: SparkSession, tmp_path: Path, query: str, kind: str
) -> None:
    rows = rows_of(kind)
    if "m," not in QUERIES[query]:  # a limit or a window over rows with a map is not maintained
        rows = rows.drop_columns("m")
    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", QUERIES[query]), ("t",), rows.schema)
    view.correct({("t", "f"): rows}, {})
    view.check()
    later = rows_of(kind, 2).select(rows.column_names)
    view.correct({("t", "g"): later}, {("t", "f"): rows.slice(1)})
    view.check()
    view.correct({}, {("t", "f"): None})
    view.check()
    view.materializer.close()


@pytest.mark.more
def test_many_rows_with_null_elements_are_readable(local_spark: SparkSession) -> None:
    """Above a size Spark keeps them as Arrow columns; the scan below an interpreted function makes rows of its own."""
    threshold = "spark.sql.execution.arrow.localRelationThreshold"
    local_spark.conf.set(threshold, "0")
    try:
        for kind in KINDS:
            frame = frame_of_table(local_spark, rows_of(kind))
            assert frame._jdf.queryExecution().analyzed().getClass().getSimpleName() == "LogicalRDD"
            found = frame.selectExpr("transform(a, x -> x IS NULL) AS a", "map_values(m) AS m").collect()
            assert [row.a for row in found][:3] == [[each is None for each in KINDS[kind][1]], [True], []]
    finally:
        local_spark.conf.unset(threshold)


@pytest.mark.more
def test_a_replaced_sign_of_a_zero_is_a_change(local_spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("s", pa.string()), ("k", pa.float64())])
    below = {
        "window": "SELECT k, row_number() OVER (PARTITION BY s ORDER BY id) AS n FROM t",
        "limit": "SELECT k FROM t ORDER BY id LIMIT 5",
    }
    views = {
        name: f"SELECT cast(k AS string) AS text, count(*) AS n FROM ({rows}) GROUP BY 1"
        for name, rows in below.items()
    }
    graph = ViewGraph(local_spark, tmp_path, [ViewDefinition(*each) for each in views.items()], ("t",), schema)
    minus, plus, other = (pa.Table.from_pylist([{"id": 1, "s": "u", "k": k}], schema) for k in (-0.0, 0.0, 7.0))
    graph.correct({("t", "f"): minus, ("t", "g"): other})
    for rows in (plus, minus, plus, None):
        graph.correct({}, {("t", "f"): rows})
        graph.check()
    graph.materializer.close()
