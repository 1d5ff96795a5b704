"""SQL over the views of one epoch."""

from __future__ import annotations

import math
import os
import signal
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.commands.maintenance import run_as_owner, vacuum
from slackwater.confinement import worker_client
from slackwater.reading.query_worker import computed
from slackwater.reading.snapshot import Snapshot
from slackwater.reading.snapshot_sql import QUERY
from slackwater.reading.view_reader import ViewReader
from state.location import Location
from state.upkeep.retention import RetentionSettings
from tests.cases import one_of_each
from tests.slackwater.reading.written_root import RootWriter, WrittenRoot, by_carrier


@pytest.fixture
def snapshot(written: WrittenRoot) -> Snapshot:
    return sw.open(written.root.url).snapshot()


def snapshot_of(root: Path, **views: pa.Table) -> Snapshot:
    writer = RootWriter(Location(str(root)), Location("/nowhere"))
    for name, rows in views.items():
        writer.view(name, rows)
    writer.commit()
    return sw.open(str(root)).snapshot()


def rows_over(query: str, views: dict[str, ViewReader]) -> pa.Table:
    """The rows of a query, as a worker computes them."""
    with duckdb.connect() as connection:
        schema, batches = computed(connection, query, views, pa.table, "an epoch", None)
        return pa.Table.from_batches(batches, schema)


@pytest.mark.more_after(1)
@pytest.mark.parametrize("place", ["written", "written_s3"])
def test_views_and_the_ledger_are_relations_at_one_epoch(place: str, request: pytest.FixtureRequest) -> None:
    written: WrittenRoot = request.getfixturevalue(place)
    store = sw.open(written.root.url, storage_options=written.root.storage_options)
    query = "SELECT carrier, delay FROM by_carrier, late WHERE n > 2 AND delay > 1 ORDER BY carrier, delay"
    answers = [store.snapshot(epoch).sql(query).to_pylist() for epoch in written.epochs[2:]]
    assert answers[0] == [{"carrier": "AA", "delay": 2}]
    assert [(row["carrier"], row["delay"]) for row in answers[1]] == [
        ("AA", 2), ("AA", 3), ("o'hare|1", 2), ("o'hare|1", 3),
    ]  # fmt: skip
    snapshot = store.snapshot()
    assert snapshot.sql("FROM BY_CARRIER").schema == snapshot.view("by_carrier").schema
    assert snapshot.sql("SELECT * FROM files") == snapshot.files().cast(snapshot.sql("SELECT * FROM files").schema)
    assert snapshot.sql("SELECT count(*) AS n FROM by_carrier").to_pylist() == [{"n": 3}]
    assert snapshot.sql("SELECT 1 AS one").to_pylist() == [{"one": 1}]


def test_a_view_that_is_called_files_comes_before_the_ledger(tmp_path: Path) -> None:
    assert snapshot_of(tmp_path, Files=pa.table({"n": [1]})).sql("FROM files").to_pylist() == [{"n": 1}]


def test_a_query_reads_the_columns_and_rows_that_it_needs(tmp_path: Path) -> None:
    numbers = range(50_000)
    wide = pa.table({"n": list(numbers), "k": [n % 7 for n in numbers], "text": [f"{n:0>400}" for n in numbers]})
    writer = RootWriter(Location(str(tmp_path)), Location("/nowhere"))
    writer.view("wide", wide)
    reader = ViewReader(writer.root, writer.views["wide"])
    read = []
    for query in ("SELECT sum(k) FROM wide", "SELECT text FROM wide WHERE n = 7", "SELECT max(text) FROM wide"):
        reader.dataset.io_stats_incremental()
        assert rows_over(query, {"wide": reader}).num_rows == 1
        read.append(reader.dataset.io_stats_incremental().read_bytes)
    assert read[0] * 10 < read[2] and read[1] * 4 < read[2], read


_ENDLESS = "SELECT count(*) FROM range(100_000_000_000) a, range(1_000) b"


def test_query_without_an_end_is_ended(snapshot: Snapshot) -> None:
    with pytest.raises(
        sw.errors.UsageError, match=r"took more than 0\.2 s: read less, or give it more time \(timeout_s; --time"
    ):
        snapshot.sql(_ENDLESS, timeout_s=0.2)
    assert snapshot.sql("SELECT 1 AS one", timeout_s=None, max_memory_bytes=None).to_pylist() == [{"one": 1}]


