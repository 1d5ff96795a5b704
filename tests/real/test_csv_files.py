"""CSV files as other programs write them, in whole runs on Ray, Spark and Lance."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from tests.real.event_pipeline import FAST, ONE_FETCHER

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session"), pytest.mark.more]


def _pipeline(tmp_path: Path, query: str) -> sw.Pipeline:
    (tmp_path / "in").mkdir(exist_ok=True)
    pipeline = sw.Pipeline("codes", tmp_path / "root", settings=ONE_FETCHER)
    pipeline.source("codes", tmp_path / "in", format="csv", discovery=FAST)
    pipeline.view("totals", query)
    return pipeline


def test_no_habit_of_a_file_ends_the_run_or_changes_a_value(tmp_path: Path, session: SparkSession) -> None:
    pipeline = _pipeline(tmp_path, "SELECT zip, id, count(*) AS n, count(note) AS notes FROM codes GROUP BY zip, id")
    contents = {
        "a.csv": ",zip,zip,id,note\n0,01234,x,12345678901234567890,NA\n1,01234,x,12345678901234567891,\n",
        "b.csv": "2,01234,x,1,row\n3,99999,y,2,row\n",
        "c.csv": ',zip,zip,id,note\n4,01234,x,1,"open\n5,00001,x,1,"NA"\n',
    }
    for name, content in contents.items():
        (tmp_path / "in" / name).write_text(content)
    pipeline.run(until="caught_up")
    store = sw.open(tmp_path / "root")
    rows = sorted(
        (row["zip"], row["id"], row["n"], row["notes"])
        for row in store.snapshot().view("totals").to_arrow().to_pylist()
    )
    first = Decimal("12345678901234567890")
    assert rows == [("00001", Decimal(1), 1, 1), ("01234", first, 1, 1), ("01234", first + 1, 1, 0)]
    assert "its first line is not a header of this source" in store.ledger.why(str(tmp_path / "in" / "b.csv")).text
    (bad,) = store.ledger.quarantine().to_pylist()
    assert (bad["row"], "quoted field" in bad["reason"]) == (0, True)
    assert sw.verify(store, spark=session, follow_sources=True).all_equal


def test_a_root_of_an_earlier_version_keeps_its_null_markers(tmp_path: Path) -> None:
    query = "SELECT country, count(*) AS n FROM codes GROUP BY country"
    earlier = _pipeline(tmp_path, query)
    nulls = ("", "NA", "NULL", "null", "NaN", "nan")
    earlier._sources["codes"] = replace(earlier._sources["codes"], rules=1, format=sw.Csv(null_values=nulls))
    (tmp_path / "in" / "a.csv").write_text('country\nNA\n"NA"\nDE\n')
    earlier.run(until="caught_up")
    (tmp_path / "in" / "b.csv").write_text('country\nNA\n"null"\nDE\n')
    _pipeline(tmp_path, query).run(until="caught_up")
    rows = {
        row["country"]: row["n"] for row in sw.open(tmp_path / "root").snapshot().view("totals").to_arrow().to_pylist()
    }
    assert rows == {None: 4, "DE": 2}
