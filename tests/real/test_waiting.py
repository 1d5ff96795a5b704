"""A run that is listed once an hour: its waits return at once, and its start is reported from the first second."""

from __future__ import annotations

from pathlib import Path

import pytest

import slackwater as sw
from tests.real.event_pipeline import ONE_FETCHER
from tests.real.events import events, parquet, write

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

HOURLY = sw.Listing(interval_s=3_600.0)
ALL = " UNION ALL ".join(f"SELECT user, amount FROM {name}" for name in ("csvs", "jsons", "parquets"))
LONGEST_S = 600.0
FIRST_STEPS = ["first listing", "first files", "views of the first epoch", "first commit"]


def made(at: Path) -> sw.Pipeline:
    pipeline = sw.Pipeline("events", at / "root", settings=ONE_FETCHER)
    for name in ("csv", "json", "parquet"):
        (at / name).mkdir()
        schema = "user bigint, amount double"
        pipeline.source(f"{name}s", at / name, format=name, schema=schema, discovery=HOURLY)
    pipeline.table("users", [{"user": number, "name": f"u{number}"} for number in range(3)])
    pipeline.view("named", f"SELECT name, count(*) AS n FROM ({ALL}) JOIN users USING (user) GROUP BY name")
    return pipeline


def write_burst(at: Path, start: int) -> None:
    """Two files of each format, with ten events each."""
    for number in (start, start + 10):
        rows = events(number)
        write(
            at / "csv",
            f"{number}.csv",
            ("user,amount\n" + "".join(f"{e['user']},{e['amount']}\n" for e in rows)).encode(),
        )
        write(
            at / "json",
            f"{number}.json",
            "".join(f'{{"user": {e["user"]}, "amount": {e["amount"]}}}\n' for e in rows).encode(),
        )
        write(at / "parquet", f"{number}.parquet", parquet(rows))


def rows_of(at: Path) -> int:
    return sum(row["n"] for row in sw.open(at / "root").snapshot().view("named").to_arrow().to_pylist())


@pytest.mark.more
def test_a_wait_needs_no_listing_in_time_and_a_start_names_its_steps_and_files(tmp_path: Path) -> None:
    pipeline = made(tmp_path)
    write_burst(tmp_path, 0)
    asked, messages = set(), set()
    with pipeline.start() as run:
        while not run.report().files:
            messages.add(run.status().message)
            try:
                history = sw.open(tmp_path / "root").ledger.why(tmp_path / "csv" / "0.csv")
            except sw.errors.StoreNotFoundError as error:
                assert "ask again in a moment" in str(error)
            else:
                asked.add(history.status)
                assert history.status != "outside", history.text
            run.wait(timeout_s=0.2)
        assert run.wait(until="caught_up", timeout_s=LONGEST_S)
        assert (run.report().files, rows_of(tmp_path)) == (7, 60)
        steps = [step.name for step in run.status().startup if step.name in FIRST_STEPS]
        assert steps[0] == FIRST_STEPS[0] and steps == sorted(steps, key=FIRST_STEPS.index)
        assert all(step.done for step in run.status().startup)
        assert all(message.startswith("starting; waiting for ") for message in messages - {""}), messages
        assert asked <= {"unknown", "not_listed", "in_flight", "waiting", "reading", "done"}, asked

        write_burst(tmp_path, 100)
        assert run.wait(until="caught_up", timeout_s=LONGEST_S), "it waited for the time of the next listing"
        assert (run.report().files, rows_of(tmp_path)) == (13, 120)
        assert run.wait(until="caught_up", timeout_s=LONGEST_S), "also without news"
