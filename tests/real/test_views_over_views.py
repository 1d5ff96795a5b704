"""Views over views in a run: corrections, a view that is added, a view that is dropped, and verification."""

from __future__ import annotations

from pathlib import Path

import pytest

import slackwater as sw
from tests.real.event_pipeline import FAST, ONE_FETCHER
from tests.real.events import events, parquet, write
from tests.real.ledger_oracle import LedgerOracle
from tests.slackwater.cli.command import slackwater
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

BY_USER = "SELECT user, amount % 3 AS kind, count(*) AS n, sum(amount) AS total FROM events GROUP BY user, amount % 3"
VIEWS = {
    "by_user": BY_USER,
    "kinds": "SELECT kind, count(*) AS users, max(n) AS most, sum(total) AS total FROM by_user GROUP BY kind",
    "large": "SELECT user, total FROM by_user WHERE total > 20",
}
ADDED = {"sizes": "SELECT n, count(*) AS groups FROM by_user GROUP BY n"}


def in_one_query(query: str) -> str:
    """The query for DuckDB over the source alone."""
    return query.replace("FROM by_user", f"FROM ({BY_USER})")


@pytest.mark.more
def test_views_over_views_follow_files_and_corrections(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    made = sw.Pipeline("events", tmp_path / "root", settings=ONE_FETCHER)
    made.source("events", tmp_path / "in", format="parquet", discovery=FAST, materialize=True, on_change="replace")
    for name, query in VIEWS.items():
        made.view(name, query)
    oracle = LedgerOracle({"events": "parquet"}, lambda url: Path(url[len("file://") :]).read_bytes(), tmp_path)
    for number in range(5):
        write(tmp_path / "in", f"{number}.parquet", parquet(events(number * 10)))
    with made.start() as run:
        run.wait(until="caught_up")
        oracle.learn(sw.open(tmp_path / "root"))
        write(tmp_path / "in", "1.parquet", parquet(events(1000)))
        run.wait(until="caught_up")
        run.forget("2.parquet", "events")
        run.add_view("sizes", ADDED["sizes"])
        write(tmp_path / "in", "6.parquet", parquet(events(60)))
        run.wait(until="caught_up")
        assert run.status().backfills == {}
        with pytest.raises(sw.errors.CommandRefusedError, match="by_user is read by kinds, large, sizes"):
            run.drop_view("by_user")
        with pytest.raises(sw.errors.DefinitionChangedError, match="'by_user', which is replaced"):
            run.add_view("by_user", BY_USER.replace("count(*)", "count(user)"), replace=True)
    store = sw.open(tmp_path / "root")
    assert oracle.check_every_epoch(store, {name: in_one_query(query) for name, query in (VIEWS | ADDED).items()}) > 3
    assert sw.verify(store, pipeline=made).all_equal
    made.view("sizes", ADDED["sizes"])
    with made.start() as run:
        run.wait(until="caught_up")
        run.drop_view("by_user", cascade=True)
        eventually(lambda: sw.open(tmp_path / "root").snapshot().views == ())


@pytest.mark.more
def test_joined_views_share_the_rows_of_their_sides(tmp_path: Path) -> None:
    made = sw.Pipeline("events", tmp_path / "root", settings=ONE_FETCHER)
    for name in ("orders", "events"):
        (tmp_path / name).mkdir()
        made.source(name, tmp_path / name, format="parquet", discovery=FAST, materialize=True, on_change="replace")
        for number in range(3):
            write(tmp_path / name, f"{number}.parquet", parquet(events(number * 10)))
    joined = "FROM orders JOIN events ON orders.user = events.user AND orders.amount < events.amount"
    views = {
        "pairs": f"SELECT orders.user, count(*) AS n {joined} GROUP BY orders.user",
        "most": f"SELECT orders.user, max(events.amount) AS m, sum(orders.amount) AS s {joined} GROUP BY orders.user",
    }
    late = {"rows": f"SELECT orders.user, orders.amount AS a, events.amount AS b {joined}"}
    for name, query in views.items():
        made.view(name, query)
    formats = {"orders": "parquet", "events": "parquet"}
    oracle = LedgerOracle(formats, lambda url: Path(url[len("file://") :]).read_bytes(), tmp_path)
    with made.start() as run:
        run.wait(until="caught_up")
        oracle.learn(sw.open(tmp_path / "root"))
        run.add_view("rows", late["rows"])
        write(tmp_path / "orders", "1.parquet", parquet(events(1000)))
        run.forget("2.parquet", "events")
        run.wait(until="caught_up")
        assert run.status().backfills == {}
        eventually(lambda: any(sw.open(tmp_path / "root").views.internal()["rows_in_memory"].to_pylist()))
        run.drop_view("pairs")
        write(tmp_path / "events", "5.parquet", parquet(events(50)))
        run.wait(until="caught_up")
    again = sw.Pipeline("events", tmp_path / "root", settings=ONE_FETCHER)
    for name in ("orders", "events"):
        again.source(name, tmp_path / name, format="parquet", discovery=FAST, materialize=True, on_change="replace")
    for name in ("most", "rows"):
        again.view(name, (views | late)[name])
    write(tmp_path / "orders", "6.parquet", parquet(events(60)))
    with again.start() as run:
        run.wait(until="caught_up")
    store = sw.open(tmp_path / "root")
    assert oracle.check_every_epoch(store, views | late) > 3
    assert sw.verify(store, pipeline=again).all_equal
    hidden = store.views.internal().to_pylist()
    assert [(each["names"], each["used_by"], each["reads"]) for each in hidden] == [
        (["most.1", "rows.1"], ["most", "rows"], ["orders"]),
        (["most.2", "rows.2"], ["most", "rows"], ["events"]),
    ]
    assert all(each["rows"] > 20 and each["bytes"] > 1000 and each["rows_in_memory"] is None for each in hidden)
    shown = slackwater("status", str(tmp_path / "root")).out
    assert "# internal views" in shown and f"most.1 rows.1\torders\t{hidden[0]['rows']}\t" in shown
