"""After every correction a view is what Spark computes over the files as they are then."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_bridge.view_definition import ViewDefinition
from tests.spark_bridge.corrected_view import CorrectedView
from tests.spark_bridge.random_rows import random_rows
from tests.spark_bridge.test_views_equal_spark import DEFINITIONS

SHORT = {
    "counts", "extremes", "averages", "having", "one_row", "one_row_having", "above", "over_explode", "over_union",
    "distinct", "distinct_filtered", "distinct_having", "collections", "rollup", "select_distinct",
    "append_some", "append_explode", "append_union", "udf_rows",
}  # fmt: skip
ALL = [each if each.name in SHORT else pytest.param(each, marks=pytest.mark.full) for each in DEFINITIONS]


@pytest.mark.parametrize("definition", ALL, ids=lambda definition: definition.name)
def test_view_is_sparks_answer_after_files_were_replaced_and_forgotten(
    local_spark: SparkSession, tmp_path: Path, definition: ViewDefinition
) -> None:
    chance = random.Random(f"corrections of {definition.name}")
    view = CorrectedView(local_spark, tmp_path, definition)
    view.correct(
        {("t", path): random_rows(chance, chance.choice([1, 9, 30])) for path in ("a", "b/it's", "c", "d")}, {}
    )
    view.check()
    for _ in range(3):
        new = {("t", f"new-{view.epoch}"): random_rows(chance, 5)}
        view.correct(
            new,
            {
                ("t", chance.choice("acd")): random_rows(chance, chance.choice([0, 1, 12])),
                ("t", chance.choice(["b/it's", "never there", f"new-{view.epoch}"])): None,
            },
        )
        view.check()
        assert view.stored_files("t") == {
            path: rows.num_rows for (_, path), rows in view.files.items() if rows.num_rows
        }
    view.correct({}, dict.fromkeys(view.files))
    view.check()
    view.correct({}, {("t", "a"): random_rows(chance, 20)})
    view.check()
