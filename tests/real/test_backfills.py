"""Tests of views that are added, dropped and changed, while a pipeline runs and between its runs."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from spark_bridge.ingest import dataset_frame
from tests.real.event_pipeline import FAST, ONE_FETCHER, TOTALS, expected, totals
from tests.real.events import events, parquet, write
from tests.real.ledger_oracle import LedgerOracle
from tests.slackwater.plugins.publish.published import contents
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

BY_KIND = "SELECT amount % 3 AS kind, count(*) AS n, max(user) AS last FROM events GROUP BY amount % 3"
LARGE = "SELECT user, amount FROM events WHERE amount > 3"
_MANY = 400_000
"""Rows that are too many for the run itself to read."""


def pipeline(tmp_path: Path, *views: tuple[str, str], **options: Any) -> sw.Pipeline:
    made = sw.Pipeline("events", tmp_path / "root", settings=ONE_FETCHER)
    made.source("events", tmp_path / "in", format="parquet", discovery=FAST)
    made.view("totals", TOTALS)
    for name, query in views:
        made.view(name, query, **options)
    return made


def check(tmp_path: Path, views: dict[str, str]) -> None:
    """DuckDB computes the same from the ledger, at every epoch that has the view."""
    oracle = LedgerOracle({"events": "parquet"}, lambda url: Path(url[len("file://") :]).read_bytes(), tmp_path)
    assert oracle.check_every_epoch(sw.open(tmp_path / "root"), views) >= 1


@pytest.mark.more
def test_a_view_that_is_declared_late_has_everything_from_its_first_epoch_on(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(20):
        write(tmp_path / "in", f"{number}.parquet", parquet(events(number * 10)))
    pipeline(tmp_path).run(until="caught_up")
    write(tmp_path / "in", "new.parquet", parquet(events(500)))
    late = pipeline(tmp_path, ("by_kind", BY_KIND), ("large", LARGE))
    report = late.run(until="caught_up")
    assert (report.files, report.rows) == (1, 10), "what was ingested before is no news"
    check(tmp_path, {"totals": TOTALS, "by_kind": BY_KIND, "large": LARGE})
    assert sw.open(tmp_path / "root").snapshot().views == ("by_kind", "large", "totals")
    assert late.run(until="caught_up").epochs == 0


@pytest.mark.more
def test_views_come_and_go_while_it_runs(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows: list[dict[str, Any]] = []
    for number in range(10):
        rows += events(number * 10)
        write(tmp_path / "in", f"{number}.parquet", parquet(events(number * 10)))
    narrow = sw.Pipeline("events", tmp_path / "root", settings=ONE_FETCHER)
    narrow.source("events", tmp_path / "in", format="parquet", discovery=FAST)
    narrow.view("users", "SELECT user, count(*) AS n FROM events GROUP BY user")
    with narrow.start() as run:
        run.wait(until="caught_up")
        run.add_view("totals", TOTALS)
        for number in range(10, 14):
            rows += events(number * 10)
            write(tmp_path / "in", f"{number}.parquet", parquet(events(number * 10)))
        run.wait(until="caught_up")
        assert totals(tmp_path / "root") == expected(rows)
        assert run.status().backfills == {}
        with pytest.raises(sw.errors.ViewError, match="already declared"):
            run.add_view("totals", "SELECT user FROM events")
        with pytest.raises(sw.errors.ViewError, match="cannot be resolved"):
            run.add_view("wrong", "SELECT nope FROM events")
        with pytest.raises(sw.errors.ViewNotFoundError, match="'nope' to drop; the views are: totals, users"):
            run.drop_view("nope")
        table_of_users = sw.ParquetFiles(str(tmp_path / "table" / "v"), interval_s=0)
        with pytest.raises(sw.errors.SettingsError, match="the source would read the files of the table as data"):
            run.add_view("by_user", "SELECT user FROM events", publish=sw.Delta(str(tmp_path / "in" / "x")))
        run.add_view("by_user", "SELECT user, count(*) AS n FROM events GROUP BY user", publish=table_of_users)
        run.wait(until="caught_up")
        eventually(lambda: run.status().publications[0].epoch == run.status().epoch)
        assert sum(row["n"] for row in contents(tmp_path / "table", "parquet")[1].to_pylist()) == len(rows)
        run.drop_view("by_user")
        run.drop_view("users")
        eventually(lambda: sw.open(tmp_path / "root").snapshot().views == ("totals",))
        run.add_view("totals", TOTALS.replace("sum(amount)", "max(amount)"), replace=True)
        run.wait(until="caught_up")
        table = sw.open(tmp_path / "root").snapshot().view("totals").to_arrow()
        assert max(table["total"].to_pylist()) == max(row["amount"] for row in rows)
    assert sw.open(tmp_path / "root").views.table()["name"].to_pylist() == ["totals"]


@pytest.mark.more
def test_a_changed_definition_is_built_beside_the_stored_one_and_takes_its_place(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", "a.parquet", parquet(events(0)))
    pipeline(tmp_path, ("kinds", BY_KIND)).run(until="caught_up")
    before = sw.open(tmp_path / "root").snapshot()
    other = BY_KIND.replace("max(user)", "min(user)")
    with pytest.raises(sw.errors.DefinitionChangedError, match="replace=True"):
        pipeline(tmp_path, ("kinds", other)).run(until="caught_up")
    pipeline(tmp_path, ("kinds", other), replace=True).run(until="caught_up")
    assert min(sw.open(tmp_path / "root").snapshot().view("kinds").to_arrow()["last"].to_pylist()) == 0
    assert sw.open(tmp_path / "root").snapshot(epoch=before.epoch).view("kinds").to_arrow() == (
        before.view("kinds").to_arrow()
    )


@pytest.mark.long
def test_a_change_above_the_groups_reads_no_file_and_a_new_measure_reads_them_all(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        write(tmp_path / "in", f"{name}.parquet", parquet(events(ord(name) * 10)))
    pipeline(tmp_path, ("kinds", BY_KIND)).run(until="caught_up")
    filtered = f"{BY_KIND} HAVING count(*) > 6"
    changed = pipeline(tmp_path, ("kinds", filtered), replace=True)
    [step] = changed.explain_change("kinds").steps
    assert (step.becomes, step.reads[0].of, step.reads[0].rows) == ("taken over", "groups", 3)
    assert changed.dry_run().views[-1].beginning == "takes over"
    # Without its file no history could be read.
    os.rename(tmp_path / "in" / "b.parquet", tmp_path / "kept")
    report = changed.run(until="caught_up")
    assert (report.epochs, report.notes) == (1, ())
    os.rename(tmp_path / "kept", tmp_path / "in" / "b.parquet")
    shown = sw.open(tmp_path / "root").snapshot().view("kinds").to_arrow().to_pylist()
    counted = Counter(row["amount"] % 3 for name in ("a", "b") for row in events(ord(name) * 10))
    assert {row["kind"]: row["n"] for row in shown} == {kind: n for kind, n in counted.items() if n > 6}
    assert changed.explain_change("kinds").is_same
    other = filtered.replace("max(user)", "min(user)")
    more = pipeline(tmp_path, ("kinds", other), replace=True)
    [step] = more.explain_change("kinds").steps
    assert (step.becomes, step.reads[0].of, step.reads[0].files) == ("computed", "files", 2)
    with more.start() as run:
        run.wait(until="caught_up")
        again = sw.open(tmp_path / "root").snapshot().view("kinds").to_arrow().to_pylist()
        assert {row["kind"]: row["n"] for row in again} == {row["kind"]: row["n"] for row in shown}
        run.add_view("kinds", other.replace("> 6", "> 5"), replace=True)
        assert run.status().backfills == {}
        run.wait(until="caught_up")
        assert sw.open(tmp_path / "root").snapshot().view("kinds").count_rows() == 3


@pytest.mark.more
def test_a_view_is_not_shown_while_a_file_that_it_needs_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a", "b", "c"):
        write(tmp_path / "in", f"{name}.parquet", parquet(events(ord(name) * 10)))
    pipeline(tmp_path).run(until="caught_up")
    os.rename(tmp_path / "in" / "b.parquet", tmp_path / "kept")
    with pipeline(tmp_path, ("large", LARGE)).start() as run:
        run.wait(until="caught_up")
        assert run.status().backfills["large"].missing == (f"file://{tmp_path}/in/b.parquet",)
        assert any("large" in note and "b.parquet" in note for note in run.report().notes)
    assert sw.open(tmp_path / "root").snapshot().views == ("totals",)
    pipeline(tmp_path, ("large", LARGE), on_missing="allow").run(until="caught_up")
    store = sw.open(tmp_path / "root")
    assert store.snapshot().view("large").count_rows() == sum(
        row["amount"] > 3 for name in ("a", "c") for row in events(ord(name) * 10)
    )
    (view,) = [each for each in store.views.table().to_pylist() if each["name"] == "large"]
    assert view["missing"] == [f"file://{tmp_path}/in/b.parquet"]


@pytest.mark.more
def test_a_view_that_was_not_declared_for_a_while_catches_up(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", "a.parquet", parquet(events(0)))
    pipeline(tmp_path, ("large", LARGE)).run(until="caught_up")
    write(tmp_path / "in", "b.parquet", parquet(events(50)))
    pipeline(tmp_path).run(until="caught_up")
    frozen = sw.open(tmp_path / "root").snapshot().view("large").to_arrow()
    assert frozen == pa.Table.from_pylist(
        [{name: row[name] for name in ("user", "amount")} for row in events(0) if row["amount"] > 3], frozen.schema
    )
    pipeline(tmp_path, ("large", LARGE)).run(until="caught_up")
    assert sw.open(tmp_path / "root").snapshot().view("large").count_rows() == sum(
        row["amount"] > 3 for row in events(0) + events(50)
    )


@pytest.mark.more
def test_a_view_that_was_not_declared_for_a_while_reads_only_the_files_since_then(tmp_path: Path) -> None:
    """The files from before that are deleted: a view that is rebuilt would wait for them."""
    views = {"by_kind": BY_KIND, "large": LARGE}
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", "a.parquet", parquet(events(0)))
    pipeline(tmp_path, *views.items()).run(until="caught_up")
    write(tmp_path / "in", "b.parquet", parquet(events(100)))
    pipeline(tmp_path).run(until="caught_up")
    rows = (tmp_path / "in" / "a.parquet").read_bytes()
    (tmp_path / "in" / "a.parquet").unlink()
    write(tmp_path / "in", "c.parquet", parquet(events(200)))
    pipeline(tmp_path, *views.items()).run(until="caught_up")
    assert {*views} < {*sw.open(tmp_path / "root").snapshot().views}
    write(tmp_path / "in", "a.parquet", rows)
    check(tmp_path, {"totals": TOTALS, **views})


@pytest.mark.more
def test_the_tasks_of_the_executors_read_stored_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[int] = []
    made = dataset_frame._rows_of_shares

    def counted(*arguments: Any) -> Any:
        shares.append(len(arguments[3]))
        return made(*arguments)

    monkeypatch.setattr(dataset_frame, "_rows_of_shares", counted)
    rows = pa.table({"user": [number % 1_000 for number in range(_MANY)], "amount": pa.array(range(_MANY), pa.int64())})
    (tmp_path / "in").mkdir()
    for number in range(4):
        pq.write_table(rows.slice(number * _MANY // 4, _MANY // 4), tmp_path / "in" / f"{number}.parquet")
    stored = sw.Pipeline("events", tmp_path / "root", settings=ONE_FETCHER)
    stored.source("events", tmp_path / "in", format="parquet", discovery=FAST, materialize=True)
    stored.view("all", "SELECT count(*) AS n FROM events")
    stored.run(until="caught_up")
    stored.view("totals", TOTALS)
    stored.view("large", LARGE)
    stored.run(until="caught_up")
    assert shares, "no task read anything"
    snapshot = sw.open(tmp_path / "root").snapshot()
    assert snapshot.view("large").count_rows() == _MANY - 4
    totals = snapshot.view("totals").to_arrow()
    expected = rows.group_by("user").aggregate([("amount", "count"), ("amount", "sum")])
    assert {(row["user"], row["n"], row["total"]) for row in totals.to_pylist()} == {
        (row["user"], row["amount_count"], row["amount_sum"]) for row in expected.to_pylist()
    }
