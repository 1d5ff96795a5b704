"""A bad file is held back in whole runs: views follow it, and publications, SQL clients and the tag do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.extensions.table_target import Targets
from slackwater.plugins.serve.engine import Engines
from slackwater.plugins.serve.served_root import ServedRoot
from state.tables.expectations import PUBLISHED, OnViolation
from tests.real.event_pipeline import FAST
from tests.real.events import parquet, write
from tests.slackwater.cli.command import slackwater
from tests.slackwater.plugins.publish.published import contents, is_published, require_equal
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

POSITIVE = "amount is positive"


def declared(place: Path, publish: Targets = (), on_violation: OnViolation = "hold") -> sw.Pipeline:
    (place / "in").mkdir(parents=True, exist_ok=True)
    pipeline = sw.Pipeline("payments", place / "root")
    pipeline.source(
        "payments", place / "in", format="parquet", schema="user bigint, amount double", discovery=FAST,
        materialize=True,
    )  # fmt: skip
    pipeline.view(
        "paid",
        "SELECT user, amount FROM payments",
        expect={POSITIVE: "amount > 0", "user is known": "user IS NOT NULL"},
        on_violation=on_violation,
    )
    pipeline.view(
        "totals",
        "SELECT user, sum(amount) AS total FROM payments GROUP BY user",
        publish=publish,
        expect={"total is small": "total < 1000"},
    )
    return pipeline


def payments(place: Path, name: str, *amounts: float) -> str:
    rows = [{"user": number % 3, "amount": amount} for number, amount in enumerate(amounts)]
    write(place / "in", name, parquet(rows))
    return (place / "in" / name).as_uri()


def rows_now(store: sw.Store) -> dict[str, int]:
    return {row["expectation"]: row["rows"] for row in store.views.expectations().to_pylist()}


def served_epoch(store: sw.Store) -> int:
    engines = Engines(1 << 30)
    try:
        return ServedRoot(store, engines).epoch().epoch
    finally:
        engines.close()


@pytest.mark.more
def test_a_bad_file_reaches_no_one_until_it_is_forgotten_or_released(tmp_path: Path) -> None:
    table, root = tmp_path / "tables", str(tmp_path / "root")
    payments(tmp_path, "1.parquet", 10.0, 20.0, 30.0)
    with declared(tmp_path, sw.ParquetFiles(str(table / "v"), interval_s=0)).start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        store = sw.open(root)
        good = store.latest_epoch()
        assert (store.published_epoch(), store.tags()[PUBLISHED], store.views.held()) == (good, good, [])
        bad = payments(tmp_path, "2.parquet", 40.0, -1.0, -2.0)
        assert run.wait(until="caught_up", timeout_s=60)
        since = store.latest_epoch()
        # A file may be listed in one epoch, and read in the next.
        before, good = good, store.published_epoch()
        assert before <= good < since
        assert rows_now(store) == {POSITIVE: 2, "user is known": 0, "total is small": 0}
        assert store.views.held() == [
            {
                "view": "paid", "since": since, "expectations": {POSITIVE: 2}, "errors": {}, "found": {},
                "files": [bad], "rows_name_files": True,
            }
        ]  # fmt: skip
        payments(tmp_path, "3.parquet", 2_000.0)
        assert run.wait(until="caught_up", timeout_s=60)
        assert store.latest_epoch() > since, "the flow goes on"
        assert rows_now(store) == {POSITIVE: 2, "user is known": 0, "total is small": 1}
        assert store.snapshot().view("paid").count_rows() == 7
        assert (store.published_epoch(), store.tags()[PUBLISHED], served_epoch(store)) == (good, good, good)
        eventually(lambda: run.status().publications[0].behind_epochs >= 2)
        eventually(lambda: is_published(table, "parquet"))
        assert contents(table, "parquet")[0] == good
        status = run.status().views["paid"]
        assert (status.violations[POSITIVE], status.held_since) == (2, since)

        assert run.forget(bad) == 1
        eventually(lambda: store.published_epoch() == store.latest_epoch())
        assert (rows_now(store)[POSITIVE], store.views.held()) == (0, [])
        eventually(lambda: contents(table, "parquet")[0] > good)
        assert require_equal(store, table, "parquet", "totals") == store.latest_epoch() == served_epoch(store)

        payments(tmp_path, "4.parquet", -3.0)
        assert run.wait(until="caught_up", timeout_s=60)
        assert store.views.held()
        answer = slackwater("release", root)
        assert (answer.code, answer.err) == (0, "")
        eventually(lambda: store.published_epoch() == store.latest_epoch())
        assert rows_now(store)[POSITIVE] == 1
        assert slackwater("release", root).code == 1, "nothing is held back"
        last = store.latest_epoch()

    assert require_equal(store, table, "parquet", "totals") >= last
    payments(tmp_path, "5.parquet", -4.0, -5.0)
    declared(tmp_path, sw.ParquetFiles(str(table / "v"), interval_s=0)).run(until="caught_up")
    held = json.loads(slackwater("held", root, "--json").out)
    assert [each["expectations"] for each in held["views"]] == [{POSITIVE: 2}]
    assert contents(table, "parquet")[0] == int(held["published"]) < store.latest_epoch()
    shown = slackwater("held", root)
    assert "5.parquet" in shown.out and "slackwater release" in shown.out
    assert "held back" in slackwater("status", root).out
    assert slackwater("release", root).code == 0
    assert store.published_epoch() == store.latest_epoch() == served_epoch(store)


@pytest.mark.more
def test_rows_that_violate_are_quarantined_in_a_view_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    good = payments(tmp_path, "1.parquet", 10.0, 20.0)
    pipeline = sw.Pipeline("payments", tmp_path / "root")
    pipeline.source(
        "payments", tmp_path / "in", format="parquet", schema="user bigint, amount double", discovery=FAST,
        materialize=True,
    )  # fmt: skip
    expect = {POSITIVE: "amount > 0", "amount is small": "amount < 100"}
    pipeline.view("paid", "SELECT user, amount FROM payments", expect=expect, on_violation="quarantine")
    pipeline.view("totals", "SELECT sum(amount) AS total FROM paid")
    with pytest.raises(sw.errors.ViewError, match="view paid_quarantine is declared twice"):
        pipeline.view("paid_quarantine", "SELECT user FROM payments")
    with pipeline.start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        bad = payments(tmp_path, "2.parquet", 40.0, -1.0, 1_000.0)
        assert run.wait(until="caught_up", timeout_s=60)
        store = sw.open(tmp_path / "root")
        assert total(store) == 70.0
        assert sorted(store.snapshot().view("paid_quarantine").to_arrow().to_pylist(), key=str) == [
            {"user": 1, "amount": -1.0, "violated": POSITIVE},
            {"user": 2, "amount": 1_000.0, "violated": "amount is small"},
        ]
        assert rows_now(store) == {POSITIVE: 1, "amount is small": 1}
        assert store.views.held() == []
        assert "2 of its rows violate expectations: they are in view paid_quarantine" in store.ledger.why(bad).text
        assert "expectations" not in store.ledger.why(good).text
        for command in ("quarantine", "status"):
            assert "SELECT * FROM paid_quarantine" in slackwater(command, str(tmp_path / "root")).out
        assert {each.outcome for each in sw.verify(store, engine="duckdb", follow_sources=True).views} == {"equal"}

        run.add_view("late", "SELECT amount FROM payments", expect={"low": "amount < 30"}, on_violation="quarantine")
        assert run.wait(until="caught_up", timeout_s=60)
        assert amounts(store, "late") == [-1.0, 10.0, 20.0]
        assert amounts(store, "late_quarantine") == [40.0, 1_000.0]
        assert run.forget(bad) == 1
        assert run.wait(until="caught_up", timeout_s=60)
        assert (total(store), amounts(store, "paid_quarantine"), amounts(store, "late")) == (30.0, [], [10.0, 20.0])
        assert rows_now(store) == {POSITIVE: 0, "amount is small": 0, "low": 0}

        with pytest.raises(sw.errors.CommandRefusedError, match="view paid and paid_quarantine is read by totals"):
            run.drop_view("paid_quarantine")
        run.drop_view("paid", cascade=True)
        run.add_view("late", "SELECT amount FROM payments", replace=True)
        payments(tmp_path, "3.parquet", 50.0)
        assert run.wait(until="caught_up", timeout_s=60)
        assert store.snapshot().views == ("late",)
        assert amounts(store, "late") == [10.0, 20.0, 50.0]


@pytest.mark.more
def test_a_file_of_bad_records_is_held_back_until_it_is_released(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", "1.csv", b"user,at\n1,2026-01-01\n2,2026-01-02\n")
    pipeline = sw.Pipeline("logins", tmp_path / "root")
    pipeline.source("logins", tmp_path / "in", format="csv", schema="user bigint, at date", discovery=FAST)
    pipeline.view(
        "users",
        "SELECT user, at FROM logins",
        expect={
            "files can be read": sw.expect.share_of_bad_records(at_most=0.4),
            "there are users": sw.expect.row_count(at_least=2),
        },
        on_violation="hold",
    )
    with pipeline.start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        store = sw.open(tmp_path / "root")
        good = store.latest_epoch()
        assert store.published_epoch() == good
        write(tmp_path / "in", "2.csv", b"user,at\nx,y\n3,2026-01-03\n")
        assert run.wait(until="caught_up", timeout_s=60)
        [held] = store.views.held()
        assert (held["expectations"], held["found"]) == (
            {"files can be read": 1},
            {"files can be read": "1 of 2 records"},
        )
        assert held["files"] == [(tmp_path / "in" / "2.csv").as_uri()]
        assert store.published_epoch() == good < store.latest_epoch()
        shown = slackwater("held", str(tmp_path / "root")).out
        assert "1 of 2 records" in shown and "2.csv" in shown
        assert slackwater("release", str(tmp_path / "root")).code == 0
        eventually(lambda: store.published_epoch() == store.latest_epoch())
        write(tmp_path / "in", "3.csv", b"user,at\nx,y\n")
        assert run.wait(until="caught_up", timeout_s=60)
        assert store.views.held()[0]["expectations"] == {"files can be read": 1}


def total(store: sw.Store) -> float:
    [row] = store.snapshot().view("totals").to_arrow().to_pylist()
    return float(row["total"])


def amounts(store: sw.Store, view: str) -> list[float]:
    return sorted(store.snapshot().view(view).to_arrow()["amount"].to_pylist())


@pytest.mark.more
def test_expectations_of_a_stored_view_are_counted_without_new_files(tmp_path: Path) -> None:
    payments(tmp_path, "1.parquet", 10.0, -20.0)
    plain = declared(tmp_path)
    plain._views.clear()
    plain.view("paid", "SELECT user, amount FROM payments")
    plain.run(until="caught_up")
    store = sw.open(tmp_path / "root")
    path, before = store.views.table()["path"].to_pylist(), store.latest_epoch()
    assert store.views.expectations().num_rows == 0
    plain._views.clear()
    plain.view("paid", "SELECT user, amount FROM payments", expect={POSITIVE: "amount > 0"}, on_violation="hold")
    plain.run(until="caught_up")
    assert store.views.table()["path"].to_pylist() == path, "the view is the same"
    assert rows_now(store) == {POSITIVE: 1}
    assert (store.published_epoch(), served_epoch(store)) == (before, before)


def test_an_expectation_that_is_none_is_refused_before_rows_are_read(tmp_path: Path) -> None:
    payments(tmp_path, "1.parquet", 10.0)
    pipeline = declared(tmp_path)
    pipeline.view("more", "SELECT user FROM payments", expect={POSITIVE: "amount > 0"})
    with pytest.raises(
        sw.errors.ViewError, match=r"view 'more': expectation 'amount is positive': .*amount.*; write a cond"
    ):
        pipeline.run(until="caught_up")
    assert sw.open(tmp_path / "root").ledger.count_files().num_rows == 0
