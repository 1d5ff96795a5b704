"""Static tables in a run: joined, replaced by a run, by a command, by a declaration and by their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import slackwater as sw
from slackwater.cli.app import app
from tests.real.event_pipeline import FAST, ONE_FETCHER
from tests.real.events import parquet, write

pytestmark = [pytest.mark.ray]

ORDERS = pa.table({"id": [1, 2, 3, 4], "place": ["a", "a", "b", "x"], "amount": [5, 6, 7, 8]})
PLACES = pa.table({"place": ["a", "b"], "country": pa.array(["AT", "CH"]).dictionary_encode()})
NAMED = "SELECT o.id, p.country FROM orders o LEFT JOIN places p ON o.place = p.place"
BY_COUNTRY = "SELECT country, sum(amount) AS amount FROM orders JOIN places USING (place) GROUP BY country"
RATED = "SELECT o.id, o.amount * r.rate AS paid FROM orders o JOIN rates r ON o.place = r.place"


def made(at: Path, places: Any, *, materialize: bool = True) -> sw.Pipeline:
    pipeline = sw.Pipeline("shop", at / "root", settings=ONE_FETCHER)
    pipeline.source("orders", at / "in", format="parquet", discovery=FAST, materialize=materialize)
    pipeline.table("places", places)
    pipeline.table("rates", at / "rates", format="csv", discovery=FAST, schema="place string, rate double")
    pipeline.view("named", NAMED)
    pipeline.view("by_country", BY_COUNTRY)
    pipeline.view("rated", RATED)
    return pipeline


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("in", "rates"):
        (tmp_path / name).mkdir()
    write(tmp_path / "in", "1.parquet", parquet(ORDERS.to_pylist()))
    (tmp_path / "rates" / "old.csv").write_text("place,rate\na,1.0\nb,2.0\n")
    return tmp_path


def of(place: Path, view: str, epoch: int | None = None) -> set[tuple[Any, ...]]:
    rows = sw.open(place / "root").snapshot(epoch=epoch).view(view).to_arrow()
    return {tuple(row.values()) for row in rows.to_pylist()}


@pytest.mark.more
@pytest.mark.parametrize("materialize", [pytest.param(True, marks=pytest.mark.long), False], ids=["stored", "unstored"])
def test_a_table_is_joined_and_replaced(session: SparkSession, place: Path, materialize: bool) -> None:
    pipeline = made(place, PLACES, materialize=materialize)
    with pipeline.start() as run:
        run.wait(until="caught_up")
        first = sw.open(place / "root").snapshot().epoch
        assert of(place, "by_country") == {("AT", 11), ("CH", 7)}
        with pytest.raises(sw.errors.SchemaError, match="without country with land"):
            run.replace_table("places", pa.table({"place": ["a"], "land": ["A"]}))
        with pytest.raises(sw.errors.CommandRefusedError, match="its tables are: places"):
            run.replace_table("rates", PLACES)
        run.replace_table("places", session.createDataFrame([("a", "DE"), ("x", "US")], "place string, country string"))
        (place / "rates" / "new.csv").write_text("place,rate\na,10.0\n")
        (place / "rates" / "old.csv").unlink()
        run.wait(until="caught_up")
        assert of(place, "by_country") == {("DE", 11), ("US", 8)}
        assert of(place, "named") == {(1, "DE"), (2, "DE"), (3, None), (4, "US")}
    assert of(place, "rated") == {(1, 50.0), (2, 60.0)}
    assert of(place, "by_country", first) == {("AT", 11), ("CH", 7)}
    assert sw.verify(sw.open(place / "root"), pipeline=pipeline).all_equal
    assert sw.verify(sw.open(place / "root"), pipeline=pipeline, epoch=first).all_equal


@pytest.mark.long
@pytest.mark.usefixtures("session")
def test_replaced_rows_stay_until_the_declaration_changes(place: Path) -> None:
    made(place, PLACES).run(until="caught_up")
    pq.write_table(pa.table({"place": ["x"], "country": ["US"]}), place / "new.parquet")
    (place / "new.csv").write_text("country,place\nUS,x\nCH,b\n")
    for file in ("new.parquet", "new.csv"):
        told = CliRunner().invoke(app, ["replace-table", str(place / "root"), "places", str(place / file)])
        assert "which the next run reads" in told.output
    made(place, PLACES).run(until="caught_up")
    assert of(place, "by_country") == {("US", 8), ("CH", 7)}
    made(place, PLACES.slice(0, 1).to_pandas()).run(until="caught_up")
    assert of(place, "by_country") == {("AT", 11)}


@pytest.mark.long
@pytest.mark.usefixtures("session")
def test_a_run_is_told_of_replaced_rows(place: Path) -> None:
    (place / "new.jsonl").write_text('{"place": "x", "country": "US"}\n')
    with made(place, PLACES).start() as run:
        run.wait(until="caught_up")
        told = CliRunner().invoke(app, ["replace-table", str(place / "root"), "places", str(place / "new.jsonl")])
        assert "table places: 1 row, which the run reads now" in told.output
        run.wait(until="caught_up")
    assert of(place, "by_country") == {("US", 8)}
