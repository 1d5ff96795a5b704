"""Deaths inside a run, and its recovery, in the process of the tests."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.testing.servers.s3_server import S3Server
from tests.real import victims
from tests.real.event_pipeline import behind_proxy, check_every_epoch, expected, local, totals
from tests.real.events import events, parquet, write
from tests.real.killer_file import killer_file
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]


@pytest.mark.more
def test_a_run_survives_the_death_of_any_of_its_actors(tmp_path: Path) -> None:
    # More than eight fetch actors may start, so the dispatcher and the merger have processes of their own.
    fetch = sw.settings.FetchSettings(num_fetchers=(1, 9))
    pipeline = local(tmp_path, settings=sw.Settings(fetch=fetch))
    write(tmp_path / "in", "0.parquet", parquet(events(0)))
    kinds = ["list", "dispatcher", "fetch", "merger", "coordinator"]
    with pipeline.start() as run:
        assert run.wait(until="caught_up", timeout_s=90)
        assert victims.find(os.getpid(), "merger") != victims.find(os.getpid(), "coordinator")
        for number, kind in enumerate(kinds, start=1):
            write(tmp_path / "in", f"{number}.parquet", parquet(events(number)))
            eventually(lambda: victims.send(os.getpid(), kind))  # noqa: B023
            eventually(lambda: run.status().recoveries == number)  # noqa: B023
            assert run.wait(until="caught_up", timeout_s=60)
            assert run.status().sources["events"].done == number + 1
        report = run.stop()
    assert (report.recoveries, report.files, report.rows) == (5, 6, 60)
    files = sw.open(pipeline.root.url).ledger.files()
    assert files["status"].to_pylist() == ["done"] * 6
    assert len(set(sw.open(pipeline.root.url).epochs()["term"].to_pylist())) == 6, "every attempt is a term"
    check_every_epoch(tmp_path / "root", tmp_path)


@pytest.mark.long
def test_a_file_that_ends_every_attempt_is_found_and_the_others_are_done(
    s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    proxy = s3.fault_proxy(random.Random(1))
    pipeline = behind_proxy(proxy, bucket, tmp_path)
    for number in range(9):
        s3.put(bucket, f"in/{number}.parquet", parquet(events(10 * number)))
    with killer_file(proxy, "in/5.parquet"):
        report = pipeline.run(until="caught_up")
    assert report.recoveries >= 3
    ledger = {Path(row["path"]).name: row for row in sw.open(tmp_path / "root").ledger.files().to_pylist()}
    assert {name for name, row in ledger.items() if row["status"] == "quarantined"} == {"5.parquet"}
    assert ledger["5.parquet"]["error"].startswith("poison:") and "died" in ledger["5.parquet"]["error"]
    assert [row["status"] for row in ledger.values()].count("done") == 8
    assert totals(tmp_path / "root") == expected(
        [row for number in range(9) if number != 5 for row in events(10 * number)]
    )
