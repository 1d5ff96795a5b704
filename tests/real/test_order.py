"""A source with an order is read one file after the other, late files included, by one reader of several."""

from __future__ import annotations

from pathlib import Path

import pytest

import slackwater as sw
from tests.real.event_pipeline import FAST
from tests.real.events import events, parquet, write

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

_SETTINGS = sw.Settings(fetch=sw.settings.FetchSettings(num_fetchers=3, max_files_per_epoch=3))
"""A share of one file an epoch for each reader, so that the ledger tells which came first."""


@pytest.mark.more
def test_files_are_read_by_name_and_a_late_one_next(tmp_path: Path) -> None:
    names = [f"{number:02}" for number in range(0, 12, 2)]
    for number, name in enumerate(reversed(names)):
        write(tmp_path / "in", f"{name}.parquet", parquet(events(number)))
    pipeline = sw.Pipeline("ordered", tmp_path / "root", settings=_SETTINGS)
    pipeline.source("events", tmp_path / "in", format="parquet", discovery=FAST, order="name", metadata=["path", "row"])
    pipeline.view("seen", "SELECT _path, _row FROM events")
    with pipeline.start() as run:
        run.wait(until="caught_up")
        late = ["05", "01", "13", "12"]
        for number, name in enumerate(late):
            write(tmp_path / "in", f"{name}.parquet", parquet(events(20 + number)))
        run.wait(until="caught_up")
    store = sw.open(tmp_path / "root")
    files = store.ledger.files("events").sort_by("done_epoch").to_pylist()
    order = [Path(row["path"]).stem for row in files]
    assert order == [*names, *sorted(late)]
    epochs = [row["done_epoch"] for row in files]
    assert len(set(epochs)) == len(epochs), "one file an epoch"
    for epoch, count in zip(epochs, range(1, len(epochs) + 1), strict=True):
        there = store.snapshot(epoch=epoch).view("seen").to_arrow()["_path"].unique().to_pylist()
        assert sorted(Path(path).stem for path in there) == sorted(order[:count])


def test_an_order_that_there_is_not_is_refused(tmp_path: Path) -> None:
    pipeline = sw.Pipeline("ordered", tmp_path / "root")
    with pytest.raises(sw.errors.SettingsError, match="order='size': give one of name, last_modified"):
        pipeline.source("events", tmp_path, format="parquet", order="size")  # type: ignore[arg-type]