@pytest.mark.more
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM range(100_000_000)",
        "SELECT n, count(*) FROM range(1_000_000_000) t(n) GROUP BY n",
        "SELECT * FROM range(100_000_000) t(n) ORDER BY hash(n)",
        "SELECT list(n) FROM range(1_000_000_000) t(n)",
    ],
)
def test_query_with_too_large_an_answer_or_state_is_ended(
    snapshot: Snapshot, query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = list(tmp_path.iterdir())
    with pytest.raises(
        sw.errors.UsageError, match=r"needs more than 67\.1 MB of memory: .* \(max_memory_bytes; --max-memory-gib\)"
    ):
        snapshot.sql(query, max_memory_bytes=64 << 20)
    assert list(tmp_path.iterdir()) == before, "nothing is spilled into the working directory"


@pytest.mark.more
def test_a_query_in_native_code_is_ended_with_its_worker(snapshot: Snapshot) -> None:
    with pytest.raises(sw.errors.UsageError, match=r"took more than 0\.5 s"):
        snapshot.sql("SELECT levenshtein(repeat('a', 300000), repeat('b', 300000))", timeout_s=0.5)
    with pytest.raises(sw.errors.UsageError, match=r"needs more than 134\.2 MB of memory"):
        query = "SELECT damerau_levenshtein(repeat('a', 20000), repeat('b', 20000))"
        snapshot.sql(query, max_memory_bytes=128 << 20, timeout_s=None)
    assert snapshot.sql("SELECT 1 AS one").to_pylist() == [{"one": 1}]


def test_a_query_leaves_nothing_for_the_next_one(snapshot: Snapshot) -> None:
    for query in ("CREATE TABLE t AS SELECT 1", "SET search_path = 'main'", "ATTACH ':memory:' AS other"):
        with pytest.raises(sw.errors.UsageError):
            snapshot.sql(query)
    databases = snapshot.sql("SELECT count(*) AS n FROM duckdb_databases() WHERE NOT internal").to_pylist()
    assert databases == [{"n": 1}]


@pytest.mark.more
def test_a_worker_that_ended_is_replaced(snapshot: Snapshot) -> None:
    snapshot.sql("SELECT 1")
    worker = worker_client._warm.take(QUERY, "file")
    assert worker is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker_client._warm.put_back(QUERY, "file", worker)
    assert snapshot.sql("SELECT 1 AS one").to_pylist() == [{"one": 1}]


@pytest.mark.parametrize(("option", "value"), [("timeout_s", 0), ("max_memory_bytes", -1), ("timeout_s", math.nan)])
def test_impossible_limit_is_refused(snapshot: Snapshot, option: str, value: float) -> None:
    with pytest.raises(sw.errors.UsageError, match=f"{option}={value}: give a number above 0, or None"):
        snapshot.sql("SELECT 1", **{option: value})  # type: ignore[arg-type]


NAN = math.nan
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int64(), [None, -1, 0, 1, 2**60]),
    "small": (pa.int8(), [None, -128, 0, 127]),
    "f": (pa.float64(), [None, -0.0, 0.0, NAN, 1.5, math.inf]),
    "single": (pa.float32(), [None, -0.0, NAN, 1.5]),
    "s": (pa.string(), [None, "", "a", "A", "a%", "é", "it's"]),
    "b": (pa.binary(), [None, b"", b"a", b"\xff"]),
    "flag": (pa.bool_(), [None, True, False]),
    "d": (pa.date32(), [None, date(2026, 1, 31), date(1969, 1, 1)]),
    "t": (pa.timestamp("us"), [None, datetime(2026, 1, 31, 12)]),  # noqa: DTZ001
    "z": (pa.timestamp("us", "UTC"), [None, datetime(2026, 1, 31, 12, tzinfo=UTC)]),
    "money": (pa.decimal128(10, 2), [None, Decimal("1.50"), Decimal("-3")]),
    "l": (pa.list_(pa.float64()), [None, [], [NAN, 1.0]]),
    "part": (pa.struct([("x", pa.int64()), ("y", pa.string())]), [None, {"x": 1, "y": "a"}, {"x": None, "y": "b"}]),
}
CONDITIONS = [
    "i = 0", "i <> 0", "i >= 1 AND small < 3", "i IN (0, 1, 7)", "i NOT IN (0, 1)", "i IS NULL OR i > 5",
    "small % 2 = 0", "i BETWEEN -1 AND 0", "f = 0", "f > 1", "f = 'nan'", "f < 1", "NOT f > 1", "f IN (0, 1.5)",
    "single >= 0", "single = 'nan'", "s = 'a'", "s > 'A'", "s LIKE 'a%'", "s IN ('a', 'it''s')", "s IS NOT NULL",
    "lower(s) = 'a'", "starts_with(s, 'a')", "b = 'a'::BLOB", "b > ''::BLOB", "flag", "NOT flag", "flag IS NULL",
    "d = DATE '2026-01-31'", "d < DATE '2000-01-01'", "t >= TIMESTAMP '2026-01-01'",
    "z = TIMESTAMPTZ '2026-01-31 12:00:00+00'", "money > 1.2", "money IN (1.5, 2)", "part.x = 1",
    "part.y = 'b' AND i IS NULL", "l IS NULL", "len(l) = 2", "i = 0 OR s = 'a'", "i IS NOT DISTINCT FROM NULL",
]  # fmt: skip


