"""A view whose own expression fails stands still; the other views and the epoch go on."""

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

from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.datasets import result_rows
from spark_bridge.hand_over.epoch_rows import EpochViews
from spark_bridge.materializer import Materializer
from spark_bridge.session.borrowed_session import borrow
from spark_bridge.session.settings import SparkSettings
from state.errors import RunFailedError, ViewFailedError
from state.lance.lance_access import open_dataset
from state.location import Location
from state.tables.records import CatalogView
from tests.cases import few
from tests.spark_bridge.followed_view import blocks

GOOD, BAD = pa.table({"k": ["a", "b"], "i": [1, 2], "s": ["1", "2"]}), pa.table({"k": ["a"], "i": [0], "s": ["(x"]})
TOTAL = ViewDefinition("total", "SELECT k, sum(i) AS n FROM t GROUP BY k")
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


class Root:
    """Some views, whose epochs are committed at once."""

    def __init__(self, spark: SparkSession, root: Path, definitions: list[ViewDefinition]) -> None:
        self.location, self.definitions = Location(str(root)), definitions
        self.materializer = Materializer(spark, self.location)
        self.known: dict[str, CatalogView] = {}
        self.epoch = 0
        self.done: EpochViews | None = None
        self.declare()

    def declare(self) -> None:
        self.materializer.declare(self.definitions, {"t": GOOD.schema}, self.known)

    def run(self, rows: pa.Table | None = None) -> EpochViews:
        self.epoch += 1
        done = self.materializer.run_epoch(self.epoch, {} if rows is None else {"t": blocks(rows)})
        self.known, self.done = done.catalog(self.known), done
        return done

    def rows(self, name: str) -> list[Any]:
        assert self.done is not None
        version = self.done.views[name]
        table = open_dataset(self.location.child(version.path), version.version).to_table()
        shown = table.select([each for each in table.column_names if not each.startswith("__sw_")])
        return sorted(shown.to_pylist(), key=repr)

    def close(self) -> None:
        self.materializer.close()


@pytest.fixture
def strict(local_spark: SparkSession) -> SparkSession:
    return borrow(local_spark, SparkSettings(ansi=True))


def _definition(name: str) -> ViewDefinition:
    query = QUERIES[name][0]
    return ViewDefinition("v", query) if isinstance(query, str) else ViewDefinition("v", function=query)


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
    assert done.stopped.keys() == {"v"} and failed.frozen_epoch == 1
    assert failed.error is not None and re.search(QUERIES[name][1], failed.error)
    root.run(GOOD)
    assert root.rows("v") == before
    assert root.rows("total") == [{"k": "a", "n": 2}, {"k": "b", "n": 4}]
    root.close()


def test_a_view_that_fails_in_its_first_epoch_is_there_without_rows(strict: SparkSession, tmp_path: Path) -> None:
    root = Root(strict, tmp_path, [_definition("group"), TOTAL])
    root.run(BAD)
    assert (root.known["v"].created_epoch, root.known["v"].frozen_epoch) == (1, 0)
    assert (root.rows("v"), root.rows("total")) == ([], [{"k": "a", "n": 0}])
    root.declare()
    root.run(GOOD)
    assert root.rows("v") == []
    root.close()


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
    assert (root.known["v"].frozen_epoch, root.known["v"].error) == (1, None)
    root.close()


def test_a_task_that_cannot_write_is_no_failure_of_the_view(
    strict: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer is a Python function in a task, too."""
    monkeypatch.setattr(result_rows, "_STAGED_FROM_BYTES", 0)
    root = Root(strict, tmp_path, [ViewDefinition("v", "SELECT i AS x FROM t")])
    done = root.run(GOOD)
    shutil.rmtree(tmp_path / done.views["v"].path)
    with pytest.raises(RunFailedError) as failed:
        root.run(GOOD)
    assert not isinstance(failed.value, ViewFailedError)
    root.close()
