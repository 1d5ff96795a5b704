"""Columns and fields with every printable character in their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from actors.schemas.ddl import quoted_name
from actors.schemas.safe_types import can_be_stored
from actors.sources.row_key import Key
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.query.analysis import analyse
from state.errors import ViewError
from tests.cases import few
from tests.spark_bridge.followed_view import FollowedView
from tests.spark_bridge.keyed_graph import ORIGIN, KeyedGraph, with_origin
from tests.spark_bridge.view_graph import ViewGraph
from tests.spark_bridge.ways_of_rows import as_if_many

SIGNS = [chr(code) for code in range(32, 127) if not chr(code).isalnum()]
ALL = [
    *(f"n{sign}o" for sign in SIGNS),
    "é",
    "e\u0301",
    "名",
    "😀",
    " a",
    "a ",
    "1a",
    "select",
    "a\tb",
    "__",
    "%s",
    "{}",
]
STORED = [name for name in ALL if can_be_stored(name)]
FIELDS = pa.struct([(name, pa.int64()) for name in ALL])
SCHEMA = pa.schema([("id", pa.int64()), *((name, pa.int64()) for name in STORED), ("s", FIELDS)])
_LIST = ", ".join(map(quoted_name, STORED))
_BY = ", ".join(map(quoted_name, STORED[::3]))
_SAME = " AND ".join(f"l.{quoted_name(name)} = r.{quoted_name(name)}" for name in STORED[::4])
VIEWS = {
    "rows": "SELECT * FROM t",
    "groups": f"SELECT {_LIST}, s, count(*) AS n, max(id) AS i FROM t GROUP BY {_LIST}, s",
    "window": f"SELECT {_LIST}, s, row_number() OVER (PARTITION BY {_BY} ORDER BY id) AS n FROM t",
    "limit": f"SELECT id, {_LIST}, s FROM t ORDER BY {_LIST}, id LIMIT 3",
    "joined": f"SELECT l.*, r.id AS other FROM t l JOIN u r ON {_SAME}",
    "missing": f"SELECT * FROM t l WHERE NOT EXISTS (SELECT 1 FROM u r WHERE {_SAME} AND l.id < r.id)",
    "fields": f"SELECT id, {', '.join(f's.{quoted_name(name)} AS f{at}' for at, name in enumerate(ALL))} FROM t",
    "over_rows": f"SELECT {_LIST}, count(*) AS n FROM joined GROUP BY {_LIST}",
}


def rows(ids: range, of: pa.Schema = SCHEMA) -> pa.Table:
    def row(number: int) -> dict[str, Any]:
        values = {name: (number + at) % 2 for at, name in enumerate(ALL)}
        return {"id": number, "s": values, **values}

    return pa.Table.from_pylist([row(number) for number in ids], of)


@pytest.mark.more
@pytest.mark.parametrize("name", few(VIEWS, "groups"))
def test_names_with_any_character_are_stored_and_found(local_spark: SparkSession, tmp_path: Path, name: str) -> None:
    names = ("joined", name) if name == "over_rows" else (name,)
    definitions = [ViewDefinition(each, VIEWS[each]) for each in names]
    graph = ViewGraph(local_spark, tmp_path, definitions, ("t", "u"), SCHEMA)
    graph.correct({("t", "f"): rows(range(5)), ("u", "f"): rows(range(3))})
    graph.check()
    graph.correct({("t", "g"): rows(range(5, 7))}, {("t", "f"): rows(range(2, 6)), ("u", "f"): rows(range(1, 4))})
    graph.check()
    graph.reopen()
    with as_if_many():
        graph.correct({}, {("t", "f"): rows(range(3)), ("u", "f"): None})
        graph.check()
    graph.materializer.close()


@pytest.mark.more
def test_a_key_of_columns_with_any_character(local_spark: SparkSession, tmp_path: Path) -> None:
    key = Key(STORED, order_by="id", deleted=f"{quoted_name(STORED[-1])} < 0")
    schema = pa.schema([*[SCHEMA.field(name) for name in ("id", *STORED)], *ORIGIN])
    view = ViewDefinition("v", f"SELECT id, {_LIST} FROM t")
    graph = KeyedGraph(local_spark, tmp_path, [view], {"t": schema}, key, lambda row: row[STORED[-1]] < 0)
    plain = pa.schema(list(schema)[: -len(ORIGIN)])
    graph.correct(
        {("t", path): with_origin(rows(ids, plain), path) for path, ids in (("f", range(4)), ("g", range(3)))}
    )
    graph.check()
    graph.correct({}, {("t", "f"): None})
    graph.check()
    graph.materializer.close()


@pytest.mark.more
@pytest.mark.parametrize("name", few((name for name in ALL if not can_be_stored(name)), "n`o"))
def test_a_name_that_cannot_be_stored_is_refused_or_renamed(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    schema = pa.schema([("id", pa.int64()), (name, pa.int64())])
    column = quoted_name(name)
    with pytest.raises(ViewError, match=r"view 'v', column 'n.o': .* without a dot, a backtick .*; name it with AS"):
        analyse(local_spark, ViewDefinition("v", f"SELECT id, {column} FROM t"), {"t": schema})
    table = pa.Table.from_pylist([{"id": number, name: number % 2} for number in range(5)], schema)
    for number, query in enumerate(
        (
            f"SELECT id, {column} AS x FROM t",
            f"SELECT {column} AS x, count(*) AS n FROM t GROUP BY {column}",
            f"SELECT l.id, r.{column} AS x FROM t l JOIN t r ON l.{column} = r.id",
            f"SELECT id, sum({column}) OVER (PARTITION BY {column} ORDER BY id) AS x FROM t",
            f"SELECT {column} AS x FROM t ORDER BY {column}, id LIMIT 2",
        )
    ):
        view = FollowedView(local_spark, tmp_path / str(number), ViewDefinition("v", query), {"t": schema})
        view.run({"t": table})
        view.run({"t": table.slice(2)})
        view.check()
        view.materializer.close()