@pytest.mark.more
def test_conditions_mean_the_same_as_on_a_table_of_duckdb(tmp_path: Path) -> None:
    random = Random(5)
    columns = {name: pa.array(random.choices(values, k=400), kind) for name, (kind, values) in VALUES.items()}
    table = pa.table({"row": range(400), **columns})
    snapshot = snapshot_of(tmp_path, v=table)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("arrow", table)
        connection.execute("CREATE TABLE v AS FROM arrow")
        for condition in CONDITIONS:
            query = f"SELECT row FROM v WHERE {condition} ORDER BY row"
            expected = connection.sql(query).to_arrow_table()["row"].to_pylist()
            assert snapshot.sql(query)["row"].to_pylist() == expected, condition
            assert len(expected) < 400, condition


@pytest.mark.parametrize(
    ("query", "said"),
    one_of_each(
        [
            (
                "SELECT * FROM nothing",
                "nothing does not exist!; the views at epoch [0-9]+ of .* are: by_carrier, late$",
            ),
            ("SELECT m FROM by_carrier", '"m" not found.*the views at'),
            ("SELECT __sw_key FROM by_carrier", '"__sw_key" not found'),
            ("SELEC 1", 'syntax error at or near "SELEC"; the views at'),
            ("SELECT n + 9223372036854775807 FROM by_carrier", "Overflow.*the views at"),
            ("", "one SELECT: .* none"),
            ("SELECT 1; SELECT 2", "one SELECT: .* not several"),
            ("INSERT INTO by_carrier VALUES ('ZZ', 1)", "one SELECT: INSERT is refused"),
            ("CREATE TABLE t AS SELECT 1", "one SELECT: CREATE is refused"),
            ("COPY by_carrier TO 'FILE'", "one SELECT: COPY is refused"),
            ("ATTACH 'FILE' AS other", "one SELECT: ATTACH is refused"),
            ("SET enable_external_access = true", "one SELECT: SET is refused"),
            ("INSTALL httpfs", "one SELECT: LOAD is refused"),
            ("WITH gone AS (DELETE FROM by_carrier RETURNING *) FROM gone", "one SELECT: DELETE is refused"),
            ("EXPLAIN ANALYZE CREATE TABLE t (n INT)", "one SELECT: EXPLAIN is refused"),
            ("FROM 'FILE'", "disabled by configuration|does not exist"),
            ("FROM read_csv('FILE')", "the function read_csv is not served"),
            ("FROM read_text('FILE')", "the function read_text is not served"),
            ("FROM glob('/*')", "the function glob is not served"),
            ("FROM read_parquet('s3://bucket/key')", "the function read_parquet is not served"),
            ("FROM read_csv('http://127.0.0.1:9/x')", "the function read_csv is not served"),
            ("FROM query --\r('SELECT 42')", "the function query is not served"),
            ("FROM arrow_scan(4096, 4096, 4096)", "the function arrow_scan is not served"),
            ("FROM relations", "relations does not exist"),  # a variable where DuckDB is called
        ],
        kind=lambda case: case[1][:12],
    ),
)
def test_what_is_no_query_over_views_is_refused_in_one_line(
    snapshot: Snapshot, tmp_path: Path, query: str, said: str
) -> None:
    file = tmp_path / "file.csv"
    file.write_text("secret\n")
    with pytest.raises(sw.errors.UsageError, match=said) as raised:
        snapshot.sql(query.replace("FILE", str(file)))
    assert "\n" not in str(raised.value)
    assert file.read_text() == "secret\n"


def test_views_that_only_case_tells_apart_are_not_mixed_up(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, v=pa.table({"n": [1]}), V=pa.table({"n": [2]}), w=pa.table({"n": [3]}))
    assert snapshot.sql("FROM w").to_pylist() == [{"n": 3}]
    with pytest.raises(sw.errors.UsageError, match=r"views '[vV]' and '[vV]' have one name in SQL"):
        snapshot.sql("FROM v")


def test_a_query_over_files_that_vanish_says_that_the_epoch_has_expired(written: WrittenRoot) -> None:
    snapshot = sw.open(written.root.url).snapshot(written.epochs[2])
    last = RetentionSettings(keep_s=0, keep_epochs=1)
    run_as_owner(written.root.url, {}, lambda store, root: vacuum(store, root, last))
    for query in ("FROM by_carrier", "FROM late", "FROM files"):
        with pytest.raises(sw.errors.EpochExpiredError):
            snapshot.sql(query)


def test_a_view_that_cannot_be_read_on_the_way_is_no_error_of_the_query(tmp_path: Path) -> None:
    writer = RootWriter(Location(str(tmp_path)), Location("/nowhere"))
    writer.view("v", by_carrier({"AA": 1}))
    reader = ViewReader(writer.root, writer.views["v"])
    assert reader.schema.names == ["carrier", "n"]  # open, and not read yet
    for file in (tmp_path / writer.views["v"].path / "data").iterdir():
        file.unlink()
    with pytest.raises(sw.errors.EpochExpiredError, match="view 'v'"):
        rows_over("FROM v", {"v": reader})


def test_without_duckdb_the_error_says_how_to_install_it(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(sw.errors.UsageError, match=r"pip install 'slackwater\[verify\]'"):
        snapshot.sql("SELECT 1")
