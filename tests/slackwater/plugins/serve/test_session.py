"""What psycopg, a client of PostgreSQL, gets from a root."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from slackwater.plugins.serve.front.serving_limits import ServingLimits
from state.location import Location
from tests.cases import few
from tests.slackwater.plugins.serve.served_sql import ServedSql, served
from tests.slackwater.plugins.serve.value_root import values as stored_values
from tests.slackwater.reading.written_root import RootWriter, WrittenRoot, by_carrier
from tests.waiting import eventually

_ENDLESS = "SELECT count(*) FROM range(100000000000) a, range(1000) b"


def expected(row: dict[str, Any]) -> dict[str, Any]:
    """A row as psycopg has it: whole numbers above 64 bits are decimals there."""
    return {**row, "above": None if row["above"] is None else Decimal(row["above"])}


@pytest.mark.more_after(1)
@pytest.mark.parametrize("binary", [False, True])
def test_every_type_arrives_as_it_was_stored(values: ServedSql, binary: bool) -> None:
    with values.connect() as client, client.cursor(binary=binary) as cursor:
        cursor.execute("SELECT * FROM every_type")
        assert cursor.description is not None
        names = [column.name for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    assert rows == [expected(row) for row in stored_values().to_pylist()]


@pytest.mark.parametrize("binary", [False, True])
def test_intervals_and_infinite_dates_arrive(values: ServedSql, binary: bool) -> None:
    query = "SELECT INTERVAL 3 DAY + INTERVAL 1500 MILLISECOND, -INTERVAL 90 MINUTE, sum(n) FROM totals"
    with values.connect() as client, client.cursor(binary=binary) as cursor:
        assert cursor.execute(query).fetchone() == (
            timedelta(days=3, seconds=1.5), timedelta(minutes=-90), Decimal(60),
        )  # fmt: skip
        with pytest.raises(psycopg.DataError, match=r"(?i)infinity|too large"):
            cursor.execute("SELECT DATE 'infinity'").fetchone()


PARAMETERS: list[Any] = [
    7, -(2**40), 2**63 - 1, 1.25, "o'hare \\ %", "", date(2026, 1, 31), datetime(2026, 1, 31, 12, 0, 0, 5),  # noqa: DTZ001
    datetime(2026, 1, 31, 12, tzinfo=UTC), True, False, Decimal("-12.340"), Decimal("0.00001"), Decimal(10**20),
    time(1, 2, 3, 4), b"\x00'\xff", timedelta(days=2, seconds=3.5),
]  # fmt: skip


@pytest.mark.parametrize("form", ["%t", "%b"])
def test_a_parameter_of_any_type_comes_back_as_it_is(values: ServedSql, form: str) -> None:
    with values.connect() as client:
        for value in PARAMETERS:
            if form == "%b" and isinstance(value, timedelta):
                continue  # psycopg sends it as text only
            [back] = client.execute(f"SELECT {form}", [value]).fetchone() or ()
            assert (back, type(back)) == (value, type(value))


@pytest.mark.more
def test_parameters_choose_rows_by_the_type_of_their_column(values: ServedSql) -> None:
    for column, value in {
        "whole": 2**31 - 1, "text": "é'\\ \"x\"", "day": date(9999, 12, 31), "money": Decimal("0.0001"), "flag": False,
        "moment": "2026-01-31", "real": 1e300, "large": str(2**63 - 1), "raw": b"\x00\xff'",
    }.items():  # fmt: skip
        query = f"SELECT tiny FROM every_type WHERE {column} = %s"
        assert values.rows(query, value) == [(127,)], column
    assert values.rows("SELECT n FROM totals WHERE number = ANY(%s) ORDER BY n", [1, 3]) == [(10,), (30,)]


@pytest.mark.more
def test_a_look_up_by_the_key_finds_what_a_scan_finds(values: ServedSql) -> None:
    for condition, parameters, found in [
        ("shop = 'a' AND number = 1", (), [("a", 1, 10)]),
        ("number = 2 AND shop = 'o''hare'", (), [("o'hare", 2, 20)]),
        ("shop = %s AND number = %s", ("o'hare", 2), [("o'hare", 2, 20)]),
        ("shop = %s AND number = %s", ("a", 2), []),
        ("shop = %s AND number = %s", ("a", "1"), [("a", 1, 10)]),
        ("shop = %s AND number = %s", ("a", 1.0), [("a", 1, 10)]),
        ("shop = %s AND number = %s", ("a", 2**40), []),
        ("shop = %s AND number = %s", (None, 3), []),
        ("shop = 'a' AND number = '1'", (), [("a", 1, 10)]),
        ("shop = 'a' AND number = 1 OR n = 30", (), [("a", 1, 10), (None, 3, 30)]),
        ("shop = 'a' AND number = -1", (), []),
    ]:
        for columns in ("*", "shop, number, n"):
            query = f"SELECT {columns} FROM totals WHERE {condition}"
            assert values.rows(query, *parameters) == found, (query, parameters)
        # In brackets it is no look-up: DuckDB computes it.
        assert values.rows(f"SELECT * FROM (SELECT * FROM totals) WHERE {condition}", *parameters) == found, condition
    assert values.rows("SELECT n, N FROM public.totals WHERE shop = 'a' AND number = 1") == [(10, 10)]
    with pytest.raises(psycopg.Error, match="missing"):
        values.rows("SELECT missing FROM totals WHERE shop = 'a' AND number = 1")


def test_statements_are_prepared_once_and_executed_often(values: ServedSql) -> None:
    with values.connect(prepare_threshold=0) as client:
        for _ in range(3):
            for number, shop in ((1, "a"), (2, "o'hare")):
                query = "SELECT shop FROM totals WHERE number = %s AND shop = %s"
                assert client.execute(query, [number, shop]).fetchall() == [(shop,)]
        client.execute("DEALLOCATE ALL")


def test_a_cursor_of_the_server_sends_rows_in_parts(values: ServedSql) -> None:
    with values.connect(autocommit=False) as client, client.cursor("part") as cursor:
        cursor.itersize = 1_000
        cursor.execute("SELECT x FROM range(%s) t(x)", [10_000])
        assert [cursor.fetchone(), *cursor.fetchmany(2)] == [(0,), (1,), (2,)]
        cursor.scroll(5)
        assert [row[0] for row in cursor] == list(range(8, 10_000))
    with values.connect() as client, client.cursor("kept", withhold=True) as cursor:
        cursor.execute("SELECT x FROM range(5) t(x)")
        assert cursor.fetchall() == [(x,) for x in range(5)]
        with pytest.raises(psycopg.errors.InvalidCursorName):
            client.execute("FETCH 1 FROM nothing")


def test_a_portal_sends_its_rows_up_to_a_number(values: ServedSql) -> None:
    with values.connect(autocommit=False) as client, client.cursor() as cursor:
        rows = list(cursor.stream("SELECT x FROM range(5000) t(x)"))
        assert rows == [(x,) for x in range(5000)]
        assert client.execute("SELECT 1").fetchone() == (1,)


def test_two_results_are_open_in_one_transaction(values: ServedSql) -> None:
    with values.connect(autocommit=False) as client:
        one, other = client.cursor("one"), client.cursor("other")
        one.execute("SELECT x FROM range(100000) t(x)")
        other.execute("SELECT n FROM totals ORDER BY n")
        assert (one.fetchone(), other.fetchone(), one.fetchone()) == ((0,), (10,), (1,))


def test_a_client_cancels_its_statement(values: ServedSql) -> None:
    with values.connect() as client:
        timer = threading.Timer(0.3, client.cancel_safe)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled, match="cancelled"):
            client.execute(_ENDLESS)
        timer.join()
        client.cancel_safe()  # of an idle session: without effect
        assert client.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.more
def test_a_statement_beyond_a_limit_is_refused(tmp_path: Path) -> None:
    writer = RootWriter(Location(str(tmp_path)), Location("/nowhere"))
    writer.view("by_carrier", by_carrier({"AA": 1}))
    writer.commit()
    with served(str(tmp_path), limits=ServingLimits(timeout_s=0.4)) as endpoint, endpoint.connect() as client:
        for _ in range(2):
            with pytest.raises(psycopg.errors.QueryCanceled, match=r"more than 0\.4 s"):
                client.execute(_ENDLESS)
    limits = ServingLimits(connections=2, max_rows=1_000)
    with served(str(tmp_path), limits=limits, max_memory_bytes=64 << 20) as endpoint, endpoint.connect() as client:
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="more than 1,000 rows"):
            client.execute("SELECT * FROM range(1001)")
        assert len(client.execute("SELECT * FROM range(1000)").fetchall()) == 1_000
        with pytest.raises(psycopg.errors.OutOfMemory, match="--max-memory-gib"):
            client.execute("SELECT count(DISTINCT x) FROM (SELECT hash(x) AS x FROM range(20000000) t(x))")
        with endpoint.connect(), pytest.raises(psycopg.OperationalError, match="there are 2 connections already"):
            endpoint.connect()
        assert client.execute("SELECT n FROM by_carrier").fetchall() == [(1,)]


def test_a_failed_transaction_takes_nothing_but_its_end(values: ServedSql) -> None:
    with values.connect(autocommit=False) as client:
        with pytest.raises(psycopg.errors.UndefinedTable):
            client.execute("SELECT * FROM nothing")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            client.execute("SELECT 1")
        client.rollback()
        assert client.execute("SELECT 1").fetchone() == (1,)
        with client.transaction():  # a savepoint
            assert client.execute("SELECT 2").fetchone() == (2,)


def test_several_statements_in_one_text_answer_one_after_the_other(values: ServedSql) -> None:
    with values.connect() as client:
        cursor = client.execute("BEGIN; SELECT 1; SELECT ';' AS mark; -- the end;\nCOMMIT;")
        assert cursor.statusmessage == "BEGIN"
        assert cursor.nextset() and cursor.fetchall() == [(1,)]
        assert cursor.nextset() and cursor.fetchall() == [(";",)]
        assert client.execute("").statusmessage is None
        assert client.execute("SHOW server_version").fetchone() == ("16.0",)
        assert client.info.parameter_status("client_encoding") == "UTF8"


def carriers(client: psycopg.Connection[Any]) -> Any:
    return client.execute("SELECT n FROM by_carrier WHERE carrier = 'AA'").fetchall()


@pytest.mark.more
def test_a_transaction_sees_one_epoch_and_the_next_statement_the_latest(tmp_path: Path) -> None:
    writer = RootWriter(Location(str(tmp_path)), Location("/nowhere"))
    writer.view("by_carrier", by_carrier({"AA": 1}))
    writer.commit()
    with served(str(tmp_path)) as endpoint, endpoint.connect() as client, endpoint.connect(autocommit=False) as other:
        other.execute("SELECT 1")
        for number in (2, 3):
            writer.view("by_carrier", by_carrier({"AA": number}))
            writer.commit()
            eventually(lambda: carriers(client) == [(number,)], 30)  # noqa: B023
            assert carriers(other) == [(1,)]
            assert other.execute("SELECT count(*) FROM epochs").fetchone() == (1,)
            assert client.execute("SELECT count(*), max(epoch) FROM epochs").fetchone() == (
                number,
                writer.records[-1].epoch,
            )
        assert other.execute("SHOW slackwater.epoch").fetchone() == (str(writer.records[0].epoch),)
        with pytest.raises(psycopg.Error, match="a transaction sees one epoch"):
            other.execute("SET slackwater.epoch = 'latest'")
        other.rollback()
        assert carriers(other) == [(3,)]


@pytest.mark.more
def test_an_epoch_is_chosen_by_number_and_time(written: WrittenRoot, flights: ServedSql) -> None:
    third = written.records[2]
    with flights.connect() as client:
        for name in (str(third.epoch), third.committed_at.isoformat()):
            client.execute(f"SET slackwater.epoch = '{name}'")
            assert client.execute("SHOW slackwater.epoch").fetchone() == (str(third.epoch),)
            assert client.execute("SELECT n FROM by_carrier WHERE carrier = 'AA'").fetchall() == [(3,)]
            assert client.execute("SELECT max(delay) FROM late").fetchone() == (2,)
            assert client.execute("SELECT status, count(*) FROM files GROUP BY 1 ORDER BY 1").fetchall() == [
                ("done", 2), ("waiting", 3),
            ]  # fmt: skip
        for wrong, said in (
            ("57", "never committed or is no longer"),
            ("2020-01-01", "no retained epoch"),
            ("x", "valid"),
        ):
            with pytest.raises(psycopg.Error, match=said):
                client.execute(f"SET slackwater.epoch = '{wrong}'")
        client.execute("RESET slackwater.epoch")
        assert client.execute("SELECT n FROM by_carrier WHERE carrier = 'AA'").fetchall() == [(903,)]


@pytest.mark.more
def test_the_history_of_a_file_is_a_row(written: WrittenRoot, flights: ServedSql) -> None:
    query = "SELECT source, status, done_epoch, rows_bad FROM slackwater_why('day=1/b.csv')"
    assert flights.rows(query) == [("flights", "done", written.epochs[2], 1)]
    assert flights.rows("SELECT status FROM slackwater_why(%s)", "day=2/bad.csv") == [("quarantined",)]
    [(text,)] = flights.rows("SELECT text FROM slackwater_why('/elsewhere/x.csv')")
    assert "is under no source's URL" in text
    with flights.connect() as client:
        client.execute(f"SET slackwater.epoch = '{written.epochs[1]}'")
        assert client.execute("SELECT status FROM slackwater_why('day=1/b.csv')").fetchone() == ("waiting",)


@pytest.mark.more
def test_the_tables_beside_the_views_are_those_of_the_store(written: WrittenRoot, flights: ServedSql) -> None:
    assert flights.rows("SELECT epoch FROM epochs ORDER BY epoch") == [(epoch,) for epoch in written.epochs]
    assert flights.rows("SELECT name, format FROM sources") == [("flights", "csv")]
    assert flights.rows("SELECT count(*) FROM files") == [(5,)]
    assert flights.rows("SELECT * FROM quarantine") == []
    assert flights.rows("SELECT * FROM handled_files") == []


@pytest.mark.parametrize(
    "text", few(["SELECT 'a", 'SELECT "a', "SELECT /* 1", "SELEC 1", "SELECT $$a"], "SELECT 'a", "SELEC 1")
)
def test_text_that_is_no_sql_is_refused_and_the_session_goes_on(values: ServedSql, text: str) -> None:
    with values.connect() as client:
        with pytest.raises(psycopg.Error):
            client.execute(text.encode())
        assert client.execute("SELECT 1").fetchone() == (1,)
