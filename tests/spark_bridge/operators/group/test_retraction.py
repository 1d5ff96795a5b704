"""Rows are retracted from sums and moments of doubles without a reading of other rows, and Spark agrees."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.changes.corrections import CorrectedRows
from spark_bridge.materializer import Materializer
from spark_bridge.operators.group import aggregate_plan
from spark_bridge.operators.group.aggregate_calls import with_helper_aggregates
from spark_bridge.operators.group.exact_sums import VALUES
from spark_bridge.operators.group.retraction import RetractedCall
from spark_bridge.plans.view_definition import ViewDefinition
from tests.cases import few
from tests.spark_bridge.corrected_view import CorrectedView
from tests.spark_bridge.random_rows import random_rows

_Y = "double(i) * 0.37 + 130"
QUERIES: Mapping[str, str] = {
    "moments": f"SELECT k, count(*) AS n, stddev(i) AS s, var_pop(g) AS v, sum({_Y}) AS t, avg({_Y}) AS a, "
    f"stddev_samp({_Y}) AS y, stddev(i) FILTER (WHERE b) AS f FROM t GROUP BY k",
    "pairs": f"SELECT g, corr({_Y}, i + 0.5D * g) AS c, covar_pop({_Y}, i) AS p, covar_samp({_Y}, i - 7) AS q, "
    f"regr_slope({_Y}, i + 0.25D * g) AS sl, regr_r2({_Y}, i) AS r, regr_sxx({_Y}, i) AS sxx, regr_sxy({_Y}, i) AS "
    f"sxy, regr_syy(i, {_Y}) AS syy, regr_avgx(i, {_Y}) AS ax, regr_avgy({_Y}, i) AS ay FROM t GROUP BY g",
    "special values": "SELECT k, sum(x) AS s, avg(x) AS a, stddev(x) AS d, sum(f) AS sf, avg(f) AS af, corr(x, i) AS c,"
    " skewness(x) AS sk FROM t GROUP BY k",
    "one row": f"SELECT sum({_Y}) AS s, stddev({_Y}) AS d, avg({_Y}) AS a, stddev(i) AS e FROM t",
    "its own helpers": "SELECT k, sum(x) AS s, sum(CAST(rint(x * 4096.0D) AS bigint)) AS h, count(x) AS c, "
    "sum(abs(x) * (abs(x) + 1.0D)) AS m FROM t WHERE abs(x) < 1000 GROUP BY k",
    "having": f"SELECT k, avg({_Y}) AS a FROM t GROUP BY k HAVING stddev({_Y}) > 100",
}  # fmt: skip
_SCHEMA = pa.schema([("k", pa.string()), ("x", pa.float64())])
_GROUPS = "SELECT k, count(*) AS n, sum(x) AS s, avg(x) AS a, stddev_pop(x) AS d FROM t GROUP BY k"


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An entry for each reading of the stored rows of groups."""
    found: list[str] = []
    every = CorrectedRows.all

    def noted(rows: CorrectedRows, plan: Any, values: Any) -> Any:
        found.append(plan.name)
        return every(rows, plan, values)

    monkeypatch.setattr(CorrectedRows, "all", noted)
    return found


