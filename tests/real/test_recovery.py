"""Deaths inside a run, and its recovery, in the process of the tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from tests.real import victims
from tests.real.event_pipeline import FAST, check_every_epoch, local
from tests.real.events import events, parquet, write
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

TOTALS = "SELECT user, count(*) AS n, sum(amount) AS total FROM events GROUP BY user"


@pytest.mark.more
def test_a_run_survives_the_death_of_any_of_its_actors(tmp_path: Path) -> None:
    pipeline = local(tmp_path)
    write(tmp_path / "in", "0.parquet", parquet(events(0)))
    kinds = ["list", "dispatcher", "fetch", "merger", "coordinator"]
    with pipeline.start() as run:
        assert run.wait(until="caught_up", timeout_s=90)
        for number, kind in enumerate(kinds, start=1):
            write(tmp_path / "in", f"{number}.parquet", parquet(events(number)))
            eventually(lambda: victims.send(os.getpid(), kind))  # noqa: B023
            eventually(lambda: run.status().recoveries == number)  # noqa: B023
            assert run.wait(until="caught_up", timeout_s=60)
            assert run.status().sources["events"].done == number + 1
        report = run.stop()
    assert (report.recoveries, report.files, report.rows) == (5, 6, 60)
    files = sw.open(pipeline.root.url).files()
    assert files["status"].to_pylist() == ["done"] * 6
    assert len(set(sw.open(pipeline.root.url).epochs()["term"].to_pylist())) == 6, "every attempt is a term"
    check_every_epoch(tmp_path / "root", tmp_path)


@pytest.mark.long
def test_a_file_that_ends_every_attempt_is_found_and_the_others_are_done(tmp_path: Path) -> None:
    def touchy(events: Any) -> Any:
        import os

        from pyspark.sql import functions
        from pyspark.sql.types import DoubleType

        def weigh(amount: float) -> float:
            if amount == 55.0:
                os._exit(1)  # an error would fail the view alone
            return amount

        return events.select(functions.udf(weigh, DoubleType())("amount").alias("amount"))

    pipeline = sw.Pipeline(
        "events",
        tmp_path / "root",
        settings=sw.Settings(recovery=sw.RecoverySettings(first_pause_s=0.01, max_pause_s=0.01)),
    )
    pipeline.source("events", tmp_path / "in", format="parquet", discovery=FAST)
    pipeline.view("totals", TOTALS)
    pipeline.view(touchy)
    for number in range(9):
        write(tmp_path / "in", f"{number}.parquet", parquet(events(10 * number)))
    report = pipeline.run(until="caught_up")
    assert report.recoveries >= 4
    ledger = {Path(row["path"]).name: row for row in sw.open(tmp_path / "root").files().to_pylist()}
    assert {name for name, row in ledger.items() if row["status"] == "quarantined"} == {"5.parquet"}
    assert ledger["5.parquet"]["error"].startswith("poison:") and "worker exited" in ledger["5.parquet"]["error"]
    assert [row["status"] for row in ledger.values()].count("done") == 8
    check_every_epoch(tmp_path / "root", tmp_path)
