"""Versions: a view continues from the recorded version, has one writer, and changes only with its rows."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_bridge.materializer as materializer_module
from actors.schemas.ddl import parse_schema
from spark_bridge.datasets import dataset_upkeep
from spark_bridge.maintenance.declaration import Start
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.clock import ManualClock
from state.errors import CommitRefusedError, SlackwaterError
from state.lance import view_dataset
from state.location import Location
from tests.cases import few
from tests.spark_bridge.followed_view import FollowedView, blocks
from tests.spark_bridge.random_rows import SCHEMA, random_rows

GROUPED = ViewDefinition("grouped", "SELECT k, count(*) AS n, avg(i) AS a FROM t GROUP BY k")
HAVING = ViewDefinition("having", "SELECT k, sum(i) AS s FROM t GROUP BY k HAVING sum(i) > 0")
APPENDED = ViewDefinition("appended", "SELECT k, i FROM t WHERE i > 0")
ONE_ROW = ViewDefinition("one_row", "SELECT count(*) AS n FROM t")
ALL = [GROUPED, HAVING, APPENDED]


class SteppingClock(ManualClock):
    """A second passes with each reading: no piece of work is too short to be seen."""

    def monotonic(self) -> float:
        self.advance(1.0)
        return super().monotonic()


by_name = pytest.mark.parametrize("definition", ALL, ids=lambda definition: definition.name)


@pytest.mark.parametrize("definition", few(ALL, "having"), ids=lambda definition: definition.name)
def test_restart_continues_from_the_recorded_version(
    local_spark: SparkSession, tmp_path: Path, definition: ViewDefinition
) -> None:
    """Rows written after the recorded version are not in the view, after any number of epochs."""
    chance = random.Random(11)
    view = FollowedView(local_spark, tmp_path, definition, {"t": SCHEMA})
    for _ in range(3):
        view.run({"t": random_rows(chance, 20)})
    recorded, rows = dict(view.views), dict(view.rows)
    view.run({"t": random_rows(chance, 20)})

    # A take-over: the recorded version becomes the latest, and a new process opens it.
    taken_over = {name: view_dataset.restore(view.root, each, term=2) for name, each in recorded.items()}
    view.rows, view.views = rows, taken_over
    view.materializer = view.new_materializer()
    view.materializer.open(taken_over)
    view.check()
    for _ in range(2):
        view.run({"t": random_rows(chance, 20)})
        view.check()


@pytest.mark.more_after(2)
@by_name
def test_view_written_by_another_process_is_noticed(
    local_spark: SparkSession, tmp_path: Path, definition: ViewDefinition
) -> None:
    chance = random.Random(12)
    view = FollowedView(local_spark, tmp_path, definition, {"t": SCHEMA})
    view.run({"t": random_rows(chance, 20)})
    lance.dataset(view.root.child(view.version.path).lance_uri).delete("k = 'UA'")
    with pytest.raises(CommitRefusedError, match="another process"):
        view.run({"t": random_rows(chance, 20)})


@pytest.mark.more_after(2)
@by_name
def test_writer_from_before_a_take_over_is_refused(
    local_spark: SparkSession, tmp_path: Path, definition: ViewDefinition
) -> None:
    chance = random.Random(14)
    view = FollowedView(local_spark, tmp_path, definition, {"t": SCHEMA})
    view.run({"t": random_rows(chance, 20)})
    taken_over = view_dataset.restore(view.root, view.version, term=2)
    with pytest.raises(CommitRefusedError, match="another process"):
        view.run({"t": random_rows(chance, 20)})
    assert lance.dataset(view.root.child(taken_over.path).lance_uri).version == taken_over.version


@pytest.mark.more_after(2)
@by_name
def test_older_version_is_not_built_upon_unless_it_is_restored(
    local_spark: SparkSession, tmp_path: Path, definition: ViewDefinition
) -> None:
    chance = random.Random(13)
    view = FollowedView(local_spark, tmp_path, definition, {"t": SCHEMA})
    view.run({"t": random_rows(chance, 20)})
    recorded = dict(view.views)
    view.run({"t": random_rows(chance, 20)})
    view.materializer.open(recorded)
    with pytest.raises(CommitRefusedError):
        view.run({"t": random_rows(chance, 20)})


@pytest.mark.more
def test_work_of_an_epoch_has_the_ingest_each_view_and_the_last_commits(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    view = FollowedView(local_spark, tmp_path, GROUPED, {"t": SCHEMA})
    materializer = Materializer(local_spark, view.root, SteppingClock())
    materializer.declare([GROUPED], {"t": SCHEMA}, {})
    done = materializer.run_epoch(1, {"t": blocks(random_rows(random.Random(15), 20))})
    materializer.close()
    assert [span.name for span in done.work] == ["ingest into Spark", "grouped", "last commits of views"]


@pytest.mark.more_after(2)
@pytest.mark.parametrize("definition", [*ALL, ONE_ROW], ids=lambda definition: definition.name)
def test_view_without_new_rows_keeps_its_version(
    local_spark: SparkSession, tmp_path: Path, definition: ViewDefinition
) -> None:
    view = FollowedView(local_spark, tmp_path, definition, {"t": SCHEMA, "u": SCHEMA})
    first = view.run({})
    assert [each.name for each in first.created] == [definition.name], "a view is created without rows too"
    assert first.created[0].created_epoch == 1
    assert first.views[definition.name].path == f"views/{definition.name}-1.lance"
    again = view.run({"u": random_rows(random.Random(1), 5)})
    assert again.views == first.views
    assert again.created == ()
    changed = view.run({"t": random_rows(random.Random(1), 30)})
    assert changed.views[definition.name].version > first.views[definition.name].version


def test_rows_that_touch_nothing_make_no_version(local_spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT k, count(*) AS n FROM t WHERE i > 1000000 GROUP BY k"
    view = FollowedView(local_spark, tmp_path, ViewDefinition("v", query), {"t": SCHEMA})
    first = view.run({})
    assert view.run({"t": random_rows(random.Random(1), 5)}).views == first.views


@pytest.mark.more
def test_state_has_all_groups_and_the_view_the_passing_ones(local_spark: SparkSession, tmp_path: Path) -> None:
    schema = parse_schema("k string, i bigint")
    definition = ViewDefinition("v", "SELECT k, sum(i) AS s FROM t GROUP BY k HAVING sum(i) > 0")
    view = FollowedView(local_spark, tmp_path, definition, {"t": schema})
    for values, passing in (([1, -1], {"a"}), ([-2, 5], {"b"}), ([4, -9], {"a"}), ([-9, 0], set())):
        view.run({"t": pa.table({"k": ["a", "b"], "i": values}, schema=schema)})
        assert set(view.stored().column("k").to_pylist()) == passing
        version = view.version
        assert version.state_path == "view_state/v-1.lance"
        state = lance.dataset(view.root.child(version.state_path).lance_uri, version=version.state_version)
        assert sorted(state.to_table().column("__sw_key").to_pylist()) == ["a", "b"]


def test_partials_that_the_result_has_are_not_stored_twice(local_spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT k, count(*) AS n, max(i) AS hi, avg(i) AS a, sum(i) AS s FROM t GROUP BY k"
    view = FollowedView(local_spark, tmp_path, ViewDefinition("v", query), {"t": SCHEMA})
    view.run({"t": random_rows(random.Random(1), 9)})
    beside = [name for name in view.dataset().schema.names if name not in ("k", "n", "hi", "a", "s")]
    assert beside == ["__sw_key", "__sw_2_sum", "__sw_2_count"], "only the average's parts and the key"
    assert view.version.state_path is None


@pytest.mark.more
def test_views_are_created_when_their_source_gets_a_schema(local_spark: SparkSession, tmp_path: Path) -> None:
    materializer = Materializer(local_spark, Location(str(tmp_path)))
    added = ViewDefinition("added", "SELECT count(*) AS n FROM u")
    rows = random_rows(random.Random(1), 4)
    assert materializer.declare([*ALL, added], {"t": SCHEMA, "u": None}, {}).names(Start.WAITS) == ["added"]
    first = materializer.run_epoch(1, {"t": blocks(rows)})
    assert set(first.views) == {"grouped", "having", "appended"}
    materializer.declare([*ALL, added], {"t": SCHEMA, "u": SCHEMA}, {each.name: each for each in first.created})
    second = materializer.run_epoch(2, {"t": blocks(rows), "u": blocks(rows)})
    assert [each.name for each in second.created] == ["added"]
    assert second.views["added"].path == "views/added-2.lance"
    assert second.views["grouped"].version == first.views["grouped"].version + 1
    materializer.close()


@pytest.mark.more
def test_view_that_is_not_declared_keeps_its_version(local_spark: SparkSession, tmp_path: Path) -> None:
    materializer = Materializer(local_spark, Location(str(tmp_path)))
    materializer.declare(ALL, {"t": SCHEMA}, {})
    rows = random_rows(random.Random(1), 30)
    first = materializer.run_epoch(1, {"t": blocks(rows)})
    materializer.declare([APPENDED], {"t": SCHEMA}, {each.name: each for each in first.created})
    second = materializer.run_epoch(2, {"t": blocks(rows)})
    assert second.views["grouped"] == first.views["grouped"]
    assert second.views["appended"].version == first.views["appended"].version + 1
    materializer.close()


@pytest.mark.more
def test_many_views_are_tidied_as_often_as_a_few(
    local_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of twelve views is due after four epochs: one task after an epoch would leave most of them to grow."""
    monkeypatch.setattr(dataset_upkeep, "_TIDY_EVERY_COMMITS", 4)
    monkeypatch.setattr(dataset_upkeep, "_FRAGMENT_FACTOR", 2)
    monkeypatch.setattr(materializer_module, "_TIDYING_SHARE", 10.0)
    materializer = Materializer(local_spark, Location(str(tmp_path)))
    views = [ViewDefinition(f"v{number}", f"SELECT k, {number} AS n FROM t") for number in range(12)]
    materializer.declare(views, {"t": SCHEMA}, {})
    for epoch in range(1, 25):
        done = materializer.run_epoch(epoch, {"t": blocks(random_rows(random.Random(epoch), 4))})
        materializer.tidy()
    materializer.close()
    datasets = (lance.dataset(Location(f"{tmp_path}/{each.path}").lance_uri) for each in done.views.values())
    assert max(len(each.get_fragments()) for each in datasets) <= 8


