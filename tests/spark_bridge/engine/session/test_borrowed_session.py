"""A user's session is checked before a run uses it, and keeps its settings."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from spark_bridge.engine.session.borrowed_session import borrow, can_compute, refuse_unfit
from spark_bridge.engine.session.local_session import session_at_hand
from spark_bridge.engine.session.session import find_session
from spark_bridge.engine.session.settings import SparkSettings
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import SettingsError
from tests.cases import one_of_each
from tests.spark_bridge.followed_view import FollowedView


def test_session_that_is_not_on_ray_is_refused(local_spark: SparkSession) -> None:
    with pytest.raises(SettingsError, match=r"has a SparkSession on local\[1\], and a run needs one on Ray"):
        find_session(SparkSettings())


@pytest.mark.parametrize(
    ("configs", "said"),
    [
        ({"spark.dynamicAllocation.enabled": "true"}, "spark.dynamicAllocation.enabled=true"),
        ({"spark.executor.extraJavaOptions": "-Xss4m"}, "--add-opens=java.base/java.nio=ALL-UNNAMED"),
        ({"spark.executor.extraJavaOptions": ""}, "give them in spark.executor.extraJavaOptions"),
    ],
)
def test_session_with_unfit_settings_is_refused(
    local_spark: SparkSession, monkeypatch: pytest.MonkeyPatch, configs: dict[str, str], said: str
) -> None:
    """A real session with another master and other start settings in its answers."""
    conf = local_spark.sparkContext.getConf().setAll(list(configs.items()))
    monkeypatch.setattr(local_spark.sparkContext, "master", "ray://127.0.0.1:1")
    refuse_unfit(local_spark)
    monkeypatch.setattr(local_spark.sparkContext, "getConf", lambda: conf)
    with pytest.raises(SettingsError) as refused:
        refuse_unfit(local_spark)
    assert said in str(refused.value) and "spark.stop()" in str(refused.value)


def test_views_are_computed_under_our_settings_and_the_users_stay(local_spark: SparkSession) -> None:
    local_spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        beside = borrow(local_spark, SparkSettings(ansi=True))
        noon = "SELECT string(timestamp'2020-01-01 12:00:00Z')"
        assert beside.sql(noon).collect()[0][0] == "2020-01-01 12:00:00"
        assert local_spark.sql(noon).collect()[0][0] == "2020-01-01 21:00:00"
        assert beside.conf.get("spark.sql.ansi.enabled") == "true"
        assert local_spark.conf.get("spark.sql.ansi.enabled") == "false"
        assert beside.sparkContext is local_spark.sparkContext
    finally:
        local_spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.more_after(1)
@pytest.mark.parametrize(
    ("query", "error"),
    one_of_each(
        [
            ("SELECT k, 1 / i AS x FROM t", "DIVIDE_BY_ZERO"),
            ("SELECT CAST(s AS int) AS x FROM t", "CAST_INVALID_INPUT"),
            ("SELECT k, sum(i) / min(i) AS x FROM t GROUP BY k", "DIVIDE_BY_ZERO"),
            ("SELECT k, avg(1 / i) AS x FROM t GROUP BY k", "DIVIDE_BY_ZERO"),
            ("SELECT k, sum(i) AS x FROM t GROUP BY k HAVING 1 / min(i) > 0", "DIVIDE_BY_ZERO"),
            ("SELECT k, sum(i + 9223372036854775800) AS x FROM t GROUP BY k", "ARITHMETIC_OVERFLOW"),
        ],
        kind=lambda case: "GROUP BY" in case[0],
    ),
)
def test_views_have_the_ansi_mode_of_their_session(
    local_spark: SparkSession, tmp_path: Path, query: str, error: str
) -> None:
    """The process has another session too, whose mode is another one."""
    rows = pa.table({"k": ["a", "a"], "i": [0, 7], "s": ["x", "12"]})
    definition = ViewDefinition("v", query)
    strict = borrow(local_spark, SparkSettings(ansi=True))
    failed = FollowedView(strict, tmp_path / "strict", definition, {"t": rows.schema}).run({"t": rows}).stopped
    assert error in (failed["v"].error or "")
    view = FollowedView(local_spark, tmp_path / "lenient", definition, {"t": rows.schema})
    assert not view.run({"t": rows}).stopped


def test_texts_of_times_in_a_view_are_in_utc(local_spark: SparkSession, tmp_path: Path) -> None:
    local_spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        beside = borrow(local_spark, SparkSettings())
        rows = pa.table({"i": [1]})
        definition = ViewDefinition("v", "SELECT TIMESTAMP '2020-01-01 12:00:00' AS at FROM t")
        view = FollowedView(beside, tmp_path, definition, {"t": rows.schema})
        view.run({"t": rows})
        assert view.stored().column("at").to_pylist() == [datetime(2020, 1, 1, 12, tzinfo=UTC)]
    finally:
        local_spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_work_without_ray_takes_the_session_of_the_process_and_leaves_it(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.json").write_text('{"item": "tea"}\n')
    pipeline = sw.Pipeline("shop", root=tmp_path / "views")
    pipeline.source("orders", tmp_path / "raw", format="json")
    pipeline.view("sold", "SELECT item, count(*) AS sold FROM orders GROUP BY item")
    assert [each.view_class for each in pipeline.explain()] == ["aggregate"]
    assert [each.view_class for each in pipeline.dry_run().views] == ["aggregate"]
    with session_at_hand(SparkSettings(ansi=True), "not needed") as spark:
        assert spark.sparkContext is local_spark.sparkContext
        assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert local_spark.range(3).count() == 3


def test_application_without_an_executor_cannot_compute(local_spark: SparkSession) -> None:
    assert not can_compute(local_spark), "a local session has no executor"
