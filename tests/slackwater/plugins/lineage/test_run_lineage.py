"""The events of a run over a real root: jobs that begin, go on, fail and end, with their datasets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from openlineage.client.serde import Serde

import slackwater as sw
from slackwater.plugins.lineage.datasets import LineageDataset
from slackwater.plugins.lineage.run_lineage import RunLineage
from slackwater.reading.ledger import Ledger
from slackwater.status.run_status import PublicationStatus, RunStatus, ViewStatus
from state.clock import ManualClock
from state.errors import StorageUnavailableError
from state.location import Location
from state.tables.catalog import put_source, put_view
from state.tables.records import CatalogSource, CatalogView
from tests.slackwater.reading.written_root import START, RootWriter

_SOURCE = json.dumps({"url": "s3://raw/flights", "format": {"name": "csv"}, "pattern": "**"})
_SCHEMA = pa.schema([("n", pa.int64()), ("carrier", pa.string())])


class LineageRoot:
    """A root with a view `late` over the source `flights`, and a view `worst` over that; and the lineage of a run.

    Args:
        directory: of the root.
    """

    def __init__(self, directory: Path) -> None:
        self.clock = ManualClock(START)
        self.writer = RootWriter(Location(str(directory / "root")), Location("/raw"))
        put_source(self.writer.delta, CatalogSource("flights", _SOURCE, _SCHEMA.serialize().to_pybytes()))
        self.view("late", {"flights": ("n", "carrier")})
        self.view("worst", {"late": ("n",)})
        target = sw.OpenLineage("http://127.0.0.1:1", every_s=60)
        self.lineage = RunLineage(target, "flights", "run-7", self.store, self.clock)
        self.rows = 0

    def store(self) -> sw.Store:
        return sw.Store(self.writer.root, self.writer.clock)

    def view(self, name: str, visible: dict[str, tuple[str, ...]], error: str | None = None) -> None:
        stopped = None if error is None else self.writer.epoch
        view = CatalogView(
            name,
            "append",
            f"SELECT {name}",
            name,
            ("flights",),
            (),
            1,
            stopped_epoch=stopped,
            error=error,
            visible=visible,
        )
        put_view(self.writer.delta, view)

    def epoch(self, **publications: int) -> list[dict[str, Any]]:
        """Commits a row of both views, and looks."""
        self.rows += 1
        for name in ("late", "worst"):
            self.writer.view(name, pa.table({"n": pa.array(range(self.rows), pa.int64())}))
        self.writer.commit()
        return self.look(self.status(**publications))

    def status(self, **publications: int) -> RunStatus:
        tables = tuple(
            PublicationStatus("late", f"{kind}:s3://lake/{kind}/late", at) for kind, at in publications.items()
        )
        views = {name: ViewStatus("append", self.rows) for name in ("late", "worst")} if self.rows else {}
        return RunStatus("running", self.writer.store.head.epoch, views=views, publications=tables)

    def look(self, status: RunStatus) -> list[dict[str, Any]]:
        return [json.loads(Serde.to_json(each)) for each in self.lineage.look(status)]

    def end(self, error: str | None = None, **publications: int) -> list[dict[str, Any]]:
        return [json.loads(Serde.to_json(each)) for each in self.lineage.end(self.status(**publications), error)]


@pytest.fixture
def root(tmp_path: Path) -> LineageRoot:
    return LineageRoot(tmp_path)


def told(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["eventType"], each["job"]["name"]) for each in events]


def names(datasets: list[dict[str, Any]]) -> list[str]:
    return [f"{each['namespace']}/{each['name'].lstrip('/')}" for each in datasets]


def test_a_view_is_a_job_with_the_sources_and_views_that_it_reads(root: LineageRoot, tmp_path: Path) -> None:
    assert told(root.look(root.status())) == [("START", "flights")]
    late, worst = root.epoch()
    place = f"file{tmp_path}/root"
    assert told([late, worst]) == [("START", "flights.late"), ("START", "flights.worst")]
    assert (names(late["inputs"]), names(late["outputs"])) == (["s3://raw/flights"], [f"{place}/late"])
    assert (names(worst["inputs"]), names(worst["outputs"])) == ([f"{place}/late"], [f"{place}/worst"])
    assert late["job"]["facets"]["sql"]["query"] == "SELECT late"
    assert [each["name"] for each in late["inputs"][0]["facets"]["schema"]["fields"]] == ["n", "carrier"]
    assert [each["type"] for each in late["outputs"][0]["facets"]["schema"]["fields"]] == ["int64"]
    assert late["outputs"][0]["facets"]["version"]["datasetVersion"] == str(root.writer.store.head.epoch)
    assert late["run"]["facets"]["parent"]["job"]["name"] == "flights"
    assert late["eventTime"] == START.isoformat()


def test_a_view_that_changes_is_told_once_a_minute(root: LineageRoot) -> None:
    root.epoch()
    assert root.epoch() == []
    root.clock.advance(60)
    assert told(root.epoch()) == [("RUNNING", "flights.late"), ("RUNNING", "flights.worst")]
    root.clock.advance(60)
    assert root.look(root.status()) == [], "no epoch was committed"
    root.writer.commit()
    assert root.look(root.status()) == [], "an epoch that changes no view is not told"


def test_a_publication_is_a_job_from_the_view_to_the_table(root: LineageRoot) -> None:
    root.epoch()
    root.clock.advance(60)
    events = root.epoch(delta=7)
    assert told(events)[-1] == ("START", "flights.late.delta.late")
    assert names(events[-1]["outputs"]) == ["s3://lake/delta/late"]
    assert events[-1]["outputs"][0]["facets"]["version"]["datasetVersion"] == "7"
    root.clock.advance(60)
    assert told(root.epoch(delta=8))[-1] == ("RUNNING", "flights.late.delta.late")


def test_a_view_that_fails_is_told_at_once_and_begins_again_as_another_run(root: LineageRoot) -> None:
    first = root.epoch()[0 + 1]
    root.view("late", {"flights": ("n", "carrier")}, error="division by zero")
    root.rows += 1
    root.writer.commit()
    status = root.status()
    failed = replace(status, views={**status.views, "late": ViewStatus("append", 1, error="division by zero")})
    (event,) = [each for each in root.look(failed) if each["job"]["name"] == "flights.late"]
    assert event["eventType"] == "FAIL"
    assert event["run"]["facets"]["errorMessage"]["message"] == "division by zero"
    assert event["run"]["runId"] == first["run"]["runId"]
    assert root.look(failed) == []
    root.view("late", {"flights": ("n", "carrier")})
    (again,) = [each for each in root.epoch() if each["job"]["name"] == "flights.late"]
    assert again["eventType"] == "START" and again["run"]["runId"] != first["run"]["runId"]


def test_a_root_that_cannot_be_read_for_a_moment_loses_no_event(
    root: LineageRoot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def away(ledger: Ledger) -> pa.Table:
        raise StorageUnavailableError("the bucket does not answer")

    with monkeypatch.context() as now:
        now.setattr(Ledger, "sources", away)
        assert told(root.epoch()) == [("START", "flights")]
        assert root.look(root.status()) == []
    assert told(root.look(root.status())) == [("START", "flights.late"), ("START", "flights.worst")]
    assert "".join(capsys.readouterr()).count("lineage waits for the root") == 1


@pytest.mark.more_after(1)
@pytest.mark.parametrize(("error", "last"), [(None, "COMPLETE"), ("the executors are gone", "FAIL")])
def test_every_job_ends_with_the_run(root: LineageRoot, error: str | None, last: str) -> None:
    begun = root.epoch()
    ended = root.end(error)
    assert sorted(told(ended)) == sorted((last, name) for _, name in told(begun))
    assert told(ended)[-1] == (last, "flights"), "the parent ends last"
    assert {each["run"]["runId"] for each in ended} == {each["run"]["runId"] for each in begun}
    assert [each["run"]["facets"].get("errorMessage", {}).get("message") for each in ended] == [error] * 3


def test_a_publication_that_comes_after_the_last_epoch_is_told(root: LineageRoot) -> None:
    root.epoch()
    assert told(root.end(delta=7))[0] == ("START", "flights.late.delta.late")


@pytest.mark.parametrize(
    ("url", "part", "expected"),
    [
        ("s3://lake/a/b/", "", ("s3://lake", "a/b")),
        ("s3://lake", "", ("s3://lake", "/")),
        ("s3://lake", "v", ("s3://lake", "v")),
        ("/data/raw", "", ("file", "/data/raw")),
        ("file:///data/raw/", "v", ("file", "/data/raw/v")),
        ("https://example.com/files", "", ("https://example.com", "files")),
    ],
)
def test_places_have_the_names_of_the_standard(url: str, part: str, expected: tuple[str, str]) -> None:
    found = LineageDataset.at(url, part)
    assert (found.namespace, found.name) == expected
