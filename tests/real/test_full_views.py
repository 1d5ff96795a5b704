"""Views that are recomputed as a whole, beside those that are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from spark_bridge.plans.view_definition import ViewOptions
from tests.real.event_pipeline import FAST, ONE_FETCHER, TOTALS, expected, totals
from tests.real.events import events, parquet, write
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

LARGEST = (
    "SELECT e.user, e.amount FROM events e LEFT JOIN events more ON more.amount > e.amount GROUP BY e.user, e.amount "
    "HAVING count(more.amount) < 3"
)
NAMED = (
    "SELECT name, count(*) AS n, sum(amount) AS total FROM events e JOIN users u ON e.user >= u.user AND "
    "e.user <= u.user GROUP BY name"
)


def pipeline(tmp_path: Path, **options: Any) -> sw.Pipeline:
    made = sw.Pipeline("events", tmp_path / "root", settings=ONE_FETCHER)
    for source in ("events", "users"):
        (tmp_path / source).mkdir(exist_ok=True)
        made.source(source, tmp_path / source, format="parquet", discovery=FAST, materialize=True)
    made.view("totals", TOTALS)
    made.view("largest", LARGEST, on_full="allow", **options)
    made.view("named", NAMED, on_full="allow")
    return made


def rows(snapshot: sw.Snapshot, view: str) -> list[dict[str, Any]]:
    return sorted(snapshot.view(view).to_arrow().to_pylist(), key=str)


def check(tmp_path: Path, everything: list[dict[str, Any]], names: int) -> sw.Snapshot:
    snapshot = sw.open(tmp_path / "root").snapshot()
    largest = sorted(everything, key=lambda row: -row["amount"])[:3]
    assert rows(snapshot, "largest") == sorted(largest, key=str)
    of_user = {f"u{user}": [row["amount"] for row in everything if row["user"] == user] for user in range(names)}
    assert rows(snapshot, "named") == sorted(
        ({"name": name, "n": len(each), "total": sum(each)} for name, each in of_user.items()), key=str
    )
    return snapshot


@pytest.mark.more
def test_they_are_what_all_rows_give_and_nothing_happens_without_new_ones(tmp_path: Path) -> None:
    write(tmp_path / "events", "a.parquet", parquet(events(0)))
    write(tmp_path / "users", "a.parquet", parquet([{"user": each, "name": f"u{each}"} for each in range(2)]))
    made = pipeline(tmp_path)
    made.run(until="caught_up")
    check(tmp_path, events(0), names=2)
    assert made.run(until="caught_up").epochs == 0
    everything = events(0)
    with made.start() as run:
        for start in (50, 70, 90):
            everything += events(start)
            write(tmp_path / "events", f"{start}.parquet", parquet(events(start)))
            run.wait(until="caught_up")
            snapshot = check(tmp_path, everything, names=2)
            assert totals(tmp_path / "root") == expected(everything)
        for path in (tmp_path / "events").iterdir():
            path.unlink()
        run.add_view("sums", "SELECT user, sum(amount) AS total FROM events GROUP BY user")
        run.wait(until="caught_up")
        sums = sw.open(tmp_path / "root").snapshot().view("sums").to_arrow().to_pylist()
        assert {row["user"]: row["total"] for row in sums} == {
            user: total for user, (_, total) in expected(everything).items()
        }, "stored rows are there when the files are not"
    write(tmp_path / "users", "b.parquet", parquet([{"user": 2, "name": "u2"}]))
    made.run(until="caught_up")
    check(tmp_path, everything, names=3)
    assert rows(sw.open(tmp_path / "root").snapshot(epoch=snapshot.epoch), "named") == rows(snapshot, "named")


@pytest.mark.more
def test_the_interval_limits_how_often_and_the_epoch_says_what_is_reflected(tmp_path: Path) -> None:
    write(tmp_path / "events", "a.parquet", parquet(events(0)))
    write(tmp_path / "users", "a.parquet", parquet([{"user": 0, "name": "u0"}]))
    made = pipeline(tmp_path, refresh_interval_s=3600)
    # It could be maintained epoch by epoch; the interval keeps it full.
    placed = "SELECT user, amount, rank() OVER (ORDER BY amount DESC) AS place FROM events"
    made.view("placed", placed, on_full="allow", refresh_interval_s=3600)
    with made.start() as run:
        run.wait(until="caught_up")
        store = sw.open(tmp_path / "root")
        first = rows(store.snapshot(), "largest")
        write(tmp_path / "events", "b.parquet", parquet(events(500)))
        run.wait(until="caught_up")
        eventually(lambda: totals(tmp_path / "root") == expected(events(0) + events(500)))
        snapshot = store.snapshot()
        assert rows(snapshot, "largest") == first
        behind = snapshot.view("largest").reflects_epoch
        assert behind < snapshot.epoch
        assert snapshot.view("totals").reflects_epoch == snapshot.epoch
        assert sum(row["n"] for row in rows(store.snapshot(epoch=behind), "totals")) == 10
        assert rows(snapshot, "named") == [{"name": "u0", "n": 7, "total": 18.0 + 501 + 504 + 507}]
        assert snapshot.view("placed").reflects_epoch == behind
        assert sorted(row["place"] for row in rows(snapshot, "placed")) == [*range(1, 11)]
    assert sw.verify(store, follow_sources=True).all_equal


@pytest.mark.more
def test_it_is_refused_unless_it_is_allowed_and_its_rows_are_stored(tmp_path: Path) -> None:
    write(tmp_path / "in", "a.parquet", parquet(events(0)))
    cases: list[tuple[ViewOptions, str]] = [({}, 'on_full="allow"'), ({"on_full": "allow"}, "materialize=True")]
    for options, message in cases:
        made = sw.Pipeline("events", tmp_path / "root", settings=ONE_FETCHER)
        made.source("events", tmp_path / "in", format="parquet", discovery=FAST)
        made.view("largest", LARGEST, **options)
        with pytest.raises(sw.errors.NotIncrementalError, match=f"largest.*without equal columns.*{message}"):
            made.run(until="caught_up")
