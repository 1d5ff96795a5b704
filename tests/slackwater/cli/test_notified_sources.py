"""`slackwater status`, `why` and `quarantine` on a source with an event queue."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.cli.commands.quarantine import print_quarantine
from slackwater.cli.display.status import print_status
from slackwater.cli.terminal.output import Output
from slackwater.cli.terminal.safe_console import SafeConsole
from state.location import Location
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.reading.bad_records import DONE, quarantine
from tests.slackwater.reading.notified_root import OTHER_BUCKET, QUEUE, RunningRun, handed_on, poisoned, said
from tests.slackwater.reading.written_root import WrittenRoot, write_root

HOSTILE = '{"x": "\x1b[2J\n"}'


@pytest.fixture
def written(tmp_path: Path) -> WrittenRoot:
    return write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))


@pytest.fixture
def told(written: WrittenRoot) -> WrittenRoot:
    """A root whose source has a queue, with two poison messages and a bad record."""
    handed_on(written.root)
    poisoned(written.root, ("m1", HOSTILE), ("m2", "[]"))
    quarantine(written, DONE, (1, b"AA", "1 column"))
    return written


def terminal() -> Output:
    output = Output()
    output.console = SafeConsole(force_terminal=True, width=200, color_system=None)
    return output


def asked(*arguments: str) -> Any:
    ended = slackwater(*arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def test_the_status_has_the_queues_of_sources(told: WrittenRoot) -> None:
    with RunningRun(told.root, said()):
        (queue,) = asked("status", told.root.url)["queues"]
        shown = slackwater("status", told.root.url).out
    assert queue.pop("oldest_s") > 3600
    assert queue == {
        "source": "flights",
        "url": QUEUE,
        "in_flight": 3,
        "received": 90,
        "redelivered": 6,
        "poison": 2,
        "listed_at": "2026-01-31T14:00:00+00:00",
        "found_by_listing": 0,
    }
    assert f"flights\t{QUEUE}\t3\t" in shown
    assert f"source flights: 2 poison messages are quarantined; `slackwater quarantine {told.root}` shows them" in shown


@pytest.mark.more
def test_a_source_without_a_queue_has_none_in_the_status(
    written: WrittenRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked("status", written.root.url)["queues"] == []
    print_status(sw.open(written.root.url), terminal())
    shown = capsys.readouterr().out
    for word in ("queues", "in_flight", "oldest", "redelivered", "poison", "found_by_listing"):
        assert word not in shown


@pytest.mark.more
def test_why_is_told_in_a_sentence(told: WrittenRoot) -> None:
    history = asked("why", told.root.url, "day=9/none.csv")
    assert history["status"] == "absent" and "no event has named it" in history["text"]
    assert slackwater("why", told.root.url, "day=9/none.csv").out == f"{history['text']}\n"


def test_poison_messages_are_shown_to_programs_and_to_people(
    told: WrittenRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    records = asked("quarantine", told.root.url)
    assert [(each["path"], each["row"], each["raw"]) for each in records if each["row"] is None] == [
        (f"{QUEUE}#m1", None, HOSTILE),
        (f"{QUEUE}#m2", None, "[]"),
    ]
    print_quarantine(told.root.url, {}, "flights", terminal())
    shown = capsys.readouterr().out
    assert "bad records: 3, 2 of them poison messages or skipped names, without a row; `row` is the position" in shown
    assert "m1" in shown and r"\x1b[2J" in shown and "\x1b[2J" not in shown


@pytest.mark.more
def test_poison_messages_are_exported_and_cleared_with_the_others(told: WrittenRoot, tmp_path: Path) -> None:
    store = sw.open(told.root.url)
    for name in ("bad.parquet", "bad.csv", "bad.json"):
        assert asked("quarantine", told.root.url, "--export", str(tmp_path / name))["exported"] == 3
    assert pq.read_table(tmp_path / "bad.parquet") == store.ledger.quarantine()
    with (tmp_path / "bad.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["path"]: row for row in csv.DictReader(file)}
    assert (rows[f"{QUEUE}#m1"]["row"], rows[f"{QUEUE}#m1"]["raw"]) == ("", HOSTILE)
    assert rows[f"{QUEUE}#m1"]["reason"] == OTHER_BUCKET
    lines = (tmp_path / "bad.json").read_text(encoding="utf-8").splitlines()
    assert {"m1", "m2"} <= {json.loads(line)["path"].rpartition("#")[2] for line in lines}
    assert asked("quarantine", told.root.url, "--clear", "--yes", "--source", "flights") == {"cleared": 3}
    assert store.ledger.quarantine().num_rows == 0
    (queue,) = asked("status", told.root.url)["queues"]
    assert (queue["poison"], queue["received"]) == (0, 40)
