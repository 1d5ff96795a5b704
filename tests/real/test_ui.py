"""The web page of a pipeline that runs on real Ray and Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from tests.slackwater.plugins.ui.served_page import served
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.more, pytest.mark.usefixtures("session")]


def test_a_run_is_shown_while_it_goes_and_after_it(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    pipeline = sw.Pipeline("shop", tmp_path / "root")
    listing = sw.Listing(interval_s=0.2)
    pipeline.source("orders", raw, format="json", schema="item string, price double", discovery=listing)
    pipeline.view("by_item", "SELECT item, count(*) AS n FROM orders GROUP BY item")
    for number in range(20):
        (raw / f"{number}.json").write_text('{"item": "tea", "price": 2.5}\n{"item": "rum", "price": "x"}\n')

    with pipeline.start() as run:
        run.wait(until="caught_up")
        with served(str(tmp_path / "root")) as page:

            def live() -> Any:
                now = page.api("now")
                return now["runs"] and now["status"]["sources"]["orders"]["done"] == 20 and now

            eventually(live)
            now = live()
            assert [each["receiver"] for each in now["status"]["edges"]] == [
                "dispatcher",
                "fetch",
                "merger",
                "materializer",
                "views",
            ]
            assert now["status"]["views"]["by_item"]["view_class"] == "aggregate"
            assert now["epoch"] == str(run.status().epoch)
            assert page.api("files", text="7.json")["matches"] == 2
            assert page.api("why", path=str(raw / "7.json"))["views"] == ["by_item"]
            assert page.api("quarantine", limit=5)["matches"] == 20
            before = page.api("epochs")["epochs"][-1]["epoch"]
            (raw / "new.json").write_text('{"item": "gin", "price": 1.0}\n')
            run.wait(until="caught_up")
            eventually(lambda: page.api("epochs", after=before)["epochs"])
            assert page.api("epochs", after=before)["epochs"][-1]["rows"] == 1
            eventually(lambda: ["gin", 1] in page.api("sample", view="by_item")["sample"])
            run.stop()
            eventually(lambda: page.api("now")["state"] == "ended")
            assert page.api("sources")["sources"][0]["files"] == {"done": 21}
