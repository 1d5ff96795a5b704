"""Lineage of a whole run: its views and its publication, from the files to the tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import slackwater as sw
from tests.real.event_pipeline import FAST

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]


def run(place: Path, to: str) -> sw.RunReport:
    pipeline = sw.Pipeline("shop", place / "root", lineage=sw.OpenLineage(to, every_s=1))
    pipeline.source("orders", place / "in", format="csv", schema="customer string, amount bigint", discovery=FAST)
    total = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
    pipeline.view("totals", total, publish=sw.Delta(str(place / "published")))
    pipeline.view("large", "SELECT customer FROM totals WHERE total > 100")
    return pipeline.run(until="caught_up")


@pytest.mark.more
def test_every_job_of_a_run_begins_and_ends_and_a_dead_endpoint_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("customer,amount\nann,70\nbob,200\nann,50\n")
    run(tmp_path, str(tmp_path / "events.jsonl"))
    lines = (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    jobs = {"shop", "shop.totals", "shop.large", "shop.totals.delta.published"}
    assert {each["job"]["name"] for each in events} == jobs
    for job in jobs:
        told = [each for each in events if each["job"]["name"] == job]
        assert (told[0]["eventType"], told[-1]["eventType"]) == ("START", "COMPLETE")
        assert len({each["run"]["runId"] for each in told}) == 1
    edges = {
        (source["name"], each["job"]["name"], table["name"])
        for each in events
        for source in each["inputs"]
        for table in each["outputs"]
    }
    root = f"{tmp_path}/root"
    assert edges == {
        (f"{tmp_path}/in", "shop.totals", f"{root}/totals"),
        (f"{root}/totals", "shop.large", f"{root}/large"),
        (f"{root}/totals", "shop.totals.delta.published", f"{tmp_path}/published"),
    }
    last = str(sw.open(tmp_path / "root").latest_epoch())
    versions = {each["facets"]["version"]["datasetVersion"] for each in events[-2]["outputs"]}
    assert versions <= {last}

    (tmp_path / "in" / "2.csv").write_text("customer,amount\nbob,1\n")
    assert run(tmp_path, "http://127.0.0.1:9").files == 1, "nobody listens there"
    assert sw.open(tmp_path / "root").snapshot().view("totals").get(customer="bob") == {"customer": "bob", "total": 201}
