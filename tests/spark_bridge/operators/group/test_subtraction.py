"""Rows of corrected files are subtracted from their groups, and no other stored row is read."""

from __future__ import annotations

import random
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_bridge.changes.corrections import CorrectedRows
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from tests.cases import few
from tests.spark_bridge.corrected_view import CorrectedView
from tests.spark_bridge.followed_view import FollowedView
from tests.spark_bridge.random_rows import SCHEMA, random_rows

QUERIES: Mapping[str, str] = {
    "all": "SELECT k, count(*) AS n, count(x) AS nx, sum(i) AS si, sum(g) AS sg, sum(p) AS sp, avg(p) AS ap, "
    "avg(i) AS ai, bit_xor(i) AS x, try_sum(i) AS t, try_avg(p) AS ta, count_if(b) AS c FROM t GROUP BY k",
    "filtered": "SELECT k, sum(i) FILTER (WHERE b) AS s, avg(g) FILTER (WHERE i > 500) AS a FROM t GROUP BY k",
    "having": "SELECT k, sum(i) AS s FROM t GROUP BY k HAVING count(*) > 5",
    "having a sum": "SELECT k FROM t GROUP BY k HAVING avg(i) > 300",
    "one row": "SELECT count(*) AS n, sum(i) AS s, avg(g) AS a, avg(p) AS d, bit_xor(g) AS x FROM t",
    "keys": "SELECT DISTINCT k, g FROM t",
    "rollup": "SELECT k, g, sum(i) AS s, avg(i) AS a FROM t GROUP BY ROLLUP (k, g)",
    "exploded": "SELECT tag, count(*) AS n, avg(i) AS a FROM t LATERAL VIEW explode(tags) e AS tag GROUP BY tag",
    "struct": "SELECT struct(k, x) AS pair, sum(i) + count(*) AS s FROM t GROUP BY struct(k, x)",
    "union": "SELECT k, sum(v) AS s FROM (SELECT k, i AS v FROM t UNION ALL SELECT k, g FROM t) GROUP BY k",
}  # fmt: skip
QUICK = ("all",)


