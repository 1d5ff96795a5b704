"""A backfill is not a view yet: the store and the status show its progress, and nothing else shows it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slackwater as sw
from slackwater.cli.app import app
from state.clock import ManualClock
from state.epoch import next_epoch
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.catalog import put_view
from state.tables.delta import DeltaBuilder
from state.tables.records import CatalogView, EpochCounts, EpochSeconds
from tests.slackwater.reading.written_root import START, write_root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The usual root, and one more epoch with a backfill that replaces `late`."""
    write_root(Location(str(tmp_path)), Location("s3://raw/flights"))
    clock = ManualClock(START)
    clock.advance(60)
    store = LanceStateStore.open(Location(str(tmp_path)), clock)
    store.take_over()
    views = store.head.views
    delta = DeltaBuilder()
    put_view(delta, CatalogView("late.next", "append", "SELECT 1", "plan", ("flights",), (), store.head.epoch))
    begun = replace(views["late"], name="late.next", pinned_epoch=store.head.epoch, progress='{"fraction": 0.25}')
    store.commit(
        epoch=next_epoch(clock, store.head.epoch),
        delta=delta.build(),
        views={**views, "late.next": begun},
        counts=EpochCounts(),
        seconds=EpochSeconds(),
    )
    return tmp_path


def test_the_store_has_its_progress(root: Path) -> None:
    store = sw.open(root)
    assert store.views.backfills().to_pylist() == [{"name": "late", "class": "append", "fraction": 0.25}]
    assert store.snapshot().views == ("by_carrier", "late")
    assert store.views.internal().num_rows == 0
    with pytest.raises(sw.errors.ViewNotFoundError):
        store.snapshot().view("late.next")
    assert {view["name"] for view in store.epochs().to_pylist()[-1]["views"]} == {"by_carrier", "late"}


@pytest.mark.more
def test_status_shows_it(root: Path) -> None:
    shown = CliRunner().invoke(app, ["status", str(root)])
    assert "backfills: views that are shown when complete" in shown.output
    document = json.loads(CliRunner().invoke(app, ["status", str(root), "--json"]).stdout)
    assert document["backfills"] == [{"name": "late", "class": "append", "fraction": 0.25}]
