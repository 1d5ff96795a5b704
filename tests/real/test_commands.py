"""Commands of other processes to a run, on Ray, Spark and Lance; the asking process is the command line's."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from actors.settings import ReadLimits
from slackwater.testing.servers.s3_server import S3Server
from state.epoch import epoch_time
from tests.real import victims
from tests.real.event_pipeline import FAST, TOTALS, behind_proxy, expected, local, totals
from tests.real.events import events, parquet, write
from tests.real.killer_file import killer_file
from tests.slackwater.cli.command import slackwater
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]


def command(kind: str, root: Path, *arguments: str) -> Any:
    ended = slackwater(kind, str(root), *arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def shown_phase(root: Path) -> str:
    phase: str = command("status", root)["owner"]["phase"]
    return phase


@pytest.mark.more
def test_a_run_is_paused_throttled_tagged_and_stopped_from_another_process(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(tmp_path / "in", "0.parquet", parquet(events(0)))
    with local(tmp_path).start() as run:
        assert run.wait(until="caught_up", timeout_s=90)
        assert command("pause", root) == {"text": "paused"}
        assert run.status().phase == "paused"
        eventually(lambda: shown_phase(root) == "paused")
        for number in range(1, 4):
            write(tmp_path / "in", f"{number}.parquet", parquet(events(number)))
        assert command("throttle", root, "--files-per-second", "0.5")["text"] == "at most 0.5 files a second"
        assert run.report().files == 1, "a throttle lifts no pause"

        victims.send(os.getpid(), "fetch")
        eventually(lambda: run.status().recoveries == 1)
        eventually(lambda: run.status().phase == "paused")
        assert run.report().files == 1, "the pause survives a recovery"
        command("resume", root)
        assert run.wait(until="caught_up", timeout_s=60)
        finished = [epoch_time(each) for each in sw.open(root).ledger.files()["done_epoch"].to_pylist()[1:]]
        # The first passes at once, with half of the next second's allowance saved up.
        assert (max(finished) - min(finished)).total_seconds() > 2.0, "the throttle survives it, too"
        assert command("throttle", root, "off")["text"] == "not throttled"

        latest = sw.open(root).snapshot().epoch
        assert command("tag", root, "audit") == [{"tag": "audit", "epoch": str(latest)}]
        refused = slackwater("tag", str(root), "audit", "--epoch", "7")
        assert refused.code == 1
        assert command("vacuum", root)["epochs_left"] > 0
        assert slackwater("vacuum", str(root), "--keep-epochs", "1").code == 1, "the run keeps what its settings say"
        assert sw.open(root).snapshot(tag="audit").epoch == latest

        assert command("stop", root) == {"text": "stopped after a last epoch"}
        assert run.wait(timeout_s=30)
    assert totals(root) == expected([row for number in range(4) for row in events(number)])
    after = slackwater("pause", str(root))
    assert after.code == 1 and "nothing runs at" in after.err


LINES = [f"{number % 3},{number}.5" for number in range(1_000)]
LONG = 700


def limited(tmp_path: Path, max_record_bytes: int) -> sw.Pipeline:
    limits = ReadLimits(max_record_bytes=max_record_bytes)
    settings = sw.Settings(fetch=sw.settings.FetchSettings(num_fetchers=1, limits=limits))
    pipeline = sw.Pipeline("events", tmp_path / "root", settings=settings)
    schema = "user bigint, amount double"
    pipeline.source("events", tmp_path / "in", format="csv", schema=schema, discovery=FAST)
    pipeline.view("totals", TOTALS)
    return pipeline


def file_of(root: Path, name: str) -> dict[str, Any]:
    (row,) = [row for row in sw.open(root).ledger.files().to_pylist() if row["path"].endswith(name)]
    return dict(row)


@pytest.mark.more
def test_a_quarantined_file_is_retried_while_it_runs_and_while_nothing_does_and_no_row_is_repeated(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    lines = [*LINES]
    lines[LONG] += "0" * 20_000
    write(tmp_path / "in", "long.csv", "\n".join(["user,amount", *lines, ""]).encode())
    write(tmp_path / "in", "wrong.csv", b"\x1f\x8b is gzip's, and no more")
    read = [{"user": number % 3, "amount": number + 0.5} for number in range(1_000)]
    with limited(tmp_path, max_record_bytes=4_096).start() as run:
        assert run.wait(until="caught_up", timeout_s=90)
        bad = file_of(root, "long.csv")
        assert (bad["status"], bad["rows_read"], bad["attempts"]) == ("quarantined", LONG, 0)
        assert totals(root) == expected(read[:LONG])

        assert command("retry", root, "--file", str(tmp_path / "in" / "long.csv"))["files"] == 1
        assert run.wait(until="caught_up", timeout_s=60)
        again = file_of(root, "long.csv")
        assert again | {"status": "quarantined", "rows_read": LONG, "attempts": 1} == again
        assert again["requests"] == bad["requests"] + 1, "it was read again"
        assert totals(root) == expected(read[:LONG])
        assert run.status().sources["events"].quarantined == 2
        with pytest.raises(sw.errors.NotFoundError, match=r"no file nowhere\.csv is quarantined"):
            run.retry(file="nowhere.csv")

        write(tmp_path / "in", "wrong.csv", b"user,amount\n7,1.5\n")
        eventually(lambda: run.report().rows == LONG + 1)

    assert command("retry", root) == {"text": "1 file is in the queue again; the next run reads it", "files": 1}
    assert file_of(root, "long.csv")["status"] == "reading"
    limited(tmp_path, max_record_bytes=1 << 20).run(until="caught_up")
    done = file_of(root, "long.csv")
    assert done | {"status": "done", "rows_read": 1_000, "attempts": 2, "error": None} == done
    assert totals(root) == expected(read) | {7: (1, 1.5)}


@pytest.mark.long
def test_a_poisoned_file_is_retried_when_what_it_died_of_is_mended(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    proxy = s3.fault_proxy(random.Random(1))
    pipeline = behind_proxy(proxy, bucket, tmp_path)
    for number in range(3):
        s3.put(bucket, f"in/{number}.parquet", parquet(events(10 * number)))
    with killer_file(proxy, "in/1.parquet"):
        run = pipeline.start()
        assert run.wait(until="caught_up", timeout_s=300)
    with run:
        assert file_of(tmp_path / "root", "1.parquet")["error"].startswith("poison:")
        assert run.retry() == 1
        assert run.wait(until="caught_up", timeout_s=60)
        victims.send(os.getpid(), "fetch")
        recoveries = run.status().recoveries
        eventually(lambda: run.status().recoveries > recoveries)
        s3.put(bucket, "in/3.parquet", parquet(events(30)))
        assert run.wait(until="caught_up", timeout_s=60)
    assert set(sw.open(tmp_path / "root").ledger.files()["status"].to_pylist()) == {"done"}
    assert totals(tmp_path / "root") == expected([row for number in range(4) for row in events(10 * number)])
