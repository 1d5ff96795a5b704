"""A source that meets a table or a root in a run pauses; the others go on, and nothing is deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

import slackwater as sw
from slackwater.plugins.ui.root_documents import RootDocuments
from state.clock import SystemClock
from state.location import Location
from state.places.marker import MARKER, Marker, read_marker, write_marker
from tests.real.event_pipeline import FAST, ONE_FETCHER
from tests.slackwater.cli.called_command import slackwater
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]


def pipeline(directory: Path) -> sw.Pipeline:
    made = sw.Pipeline("shop", directory / "root", settings=ONE_FETCHER)
    made.source("orders", directory / "orders", format="csv", schema="n int", discovery=FAST, after=sw.Delete(keep_s=0))
    made.source("clicks", directory / "clicks", format="csv", schema="n int", discovery=FAST)
    made.view("both", "SELECT n FROM orders UNION ALL SELECT n FROM clicks")
    return made


def rows(directory: Path) -> list[int]:
    return sorted(row["n"] for row in sw.open(directory / "root").snapshot().view("both").to_arrow().to_pylist())


def put(directory: Path, name: str, number: int) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(f"n\n{number}\n")


def test_a_link_that_leads_to_a_table_pauses_its_source_and_no_other(tmp_path: Path) -> None:
    for name in ("first", "clicks"):
        put(tmp_path / name, "a.csv", 1)
    (tmp_path / "orders").symlink_to(tmp_path / "first")
    table = tmp_path / "table"
    put(table, "part.csv", 666)
    write_marker(Location(str(table)), Marker("table", "other", "/lake", "v", "0.1.0"))
    with pipeline(tmp_path).start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        marker = read_marker(Location(str(tmp_path / "root")))
        assert marker is not None and (marker.kind, marker.pipeline) == ("root", "shop")
        (tmp_path / "orders").unlink()
        (tmp_path / "orders").symlink_to(table)
        eventually(lambda: run.status().sources["orders"].paused is not None)
        put(tmp_path / "clicks", "b.csv", 2)
        eventually(lambda: rows(tmp_path) == [1, 1, 2])
        assert run.wait(until="caught_up", timeout_s=60), "a paused source is not waited for"
        assert run.status().sources["clicks"].paused is None
        reason = f"file://{table.parent}/orders is a root or a published table of Slackwater ({MARKER})"
        assert (run.status().sources["orders"].paused or "").startswith(reason)
        eventually(lambda: "source orders is paused: file://" in slackwater("status", str(tmp_path / "root")).out)
        documents = RootDocuments(sw.open(tmp_path / "root"), SystemClock())
        eventually(lambda: any(each["paused"] for each in documents.sources()["sources"]))
        assert any(note.startswith("source orders is paused: file://") for note in run.report().notes)
        assert sorted(path.name for path in table.iterdir()) == [MARKER, "part.csv"]
        (tmp_path / "orders").unlink()
        (tmp_path / "orders").symlink_to(tmp_path / "first")
        put(tmp_path / "first", "c.csv", 3)
        eventually(lambda: rows(tmp_path) == [1, 1, 2, 3])
        assert run.status().sources["orders"].paused is None
