"""Whole runs on Ray, Spark, Lance and a local directory or a real S3 server."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import lance
import pytest

import slackwater as sw
from slackwater import ViewStatus
from slackwater.plugins.ui.root_documents import RootDocuments
from slackwater.testing.servers.s3_server import S3Server
from state.clock import SystemClock
from tests.real.event_pipeline import FAST, TOTALS, expected, local, totals
from tests.real.events import events, parquet, write
from tests.real.ledger_oracle import LedgerOracle
from tests.slackwater.cli.called_command import slackwater
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]


@pytest.mark.more
def test_small_files_are_one_get_each_and_none_when_they_were_seen(s3: S3Server, bucket: str) -> None:
    for number in range(30):
        s3.put(bucket, f"in/{number}.parquet", parquet(events(number)))
    with closing(s3.proxy()) as proxy:
        pipeline = sw.Pipeline("events", f"s3://{bucket}/root", storage_options=s3.storage_options)
        pipeline.source(
            "events", f"s3://{bucket}/in", format="parquet", discovery=FAST, storage_options=proxy.storage_options
        )
        pipeline.view("totals", TOTALS)
        with proxy.recording() as first:
            report = pipeline.run(until="caught_up")
        gets = [each.key for each in first if each.method == "GET" and not each.is_list and each.key.startswith("in/")]
        assert sorted(gets) == sorted(f"in/{number}.parquet" for number in range(30))
        assert not [request for request in first if request.method not in ("GET",)], "the source is only read"
        # The start looks once whether the bucket can be listed at all, and the stop may interrupt one listing; neither
        # is part of the run.
        assert len(first) - 2 <= report.requests <= len(first) - 1

        s3.put(bucket, "in/late.parquet", parquet(events(99)))
        with proxy.recording() as second:
            pipeline.run(until="caught_up")
        gets = [each.key for each in second if each.method == "GET" and not each.is_list and each.key.startswith("in/")]
        assert gets == ["in/late.parquet"]
    files = sw.open(pipeline.root.url, s3.storage_options).ledger.files()
    assert set(files["requests"].to_pylist()) == {1}
    everything = [row for number in [*range(30), 99] for row in events(number)]
    assert totals(pipeline.root.url, storage_options=s3.storage_options) == expected(everything)


@pytest.mark.more
def test_no_secret_is_at_the_root_in_a_repr_or_in_a_status(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "in/a.parquet", parquet(events(0)))
    pipeline = sw.Pipeline("events", f"s3://{bucket}/root", storage_options=s3.storage_options)
    pipeline.source("events", f"s3://{bucket}/in", format="parquet", discovery=FAST)
    pipeline.view("totals", TOTALS)
    with pipeline.start() as run:
        run.wait(until="caught_up")
        shown = f"{pipeline!r} {run.status()!r} {run.report()!r} {vars(pipeline)!r}"
    client = s3.client()
    objects = client.list_objects_v2(Bucket=bucket, Prefix="root/")["Contents"]
    stored = [client.get_object(Bucket=bucket, Key=each["Key"])["Body"].read() for each in objects]
    assert any(each["Key"].endswith("owner.json") for each in objects)
    secret = s3.storage_options["secret_access_key"]
    assert secret not in shown
    assert not any(secret.encode() in content for content in stored)


@pytest.mark.more
def test_a_run_without_anything_new_commits_nothing(tmp_path: Path) -> None:
    write(tmp_path / "in", "a.parquet", parquet(events(0)))
    pipeline = local(tmp_path)
    assert pipeline.run(until="caught_up").rows == 10
    before = sw.open(tmp_path / "root").epochs().num_rows
    report = pipeline.run(until="caught_up")
    assert (report.epochs, report.files, report.rows) == (0, 0, 0)
    assert sw.open(tmp_path / "root").epochs().num_rows == before


def test_files_that_arrive_while_it_runs_are_in_the_views_and_each_epoch_is_whole(tmp_path: Path) -> None:
    pipeline = local(tmp_path)
    rows: list[dict[str, Any]] = []
    with pipeline.start() as run:
        for number in range(5):
            rows += events(number * 100, 20)
            write(tmp_path / "in", f"{number}.parquet", parquet(events(number * 100, 20)))
            eventually(lambda: run.report().files == number + 1)  # noqa: B023
            assert totals(tmp_path / "root") == expected(rows)
        eventually(lambda: run.status().views == {"totals": ViewStatus("aggregate", len(expected(rows)))})
        status = run.status()
        assert [each.epoch for each in status.recent][-1] == status.epoch
        assert {"events"} == {name for each in status.recent for name in each.freshness_s}
        assert 0 < (status.sources["events"].freshness_s or 0) < 60
        assert any(edge.unit == "rows" for edge in status.edges)
    store = sw.open(tmp_path / "root")
    owner = store.owner()
    assert owner is not None and owner.status is not None
    told = sw.RunStatus.of_json(owner.status)
    assert told is not None and (told.phase, told.epochs) == ("stopped", store.epochs().num_rows)
    oracle = LedgerOracle({"events": "parquet"}, lambda url: Path(url[len("file://") :]).read_bytes(), tmp_path)
    assert oracle.check_every_epoch(store, {"totals": TOTALS}) >= 5


@pytest.mark.more
def test_a_stop_in_the_middle_of_a_file_and_the_next_run_goes_on_at_its_row(tmp_path: Path) -> None:
    rows = events(0, 60_000)
    write(tmp_path / "in", "large.parquet", parquet(rows, row_group_size=500))
    settings = sw.Settings(
        fetch=sw.settings.FetchSettings(
            piece_bytes=8 * 1024,
            max_bytes_in_flight=8 * 1024,
            requests=sw.settings.RequestSettings(whole_object_bytes=64 * 1024),
        ),
        barrier=sw.settings.BarrierSettings(max_epoch_bytes=8 * 1024),
    )

    def pipeline() -> sw.Pipeline:
        made = sw.Pipeline("events", tmp_path / "root", settings=settings)
        made.source("events", tmp_path / "in", format="parquet", discovery=FAST)
        made.view("totals", TOTALS)
        return made

    with pipeline().start() as run:
        eventually(lambda: run.report().rows > 1_000)
    (file,) = sw.open(tmp_path / "root").ledger.files("events").to_pylist()
    assert file["status"] == "reading"
    half = file["rows_read"]
    assert 1_000 < half < 60_000
    assert totals(tmp_path / "root") == expected(rows[:half])
    with pipeline().start() as run:
        eventually(lambda: run.report().rows > 1_000)
    (file,) = sw.open(tmp_path / "root").ledger.files("events").to_pylist()
    assert half < file["rows_read"]
    assert totals(tmp_path / "root") == expected(rows[: file["rows_read"]])


@pytest.mark.more
def test_each_wait_for_it_to_catch_up_means_a_listing_after_the_call(tmp_path: Path) -> None:
    write(tmp_path / "in", "0.parquet", parquet(events(0)))
    with local(tmp_path).start() as run:
        eventually(lambda: run.status().caught_up)
        for number in (1, 2, 3):
            write(tmp_path / "in", f"{number}.parquet", parquet(events(number)))
            assert not run.wait(until="caught_up", timeout_s=0.0)
            assert run.wait(until="caught_up", timeout_s=60)
            assert run.report().files == number + 1


def test_a_paused_run_reads_nothing_and_goes_on_when_it_is_resumed(tmp_path: Path) -> None:
    write(tmp_path / "in", "a.parquet", parquet(events(0)))
    with local(tmp_path).start() as run:
        run.wait(until="caught_up")
        run.pause()
        eventually(lambda: run.status().phase == "paused")
        listings = run.status().sources["events"].listings
        write(tmp_path / "in", "b.parquet", parquet(events(50)))
        assert not run.wait(until="caught_up", timeout_s=1.0)
        assert run.status().sources["events"].listings <= listings + 1
        assert run.report().files == 1
        run.resume()
        eventually(lambda: run.report().files == 2)
    assert totals(tmp_path / "root") == expected(events(0) + events(50))


@pytest.mark.more
def test_a_bad_file_is_quarantined_with_its_reason_and_the_others_go_on(tmp_path: Path) -> None:
    write(tmp_path / "in", "0-bad.parquet", b"PAR1 is not enough")
    write(tmp_path / "in", "1-good.parquet", parquet(events(0)))
    write(tmp_path / "in", "2-other.parquet", parquet([{"user": "a text", "amount": 1.0}]))
    report = local(tmp_path).run(until="caught_up")
    assert (report.quarantined, report.rows) == (2, 10)
    assert "2 files quarantined" in " ".join(report.notes)
    store = sw.open(tmp_path / "root")
    bad = {Path(row["path"]).name: row["error"] for row in store.ledger.files(status="quarantined").to_pylist()}
    assert bad.keys() == {"0-bad.parquet", "2-other.parquet"}
    assert "user" in bad["2-other.parquet"] and all(bad.values())
    assert "quarantined" in store.ledger.why(str(tmp_path / "in" / "0-bad.parquet")).text
    assert totals(tmp_path / "root") == expected(events(0))
    report = local(tmp_path).run(until="caught_up")
    assert report.quarantined == 0, "the report counts the files of its own run"
    assert "2 files quarantined" in " ".join(report.notes), "the notes show the state of the root"


@pytest.mark.more
def test_a_csv_value_that_does_not_fit_is_named_with_its_row(tmp_path: Path) -> None:
    write(tmp_path / "in", "2.csv", b"user,amount\n1,1.5\n2,many\n")
    write(tmp_path / "in", "1.csv", b"user,amount\n1,1.5\n2,2.5\n")
    report = local(tmp_path, format="csv").run(until="caught_up")
    assert (report.rows, report.quarantined) == (3, 0)
    assert "1 bad record quarantined" in " ".join(report.notes)
    (bad,) = sw.open(tmp_path / "root").ledger.quarantine().to_pylist()
    assert bad["path"].endswith("2.csv") and (bad["row"], bad["raw"]) == (1, b"2,many") and "amount" in bad["reason"]
    assert totals(tmp_path / "root") == {1: (2, 3.0), 2: (1, 2.5)}
    write(tmp_path / "in", "3.csv", b"user,amount\n3,1.5\n")
    with local(tmp_path, format="csv").start() as run:
        run.wait(until="caught_up")
        source = run.status().sources["events"]
    assert (source.rows, source.rows_bad) == (4, 1), "a later run continues the counts of the source"


@pytest.mark.more
def test_a_bad_file_that_is_replaced_is_read(tmp_path: Path) -> None:
    write(tmp_path / "in", "a.parquet", b"half")
    with local(tmp_path, schema="user bigint, amount double").start() as run:
        eventually(lambda: run.status().sources["events"].quarantined == 1)
        write(tmp_path / "in", "a.parquet", parquet(events(0)))
        eventually(lambda: run.report().rows == 10)
    statuses = sw.open(tmp_path / "root").ledger.files("events")["status"].to_pylist()
    assert sorted(statuses) == ["done", "quarantined"]


@pytest.mark.more
def test_a_changed_file_is_noted_and_not_read_again(tmp_path: Path) -> None:
    write(tmp_path / "in", "a.parquet", parquet(events(0)))
    with local(tmp_path).start() as run:
        run.wait(until="caught_up")
        write(tmp_path / "in", "a.parquet", parquet(events(50)))
        store = sw.open(tmp_path / "root")
        eventually(lambda: store.ledger.files("events")["changed_epoch"].to_pylist()[0] is not None)
    assert totals(tmp_path / "root") == expected(events(0))
    assert sw.open(tmp_path / "root").ledger.files("events").num_rows == 1


@pytest.mark.more
def test_an_empty_source_without_schema_ends_well_and_says_so(tmp_path: Path) -> None:
    report = local(tmp_path).run(until="caught_up")
    assert report.rows == 0
    assert "events" in " ".join(report.notes)
    assert sw.open(tmp_path / "root").views.table().num_rows == 0


@pytest.mark.more
def test_the_first_epoch_of_a_source_with_a_schema_shows_every_view_without_rows(tmp_path: Path) -> None:
    pipeline = local(tmp_path, schema="user bigint, amount double", materialize=True)
    pipeline.view("large", "SELECT user FROM events WHERE amount > 9")
    pipeline.view("several", f"{TOTALS} HAVING count(*) > 1")
    pipeline.view("one", "SELECT count(*) AS n, sum(amount) AS total, count(DISTINCT user) AS users FROM events")
    less = "SELECT e.user, f.user AS than FROM events e JOIN events f ON e.amount < f.amount"
    pipeline.view("less", less, on_full="allow")
    with pipeline.start() as run:
        assert run.wait(until="caught_up", timeout_s=120)
    store = sw.open(tmp_path / "root")
    epochs = store.epochs()["epoch"].to_pylist()
    empty = {"totals": 0, "large": 0, "several": 0, "one": 1}
    for snapshot in map(store.snapshot, epochs):
        assert {name: snapshot.view(name).count_rows() for name in snapshot.views} in (empty, {**empty, "less": 0})
    assert "less" in store.snapshot().views and len(epochs) <= 4
    one = {"n": 0, "total": None, "users": 0}
    assert store.snapshot().view("less").reflects_epoch in epochs
    assert store.snapshot().sql("SELECT count(*) AS n FROM totals, one").to_pylist() == [{"n": 0}]
    root = str(tmp_path / "root")
    assert json.loads(slackwater("show", root, "one", "--json").out) == [one]
    assert json.loads(slackwater("show", root, "totals", "--json").out) == []
    assert json.loads(slackwater("sql", root, "SELECT n FROM one", "--json").out) == [{"n": 0}]
    page = RootDocuments(store, SystemClock())
    assert [page.sample(view, 9)["sample"] for view in ("one", "totals")] == [[[0, None, 0]], []]
    assert all(0 <= view["behind_s"] < 60 for view in page.views()["views"])


@pytest.mark.more
def test_a_view_over_two_sources_misses_nothing_of_the_one_whose_schema_is_known_first(tmp_path: Path) -> None:
    (tmp_path / "late").mkdir()
    write(tmp_path / "in", "a.parquet", parquet(events(0)))
    pipeline = local(tmp_path, schema="user bigint, amount double")
    pipeline.source("late", tmp_path / "late", format="parquet", discovery=FAST)
    pipeline.view("both", "SELECT user FROM events UNION ALL SELECT user FROM late")
    report = pipeline.run(until="caught_up")
    assert report.rows == 0
    assert "events: its files wait" in " ".join(report.notes)
    write(tmp_path / "late", "b.parquet", parquet(events(50, 5)))
    assert pipeline.run(until="caught_up").rows == 15
    assert sw.open(tmp_path / "root").snapshot().view("both").count_rows() == 15
    assert totals(tmp_path / "root") == expected(events(0))


@pytest.mark.more
def test_the_schema_comes_from_the_first_file_and_is_kept(tmp_path: Path) -> None:
    write(tmp_path / "in", "a.parquet", parquet(events(0)))
    write(tmp_path / "in", "b.parquet", parquet([{"user": 7, "amount": 1.0, "extra": "x"}]))
    local(tmp_path).run(until="caught_up")
    write(tmp_path / "in", "c.parquet", parquet([{"user": 8}]))
    local(tmp_path).run(until="caught_up")
    assert totals(tmp_path / "root") == expected(events(0)) | {7: (1, 1.0), 8: (1, None)}
    with pytest.raises(sw.errors.DefinitionChangedError, match="schema"):
        local(tmp_path, schema="user string, amount double").run(until="caught_up")


@pytest.mark.more
def test_a_view_that_cannot_be_maintained_is_refused_before_anything_is_committed(tmp_path: Path) -> None:
    write(tmp_path / "in", "a.parquet", parquet(events(0)))
    pipeline = local(tmp_path)
    pipeline.view("less", "SELECT e.user, f.user AS than FROM events e JOIN events f ON e.amount < f.amount")
    with pytest.raises(sw.errors.NotIncrementalError, match=r"less.*without equal columns"):
        pipeline.run(until="caught_up")
    assert sum(sw.open(tmp_path / "root").epochs()["rows"].to_pylist()) == 0
    local(tmp_path).run(until="caught_up")
    assert totals(tmp_path / "root") == expected(events(0)), "the root is still good"


@pytest.mark.more
def test_a_view_that_names_no_source_lists_the_sources(tmp_path: Path) -> None:
    write(tmp_path / "in", "a.parquet", parquet(events(0)))
    pipeline = local(tmp_path)
    pipeline.view("wrong", "SELECT * FROM evnts")
    with pytest.raises(sw.errors.ViewError, match=r"wrong.*events"):
        pipeline.run(until="caught_up")


@pytest.mark.more
def test_a_view_that_changes_or_comes_late_is_refused_and_the_old_one_stays(tmp_path: Path) -> None:
    write(tmp_path / "in", "a.parquet", parquet(events(0)))
    local(tmp_path).run(until="caught_up")
    other = sw.Pipeline("events", tmp_path / "root")
    other.source("events", tmp_path / "in", format="parquet", discovery=FAST)
    other.view("totals", TOTALS.replace("sum", "max"))
    with pytest.raises(sw.errors.DefinitionChangedError, match=r"totals.*sum\(amount\).*max\(amount\)"):
        other.run(until="caught_up")
    assert totals(tmp_path / "root") == expected(events(0))


@pytest.mark.more
def test_a_view_that_is_not_declared_is_kept_and_stopped(tmp_path: Path) -> None:
    write(tmp_path / "in", "a.parquet", parquet(events(0)))
    pipeline = local(tmp_path)
    pipeline.view("rows", "SELECT user FROM events")
    pipeline.run(until="caught_up")
    write(tmp_path / "in", "b.parquet", parquet(events(50)))
    local(tmp_path).run(until="caught_up")
    snapshot = sw.open(tmp_path / "root").snapshot()
    assert snapshot.view("rows").count_rows() == 10
    assert totals(tmp_path / "root") == expected(events(0) + events(50))


@pytest.mark.more
def test_a_plain_lance_reader_opens_a_view_at_its_tag(tmp_path: Path) -> None:
    write(tmp_path / "in", "a.parquet", parquet(events(0)))
    local(tmp_path).run(until="caught_up")
    (view,) = sw.open(tmp_path / "root").views.table().to_pylist()
    dataset = lance.dataset(str(tmp_path / "root" / view["path"]), version="committed")
    rows = dataset.to_table(columns=["user", "n", "total"]).to_pylist()
    assert {row["user"]: (row["n"], row["total"]) for row in rows} == expected(events(0))


@pytest.mark.more
def test_a_second_run_on_the_root_is_refused_by_the_name_of_the_owner(tmp_path: Path) -> None:
    with local(tmp_path).start() as run:
        run.wait(until="caught_up")
        with pytest.raises(sw.errors.OwnedError, match=r"pipeline 'events', pid \d+"):
            local(tmp_path).start()


@pytest.mark.more
def test_a_run_whose_root_was_taken_over_stops_for_good(tmp_path: Path) -> None:
    pipeline = local(tmp_path, schema="user bigint, amount double")
    with pytest.raises(sw.errors.FencedError), pipeline.start() as first:
        first.wait(until="caught_up")
        with local(tmp_path, schema="user bigint, amount double").start(takeover=True) as second:
            second.wait(until="caught_up")
            write(tmp_path / "in", "a.parquet", parquet(events(0)))
            eventually(lambda: second.report().rows == 10)
            eventually(lambda: first.status().phase == "failed")
            first.wait()
    assert totals(tmp_path / "root") == expected(events(0))
