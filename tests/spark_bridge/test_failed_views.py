"""A view whose own expression fails is stale; the other views and the epoch go on."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_bridge.datasets import result_rows
from spark_bridge.engine.session.borrowed_session import borrow
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from tests.cases import few
from tests.spark_bridge.committed_root import GOOD, TOTAL, Root

BAD = pa.table({"k": ["a"], "i": [0], "s": ["(x"]})
MANY = 60_000
"""Rows of a table that Spark computes by a job, and not while it optimizes."""


def _plain(x: int) -> int:
    if x == 0:
        raise ValueError("no zero")
    return x


def _python(t: DataFrame) -> DataFrame:
    return t.select(F.udf("bigint")(_plain)("i").alias("x"))


def _vectorized(t: DataFrame) -> DataFrame:
    def checked(x: Any) -> Any:
        return x.map(_plain)

    strict: Any = F.pandas_udf(checked, "bigint", F.PandasUDFType.SCALAR)
    return t.select(strict("i").alias("x"))


def _raised(t: DataFrame) -> DataFrame:
    wrong: Column = F.when(t.i == 0, F.raise_error(F.lit("too wet")).cast("bigint")).otherwise(t.i)
    return t.select(wrong.alias("x"))


QUERIES: Mapping[str, tuple[Any, str]] = {
    "division": ("SELECT 1 / i AS x FROM t", r"\[DIVIDE_BY_ZERO\]"),
    "cast": ("SELECT CAST(s AS int) AS x FROM t", r"\[CAST_INVALID_INPUT\]"),
    "overflow": ("SELECT 9223372036854775807 + (1 - i) AS x FROM t", r"\[ARITHMETIC_OVERFLOW\]"),
    "group": ("SELECT k, max(1 / i) AS x FROM t GROUP BY k", r"\[DIVIDE_BY_ZERO\]"),
    "result": ("SELECT k, 1 / min(i) AS x FROM t GROUP BY k", r"\[DIVIDE_BY_ZERO\]"),
    "having": ("SELECT k, sum(i) AS x FROM t GROUP BY k HAVING 1 / min(i) > 0", r"\[DIVIDE_BY_ZERO\]"),
    "pattern": ("SELECT regexp_extract(s, s, 0) AS x FROM t", r"regexp"),
    "sequence": ("SELECT sequence(1, int(i), 1) AS x FROM t", "Illegal sequence boundaries: 1 to 0 by 1"),
    "raised": (_raised, "too wet"),
    "python": (_python, "ValueError: no zero"),
    "vectorized": (_vectorized, "ValueError: no zero"),
}


@pytest.fixture
def strict(local_spark: SparkSession) -> SparkSession:
    return borrow(local_spark, SparkSettings(ansi=True))


def _definition(name: str) -> ViewDefinition:
    query = QUERIES[name][0]
    return ViewDefinition("v", query) if isinstance(query, str) else ViewDefinition("v", function=query)


@pytest.mark.more_after(1)
@pytest.mark.parametrize("rows", [1, pytest.param(MANY, marks=pytest.mark.more)])
@pytest.mark.parametrize("name", few(QUERIES, "division", "group", "raised", "python"))
def test_an_expression_that_fails_stops_only_its_view(
    strict: SparkSession, tmp_path: Path, name: str, rows: int
) -> None:
    root = Root(strict, tmp_path, [_definition(name), TOTAL])
    root.run(GOOD)
    before = root.rows("v")
    done = root.run(pa.concat_tables([BAD] * rows))
    failed = root.known["v"]
    assert done.stopped.keys() == {"v"} and failed.stopped_epoch == 1
    assert failed.error is not None and re.search(QUERIES[name][1], failed.error)
    root.run(GOOD)
    assert root.rows("v") == before
    assert root.rows("total") == [{"k": "a", "n": 2}, {"k": "b", "n": 4}]
    root.close()


def test_a_view_that_fails_in_its_first_epoch_is_there_without_rows(strict: SparkSession, tmp_path: Path) -> None:
    root = Root(strict, tmp_path, [_definition("group"), TOTAL])
    root.run(BAD)
    assert (root.known["v"].created_epoch, root.known["v"].stopped_epoch) == (1, 0)
    assert (root.rows("v"), root.rows("total")) == ([], [{"k": "a", "n": 0}])
    root.declare()
    root.run(GOOD)
    assert root.rows("v") == []
    root.close()


@pytest.mark.more
def test_a_failed_view_stands_in_a_later_attempt_and_may_be_replaced(strict: SparkSession, tmp_path: Path) -> None:
    root = Root(strict, tmp_path, [_definition("division"), TOTAL])
    root.run(GOOD)
    root.run(BAD)
    assert root.done is not None
    root.close()

    root.materializer = Materializer(strict, root.location)
    root.materializer.open(root.done.views, root.epoch, {"t"})
    root.declare()
    assert "i" in root.materializer.columns()["t"] and not root.materializer.has_news()
    root.run(GOOD)
    assert root.rows("v") == [{"x": 0.5}, {"x": 1.0}]

    root.definitions = [ViewDefinition("v", "SELECT try_divide(1, i) AS x FROM t", replace=True), TOTAL]
    root.declare()
    done = root.run()
    assert [*root.materializer.backfilling] == ["v"] and "v.next" in done.views
    assert (root.known["v"].stopped_epoch, root.known["v"].error) == (1, None)
    root.close()


def test_a_view_whose_dataset_is_gone_stops_alone(
    strict: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_rows, "_STAGED_FROM_BYTES", 0)
    root = Root(strict, tmp_path, [ViewDefinition("v", "SELECT i AS x FROM t"), TOTAL])
    done = root.run(GOOD)
    shutil.rmtree(tmp_path / done.views["v"].path)
    root.run(GOOD)
    assert "not found" in str(root.known["v"].error)
    assert root.rows("total") == [{"k": "a", "n": 2}, {"k": "b", "n": 4}]
    root.close()
