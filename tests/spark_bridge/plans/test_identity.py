"""The identity of a view is the same from run to run, and differs for a changed view."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

from actors.schemas.ddl import parse_schema
from spark_bridge.maintenance.declaration import Start, undeclared
from spark_bridge.materializer import Materializer
from spark_bridge.plans.plan_text import renumbered
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.query.analysis import analyse
from state.errors import DefinitionChangedError
from state.location import Location
from state.tables.records import CatalogView
from tests.spark_bridge.plans import identity_views
from tests.spark_bridge.plans.identity_views import QUERY, with_udf
from tests.spark_bridge.random_rows import SCHEMA


def identity(spark: SparkSession, query: str, schema: pa.Schema = SCHEMA) -> str:
    return analyse(spark, ViewDefinition("v", query), {"t": schema, "u": schema}).identity


@pytest.mark.more
def test_identity_is_the_same_in_another_process(local_spark: SparkSession) -> None:
    program = """
        from spark_bridge.query.analysis import analyse
        from spark_bridge.plans.view_definition import ViewDefinition
        from spark_bridge.engine.session.local_session import start_local_session
        from spark_bridge.engine.session.settings import SparkSettings
        from tests.spark_bridge.random_rows import SCHEMA
        from tests.spark_bridge.plans.identity_views import QUERY, with_udf
        spark = start_local_session(SparkSettings(), "identity")
        spark.range(3).count()
        for definition in (ViewDefinition("v", QUERY), ViewDefinition("v", function=with_udf())):
            print(analyse(spark, definition, {"t": SCHEMA}).identity)
            print("--")
        spark.stop()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    here = [
        analyse(local_spark, definition, {"t": SCHEMA}).identity
        for definition in (ViewDefinition("v", QUERY), ViewDefinition("v", function=with_udf()))
    ]
    assert done.stdout == "".join(f"{each}\n--\n" for each in here)


@pytest.mark.parametrize(
    "other",
    [
        QUERY.replace(" FROM", "\n-- a comment\nfrom ").replace("AS", " as "),
        QUERY.replace("FROM t", "FROM t AS x").replace("avg(i)", "avg(x.i)").replace("GROUP BY k", "GROUP BY x.k"),
    ],
)
def test_identity_does_not_see_the_wording(local_spark: SparkSession, other: str) -> None:
    assert identity(local_spark, other) == identity(local_spark, QUERY)


@pytest.mark.more_after(2)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("g = 1", "g = 2"),
        ("AS n", "AS m"),
        ("<> '1'", "<> '2'"),
        ("<> '1'", "<> 1"),
        ("avg(i)", "avg(x)"),
        ("FROM t", "FROM u"),
    ],
)
def test_identity_sees_the_computation(local_spark: SparkSession, old: str, new: str) -> None:
    assert identity(local_spark, QUERY.replace(old, new)) != identity(local_spark, QUERY)


def test_identity_sees_where_a_literal_ends(local_spark: SparkSession) -> None:
    query = "SELECT k FROM t WHERE array_contains(array('a', 'b'), k)"
    assert identity(local_spark, query.replace("'a', 'b'", "'a, b'")) != identity(local_spark, query)


def test_identity_sees_the_types_of_the_columns_it_uses_and_no_others(local_spark: SparkSession) -> None:
    query = "SELECT count(a) AS n FROM t"
    known = identity(local_spark, query, parse_schema("a int, b int"))
    assert identity(local_spark, query, parse_schema("a int, b string, c date")) == known
    assert identity(local_spark, query, parse_schema("a string, b int")) != known


def test_function_and_query_of_one_plan_are_one_view(local_spark: SparkSession) -> None:
    def v(t: DataFrame) -> DataFrame:
        return t.where("g = 1").select("k")

    by_function = analyse(local_spark, ViewDefinition("v", function=v), {"t": SCHEMA}).identity
    assert by_function == identity(local_spark, "SELECT k FROM t WHERE g = 1")


@pytest.mark.more
def test_identity_sees_the_code_and_the_constants_of_a_udf(
    local_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of(function: Callable[[DataFrame], DataFrame]) -> str:
        return analyse(local_spark, ViewDefinition("v", function=function), {"t": SCHEMA}).identity

    known = of(with_udf())
    assert "return x * FACTOR" in known
    assert "comment" not in known
    assert of(with_udf()) == known
    monkeypatch.setattr(identity_views, "FACTOR", 3.0)
    assert of(with_udf()) != known


@pytest.mark.more
def test_udf_defined_inside_the_function_is_seen(local_spark: SparkSession) -> None:
    def make(factor: float) -> Callable[[DataFrame], DataFrame]:
        def v(t: DataFrame) -> DataFrame:
            scaled = F.udf(lambda x: x * factor, DoubleType())
            return t.select(scaled("x").alias("s"))

        return v

    texts = [
        analyse(local_spark, ViewDefinition("v", function=make(f)), {"t": SCHEMA}).identity for f in (1.0, 1.0, 2.0)
    ]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.more
def test_changed_definition_is_refused_with_both_texts(local_spark: SparkSession) -> None:
    old = analyse(local_spark, ViewDefinition("v", "SELECT k FROM t"), {"t": SCHEMA})
    known = CatalogView("v", old.view_class, old.definition, old.identity, old.sources, old.key, created_epoch=7)
    gone = CatalogView("gone", "append", "SELECT 1", "", ("t",), (), created_epoch=7)
    back = CatalogView("v", old.view_class, old.definition, old.identity, old.sources, old.key, 7, stopped_epoch=9)
    materializer = Materializer(local_spark, Location("/nowhere"))

    with pytest.raises(DefinitionChangedError, match=r"'v' is stored as: SELECT k FROM t; .* as: SELECT g FROM t; "):
        materializer.declare([ViewDefinition("v", "SELECT g FROM t")], {"t": SCHEMA}, {"v": known})
    same = [ViewDefinition("v", "select k  from t"), ViewDefinition("w", "SELECT k FROM t")]
    declaration = materializer.declare(same, {"t": SCHEMA, "u": None}, {"v": known, "gone": gone})
    assert declaration.starts == {"v": Start.CONTINUES, "w": Start.NEW}
    assert undeclared({"v", "w"}, ["v", "v.1", "gone"]) == ["gone"]
    declaration = materializer.declare(
        [*same, ViewDefinition("x", "SELECT * FROM u")], {"t": SCHEMA, "u": None}, {"v": back}
    )
    assert declaration.starts == {"v": Start.BACKFILLS, "w": Start.NEW, "x": Start.WAITS}
    other = [ViewDefinition("v", "SELECT g FROM t", replace=True)]
    assert materializer.declare(other, {"t": SCHEMA}, {"v": known}).starts == {"v": Start.BACKFILLS}
    materializer.close()


def test_numbers_of_other_texts_are_not_those_of_the_columns() -> None:
    """A session may give a column the number that the text of another view has."""
    texts = [renumbered(f"Project [k#{number}]", ["by k#0, n#1"]) for number in (0, 1, 7)]
    assert texts == ["Project [k#0]\nby k#1, n#2"] * 3
