"""Views over views in a run: corrections, a view that is added, a view that is dropped, and verification."""

from __future__ import annotations

from pathlib import Path

import pytest

import slackwater as sw
from tests.real.event_pipeline import FAST, ONE_FETCHER
from tests.real.events import events, parquet, write
from tests.real.ledger_oracle import LedgerOracle
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
        with pytest.raises(sw.CommandRefusedError, match="by_user is read by kinds, large, sizes"):
            run.drop_view("by_user")
        with pytest.raises(sw.DefinitionChangedError, match="'by_user', which is replaced"):
            run.add_view("by_user", BY_USER.replace("count(*)", "count(user)"), replace=True)
    store = sw.open(tmp_path / "root")
    assert oracle.check_every_epoch(store, {name: in_one_query(query) for name, query in (VIEWS | ADDED).items()}) > 3
    assert store.verify(pipeline=made).all_equal
    made.view("sizes", ADDED["sizes"])
    with made.start() as run:
        run.wait(until="caught_up")
        run.drop_view("by_user", cascade=True)
        eventually(lambda: sw.open(tmp_path / "root").snapshot().views == ())
