from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from slackwater.reading.store import open as open_store
from slackwater.reading.view import View
from state.errors import NotFoundError, UsageError, ViewNotFoundError
from state.lance import view_dataset
from state.location import Location
from state.tables.group_key import group_keys
from state.tables.records import ViewVersion
from tests.slackwater.reading.written_root import WrittenRoot

ROWS: list[dict[str, Any]] = [{"carrier": "AA", "n": 903}, {"carrier": "o'hare|1", "n": 101}, {"carrier": None, "n": 1}]


@pytest.fixture
def view(written: WrittenRoot) -> View:
    return open_store(str(written.root)).snapshot().view("by_carrier")


def test_every_shape_has_the_same_rows_without_the_hidden_columns(view: View) -> None:
    assert view.schema == pa.schema([("carrier", pa.string()), ("n", pa.int64())])
    assert view.to_arrow().schema == view.schema
    assert view.to_arrow().to_pylist() == ROWS
    frame: Any = view.to_pandas()
    assert frame["n"].tolist() == [903, 101, 1]
    assert isinstance(view.to_polars(), pl.DataFrame)
    assert view.to_polars().to_dicts() == ROWS
    assert view.count_rows() == 3
    assert view.lance().version == 3
    assert "__sw_key" in view.lance().schema.names


def test_head_has_the_first_rows_up_to_a_number_of_bytes(view: View) -> None:
    assert view.head(2).to_pylist() == ROWS[:2]
    assert view.head(2, columns=["n"]).to_pylist() == [{"n": 903}, {"n": 101}]
    assert view.head(max_bytes=1).to_pylist() == ROWS[:1]
    assert view.head(max_bytes=1 << 20).to_pylist() == ROWS
    assert view.head(0, max_bytes=1).schema == view.schema
    with pytest.raises(UsageError, match="max_bytes=0: give a number of bytes above 0"):
        view.head(max_bytes=0)
    with pytest.raises(UsageError, match="nothing"):
        view.head(columns=["nothing"])


def test_an_old_epoch_keeps_its_rows(written: WrittenRoot) -> None:
    store = open_store(str(written.root))
    assert store.snapshot(written.epochs[2]).view("by_carrier").get(carrier="AA") == {"carrier": "AA", "n": 3}
    assert store.snapshot(written.epochs[3]).view("by_carrier").get(carrier="AA") == {"carrier": "AA", "n": 903}
    assert store.snapshot(written.epochs[0]).view("by_carrier").to_arrow().num_rows == 0


def test_a_row_is_looked_up_by_its_key(view: View) -> None:
    assert [view.get(carrier=row["carrier"]) for row in ROWS] == ROWS
    assert view.get(carrier="ZZ") is None
    assert view.get(carrier="' OR true OR carrier = '") is None


def test_keys_of_every_type_are_found(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 31, 12, 0, 0, 5, tzinfo=UTC)
    utc = pa.timestamp("us", "UTC")
    columns = {
        "day": pa.array([date(2026, 1, 31)], pa.date32()),
        "at": pa.array([moment], utc),
        "price": pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
        "ratio": pa.array([-0.0], pa.float64()),
        "number": pa.array([7], pa.int32()),
        "flag": pa.array([True]),
        "w": pa.array([{"start": moment, "end": None}], pa.struct([(name, utc) for name in ("start", "end")])),
        "tags": pa.array([["a|", None]]),
    }
    key = tuple(columns)
    table = pa.table({**columns, "n": [1], "__sw_key": group_keys(list(columns.values()))})
    root = Location(str(tmp_path))
    view_dataset.create(root.child("views/v.lance"), table)
    view = View(root, ViewVersion("v", "views/v.lance", 1), key)
    asked: dict[str, Any] = {
        "day": date(2026, 1, 31),
        "at": moment,
        "price": Decimal("1.5"),
        "ratio": 0.0,
        "number": 7,
        "flag": True,
        "w": {"start": moment, "end": None},
        "tags": ["a|", None],
    }
    found = view.get(**asked)
    assert found is not None and found["n"] == 1
    for column, other in (
        ("day", date(2026, 2, 1)),
        ("price", Decimal("1.51")),
        ("flag", False),
        ("number", None),
        ("tags", []),
        ("w", None),
    ):
        assert view.get(**{**asked, column: other}) is None


def test_a_look_up_that_cannot_work_says_what_would(view: View, written: WrittenRoot) -> None:
    with pytest.raises(UsageError, match="looked up by carrier; given: flight"):
        view.get(flight=1)
    with pytest.raises(UsageError, match="looked up by carrier; given: -"):
        view.get()
    with pytest.raises(UsageError, match="carrier=5 is not a valid string"):
        view.get(carrier=5)
    with pytest.raises(UsageError, match="'late' has no key"):
        open_store(str(written.root)).snapshot().view("late").get(day=1)


def test_an_unknown_view_is_told_with_those_that_there_are(written: WrittenRoot) -> None:
    snapshot = open_store(str(written.root)).snapshot()
    with pytest.raises(ViewNotFoundError, match=r"no view 'carriers' .* the views are: by_carrier, late"):
        snapshot.view("carriers")


def test_a_view_whose_version_is_gone_is_named(written: WrittenRoot) -> None:
    with pytest.raises(NotFoundError, match="totals-1"):
        View(written.root, ViewVersion("totals", "views/totals-1.lance", 1), ()).to_arrow()


@pytest.mark.ray
@pytest.mark.more
def test_spark_reads_a_view_from_s3_by_fragments(written_s3: WrittenRoot, session: SparkSession) -> None:
    store = open_store(written_s3.root.url, written_s3.root.storage_options)
    snapshot = store.snapshot(written_s3.epochs[-1])
    late, carriers = (snapshot.view(name).to_spark(session) for name in ("late", "by_carrier"))
    assert late.dtypes == [("day", "date"), ("delay", "bigint")]
    assert carriers.dtypes == [("carrier", "string"), ("n", "bigint")]
    assert sorted(tuple(row) for row in late.collect()) == [(date(2026, 2, day), day) for day in (1, 2, 3)]
    assert sorted(map(tuple, carriers.where("carrier is not null").collect())) == [("AA", 903), ("o'hare|1", 101)]
    assert late.rdd.getNumPartitions() >= 2
    assert store.snapshot(written_s3.epochs[0]).view("late").to_spark(session).count() == 0


@pytest.mark.ray
@pytest.mark.more
@pytest.mark.usefixtures("session")
def test_ray_reads_a_view(written: WrittenRoot) -> None:
    rows = open_store(written.root.url).snapshot(written.epochs[-1]).view("by_carrier").to_ray().take_all()
    assert sorted(rows, key=str) == sorted(ROWS, key=str)