@pytest.fixture
def reads_no_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(rows: CorrectedRows, plan: Any, values: Any = None) -> Any:
        raise AssertionError("stored rows of other files are read")

    monkeypatch.setattr(CorrectedRows, "all", refuse)


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of stored rows that Spark got for each computation of groups."""
    numbers: list[int] = []
    every = CorrectedRows.all

    def noted(rows: CorrectedRows, plan: Any, values: Any) -> EpochRows:
        got = every(rows, plan, values)
        numbers.append(sum(rows.frame.count() for rows in got.frames.values() if rows is not None))
        return got

    monkeypatch.setattr(CorrectedRows, "all", noted)
    return numbers


@pytest.mark.usefixtures("reads_no_other_rows")
@pytest.mark.parametrize("name", few(QUERIES, *QUICK))
def test_a_view_of_counts_and_sums_is_sparks_answer_after_corrections(
    local_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    chance = random.Random(f"subtraction of {name}")
    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", QUERIES[name]))
    view.correct({("t", path): random_rows(chance, chance.choice([1, 9, 30])) for path in "abcd"}, {})
    for _ in range(4):
        new = {("t", f"new-{view.epoch}"): random_rows(chance, 5)}
        replaced = {("t", chance.choice("acd")): random_rows(chance, chance.choice([0, 1, 12]))}
        view.correct(new, {**replaced, ("t", chance.choice(["b", "never there", f"new-{view.epoch}"])): None})
        view.check()
    view.materializer.close()
    view.materializer = reopened(view)
    view.correct({}, {("t", "a"): random_rows(chance, 3), ("t", "c"): None})
    view.check()
    view.correct({}, dict.fromkeys(view.files))
    view.check()
    view.correct({}, {("t", "a"): random_rows(chance, 20)})
    view.check()


def reopened(view: CorrectedView) -> Materializer:
    materializer = Materializer(view.spark, view.root, materialized=view.schemas, replacing=view.schemas)
    materializer.open(view.views, view.epoch, view.schemas.keys())
    materializer.declare([view.definition], view.schemas, view.catalog)
    return materializer


@pytest.mark.more
@pytest.mark.usefixtures("reads_no_other_rows")
def test_an_average_of_great_integers_does_not_round_what_is_left(local_spark: SparkSession, tmp_path: Path) -> None:
    """A sum of doubles cannot forget 2**62 without the small numbers beside it."""
    schema = pa.schema([("i", pa.int64())])
    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", "SELECT avg(i) AS a FROM t"), schema=schema)
    small, great = (pa.table({"i": numbers}, schema=schema) for numbers in ([1, 2], [1 << 62]))
    view.correct({("t", "small"): small, ("t", "great"): great}, {})
    view.correct({}, {("t", "great"): None})
    assert view.stored().to_pylist() == [{"a": 1.5}]


@pytest.mark.more_after(2)
@pytest.mark.parametrize(
    ("query", "great", "answer"),
    [
        ("SELECT sum(d) AS s FROM t", "9" * 36, Decimal("0.3")),
        ("SELECT avg(d) AS s FROM t", "9" * 36, Decimal("0.15")),
        ("SELECT try_sum(i) AS s FROM t", "1", 7),
    ],
)
def test_a_group_whose_sum_had_overflowed_is_computed_again(
    local_spark: SparkSession, tmp_path: Path, query: str, great: str, answer: object
) -> None:
    schema = pa.schema([("d", pa.decimal128(38, 2)), ("i", pa.int64())])
    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", query), schema=schema)
    small = pa.table({"d": [Decimal("0.1"), Decimal("0.2")], "i": [3, 4]}, schema=schema)
    much = pa.table({"d": [Decimal(great)] * 12, "i": [(1 << 63) - 1] * 12}, schema=schema)
    view.correct({("t", "small"): small, ("t", "much"): much}, {})
    assert view.stored().to_pylist() == [{"s": None}]
    view.correct({}, {("t", "much"): None})
    assert view.stored().to_pylist() == [{"s": answer}]


ENDS = "SELECT k, min(i) AS lo, max(i) FILTER (WHERE g = 1) AS hi FROM t GROUP BY k"
"""Of the numbers 1, 5, 5, 9 that stay, and of the greatest with a condition."""


@pytest.mark.more
@pytest.mark.parametrize(
    ("leaves", "read"),
    [
        pytest.param([2, 8], [], id="between"),
        pytest.param([None, None], [], id="null"),
        pytest.param([1, 2], [4], id="as small"),
        pytest.param([0, 2], [4], id="smaller"),
        pytest.param([9], [4], id="as great"),
    ],
)
def test_a_group_is_read_again_if_its_least_or_greatest_value_leaves(
    local_spark: SparkSession, tmp_path: Path, rows_read: list[int], leaves: list[int | None], read: list[int]
) -> None:
    schema = pa.schema([("k", pa.string()), ("g", pa.int32()), ("i", pa.int64())])

    def rows(key: str, numbers: list[int | None]) -> pa.Table:
        return pa.table([[key] * len(numbers), [1] * len(numbers), numbers], schema=schema)

    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", ENDS), schema=schema)
    view.correct(
        {("t", "a"): rows("a", [1, 5, 5, 9]), ("t", "b"): rows("a", leaves), ("t", "c"): rows("c", [3] * 7)}, {}
    )
    view.correct({}, {("t", "b"): None})
    view.check()
    assert rows_read == read
    view.correct({}, {("t", "c"): None})
    view.check()
    assert rows_read == read, "a group that ends is not read"


@pytest.mark.more_after(2)
@pytest.mark.parametrize(("comes", "read"), [([0, 9], []), ([1, 12], []), ([2, 12], [4]), ([1, 8], [4]), ([], [4])])
def test_a_group_is_not_read_again_if_a_new_value_passes_the_one_that_leaves(
    local_spark: SparkSession, tmp_path: Path, rows_read: list[int], comes: list[int], read: list[int]
) -> None:
    schema = pa.schema([("k", pa.string()), ("g", pa.int32()), ("i", pa.int64())])

    def rows(numbers: list[int]) -> pa.Table:
        return pa.table([["a"] * len(numbers), [1] * len(numbers), numbers], schema=schema)

    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", ENDS), schema=schema)
    view.correct({("t", "a"): rows([3, 5]), ("t", "b"): rows([1, 9])}, {})
    view.correct({}, {("t", "b"): rows(comes)})
    view.check()
    assert rows_read == [each - 2 + len(comes) for each in read]


KEYS = {
    "k": True, "g": True, "p": True, "i": True, "b": True, "day": True, "at": True, "wall": True, "raw": True,
    "k, g": True, "upper(k), day": True, "x": False, "upper(k)": False, "place": False, "tags": False,
}  # fmt: skip
"""Grouping → whether its rows can be told from others when they are read."""


@pytest.mark.more
@pytest.mark.parametrize("grouping", few(KEYS, "k, g"))
def test_only_the_rows_of_the_groups_that_are_computed_again_are_read(
    local_spark: SparkSession, tmp_path: Path, rows_read: list[int], grouping: str
) -> None:
    chance = random.Random(f"groups by {grouping}")
    definition = ViewDefinition("v", f"SELECT {grouping}, percentile(i, 0.5) AS m FROM t GROUP BY {grouping}")
    view = CorrectedView(local_spark, tmp_path, definition)
    nulls = pa.Table.from_pylist([{"i": 1}, {"i": 2}], schema=SCHEMA)
    many = pa.concat_tables([random_rows(chance, 60), nulls])
    view.correct({("t", "many"): many, ("t", "few"): pa.concat_tables([random_rows(chance, 1), nulls])}, {})
    view.correct({}, {("t", "few"): random_rows(chance, 1)})
    view.check()
    assert all(number < 63 for number in rows_read) if KEYS[grouping] else rows_read == [63]


FORMS = {
    "alias": ("SELECT key, percentile(i, 0.5) AS m FROM (SELECT k AS key, i FROM t WHERE b) GROUP BY key", True),
    "explode": (
        "SELECT k, tag, percentile(i, 0.5) AS m FROM t LATERAL VIEW explode(tags) e AS tag GROUP BY k, tag",
        True,
    ),
    "union": (
        "SELECT key, percentile(v, 0.5) AS m FROM (SELECT k AS key, i AS v FROM t UNION ALL SELECT k, g FROM t) "
        "GROUP BY key",
        True,
    ),
    "two columns": (
        "SELECT key, percentile(v, 0.5) AS m FROM (SELECT upper(k) AS key, i AS v FROM t "
        "UNION ALL SELECT k, g FROM t) GROUP BY key",
        False,
    ),
    "rollup": ("SELECT k, g, percentile(i, 0.5) AS m FROM t GROUP BY ROLLUP (k, g)", False),
}


@pytest.mark.more
@pytest.mark.parametrize("form", FORMS)
def test_a_grouping_is_followed_to_the_columns_of_the_rows(
    local_spark: SparkSession, tmp_path: Path, rows_read: list[int], form: str
) -> None:
    chance = random.Random(f"form {form}")
    query, is_followed = FORMS[form]
    view = CorrectedView(local_spark, tmp_path, ViewDefinition("v", query))
    rows = [pa.concat_tables([random_rows(chance, 4) for _ in range(15)]) for _ in "ab"]
    view.correct({("t", "many"): rows[0], ("t", "one"): rows[1].slice(0, 2)}, {})
    view.correct({}, {("t", "one"): None})
    view.check()
    assert all(number < 60 for number in rows_read) if is_followed else rows_read == [60]


@pytest.mark.more
def test_a_file_comes_back_with_a_column_that_no_stored_row_had(local_spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.string()), ("i", pa.int64()), ("new col", pa.int64())])
    definition = ViewDefinition("v", "SELECT k, sum(i) AS s, max(`new col`) AS m, count(*) AS n FROM t GROUP BY k")
    view = CorrectedView(local_spark, tmp_path, definition, schema=schema)
    view.correct({("t", path): pa.table({"k": ["a", "b"], "i": [1, 2]}) for path in "ab"}, {})
    view.check()
    view.correct({}, {("t", "a"): pa.table([["a", "c"], [3, 4], [7, None]], schema=schema)})
    view.check()


@pytest.mark.more
def test_a_view_that_is_older_than_its_stored_rows_is_computed_again(local_spark: SparkSession, tmp_path: Path) -> None:
    definition = ViewDefinition("v", "SELECT k, sum(i) AS s FROM t GROUP BY k")
    plain = FollowedView(local_spark, tmp_path / "plain", definition, {"t": SCHEMA})
    plain.run({"t": random_rows(random.Random(1), 9)})
    assert [each for each in plain.dataset().schema.names if each.startswith("__sw_")] == ["__sw_key"]

    view = CorrectedView(local_spark, tmp_path / "view", definition)
    view.materializer.close()
    view.materializer = Materializer(local_spark, view.root)
    view.materializer.declare([definition], view.schemas, {})
    view.correct({("t", path): random_rows(random.Random(path), 9) for path in "ab"}, {})
    view.materializer.close()
    view.materializer = reopened(view)
    view.correct({("t", "c"): random_rows(random.Random("c"), 9)}, {})
    view.correct({}, {("t", "a"): None})
    view.check()
