"""A whole run with a healthy view, one that crashes a Python worker, and one that Spark cannot evaluate."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

import slackwater as sw
from tests.real.event_pipeline import FAST, ONE_FETCHER, TOTALS, expected, totals
from tests.real.events import events, parquet, write
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.more, pytest.mark.usefixtures("session")]

NESTED = (
    "SELECT a.user FROM events a WHERE a.user IN (SELECT b.user FROM events b WHERE b.amount IN "
    "(SELECT c.amount FROM events c WHERE c.user = b.user))"
)


def crashing(events: DataFrame) -> DataFrame:
    def ends(user: int) -> int:
        if user == 13:
            os._exit(3)
        return user

    return events.select(F.udf(ends, LongType())("user").alias("user"))


def declared(place: Path) -> sw.Pipeline:
    pipeline = sw.Pipeline("events", place / "root", settings=ONE_FETCHER)
    pipeline.source(
        "events", place / "in", format="parquet", schema="user bigint, amount double", discovery=FAST, materialize=True
    )
    pipeline.view("totals", TOTALS)
    pipeline.view("nested", NESTED)
    pipeline.view("nested_users", "SELECT user, count(*) AS n FROM nested GROUP BY user")
    pipeline.view(crashing)
    return pipeline


def test_views_that_fail_for_any_reason_leave_the_others_and_the_files_alone(tmp_path: Path) -> None:
    place, root = tmp_path / "in", tmp_path / "root"
    place.mkdir()
    good = [events(first, 20) for first in (0, 100, 200)]
    write(place, "0.parquet", parquet(good[0]))
    with declared(tmp_path).start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        write(place, "bad.parquet", parquet([{"user": 13, "amount": 1.0}]))
        eventually(lambda: run.status().views["crashing"].error is not None, 120)
        write(place, "1.parquet", parquet(good[1]))
        assert run.wait(until="caught_up", timeout_s=120)
        status = run.status()
        assert str(status.views["crashing"].error).startswith("a Python function of the view ended its process")
        nested = status.views["nested"].error
        assert nested is None or "[INTERNAL_ERROR]" in nested
        if nested is not None:
            assert status.views["nested_users"].error == "view 'nested', which it reads, has failed"
        assert status.recoveries == 0
        assert totals(root) == expected([*good[0], {"user": 13, "amount": 1.0}, *good[1]])
        run.forget("bad.parquet")
        run.retry_view("crashing")
        eventually(lambda: sw.open(root).snapshot().view("crashing").count_rows() == 40, 120)
        write(place, "2.parquet", parquet(good[2]))
        assert run.wait(until="caught_up", timeout_s=120)
        assert run.status().views["crashing"].error is None
    store = sw.open(root)
    assert {*store.ledger.files()["status"].to_pylist()} <= {"done", "forgotten"}, "no file is blamed"
    assert totals(root) == expected([row for each in good for row in each])
    assert store.snapshot().view("crashing").count_rows() == 60
