"""`slackwater run` on real Ray, Spark and Lance, and every reading command on its root."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slackwater.reading.store import open as open_store
from state.clock import SystemClock
from state.errors import StoreNotFoundError
from tests.slackwater.cli import command
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.cli.command import Ended, started

pytestmark = pytest.mark.ray

_APP = """
import slackwater as sw

shop = sw.Pipeline("shop", root="views")
shop.source("orders", "raw", format="json", schema="item string, price double", discovery=sw.Listing(interval_s=0.2))
shop.view("by_item", "SELECT item, count(*) AS sold, sum(price) AS earned FROM orders GROUP BY item")

@shop.view
def dear(orders):
    return orders.where("price > 5")

joined = sw.Pipeline("joined", root="other")
joined.source("orders", "raw", format="json", schema="item string, price double")
joined.view("pairs", "SELECT a.item FROM orders a JOIN orders b ON a.item < b.item")
"""
_DAYS = {
    "monday.json": b'{"item": "tea", "price": 2.5}\n{"item": "rum", "price": 9.0}\n',
    "tuesday.json": b'{"item": "gin", "price": "\x1b[2J"}\n{"item": "tea", "price": 2.5}\nthis is not JSON\n',
    "broken.json": b"\x1f\x8b is gzip's, and no more",
}
_LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z \[(info|warning) +\] ")
_SOLD = [{"item": "rum", "sold": 1, "earned": 9.0}, {"item": "tea", "sold": 2, "earned": 5.0}]


@dataclass(frozen=True)
class Shop:
    """A directory with the application, its files, how its run ended, and how a second one was refused meanwhile."""

    directory: Path
    pid: int
    ended: Ended
    refused: Ended

    @property
    def root(self) -> str:
        return str(self.directory / "views")

    @property
    def events(self) -> list[Any]:
        """The output of the run with `--json`."""
        return [json.loads(line) for line in self.ended.out.splitlines()]

    def read(self, command: str, *arguments: str) -> Any:
        """The JSON output of a reading command."""
        ended = slackwater(command, self.root, *arguments, "--json")
        assert ended.code == 0, ended.err
        return json.loads(ended.out)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    directory = tmp_path_factory.mktemp("shop")
    (directory / "raw").mkdir()
    (directory / "app.py").write_text(_APP, encoding="utf-8")
    for name, text in _DAYS.items():
        (directory / "raw" / name).write_bytes(text)
    running = started("run", "app.py:shop", "--json", cwd=directory)
    try:
        _until(lambda: _finished(directory) == len(_DAYS), running)
        refused = command.slackwater("run", "app.py:shop", "--json", cwd=directory)
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=120)
    finally:
        running.kill()
        running.wait()
    return Shop(directory, running.pid, Ended(running.returncode, out, err), refused)


def _finished(directory: Path) -> int:
    try:
        statuses = open_store(str(directory / "views")).ledger.files()["status"].to_pylist()
    except StoreNotFoundError:
        return 0
    return sum(status in ("done", "quarantined") for status in statuses)


def _until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + 120
    while not condition():
        assert process.poll() is None, "the run has ended"
        assert clock.monotonic() < deadline, "it took too long"
        clock.sleep(0.1)


@pytest.mark.more
def test_a_signal_ends_a_run_gracefully_and_a_second_process_is_refused_until_then(shop: Shop) -> None:
    assert shop.refused.code == 75
    assert str(shop.pid) in shop.refused.err and shop.refused.err.splitlines()[-1].startswith("error: ")
    assert shop.ended.code == 0, shop.ended.err
    # Neither Ray nor Spark writes to the terminal.
    assert [line for line in shop.ended.err.splitlines() if not _LOG_LINE.match(line)] == []
    assert shop.read("status")["owner"]["phase"] == "stopped"


def test_a_run_reports_what_it_did(shop: Shop) -> None:
    assert shop.ended.code == 0, shop.ended.err
    report = shop.events[-1]
    assert report["event"] == "report"
    assert (report["rows"], report["quarantined"]) == (3, 1)
    assert report["epochs"] >= 1 and report["requests"] >= 3 and report["seconds"] > 0
    assert (
        f"source orders: 1 file quarantined; see slackwater files {shop.root} --status quarantined" in report["notes"]
    )
    assert f"source orders: 2 bad records quarantined; see slackwater quarantine {shop.root}" in report["notes"]


def test_a_run_tells_its_events_as_they_happen(shop: Shop) -> None:
    events = shop.events
    kinds = [event["event"] for event in events]
    assert kinds[0] == "started" and (events[0]["pipeline"], events[0]["pid"]) == ("shop", shop.pid)
    assert kinds.count("spark_ready") == 1 and kinds.count("report") == 1
    phases = [event["phase"] for event in events if event["event"] == "phase"]
    assert (phases[0], phases[-1]) == ("running", "stopped")
    epochs = [event for event in events if event["event"] == "epoch"]
    assert [event["epoch"] for event in epochs] == [epoch["epoch"] for epoch in shop.read("epochs")]
    assert sum(event["rows"] for event in epochs) == 3
    assert set(epochs[-1]["seconds"]) == {"fetch", "align", "spark", "collect", "commit"}
    (bad,) = [event for event in events if event["event"] == "quarantined"][-1:]
    assert (bad["source"], bad["files"], bad["records"]) == ("orders", 1, 2)
    assert [event["at"] for event in events] == sorted(event["at"] for event in events)


def test_a_refused_run_says_so_to_programs_too(shop: Shop) -> None:
    (event,) = [json.loads(line) for line in shop.refused.out.splitlines()]
    assert (event["event"], event["error"]) == ("failed", "OwnedError") and str(shop.pid) in event["message"]


def test_show_prints_the_rows_of_an_epoch(shop: Shop) -> None:
    assert sorted(shop.read("show", "by_item"), key=lambda row: str(row["item"])) == _SOLD
    assert shop.read("show", "dear") == [{"item": "rum", "price": 9.0}]
    last = shop.read("epochs")[-1]["epoch"]
    assert isinstance(last, str)
    assert len(shop.read("show", "by_item", "--epoch", last, "--limit", "1")) == 1
    ended = slackwater("show", shop.root, "by_item")
    assert ended.out.splitlines()[1] == "item\tsold\tearned"


def test_show_of_an_unknown_view_lists_the_known_ones(shop: Shop) -> None:
    ended = slackwater("show", shop.root, "by_day")
    assert ended.code == 1
    assert "by_item" in ended.err and ended.err.count("\n") == 1


def test_epochs_count_every_row_once(shop: Shop) -> None:
    epochs = shop.read("epochs")
    assert sum(epoch["rows"] for epoch in epochs) == 3
    assert shop.read("epochs", "--limit", "1") == epochs[-1:]


def test_files_are_filtered_by_status_and_source(shop: Shop) -> None:
    (bad,) = shop.read("files", "--status", "quarantined")
    assert bad["path"].endswith("raw/broken.json") and bad["error"]
    assert len(shop.read("files", "--source", "orders")) == 3
    assert slackwater("files", shop.root, "--source", "nothing").code == 1


def test_status_shows_sources_views_and_bad_files(shop: Shop) -> None:
    status = shop.read("status")
    (source,) = status["sources"]
    assert (source["done"], source["quarantined"], source["waiting"]) == (2, 1, 0)
    assert (source["rows"], source["rows_bad"]) == (3, 2)
    (bad,) = status["bad_records"]
    assert (bad["records"], bad["files"]) == (2, 1)
    assert bad["path"].endswith("tuesday.json") and bad["first"].startswith("row 0: ")
    assert {view["name"]: view["class"] for view in status["views"]} == {"by_item": "aggregate", "dear": "append"}
    assert status["owner"]["phase"] == "stopped"
    shown = slackwater("status", shop.root).out
    for view in status["views"]:
        assert Path(view["path"]).is_dir() and view["path"] in shown
    assert "broken.json" in shown and "bad records" in shown and "\x1b" not in shown


def test_bad_records_are_shown_exported_and_cleared(shop: Shop) -> None:
    records = shop.read("quarantine")
    assert [(row["row"], row["raw"]) for row in records] == [
        (0, '{"item": "gin", "price": "\x1b[2J"}'),
        (2, "this is not JSON"),
    ]
    assert shop.read("why", str(shop.directory / "raw" / "tuesday.json"))["rows_bad"] == 2
    exported = shop.directory / "bad.json"
    said = shop.read("quarantine", "--export", str(exported), "--clear")
    assert said == {"exported": 2, "file": str(exported), "cleared": 2}
    assert [json.loads(line) for line in exported.read_text(encoding="utf-8").splitlines()] == records
    assert shop.read("quarantine") == []
    assert shop.read("status")["sources"][0]["rows_bad"] == 2


def test_why_prints_the_history_of_a_file(shop: Shop) -> None:
    raw = shop.directory / "raw"
    assert shop.read("why", str(raw / "monday.json"))["status"] == "done"
    assert shop.read("why", str(raw / "broken.json"))["status"] == "quarantined"
    assert slackwater("why", shop.root, str(raw / "never.json")).out.strip()


def test_explain_names_the_class_of_each_view(shop: Shop) -> None:
    assert {row["name"]: row["class"] for row in shop.read("explain")} == {"by_item": "aggregate", "dear": "append"}
    ended = command.slackwater("explain", "app.py:shop", "--json", cwd=shop.directory)
    assert ended.code == 0, ended.err
    assert {row["name"]: row["class"] for row in json.loads(ended.out)} == {"by_item": "aggregate", "dear": "append"}


@pytest.mark.more
def test_explain_against_compares_with_the_stored_view(shop: Shop) -> None:
    ended = command.slackwater("explain", "app.py:shop", "--against", "by_item", "--json", cwd=shop.directory)
    assert ended.code == 0, ended.err
    change = json.loads(ended.out)
    assert (change["name"], change["is_same"], change["dropped"]) == ("by_item", True, [])
    assert [step["becomes"] for step in change["steps"]] == ["kept"]
    ended = command.slackwater("explain", "app.py:shop", "--against", "nope", cwd=shop.directory)
    assert ended.code == 2 and "declares no view 'nope'" in ended.err


@pytest.mark.more
def test_a_view_that_cannot_be_kept_is_refused_with_its_operator(shop: Shop) -> None:
    ended = command.slackwater("run", "app.py:joined", "--until", "caught_up", cwd=shop.directory)
    assert ended.code == 2
    last = ended.err.splitlines()[-1]
    assert last.startswith("error: ") and "pairs" in last and "join" in last.lower()
