"""Server of the web page: its answers, and the requests that it refuses."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.plugins.ui.shared_answer import SharedAnswer
from slackwater.status.run_status import ViewStatus
from state.clock import ManualClock
from state.lance import view_dataset
from state.location import Location
from state.tables.catalog import CatalogPipeline, put_pipeline, put_view
from state.tables.records import CatalogView, ViewVersion
from tests.slackwater.plugins.ui.living_root import busy_status, commit_epochs, running
from tests.slackwater.plugins.ui.served_page import ServedPage, served
from tests.slackwater.reading.bad_records import BIG, quarantine
from tests.slackwater.reading.failed_views import fail_view
from tests.slackwater.reading.written_root import START, RootWriter, WrittenRoot, write_root


@pytest.fixture
def written(tmp_path: Path) -> WrittenRoot:
    (tmp_path / "raw").mkdir()
    return write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    """That of a root which does not change."""
    place = tmp_path_factory.mktemp("asked")
    with served(write_root(Location(str(place / "root")), Location(str(place / "raw"))).root.url) as page:
        yield page


def test_a_root_that_nobody_ran_on_is_shown_from_its_store(written: WrittenRoot) -> None:
    with served(written.root.url) as page:
        now = page.api("now")
        assert (now["state"], now["owner"], now["status"]) == ("none", None, None)
        assert (now["root"], now["epoch"]) == (written.root.url, str(written.epochs[-1]))
        [source] = page.api("sources")["sources"]
        assert source["files"] == {"done": 2, "quarantined": 1, "reading": 1, "waiting": 1}
        assert (source["rows"], source["rows_bad"]) == (1004, 1)
        views = page.api("views")
        assert [(view["name"], view["class"], view["rows"], view["behind_s"]) for view in views["views"]] == [
            ("by_carrier", "aggregate", 3, 0.0),
            ("late", "append", 3, 0.0),
        ]


def test_a_run_is_shown_as_it_tells_itself_and_then_that_it_has_ended(written: WrittenRoot) -> None:
    status = busy_status(written.epochs[-1])
    with running(written.root, status, last_error="secret_access_key=hunter2 failed"), served(written.root.url) as page:
        now = page.api("now")
        assert (now["state"], now["owner"]["phase"], now["owner"]["fetchers"]) == ("unheard", "running", 2)
        assert now["owner"]["last_error"] == "secret_access_key=*** failed"
        assert now["status"]["sources"]["flights"]["rows_per_s"] == 91_210.0
        edges = {(edge["sender"], edge["receiver"]): edge for edge in now["status"]["edges"]}
        assert [pair for pair, edge in edges.items() if edge["is_full"]] == [("merger", "materializer")]
        assert [each["epoch"] for each in now["status"]["in_flight"]] == [str(each.epoch) for each in status.in_flight]
    with served(written.root.url) as page:
        assert (page.api("now")["state"], page.api("now")["owner"]["phase"]) == ("ended", "stopped")


def test_epochs_come_as_the_last_ones_those_before_and_those_after(written: WrittenRoot) -> None:
    epochs = [*map(str, written.epochs), *map(str, commit_epochs(written.root, 6, Random(1)))]
    with served(written.root.url) as page:

        def asked(**parameters: object) -> tuple[list[str], int]:
            told = page.api("epochs", **parameters)
            return [row["epoch"] for row in told["epochs"]], told["earlier"]

        assert asked() == (epochs, 0)
        assert asked(limit=3) == (epochs[-3:], 7)
        assert asked(limit=3, before=epochs[-3]) == (epochs[-6:-3], 4)
        assert asked(limit=3, after=epochs[-2]) == (epochs[-1:], 9)
        assert asked(after=epochs[-1]) == ([], 0)
        last = page.api("epochs")["epochs"][-1]
        assert last["changed"] == ["by_carrier"] and last["spark_s"] > 0 and "views" not in last
        assert page.api("epochs")["epochs"][2]["changed"] == ["by_carrier", "late"]


def test_files_are_searched_page_by_page_and_have_their_history(written: WrittenRoot) -> None:
    with served(written.root.url) as page:
        first = page.api("files", text="DAY=2", limit=1)
        second = page.api("files", text="DAY=2", limit=1, after=first["after"])
        assert [file["path"].rpartition("/")[2] for file in first["files"] + second["files"]] == ["bad.csv", "big.csv"]
        assert (first["matches"], second["after"]) == (2, None)
        assert first["files"][0]["done_epoch"] == str(written.epochs[3])
        assert page.api("files", status="waiting")["files"][0]["path"].endswith("day=3/new.csv")
        history = page.api("why", path="day=1/b.csv")
        assert (history["status"], history["views"]) == ("done", ["by_carrier", "late"])
        assert "3 rows, 1 of them quarantined" in history["text"]
        assert page.api("why", path=f"{written.raw}/day=9/x.csv")["status"] == "absent"


def test_a_view_gives_a_sample_without_hidden_columns(written: WrittenRoot) -> None:
    with served(written.root.url) as page:
        told = page.api("sample", view="by_carrier", limit=2)
        assert told["columns"] == [{"name": "carrier", "type": "string"}, {"name": "n", "type": "int64"}]
        assert (told["sample"], told["rows"], told["left_out"]) == ([["AA", 903], ["o'hare|1", 101]], 3, 0)
        assert page.api("sample", view="late")["sample"][2] == ["2026-02-03", 3]


@pytest.mark.more
def test_a_failed_view_has_its_error_and_does_not_have_the_rows_of_later_files(written: WrittenRoot) -> None:
    fail_view(written.root, "late", written.epochs[2], error="password=hunter2 is no number")
    status = busy_status(written.epochs[-1])
    views = {**status.views, "late": ViewStatus("append", stale_epoch=written.epochs[2], error="password=hunter2")}
    with running(written.root, replace(status, views=views)), served(written.root.url) as page:
        found = {view["name"]: view for view in page.api("views")["views"]}
        assert (found["late"]["error"], found["by_carrier"]["error"]) == ("password=*** is no number", None)
        assert (found["late"]["reflects_epoch"], found["late"]["behind_s"]) == (str(written.epochs[2]), 2.0)
        live = page.api("now")["status"]["views"]
        assert (live["late"]["error"], live["late"]["stale_epoch"]) == ("password=***", str(written.epochs[2]))
        assert live["by_carrier"]["error"] is None
        assert page.api("why", path="day=2/big.csv")["views"] == ["by_carrier"]
        assert page.api("why", path="day=1/a.csv")["views"] == ["by_carrier", "late"]


def test_sample_of_large_cells_ends_early_and_cuts_them(tmp_path: Path) -> None:
    root = Location(str(tmp_path / "root"))
    writer = RootWriter(root, Location(str(tmp_path / "raw")))
    put_pipeline(writer.delta, CatalogPipeline("p", ansi=False))
    put_view(writer.delta, CatalogView("v", "append", "SELECT 1", "plan", ("flights",), (), writer.epoch))
    large = 9 << 20
    cells = {
        "text": ["x" * large] * 4,
        "raw": [b"\x01" * large] * 4,
        "list": [["y" * large]] * 4,
        "small": list(range(4)),
    }
    path = f"views/v-{writer.epoch}.lance"
    writer.views["v"] = ViewVersion("v", path, view_dataset.create(root.child(path), pa.table(cells)).version)
    writer.commit(files=1, rows=4)
    with served(root.url) as page:
        answer = page.ask("/api/sample?view=v")
        told = answer.document
    assert len(answer.body) < 10_000
    first, second = told["sample"]
    assert first[:2] == [f"{'x' * 500}… ({large:,} characters)", f"{'01' * 250}… ({large:,} bytes)"]
    assert (first[2].startswith("… (9,4"), first[3], second[3], told["rows"]) == (True, 0, 1, 4)


def test_bad_records_show_what_they_were(written: WrittenRoot) -> None:
    quarantine(written, BIG, (7, b"AA;\xff", "no date"), (8, b"x" * 5000, "too long"), table="queue")
    with served(written.root.url) as page:
        first, second = page.api("quarantine")["records"]
        assert (first["raw"], first["raw_bytes"], first["row"], first["reason"]) == ("AA;\\xff", 4, 7, "no date")
        assert (second["raw"], second["raw_bytes"]) == ("x" * 4096, 5000)
        assert page.api("quarantine", limit=1)["after"] is not None


@pytest.mark.parametrize(
    ("question", "status", "said"),
    [
        ("files?status=lost", 400, "'lost' is not a valid status of a file"),
        ("files?limit=1000000", 400, "limit='1000000': give a number from 1 to 500"),
        ("files?limit=-1", 400, "give a number"),
        ("files?after=x", 400, "is not a valid position in this table"),
        ("files?text=" + "x" * 5000, 400, "text= has 5,000 characters"),
        ("files?source=trains", 404, "the sources are: flights"),
        ("quarantine?source=trains", 404, "the sources are: flights"),
        ("epochs?before=latest", 400, "before='latest': give an epoch"),
        ("sample?view=nothing", 404, "the views are: by_carrier, late"),
        ("sample", 404, "there is no view ''"),
        ("why", 400, "path= is missing"),
        ("why?path=ftp://x/y", 200, ""),
        ("nothing", 404, "Not Found"),
    ],
)
def test_a_bad_question_gets_an_error_that_names_the_thing(
    page: ServedPage, question: str, status: int, said: str
) -> None:
    answer = page.ask(f"/api/{question}")
    assert answer.status == status
    assert said in answer.document.get("error", "")


def test_a_root_without_an_epoch_is_shown(tmp_path: Path) -> None:
    RootWriter(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))
    with served(str(tmp_path / "root")) as page:
        assert (page.api("now")["epoch"], page.api("epochs")) == (None, {"epochs": [], "earlier": 0})
        assert page.api("sources") == {"sources": []}
        assert page.api("views")["views"] == []
        assert page.api("files")["files"] == []
        assert page.ask("/api/sample?view=x").status == 404


def test_what_has_not_changed_is_not_sent_again(written: WrittenRoot) -> None:
    with served(written.root.url) as page:
        first = page.ask("/api/views")
        same = page.ask("/api/views", headers={"If-None-Match": first.headers["ETag"]})
        assert (same.status, same.body) == (304, b"")
    commit_epochs(written.root, 1, Random(1))
    with served(written.root.url) as page:
        assert page.ask("/api/views", headers={"If-None-Match": first.headers["ETag"]}).status == 200


def test_a_root_that_goes_away_is_said_and_the_page_is_still_there(written: WrittenRoot) -> None:
    with served(written.root.url) as page:
        written.root.path.rename(written.root.path.with_name("elsewhere"))
        answer = page.ask("/api/views")
        assert answer.status in (404, 503) and str(written.root.path) in answer.document["error"]
        assert page.ask("/").status == 200


def test_what_many_ask_at_once_is_read_once_and_longer_kept_if_it_took_long() -> None:
    clock, reads = ManualClock(START), 0

    async def read() -> int:
        nonlocal reads
        reads += 1
        await asyncio.sleep(0)
        clock.advance(2)
        return reads

    async def ask() -> None:
        shared = SharedAnswer(read, clock)
        assert await asyncio.gather(*(shared.get() for _ in range(5))) == [1] * 5
        clock.advance(19)
        assert await shared.get() == 1
        clock.advance(2)
        assert await shared.get() == 2

    asyncio.run(ask())


@pytest.mark.more
def test_serving_a_page_imports_neither_ray_nor_spark(written: WrittenRoot) -> None:
    program = f"""
import sys
from tests.slackwater.plugins.ui.served_page import ServedPage, served
with served({written.root.url!r}) as page:
    for name in ("now", "epochs", "sources", "views", "files", "quarantine"):
        page.api(name)
    page.api("why", path="day=1/a.csv")
    page.api("sample", view="late")
print(sorted({{"ray", "raydp", "pyspark", "py4j"}} & set(sys.modules)))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (ended.stdout.strip(), ended.returncode) == ("[]", 0), ended.stderr
    assert sw.open(written.root.url).latest_epoch() == written.epochs[-1]
