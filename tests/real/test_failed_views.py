"""A view that fails over a row, in whole runs: the others go on, and it is rebuilt when it is retried."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import slackwater as sw
from slackwater.verification.verification import Outcome
from tests.real.event_pipeline import FAST, ONE_FETCHER, TOTALS, expected, totals
from tests.real.events import events, parquet, write
from tests.slackwater.cli.command import slackwater
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.more, pytest.mark.usefixtures("session")]

BAD = 666.0


def strict(events: DataFrame) -> DataFrame:
    def checked(amount: float) -> float:
        if amount == BAD:
            raise ValueError(f"{amount} is evil")
        return amount

    return events.select("user", F.udf("double")(checked)("amount").alias("amount"))


def declared(place: Path) -> sw.Pipeline:
    append = f"import sys; open({str(place / 'told.jsonl')!r}, 'a').write(sys.stdin.read() + '\\n')"
    failed = sw.Alert("view failed", to=[sys.executable, "-c", append])
    pipeline = sw.Pipeline("events", place / "root", settings=ONE_FETCHER, alerts=[failed])
    pipeline.source(
        "events", place / "in", format="parquet", schema="user bigint, amount double", discovery=FAST, materialize=True
    )
    pipeline.view("totals", TOTALS)
    pipeline.view(strict)
    return pipeline


def reported_alerts(place: Path) -> list[tuple[str, str]]:
    told = place / "told.jsonl"
    documents = map(json.loads, told.read_text().splitlines()) if told.exists() else ()
    return [(each["event"], each["view"]) for each in documents]


def test_a_view_that_fails_is_stale_alone_until_it_is_retried(tmp_path: Path) -> None:
    place, root = tmp_path / "in", tmp_path / "root"
    place.mkdir()
    good = [events(first, 20) for first in (0, 100, 200)]
    write(place, "0.parquet", parquet(good[0]))
    with declared(tmp_path).start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        write(place, "bad.parquet", parquet([{"user": 1, "amount": BAD}]))
        eventually(lambda: run.status().views["strict"].error is not None)
        write(place, "1.parquet", parquet(good[1]))
        assert run.wait(until="caught_up", timeout_s=120)
        shown = run.status()
        assert shown.views["strict"].error == f"ValueError: {BAD} is evil" and shown.recoveries == 0
        assert totals(root) == expected([*good[0], {"user": 1, "amount": BAD}, *good[1]])
        eventually(lambda: reported_alerts(tmp_path) == [("begin", "strict")])
    assert any("view strict has failed" in note for note in run.report().notes)
    store = sw.open(root)
    assert store.ledger.files()["status"].to_pylist() == ["done"] * 3, "no file is blamed"
    assert store.snapshot().view("strict").count_rows() == 20
    outcomes = {check.view: check.outcome for check in sw.verify(store, engine="duckdb", follow_sources=True).views}
    assert outcomes["totals"] is Outcome.EQUAL

    with declared(tmp_path).start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        assert run.status().views["strict"].stale_epoch is not None, "a new run does not rebuild it"
        run.forget("bad.parquet")
        write(place, "2.parquet", parquet(good[2]))
        ended = slackwater("retry", str(root), "--view", "strict")
        assert ended.code == 0 and "view strict is rebuilt" in ended.out
        eventually(lambda: store.snapshot().view("strict").count_rows() == 60)
        assert run.wait(until="caught_up", timeout_s=120)
        assert run.status().views["strict"].error is None
    assert reported_alerts(tmp_path) == [("begin", "strict"), ("end", "strict")], "once each, across two runs"
    found = store.snapshot().view("strict").to_arrow().to_pylist()
    assert sorted(found, key=_amount) == [row for each in good for row in each]


def _amount(row: dict[str, Any]) -> float:
    return float(row["amount"])
