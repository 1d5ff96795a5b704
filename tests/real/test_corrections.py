"""Files that are replaced, read again and forgotten, in whole runs: DuckDB recomputes every view at every epoch."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest
from pyspark.sql import SparkSession

import slackwater as sw
from actors.sources.source import OnChange
from slackwater.extensions.table_target import Targets
from slackwater.verification.verification import Outcome
from tests.real import victims
from tests.real.event_pipeline import FAST
from tests.real.events import VIEWS, events, parquet, write
from tests.real.ledger_oracle import LedgerOracle
from tests.slackwater.cli.command import slackwater
from tests.slackwater.plugins.publish.published import require_equal
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

SMALL_PIECES = sw.Settings(
    fetch=sw.settings.FetchSettings(
        num_fetchers=2,
        piece_bytes=2 * 1024,
        max_bytes_in_flight=64 * 1024,
        requests=sw.settings.RequestSettings(whole_object_bytes=4 * 1024, block_bytes=4 * 1024),
    )
)


def declared(
    place: Path,
    on_change: OnChange = "ignore",
    settings: sw.Settings | None = None,
    metadata: Sequence[str] = (),
    publish: Mapping[str, Targets] = MappingProxyType({}),
) -> sw.Pipeline:
    (place / "in").mkdir(parents=True, exist_ok=True)
    pipeline = sw.Pipeline("events", place / "root", settings=settings)
    pipeline.source(
        "events", place / "in", format="parquet", schema="user bigint, amount double", discovery=FAST,
        materialize=True, on_change=on_change, metadata=metadata,
    )  # fmt: skip
    for name, query in VIEWS.items():
        pipeline.view(name, query, publish=publish.get(name, ()))
    return pipeline


def tables(place: Path) -> dict[str, Targets]:
    """A table for each view, brought up to date with each epoch."""
    return {
        "totals": sw.ParquetFiles(str(place / "totals" / "v"), interval_s=0),
        "busy": sw.Iceberg(str(place / "busy" / "v"), interval_s=0),
        "large": sw.Delta(str(place / "large" / "v")),
    }


def oracle(place: Path) -> LedgerOracle:
    def read(url: str) -> bytes:
        return Path(url.removeprefix("file://")).read_bytes()

    scratch = place / "scratch"
    scratch.mkdir()
    return LedgerOracle({"events": "parquet"}, read, scratch, ["events"])


def statuses(store: sw.Store, path: str) -> list[str]:
    return [row["status"] for row in store.ledger.files().to_pylist() if row["path"].endswith(f"/{path}")]


@pytest.mark.more
def test_changed_files_replace_what_was_read_of_them_in_all_views_at_once(tmp_path: Path) -> None:
    known = oracle(tmp_path)
    for number in range(4):
        write(tmp_path / "in", f"{number}.parquet", parquet(events(90 + 5 * number)))
    with declared(tmp_path, "replace", SMALL_PIECES, ["epoch"], tables(tmp_path / "tables")).start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        store = sw.open(tmp_path / "root")
        known.learn(store)
        write(tmp_path / "in", "1.parquet", parquet(events(1_000, 3_000), row_group_size=100))
        write(tmp_path / "in", "2.parquet", parquet([{"user": 7, "amount": 100.0}]))
        eventually(lambda: statuses(store, "1.parquet") == ["replaced", "done"])
        eventually(lambda: statuses(store, "2.parquet") == ["replaced", "done"])
        known.learn(store)
        write(tmp_path / "in", "3.parquet", b"PAR1 no file")
        eventually(lambda: statuses(store, "3.parquet") == ["done", "quarantined"])
        write(tmp_path / "in", "3.parquet", parquet(events(5, 1)))
        eventually(lambda: statuses(store, "3.parquet") == ["replaced", "quarantined", "done"])
        assert run.status().sources["events"].changes_ignored == 0
    assert [(each.behind_epochs, each.error) for each in run.status().publications] == [(0, None)] * 3
    for name, format in (("totals", "parquet"), ("busy", "iceberg"), ("large", "delta")):
        assert require_equal(store, tmp_path / "tables" / name, format, name) == store.latest_epoch()
    assert known.check_every_epoch(store, VIEWS) > 3
    (of_large,) = {row["first_epoch"] for row in store.ledger.files().to_pylist() if row["rows_read"] == 3_000}
    rows = store.snapshot().rows("events").to_arrow().to_pylist()
    assert {row["_epoch"] for row in rows if row["amount"] >= 1_000} == {of_large}, "the epoch that shows them"
    assert "was replaced at epoch" in store.ledger.why(str(tmp_path / "in" / "1.parquet")).text
    outcomes = {check.view: check.outcome for check in sw.verify(store, engine="duckdb", follow_sources=True).views}
    assert outcomes["events.rows"] is Outcome.EQUAL


@pytest.mark.more
def test_files_are_read_again_and_forgotten_by_command(tmp_path: Path, session: SparkSession) -> None:
    known, root = oracle(tmp_path), tmp_path / "root"
    for number in range(4):
        write(tmp_path / "in", f"{number}.parquet", parquet(events(90 + 5 * number)))
    pipeline = declared(tmp_path)
    pipeline.view("top", "SELECT user, amount FROM events ORDER BY amount DESC LIMIT 2")
    with pipeline.start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        store = sw.open(root)
        known.learn(store)
        write(tmp_path / "in", "3.parquet", parquet(events(500, 20)))
        eventually(lambda: run.status().sources["events"].changes_ignored == 1)
        eventually(lambda: store.ledger.sources()["changes_ignored"].to_pylist() == [1])
        ended = slackwater("reingest", str(root), "[03].parquet")
        assert (ended.code, ended.out.strip()) == (0, "2 files are read again"), ended.err
        eventually(
            lambda: statuses(store, "3.parquet") == ["replaced", "done"] and statuses(store, "0.parquet") == ["done"]
        )
        assert store.ledger.sources()["changes_ignored"].to_pylist() == [0]
        known.learn(store)
        assert run.forget(str(tmp_path / "in" / "1.parquet")) == 1
        assert statuses(store, "1.parquet") == ["forgotten"], "it is committed when the call returns"
        with pytest.raises(sw.errors.NotFoundError, match=r"no file x\.parquet was listed"):
            run.forget("x.parquet")
        assert run.wait(until="caught_up", timeout_s=60)
        assert statuses(store, "1.parquet") == ["forgotten"], "it is not read again by itself"
        assert sorted(store.snapshot().view("top").to_arrow()["amount"].to_pylist()) == [518.0, 519.0]
        assert run.reingest("1.parquet") == 1
        eventually(lambda: statuses(store, "1.parquet") == ["done"])
        run.drop_view("top")
        assert run.wait(until="caught_up", timeout_s=60)
    known.check(store.snapshot(), VIEWS)
    found = sw.verify(store, spark=session, follow_sources=True)
    assert found.all_equal, found
    refused = slackwater("forget", str(root), "1.parquet")
    assert refused.code == 1 and "needs a run" in refused.err


@pytest.mark.more
def test_an_actor_that_dies_while_a_file_is_replaced_leaves_all_or_nothing_of_it(tmp_path: Path) -> None:
    known = oracle(tmp_path)
    for number in range(3):
        write(tmp_path / "in", f"{number}.parquet", parquet(events(90 + 5 * number)))
    with declared(tmp_path, "replace", SMALL_PIECES).start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        store = sw.open(tmp_path / "root")
        known.learn(store)
        run.throttle(bytes_per_second=30_000)
        write(tmp_path / "in", "1.parquet", parquet(events(1_000, 20_000), row_group_size=100))
        eventually(lambda: statuses(store, "1.parquet") == ["done", "waiting"])
        assert victims.send(os.getpid(), "fetch")
        eventually(lambda: run.status().recoveries == 1)
        write(tmp_path / "in", "new.parquet", parquet(events(7)))
        run.throttle()
        eventually(lambda: statuses(store, "1.parquet") == ["replaced", "done"])
        assert run.wait(until="caught_up", timeout_s=60)
    known.check_every_epoch(store, VIEWS)


@pytest.mark.more
def test_what_cannot_be_corrected_is_refused_with_the_next_step(tmp_path: Path) -> None:
    pipeline = sw.Pipeline("events", tmp_path / "root")
    with pytest.raises(sw.errors.SettingsError, match=r'source a: on_change="replace" .*materialize=True'):
        pipeline.source("a", tmp_path / "a", format="parquet", on_change="replace")
    for name, materialize in (("a", True), ("b", False)):
        write(tmp_path / name, "f.parquet", parquet(events(1)))
        pipeline.source(name, tmp_path / name, format="parquet", discovery=FAST, materialize=materialize)
    pipeline.view(
        "both", "SELECT user, count(*) AS n FROM (SELECT user FROM a UNION ALL SELECT user FROM b) GROUP BY user"
    )
    with pipeline.start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        with pytest.raises(sw.errors.CommandRefusedError, match="source b is not materialized"):
            run.forget("f.parquet", "b")
        with pytest.raises(sw.errors.CommandRefusedError, match="source b is not materialized"):
            run.reingest("in a directory that nobody has listed/f.parquet", "b")
        with pytest.raises(sw.errors.CommandRefusedError, match="view 'both' cannot be corrected: it also reads b"):
            run.reingest("f.parquet", "a")


@pytest.mark.more
def test_a_directory_that_is_empty_for_a_while_empties_no_view_until_that_is_allowed(tmp_path: Path) -> None:
    known, root = oracle(tmp_path), tmp_path / "root"
    files, away = tmp_path / "in", tmp_path / "away"
    for number in range(3):
        write(files, f"{number}.parquet", parquet(events(90 + 5 * number)))
    with declared(tmp_path, "replace").start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
        store = sw.open(root)
        known.learn(store)
        assert run.allow_removals() == 0, "nothing is paused"
        files.rename(away)
        files.mkdir()
        eventually(lambda: run.status().sources["events"].paused_removals == 3)
        eventually(lambda: store.ledger.sources()["paused_removals"].to_pylist() == [3])
        shown = slackwater("status", str(root)).out
        assert "source events: removals are paused: 3 files are missing" in shown
        assert f"`slackwater allow-removals {root} --source events`" in shown
        files.rmdir()
        away.rename(files)
        eventually(lambda: run.status().sources["events"].paused_removals == 0)
        assert store.ledger.files()["status"].to_pylist() == ["done"] * 3
        for each in files.iterdir():
            each.unlink()
        eventually(lambda: run.status().sources["events"].paused_removals == 3)
        ended = slackwater("allow-removals", str(root))
        assert ended.out.strip() == "3 missing files may leave the views, when the next listing lacks them, too"
        eventually(lambda: store.ledger.files()["status"].to_pylist() == ["forgotten"] * 3)
        eventually(lambda: run.status().sources["events"].paused_removals == 0)
    assert store.snapshot().rows("events").count_rows() == 0
    known.check_every_epoch(store, VIEWS)
