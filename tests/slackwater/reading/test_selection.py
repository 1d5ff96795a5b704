"""Columns and rows that are asked for by name and by a condition, in every shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from slackwater.reading.store import open as open_store
from slackwater.reading.view import View
from state.errors import UsageError
from state.lance import view_dataset
from state.location import Location
from state.tables.records import ViewVersion
from tests.slackwater.reading.written_root import WrittenRoot

WANTED: dict[str, Any] = {"columns": ["n"], "filter": "n > 100 AND carrier IS NOT NULL"}
ROWS: list[dict[str, Any]] = [{"n": 903}, {"n": 101}]


@pytest.fixture
def view(written: WrittenRoot) -> View:
    return open_store(str(written.root)).snapshot().view("by_carrier")


def test_every_shape_has_the_columns_and_rows_that_are_asked_for(view: View) -> None:
    assert view.to_arrow(**WANTED).to_pylist() == ROWS
    frame: Any = view.to_pandas(**WANTED)
    assert frame.to_dict("records") == ROWS
    assert view.to_polars(**WANTED).to_dicts() == ROWS
    assert view.to_arrow(columns=["n", "carrier"]).column_names == ["n", "carrier"]
    assert view.to_arrow(filter="carrier = 'o''hare|1'").to_pylist() == [{"carrier": "o'hare|1", "n": 101}]
    assert view.to_arrow(filter="carrier = '__sw_key'").num_rows == 0
    assert view.to_arrow(filter="n > 100 -- and no more").num_rows == 2


@pytest.mark.more
@pytest.mark.ray
def test_spark_and_ray_read_the_columns_and_rows_that_are_asked_for(
    written_s3: WrittenRoot, session: SparkSession
) -> None:
    snapshot = open_store(written_s3.root.url, written_s3.root.storage_options).snapshot()
    carriers = snapshot.view("by_carrier")
    frame = carriers.to_spark(session, **WANTED)
    assert frame.dtypes == [("n", "bigint")]
    assert [row.asDict() for row in frame.collect()] == ROWS
    late = snapshot.view("late").to_spark(session, columns=["delay"], filter="day >= date '2026-02-02'")
    assert sorted(row.delay for row in late.collect()) == [2, 3]
    assert late.rdd.getNumPartitions() == len(snapshot.view("late").lance().get_fragments())
    assert carriers.to_ray(**WANTED).take_all() == ROWS
    assert (carriers.to_ray(**WANTED).count(), carriers.to_ray().count()) == (2, 3)
    assert carriers.to_ray().schema().names == ["carrier", "n"]
    for wrong in ({"columns": ["m"]}, {"filter": "m = 1"}):
        with pytest.raises(UsageError, match="'m'"):
            carriers.to_spark(session, **wrong)
        with pytest.raises(UsageError, match="'m'"):
            carriers.to_ray(**wrong)


def test_the_rest_of_a_view_is_not_read(tmp_path: Path) -> None:
    wide = pa.table({"n": list(range(50_000)), "text": [f"{number:0>400}" for number in range(50_000)]})
    root = Location(str(tmp_path))
    view_dataset.create(root.child("views/v.lance"), wide)
    view = View(root, ViewVersion("v", "views/v.lance", 1), ())
    view.to_arrow(columns=["n"], filter="n = 7")
    before = view.lance().io_stats_incremental().read_bytes
    assert before < 2_000_000
    assert view.to_arrow(filter="n = 7").num_rows == 1
    one = view.lance().io_stats_incremental().read_bytes
    view.to_arrow()
    assert 4 * one < view.lance().io_stats_incremental().read_bytes


@pytest.mark.more_after(7)
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"columns": ["carrier", "m"]}, "view 'by_carrier' has no column 'm'.* are: carrier, n$"),
        ({"columns": ["__sw_key"]}, "no column '__sw_key'"),
        ({"columns": "n"}, "give a list"),
        ({"columns": []}, "give a list"),
        ({"columns": ["n", "n"]}, "'n' .* twice"),
        ({"filter": "m = 1"}, "names 'm'.*'by_carrier' are: carrier, n$"),
        ({"filter": "`a b` = 1"}, "names 'a b'.*'by_carrier' are: carrier, n$"),
        ({"filter": "__sw_key = 'AA'"}, "hidden"),
        ({"filter": "n = 1 OR `__SW_partial_0` = 1"}, "hidden"),
        ({"filter": "n ="}, "'by_carrier' is not understood"),
        ({"filter": "n = 'x'"}, "'by_carrier' is not understood: .*\"x\""),
        ({"filter": "n > 1 LIMIT 1"}, "'by_carrier' is not understood"),
        ({"filter": "n = 1; SELECT 1"}, "'by_carrier' is not understood"),
        ({"filter": "count(*) > 1"}, "'by_carrier' is not understood"),
        ({"filter": " "}, "condition in SQL"),
        ({"filter": 3}, "condition in SQL"),
        ({"filter": "1 / (n - 1) > 0"}, "fails on a row of view 'by_carrier': Divide by zero"),
    ],
)
def test_what_cannot_be_asked_for_is_told_with_the_view_and_the_column(
    view: View, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        view.to_arrow(**wrong)
    assert "\n" not in str(raised.value) and "/rust/" not in str(raised.value)
