"""Files are moved and deleted in whole runs when their rows are committed and published; a killed run goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.testing.servers.s3_server import S3Server
from tests.real.event_pipeline import FAST
from tests.slackwater.cli.called_command import slackwater
from tests.waiting import eventually


def names(s3: S3Server, bucket: str, prefix: str) -> list[str]:
    listed = s3.client().list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
    return [each["Key"].removeprefix(prefix) for each in listed]


@pytest.mark.ray
@pytest.mark.usefixtures("session")
def test_files_go_to_the_archive_when_their_rows_are_committed_and_published(
    s3: S3Server, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pipeline() -> sw.Pipeline:
        made = sw.Pipeline("shop", f"s3://{bucket}/root", storage_options=s3.storage_options)
        made.source(
            "orders",
            f"s3://{bucket}/in/",
            format="csv",
            schema="customer string, amount bigint",
            discovery=FAST,
            after=sw.Move(f"s3://{bucket}/archive"),
        )
        totals = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
        made.view("totals", totals, publish=sw.ParquetFiles(str(tmp_path / "published"), interval_s=0))
        return made

    for number in range(20):
        s3.put(bucket, f"in/day=1/{number}.csv", f"customer,amount\nann,{number}\n".encode())
    s3.put(bucket, "in/day=1/bad.csv", b"customer,amount\nann,many\n")
    with pipeline().start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        eventually(lambda: run.status().after_commit[0].handled == 20)
        [told] = run.status().after_commit
        assert (told.source, told.failed, told.left, told.error) == ("orders", 0, 0, None)
    store = sw.open(f"s3://{bucket}/root", s3.storage_options)
    assert names(s3, bucket, "in/") == ["day=1/bad.csv"]
    assert len(names(s3, bucket, "archive/day=1/")) == 20
    assert store.ledger.handled_files()["outcome"].to_pylist() == ["done"] * 20
    told_of = store.ledger.why(f"s3://{bucket}/in/day=1/3.csv").text
    assert f"It was moved to s3://{bucket}/archive after the commit, at " in told_of

    s3.put(bucket, "in/day=2/late.csv", b"customer,amount\nbob,5\n")
    pipeline().run(until="caught_up")
    assert names(s3, bucket, "in/") == ["day=1/bad.csv"], "the end of a run does what is due"
    assert store.snapshot().view("totals").to_arrow().to_pylist() == [
        {"customer": "ann", "total": 190},
        {"customer": "bob", "total": 5},
    ]
    assert store.ledger.handled_files("orders").num_rows == 21
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    said = slackwater("status", f"s3://{bucket}/root")
    assert "files after the commit" in said.out
    assert f"move to s3://{bucket}/archive" in said.out


@pytest.mark.more
@pytest.mark.ray
@pytest.mark.usefixtures("session")
def test_a_view_that_the_next_run_declares_gets_the_rows_before_the_files_are_deleted(tmp_path: Path) -> None:
    def pipeline(views: dict[str, str], after: sw.Delete | None) -> sw.Pipeline:
        made = sw.Pipeline("p", tmp_path / "root")
        made.source("s", tmp_path / "in", format="csv", schema="k string, n int", discovery=FAST, after=after)
        for name, query in views.items():
            made.view(name, query)
        return made

    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.csv").write_text(f"k,n\na,{number}\n", encoding="utf-8")
    grouped = {"a": "SELECT k, count(*) AS n FROM s GROUP BY k"}
    pipeline(grouped, None).run(until="caught_up")
    pipeline({**grouped, "b": "SELECT k, n FROM s"}, sw.Delete(keep_s=0)).run(until="caught_up")
    snapshot = sw.open(tmp_path / "root").snapshot()
    assert {name: snapshot.view(name).to_arrow().num_rows for name in snapshot.views} == {"a": 1, "b": 3}
    assert list((tmp_path / "in").iterdir()) == []


_JOB = """
import sys
import slackwater as sw

place, until = sys.argv[1], sys.argv[2] or None
pipeline = sw.Pipeline("p", f"{place}/root")
pipeline.source(
    "s", f"{place}/in", format="csv", schema="n bigint", discovery=sw.Listing(interval_s=0.5),
    after=sw.Move(f"{place}/archive"),
)
pipeline.view("v", "SELECT n FROM s")
pipeline.run(until=until)
"""


@pytest.mark.ray
@pytest.mark.long
def test_a_run_that_is_killed_while_it_moves_files_loses_none(tmp_path: Path) -> None:
    files = 3_000
    (tmp_path / "in").mkdir()
    (tmp_path / "job.py").write_text(_JOB, encoding="utf-8")
    for number in range(files):
        (tmp_path / "in" / f"{number}.csv").write_text(f"n\n{number}\n", encoding="utf-8")
    command = [sys.executable, str(tmp_path / "job.py"), str(tmp_path)]
    with (tmp_path / "log").open("wb") as log:
        for share in (0.1, 0.5):
            life = subprocess.Popen([*command, ""], stdout=log, stderr=log, start_new_session=True)
            archive, until = tmp_path / "archive", time.monotonic() + 240
            while not archive.is_dir() or len(os.listdir(archive)) < share * files:
                assert life.poll() is None and time.monotonic() < until, (tmp_path / "log").read_text()[-2_000:]
                time.sleep(0.01)
            os.killpg(life.pid, signal.SIGKILL)
            life.wait()
        subprocess.run([*command, "caught_up"], stdout=log, stderr=log, check=True, timeout=400)
    assert not list((tmp_path / "in").iterdir())
    assert sorted(int(each.read_text().split()[1]) for each in archive.iterdir()) == [*range(files)]
    rows = sw.open(tmp_path / "root").snapshot().view("v").to_arrow()["n"].to_pylist()
    assert sorted(rows) == [*range(files)]
