"""A dry run's report of views, in Python and on the command line; with a Spark of its own, without Ray."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import slackwater as sw
from state.location import Location
from tests.slackwater.cli.command import slackwater
from tests.slackwater.reading.written_root import write_root

_APP = """
import slackwater as sw

shop = sw.Pipeline("shop", root="views")
shop.source("orders", "raw", format="json")
shop.source("empty", "none", format="json")
shop.view("by_item", "SELECT item, count(*) AS sold FROM orders GROUP BY item")
shop.view("pairs", "SELECT a.item FROM orders a JOIN orders b ON a.item < b.item")
shop.view("later", "SELECT * FROM empty")
"""


def test_the_command_says_what_would_be_read_and_refused_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(_APP, encoding="utf-8")
    for name in ("raw", "none"):
        (tmp_path / name).mkdir()
    (tmp_path / "raw" / "a.json").write_text('{"item": "tea"}\n')
    ended = slackwater("run", "app.py:shop", "--dry-run", "--until", "caught_up", "--json", cwd=tmp_path)
    assert ended.code == 1, ended.err
    said = json.loads(ended.out)
    orders, empty = said["sources"]
    assert (orders["to_read"], empty["to_read"]) == ({"files": 1, "bytes": 16}, {"files": 0, "bytes": 0})
    assert orders["schema"] == [{"name": "item", "type": "string"}]
    views = {view["name"]: (view["class"], view["beginning"]) for view in said["views"]}
    assert views == {
        "by_item": ("aggregate", "begins"),
        "pairs": ("refused", "is refused"),
        "later": ("unknown", "waits"),
    }
    assert said["is_first"] and said["is_refused"]
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"app.py", "none", "raw"}


@pytest.mark.more
def test_prices_without_a_dry_run_are_refused(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(_APP, encoding="utf-8")
    ended = slackwater("run", "app.py:shop", "--get-price", "1", cwd=tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert "--dry-run" in ended.err


@pytest.mark.more
def test_views_of_a_root_catch_up_are_refused_or_stay(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    (raw / "day=1").mkdir(parents=True)
    (raw / "day=1" / "a.csv").write_text("carrier,day\nAA,2026-01-01\n")
    written = write_root(Location(str(tmp_path / "root")), Location(str(raw)))
    pipeline = sw.Pipeline("flights", root=tmp_path / "root")
    pipeline.source("flights", raw, format="csv", pattern="**/*.csv")
    pipeline.view("by_carrier", "SELECT carrier, max(day) AS last FROM flights GROUP BY carrier")
    pipeline.view("fresh", "SELECT day FROM flights")
    found = pipeline.dry_run()
    views = {view.name: view for view in found.views}
    assert views["by_carrier"].is_refused and "is stored as" in views["by_carrier"].text
    assert views["fresh"].beginning == "catches up"
    assert "the 2 files of flights that were read" in views["fresh"].text
    assert views["late"].beginning == "stays"
    assert found.is_refused
    assert sw.open(tmp_path / "root").epochs().num_rows == len(written.epochs)