@pytest.mark.parametrize("name", few(QUERIES, "moments", "pairs", "its own helpers"))
def test_a_view_of_doubles_is_sparks_answer_after_corrections(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    chance = random.Random(f"retraction of {name}")
    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", QUERIES[name]))
    view.correct({("t", path): random_rows(chance, chance.choice([1, 9, 30])) for path in "abcd"}, {})
    for _ in range(5):
        new = {("t", f"new-{view.epoch}"): random_rows(chance, 5)}
        replaced = {("t", chance.choice("acd")): random_rows(chance, chance.choice([0, 1, 12]))}
        view.correct(new, {**replaced, ("t", chance.choice(["b", f"new-{view.epoch}"])): None})
        view.check()
    view.correct({}, dict.fromkeys(view.files))
    view.check()
    view.correct({}, {("t", "a"): random_rows(chance, 20)})
    view.check()


@pytest.mark.more_after(1)
@pytest.mark.parametrize("name", ["moments", "pairs"])
def test_no_stored_row_is_read(local_spark: SparkSession, tmp_path: Path, readings: list[str], name: str) -> None:
    chance = random.Random(f"readings of {name}")
    query = QUERIES[name].replace("GROUP BY g", "GROUP BY day IS NULL").replace("SELECT g", "SELECT day IS NULL AS g")
    query = query.replace("GROUP BY k", "GROUP BY day IS NULL").replace("SELECT k", "SELECT day IS NULL AS k")
    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", query))
    view.correct({("t", path): random_rows(chance, 60) for path in "ab"}, {})
    view.correct({}, {("t", "a"): random_rows(chance, 50)})
    view.check()
    assert readings == []


@pytest.mark.more_after(2)
@pytest.mark.parametrize("leaves", [math.nan, math.inf, -math.inf, 1e16, 1e-200, -0.0])
def test_a_value_that_leaves_has_no_trace(local_spark: SparkSession, tmp_path: Path, leaves: float) -> None:
    rows = {name: pa.table([["k"] * len(values), values], schema=_SCHEMA) for name, values in (
        ("stay", [0.5, 1.25, -3.0]), ("leave", [leaves, 2.0])
    )}  # fmt: skip
    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", _GROUPS), schema=_SCHEMA)
    view.correct({("t", name): table for name, table in rows.items()}, {})
    view.correct({}, {("t", "leave"): None})
    view.check()
    assert view.stored().select(["n", "s"]).to_pylist() == [{"n": 3, "s": -1.25}]


@pytest.mark.more
def test_a_group_ends_with_its_last_row_and_begins_again(local_spark: SparkSession, tmp_path: Path) -> None:
    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", _GROUPS), schema=_SCHEMA)
    values = {"a": [1.5, None], "b": [None, 2.5], "c": [None, None]}
    view.correct({("t", path): pa.table([["k", "l"], each], schema=_SCHEMA) for path, each in values.items()}, {})
    for path in "abc":
        view.correct({}, {("t", path): None})
        view.check()
    view.correct({}, {("t", "a"): pa.table([["k", "l"], [0.0, -0.0]], schema=_SCHEMA)})
    view.check()


@pytest.mark.more
def test_integers_in_doubles_are_exact_after_many_corrections(local_spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random("exact")
    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", _GROUPS), schema=_SCHEMA)

    def rows(count: int) -> pa.Table:
        return pa.table([["k"] * count, [float(chance.randrange(10**6)) for _ in range(count)]], schema=_SCHEMA)

    view.correct({("t", path): rows(20) for path in "abc"}, {})
    for _ in range(6):
        view.correct({}, {("t", chance.choice("abc")): rows(chance.randrange(1, 20))})
        (stored,), (batch,) = (each.select(["s", "a"]).to_pylist() for each in (view.stored(), view.in_one_batch()))
        assert stored == batch


@pytest.mark.more_after(1)
@pytest.mark.parametrize("query", ["SELECT k, sum(x) AS s, min(x) AS lo, avg(x) AS a FROM t GROUP BY k", _GROUPS])
def test_a_view_that_is_older_than_retraction_goes_on(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readings: list[str], query: str
) -> None:
    def rows(*values: float) -> pa.Table:
        return pa.table([["k"] * len(values), values], schema=_SCHEMA)

    with monkeypatch.context() as older:
        without = partial(with_helper_aggregates, retracts=False)
        older.setattr(aggregate_plan, with_helper_aggregates.__name__, lambda *given, retracts: without(*given))
        view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", query), schema=_SCHEMA)
        view.correct({("t", "a"): rows(1.5, 2.5), ("t", "b"): rows(7.25)}, {})
        columns = view.dataset().schema.names
        view.materializer.close()
    view.materializer = Materializer(local_spark, view.root, materialized=["t"], replacing=["t"])
    view.materializer.open(view.views, view.epoch, {"t"})
    view.materializer.declare([view.definition], view.schemas, view.catalog)
    view.correct({("t", "c"): rows(9.0)}, {("t", "a"): rows(4.0)})
    view.check()
    view.correct({("t", "d"): rows(0.5)}, {})
    view.check()
    assert view.dataset().schema.names == columns and readings == ["v"]
    assert all(column.null_count == 0 for column in view.dataset().to_table().columns)


_STORED = pa.schema(
    [("s", pa.float64()), ("c", pa.int64()), ("d0", pa.int64()), ("d1", pa.int64()), ("w", pa.float64())]
)
_ONE, _TWO = 1 << 12, 2 << 12
"""The first digits of 1.0 and 2.0."""


@pytest.mark.parametrize(
    ("stored", "gone", "left", "is_lost"),
    [
        pytest.param([3.0, 2, _ONE + _TWO, 0, 8.0], [2.0, 1, _TWO, 0], [1.0, _ONE], False, id="shrinks"),
        pytest.param([2.0, 1, _TWO, 0, 6.0], [2.0, 1, _TWO, 0], [None, None], False, id="ends"),
        pytest.param([2.0, 1, None, None, None], [None] * 4, [2.0, None], False, id="is not touched"),
        pytest.param([None, 0, None, None, None], [None, 0, None, None], [None, None], False, id="has no values"),
        pytest.param([3.0, 2, None, None, None], [2.0, 1, _TWO, 0], None, True, id="lacks its digits"),
        pytest.param([2.0, 1, _TWO, 0, 6.0], [4.0, 2, 2 * _TWO, 0], None, True, id="loses more than it has"),
    ],
)
def test_a_group_shrinks_or_ends_or_is_lost(
    stored: list[float | None], gone: list[float | None], left: list[float | None] | None, is_lost: bool
) -> None:
    call = RetractedCall(["s"], ["sum"], "c", {"x": (VALUES, ["d0", "d1"])}, {"x": "w"}, is_null_at_end=True)
    group = pa.table([[each] for each in stored], schema=_STORED)
    leaving = {field.name: pa.array([value], field.type) for field, value in zip(_STORED, [*gone, None], strict=True)}
    columns, lost = call.retract(group, leaving)
    assert lost.tolist() == [is_lost]
    assert left is None or [columns[name][0].as_py() for name in ("s", "d0")] == left