@pytest.mark.more
@pytest.mark.parametrize("by_udf", [False, True])
def test_failure_of_a_view_is_one_line(local_spark: SparkSession, tmp_path: Path, by_udf: bool) -> None:
    schema = parse_schema("k string, i bigint")

    def soak(word: str) -> str:
        raise ValueError(f"{word} wet")

    def v(t: DataFrame) -> DataFrame:
        return t.select(F.udf(soak, "string")("k").alias("e"))

    query = "SELECT CAST(raise_error(concat(k, ' wet')) AS string) AS e FROM t WHERE i IS NOT NULL"
    definition = ViewDefinition("v", function=v) if by_udf else ViewDefinition("v", query)
    materializer = Materializer(local_spark, Location(str(tmp_path)))
    materializer.declare([definition], {"t": schema}, {})
    materializer.run_epoch(1, {})
    rows = pa.table({"k": ["too"], "i": [1]}, schema=schema)
    failed = materializer.run_epoch(2, {"t": blocks(rows)}).stopped["v"]
    assert failed.error == ("ValueError: too wet" if by_udf else "java.lang.RuntimeException: too wet")
    materializer.close()


@pytest.mark.more
def test_the_error_for_a_missing_version_names_it(local_spark: SparkSession, tmp_path: Path) -> None:
    view = FollowedView(local_spark, tmp_path, GROUPED, {"t": SCHEMA})
    views = view.run({"t": random_rows(random.Random(1), 3)}).views
    gone = {name: type(each)(each.name, each.path, 99) for name, each in views.items()}
    with pytest.raises(SlackwaterError, match=r"grouped-1\.lance"):
        view.new_materializer().open(gone)
