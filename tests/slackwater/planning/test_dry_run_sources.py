"""Tests of a dry run's report of sources: equal to the root's ledger, and to the cost of the reading that follows."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from actors.names.seen_index import SeenIndex
from actors.objects.object_store import ObjectStore
from actors.reading.source_reader import SourceReader
from actors.recovery.committed_files import CommittedFiles
from actors.sources.pipeline_definition import PipelineDefinition
from slackwater.cli.commands.dry_run import _source_lines, _view_lines
from slackwater.extensions.planned_files import Files
from slackwater.planning.dry_run.dry_run import DryRun
from slackwater.planning.dry_run.prices import Prices, Requests
from slackwater.planning.dry_run.source_survey import KnownSource, SourceSurvey
from slackwater.testing.servers.s3_server import S3Server
from state.location import Location
from state.tables.catalog import CatalogPipeline, put_pipeline, put_source
from state.tables.fingerprint import path_fingerprint, version_fingerprint
from state.tables.records import CatalogSource
from state.vnode import vnode_of
from tests.slackwater.reading.written_root import START, RootWriter

_LINE = "carrier,day\nAA,1\n"


class _Enough(Exception):
    """The sources are known, and the test needs no views."""


def _sources(pipeline: sw.Pipeline, prices: Prices | None = None) -> DryRun:
    """The dry run, up to where Spark would start."""
    found: list[DryRun] = []

    def on_sources(known: DryRun) -> None:
        found.append(known)
        raise _Enough

    with pytest.raises(_Enough):
        pipeline.dry_run(prices=prices, on_sources=on_sources)
    return found[0]


def _pipeline(root: Path | str, raw: Path | str, **options: object) -> sw.Pipeline:
    pipeline = sw.Pipeline("flights", root=root)
    pipeline.source("flights", raw, format="csv", pattern="**/*.csv", **options)  # type: ignore[arg-type]
    pipeline.view("all", "SELECT * FROM flights")
    return pipeline


def _raw(directory: Path, *names: str) -> Path:
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(_LINE)
    return directory


def _known_root(root: Path, raw: Path, pipeline: sw.Pipeline) -> None:
    """The root has read same.csv and an older changed.csv; waiting.csv waits; bad.csv was unreadable."""
    writer = RootWriter(Location(str(root)), Location(str(raw)))
    put_pipeline(writer.delta, CatalogPipeline("flights", ansi=False))
    put_source(writer.delta, CatalogSource("flights", pipeline.sources["flights"].to_json(), None))
    (page,) = ObjectStore(Location(str(raw))).list_pages()
    now = {path: version_fingerprint(etag, size, modified) for path, etag, size, modified in page.objects()}
    for path, version in {
        "same.csv": now["same.csv"],
        "waiting.csv": version_fingerprint('"e"', 100, START),
        "changed.csv": b"before..",
        "bad.csv": version_fingerprint('"e"', 100, START),
    }.items():
        key = path_fingerprint("flights", path)
        writer.delta.put("seen", key, vnode_of(path), source="flights", path=path, version=version)
    writer.queue("waiting.csv")
    writer.finish("same.csv", rows_read=1)
    writer.finish("changed.csv", rows_read=1)
    writer.finish("bad.csv", rows_read=0, status="quarantined")
    writer.commit()


_NAMES = ("same.csv", "waiting.csv", "changed.csv", "bad.csv", "day=1/new.csv", "_hidden.csv", "notes.txt")


def test_a_file_is_known_waiting_new_or_changed(tmp_path: Path) -> None:
    raw, root = _raw(tmp_path / "raw", *_NAMES), tmp_path / "root"
    pipeline = _pipeline(root, raw)
    _known_root(root, raw, pipeline)
    before = sorted(root.rglob("*"))
    found = _sources(pipeline)
    (source,) = found.sources
    one = Files(1, len(_LINE))
    assert not found.is_first
    assert (source.waiting, source.new) == (one, one)
    assert source.changed == one, "of a version of which no row was ingested the successor is read"
    assert source.known == one + one
    assert source.listed == source.known + source.to_read
    assert source.first_pass == Requests(lists=1, gets=3)
    assert source.refused is None
    assert sorted(root.rglob("*")) == before


def test_what_becomes_of_changed_files_is_as_declared(tmp_path: Path) -> None:
    raw = _raw(tmp_path / "raw", *_NAMES)
    appending, failing = (_pipeline(tmp_path / on_change, raw, on_change=on_change) for on_change in ("append", "fail"))
    _known_root(tmp_path / "append", raw, appending)
    _known_root(tmp_path / "fail", raw, failing)
    assert _sources(appending).sources[0].changed.files == 2
    refused = _sources(failing).sources[0].refused
    assert refused is not None and refused.startswith("changed.csv has changed") and "on_change" in refused


def test_what_is_too_old_is_left_out(tmp_path: Path) -> None:
    raw = _raw(tmp_path / "raw", "a.csv", "b.csv")
    os.utime(raw / "a.csv", (1e9, 1e9))
    pipeline = _pipeline(tmp_path / "root", raw, discovery=sw.Listing(modified_after=START))
    (source,) = _sources(pipeline).sources
    assert (source.left_out.files, source.to_read.files) == (1, 1)


def test_a_source_that_was_read_before_and_is_gone_would_be_paused(tmp_path: Path) -> None:
    raw = _raw(tmp_path / "raw", *_NAMES)
    pipeline = _pipeline(tmp_path / "root", raw)
    _known_root(tmp_path / "root", raw, pipeline)
    assert _sources(pipeline).exit_code == 0
    shutil.rmtree(raw)
    found = _sources(pipeline)
    assert (found.sources[0].refused, found.paused, found.exit_code) == (None, ("flights",), 3)
    assert any("paused" in line and "there is no such directory" in line for line in _source_lines(found))
    assert [*_view_lines(found)][-1] == "a run would start, and pause source flights; nothing was written"


def test_a_source_that_cannot_be_listed_is_refused_and_the_others_are_not(tmp_path: Path) -> None:
    pipeline = _pipeline(tmp_path / "root", _raw(tmp_path / "raw", "a.csv"))
    pipeline.source("gone", tmp_path / "gone", format="csv")
    found = _sources(pipeline)
    assert found.sources[0].refused is None
    assert "there is no such directory" in str(found.sources[1].refused)
    assert (found.is_refused, found.exit_code) == (True, 1)
    assert not (tmp_path / "root").exists()


def test_requests_to_a_bucket_are_counted_and_priced(s3: S3Server, bucket: str) -> None:
    for number in range(1_002):
        s3.put(bucket, f"raw/{number:04}.csv", _LINE.encode())
    proxy = s3.proxy()
    try:
        pipeline = sw.Pipeline("flights", root=f"s3://{bucket}/root", storage_options=proxy.storage_options)
        pipeline.source("flights", f"s3://{bucket}/raw", format="csv", discovery=sw.Listing(interval_s=30))
        pipeline.view("all", "SELECT * FROM flights")
        with proxy.recording() as requests:
            found = _sources(pipeline, Prices(lists=5.0, gets=1.0))
    finally:
        proxy.close()
    (source,) = found.sources
    assert source.first_pass == Requests(lists=2, gets=1_002)
    assert source.first_pass_dollars == pytest.approx(0.01 + 1.002)
    assert source.idle_day == Requests(lists=2 * 86_400 / 30)
    # The root is looked at, too; the directories above the source are searched for tables.
    below = [each for each in requests if "root" not in each.key and "root" not in each.query.get("prefix", "")]
    assert source.asked == Requests(
        lists=sum(each.is_list for each in below), gets=sum(each.method == "GET" and not each.is_list for each in below)
    )
    assert not [each for each in requests if each.method not in ("GET", "HEAD")], "a dry run writes nothing"


def test_listings_are_as_far_apart_as_the_budget_makes_them(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "raw/a.csv", _LINE.encode())
    pipeline = sw.Pipeline("flights", root=f"s3://{bucket}/root", storage_options=s3.storage_options)
    slow = sw.Listing(interval_s=1, max_requests_per_hour=60)
    pipeline.source("flights", f"s3://{bucket}/raw", format="csv", discovery=slow)
    pipeline.view("all", "SELECT * FROM flights")
    (source,) = _sources(pipeline).sources
    assert source.period_s == 60
    assert any("max_requests_per_hour is 60" in note for note in source.notes)


@pytest.mark.parametrize(
    "requests", [sw.settings.RequestSettings(), sw.settings.RequestSettings(max_held_bytes=1 << 20)], ids=str
)
def test_gets_of_a_large_parquet_file_are_those_that_reading_it_takes(
    tmp_path: Path, requests: sw.settings.RequestSettings
) -> None:
    rows = np.random.default_rng(7).random((4, 600_000))
    content = io.BytesIO()
    table = pa.table({f"c{number}": column for number, column in enumerate(rows)})
    pq.write_table(table, content, row_group_size=150_000, use_dictionary=False)
    for name in ("a.parquet", "b.parquet"):
        (tmp_path / name).write_bytes(content.getvalue())
    pipeline = sw.Pipeline(
        "p", root=tmp_path / "root", settings=sw.Settings(fetch=sw.settings.FetchSettings(requests=requests))
    )
    pipeline.source("s", tmp_path, format="parquet")
    definition, source = pipeline.settings.fetch, pipeline.sources["s"]
    nothing = CommittedFiles.nothing(
        PipelineDefinition(
            name="p",
            root=pipeline.root,
            sources=(source,),
            views={},
            ansi=False,
            barrier=sw.settings.BarrierSettings(),
            fetch=definition,
        )
    )
    plan = SourceSurvey(source, KnownSource(nothing, SeenIndex(), table.schema, None), definition, Prices()).plan()
    file = ObjectStore(source.location).find("s", "a.parquet")
    assert file is not None
    reading = SourceReader(source, table.schema, definition).open(file)
    from actors.rows import Offset

    is_last = False
    while not is_last:
        _, is_last = reading.next_piece(table.schema, Offset())
    reading.settle()
    assert plan.first_pass.gets == 2 * reading.take_cost()[0]


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf"), "cheap", True])
def test_an_impossible_price_is_refused(price: object) -> None:
    with pytest.raises(sw.errors.SettingsError, match="lists"):
        Prices(lists=price)  # type: ignore[arg-type]


def test_a_source_that_a_run_would_pause_has_the_reason(tmp_path: Path) -> None:
    raw = _raw(tmp_path / "lake" / "raw", "a.csv", "t/part.csv", "t/_delta_log/00000000000000000000.json")
    plan = _sources(_pipeline(tmp_path / "root", raw)).sources[0]
    assert plan.paused is not None and plan.paused.startswith(f"file://{raw}/t is a Delta table")
    _raw(tmp_path / "lake", "_delta_log/00000000000000000000.json")
    plan = _sources(_pipeline(tmp_path / "root", raw)).sources[0]
    assert plan.paused is not None and "the source is in a Delta table" in plan.paused


@pytest.mark.parametrize(
    ("files", "options", "note"),
    [
        ({}, {}, "nothing is below"),
        ({"a.txt": "x"}, {}, "none of the 1 name below"),
        ({"_temporary/a.csv": _LINE}, {"pattern": "**"}, "are hidden: names with _ or . in front"),
        ({"a.csv": "id;sku;qty\n1;a;2\n2;b;3\n"}, {}, "a.csv looks like Csv(delimiter=';')"),
        (
            {"a.csv": "id,n\n1,2\n", "b.csv": "id;n\n1;2\n3;4\n", "c.csv": "id;n\n1;2\n3;4\n"},
            {"schema": "id int, n int"},
            "b.csv and 1 more look like Csv(delimiter=';')"
            '|a run quarantines it; correct the file, or declare Schema(evolution="lenient")',
        ),
        ({"a.csv": "made by X\nof May\nid,n\n1,2\n3,4\n"}, {}, "a.csv looks like Csv(skip_rows=2)"),
        ({"a.csv": "id,n\n1,2\n"}, {"format": "parquet"}, "a.csv: it is CSV, not Parquet"),
        ({"a.csv": '{"id": 1}\n'}, {"format": "parquet"}, "a.csv: it is JSON, not Parquet"),
        ({"a.csv": "id,qty\n1,2\n", "b.csv": "id,quantity\n1,2\n"}, {}, "b.csv lacks qty of a.csv, and has quantity"),
        ({"a.csv": "id,quantity\n1,2\n"}, {"schema": "id bigint, qty int"}, "a.csv lacks qty of the declared schema"),
        ({"day=1/a.csv": "id,qty\n1,2\n"}, {"schema": "id bigint, qty int, day int"}, None),
        ({"a.csv": "ID,qty\n1,2\n", "b.csv": "qty,id\n1,2\n"}, {}, None),
        ({"a.csv": '{"id": 1}\n', "b.csv": '{"qty": 1}\n'}, {"format": "json"}, None),
        ({"a.csv": "id;n\n1;2\n"}, {"format": sw.Csv(delimiter=";")}, None),
        ({"a.csv": "id\nx\ny\n"}, {}, None),
    ],
)
def test_likely_mistakes_are_notes(
    files: dict[str, str], options: dict[str, object], note: str | None, tmp_path: Path
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    for name, text in files.items():
        (raw / name).parent.mkdir(exist_ok=True)
        (raw / name).write_text(text)
    pipeline = sw.Pipeline("p", root=tmp_path / "root")
    given: dict[str, object] = {"format": "csv", "pattern": "**/*.csv", **options}
    pipeline.source("s", raw, **given)  # type: ignore[arg-type]
    pipeline.view("all", "SELECT * FROM s")
    (source,) = _sources(pipeline).sources
    assert bool(source.notes) is (note is not None), source.notes
    expected = [] if note is None else note.split("|")
    assert all(any(part in each for part in expected) for each in source.notes), source.notes
    assert all(any(part in each for each in source.notes) for part in expected), source.notes


def test_a_wildcard_in_the_url_is_a_note(s3: S3Server, bucket: str) -> None:
    pipeline = sw.Pipeline("p", root=f"s3://{bucket}/root", storage_options=s3.storage_options)
    pipeline.source("s", f"s3://{bucket}/raw/*.csv", format="csv")
    pipeline.view("all", "SELECT * FROM s")
    (source,) = _sources(pipeline).sources
    assert any("has a wildcard: give the directory as url=" in note for note in source.notes), source.notes
