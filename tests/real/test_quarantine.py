"""Bad records and changed files in whole runs on Ray, Spark and Lance."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import ray
from pyspark.sql import SparkSession

import slackwater as sw
from slackwater.verification.verification import Outcome
from tests.actors.formats.failing_reader import FailingFormat
from tests.real import victims
from tests.real.event_pipeline import FAST, ONE_FETCHER, TOTALS, expected, totals
from tests.real.events import events, parquet, write
from tests.slackwater.cli.command import slackwater
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

SCHEMA = "user bigint, amount double"
KINDS = ("csv", "json", "parquet")
BAD_ROW = {"csv": b"x,1.5", "json": b'{"user": "x", "amount": 1.5}'}


def body(kind: str, rows: list[dict[str, Any]], *bad: int) -> bytes:
    """A file with these rows, and a bad record at each of these positions."""
    if kind == "parquet":
        # 2**60 + 1 is no double.
        amounts = [2**60 + 1 if at in bad else int(row["amount"]) for at, row in enumerate(rows)]
        return parquet([{"user": row["user"], "amount": amount} for row, amount in zip(rows, amounts, strict=True)])
    lines = [f"{row['user']},{row['amount']}".encode() if kind == "csv" else json.dumps(row).encode() for row in rows]
    for at in bad:
        lines[at] = BAD_ROW[kind]
    return b"\n".join([b"user,amount", *lines] if kind == "csv" else lines) + b"\n"


def without(rows: list[dict[str, Any]], *bad: int) -> list[dict[str, Any]]:
    return [row for at, row in enumerate(rows) if at not in bad]


def one_source(tmp_path: Path, *, settings: sw.Settings = ONE_FETCHER, **policies: str) -> sw.Pipeline:
    (tmp_path / "in").mkdir(exist_ok=True)
    pipeline = sw.Pipeline("events", tmp_path / "root", settings=settings)
    pipeline.source("events", tmp_path / "in", format="csv", schema=SCHEMA, discovery=FAST, **policies)  # type: ignore[arg-type]
    pipeline.view("totals", TOTALS)
    return pipeline


def bad_rows(root: Path) -> list[int]:
    rows: list[int] = sw.open(root).ledger.quarantine()["row"].to_pylist()
    return rows


@pytest.mark.more
def test_only_bad_records_are_left_out_whatever_the_format_and_a_run_clears_what_was_exported(
    tmp_path: Path, session: SparkSession
) -> None:
    root = tmp_path / "root"
    pipeline = sw.Pipeline("events", root, settings=ONE_FETCHER)
    rows = events(0, 40)
    for kind in KINDS:
        write(tmp_path / kind, f"a.{kind}", body(kind, rows, 3, 4, 39))
        write(tmp_path / kind, f"b.{kind}", body(kind, rows))
        pipeline.source(kind, tmp_path / kind, format=kind, schema=SCHEMA, discovery=FAST)
        pipeline.view(f"{kind}_rows", f"SELECT user, amount FROM {kind}")
        pipeline.view(f"{kind}_totals", f"SELECT user, count(*) AS n, sum(amount) AS total FROM {kind} GROUP BY user")
    with pipeline.start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        report, status = run.report(), run.status()
        assert (report.rows, report.quarantined) == (3 * 77, 0)
        assert {name: source.rows_bad for name, source in status.sources.items()} == dict.fromkeys(KINDS, 3)
        assert f"source csv: 3 bad records quarantined; see slackwater quarantine {root}" in report.notes
        store = sw.open(root)
        records = store.ledger.quarantine()
        assert records["row"].to_pylist() == [3, 4, 39] * 3
        assert set(records["epoch"].to_pylist()) <= set(store.epochs()["epoch"].to_pylist())
        assert records["path"].to_pylist() == [
            (tmp_path / kind / f"a.{kind}").as_uri() for kind in KINDS for _ in "abc"
        ]
        raws = {row["source"]: row["raw"] for row in records.to_pylist()}
        assert {kind: raws[kind] for kind in BAD_ROW} == BAD_ROW
        assert json.loads(raws["parquet"]) == {"user": 0, "amount": 2**60 + 1}
        assert [row["rows_bad"] for row in store.ledger.files().to_pylist()] == [3, 0] * 3

        ended = slackwater("quarantine", str(root), "--source", "csv", "--export", str(tmp_path / "x.csv"), "--clear")
        assert (ended.code, ended.out.splitlines()[1]) == (0, "3 bad records are cleared"), ended.err
        assert set(store.ledger.quarantine()["source"].to_pylist()) == {"json", "parquet"}
        assert run.report().epochs == report.epochs, "no epoch is made for it"
        write(tmp_path / "csv", "c.csv", body("csv", rows, 0))
        assert run.wait(until="caught_up", timeout_s=60)
    good = without(rows, 3, 4, 39) + rows
    for kind in KINDS:
        more = without(rows, 0) if kind == "csv" else []
        view = sw.open(root).snapshot().view(f"{kind}_totals").to_arrow().to_pylist()
        assert {row["user"]: (row["n"], row["total"]) for row in view} == expected(good + more)
    for epoch in (None, records["epoch"][0].as_py()):
        for engine in ("auto", "spark"):
            found = sw.verify(sw.open(root), epoch, engine=engine, spark=session, follow_sources=True)
            assert found.all_equal, found
    assert [row["row"] for row in store.ledger.quarantine("csv").to_pylist()] == [0], "later ones stay"


@pytest.mark.more
def test_a_restart_in_the_middle_of_a_file_repeats_no_bad_record(tmp_path: Path, session: SparkSession) -> None:
    rows = events(0, 6_000)
    bad = list(range(5, 6_000, 50))
    write(tmp_path / "in", "large.csv", body("csv", rows, *bad))
    settings = sw.Settings(
        fetch=sw.settings.FetchSettings(
            num_fetchers=1,
            piece_bytes=2 * 1024,
            max_bytes_in_flight=4 * 1024,
            requests=sw.settings.RequestSettings(whole_object_bytes=4 * 1024, block_bytes=4 * 1024),
        ),
        barrier=sw.settings.BarrierSettings(max_epoch_bytes=4 * 1024),
    )
    with one_source(tmp_path, settings=settings).start() as run:
        eventually(lambda: run.report().rows > 500)
        victims.send(os.getpid(), "fetch")
        eventually(lambda: run.status().recoveries == 1)
        seen = run.report().rows
        eventually(lambda: run.report().rows > seen + 500)
    (file,) = sw.open(tmp_path / "root").ledger.files().to_pylist()
    assert file["status"] == "reading"
    half = file["rows_read"]
    assert bad_rows(tmp_path / "root") == [row for row in bad if row < half]
    assert file["rows_bad"] == len(bad_rows(tmp_path / "root")) > 10
    assert totals(tmp_path / "root") == expected(without(rows[:half], *bad))
    assert sw.verify(sw.open(tmp_path / "root"), spark=session, follow_sources=True).all_equal

    one_source(tmp_path).run(until="caught_up")
    (file,) = sw.open(tmp_path / "root").ledger.files().to_pylist()
    assert (file["status"], file["rows_read"], file["rows_bad"]) == ("done", 6_000, len(bad))
    assert bad_rows(tmp_path / "root") == bad
    assert totals(tmp_path / "root") == expected(without(rows, *bad))
    found = sw.verify(sw.open(tmp_path / "root"), spark=session, follow_sources=True)
    assert [(each.outcome, each.engine) for each in found.views] == [(Outcome.EQUAL, "duckdb")]


@pytest.mark.more
def test_a_bad_record_ends_a_run_that_is_to_fail_for_it_and_nothing_of_it_is_committed(tmp_path: Path) -> None:
    write(tmp_path / "in", "a.csv", body("csv", events(0), 3))
    with pytest.raises(
        sw.errors.BadInputError, match=r"source events: a\.csv: row 4: .*user.*on_bad_record=\"fail\""
    ) as failed:
        one_source(tmp_path, on_bad_record="fail").run(until="caught_up")
    assert "\n" not in str(failed.value)
    store = sw.open(tmp_path / "root")
    assert store.ledger.quarantine().num_rows == 0 and store.ledger.files()["rows_read"].to_pylist() in ([], [0])
    one_source(tmp_path).run(until="caught_up")
    assert totals(tmp_path / "root") == expected(without(events(0), 3))


@pytest.mark.more
def test_a_changed_file_is_read_as_a_new_one_where_that_is_asked_for_or_ends_the_run(tmp_path: Path) -> None:
    write(tmp_path / "in", "a.csv", body("csv", events(0), 3))
    with one_source(tmp_path, on_change="append").start() as run:
        assert run.wait(until="caught_up", timeout_s=90)
        write(tmp_path / "in", "a.csv", body("csv", events(100), 0, 1))
        eventually(lambda: run.report().rows == 17)
    rows = without(events(0), 3) + without(events(100), 0, 1)
    assert totals(tmp_path / "root") == expected(rows)
    assert bad_rows(tmp_path / "root") == [3, 0, 1], "the older version's first"
    first, second = sorted(sw.open(tmp_path / "root").ledger.files().to_pylist(), key=lambda row: row["rows_bad"])
    assert (first["status"], second["status"]) == ("done", "done")
    assert first["changed_epoch"] is not None and second["changed_epoch"] is None

    write(tmp_path / "in", "a.csv", body("csv", events(200)))
    with pytest.raises(
        sw.errors.BadInputError, match=r"source events: a\.csv: the file has changed .*on_change=\"fail\""
    ):
        one_source(tmp_path, on_change="fail").run(until="caught_up")
    assert totals(tmp_path / "root") == expected(rows)


def test_a_bug_of_a_reader_quarantines_its_file_with_a_traceback_and_ends_nothing(tmp_path: Path) -> None:
    write(tmp_path / "in", "a", b"1\n2\n")
    write(tmp_path / "in", "b", b"3\nIndexError\n4\n")
    write(tmp_path / "in", "c", b"schema TypeError\n")
    pipeline = sw.Pipeline("numbers", tmp_path / "root", settings=ONE_FETCHER)
    pipeline.source("numbers", tmp_path / "in", format=FailingFormat(), discovery=FAST)
    pipeline.view("all_numbers", "SELECT number FROM numbers")
    report = pipeline.run(until="caught_up")
    assert (report.recoveries, report.files, report.rows) == (0, 3, 3)
    store = sw.open(tmp_path / "root")
    assert sorted(store.snapshot().view("all_numbers").to_arrow()["number"].to_pylist()) == [1, 2, 3]
    files = {Path(row["path"]).name: row for row in store.ledger.files().to_pylist()}
    status = {name: row["status"] for name, row in files.items()}
    assert status == {"a": "done", "b": "quarantined", "c": "quarantined"}
    assert "the reader of failing failed with IndexError: a bug" in files["b"]["error"]
    assert "TypeError" in files["c"]["error"]
    logs = Path(ray._private.worker._global_node.get_session_dir_path()) / "logs"
    logged = "".join(file.read_text(errors="replace") for file in logs.glob("worker-*.err"))
    assert "a reader failed" in logged and "failing_reader.py" in logged, "the log has the traceback"
