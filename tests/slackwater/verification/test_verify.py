"""Every view is computed again from the ledger's files, and whatever is wrong with it is seen and named."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import random
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

import slackwater as sw
from actors.files import FileVersion
from actors.formats.options import Csv, Json, Parquet
from actors.formats.registry import Format
from actors.objects.object_store import ObjectStore
from actors.sources.source import SourceDefinition
from slackwater.reading.recorded_source import IngestedFile, RecordedSource
from slackwater.verification.duckdb_engine import DuckDbEngine
from slackwater.verification.engine import CannotComputeError
from slackwater.verification.ingested_files import IngestedFiles
from slackwater.verification.step import Step
from slackwater.verification.verification import FileProblem, Outcome, Verification, ViewCheck
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import EpochNotFoundError, UsageError
from state.location import Location
from state.tables.records import CatalogView
from tests.cases import few
from tests.slackwater.verification.committed_root import CommittedRoot

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("i", pa.int64()),
        ("d", pa.float64()),
        ("m", pa.decimal128(10, 2)),
        ("moment", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("yes", pa.bool_()),
    ]
)
GROUPED = ViewDefinition(
    "grouped",
    "SELECT k, count(*) AS n, sum(i) AS s, avg(d) AS a, sum(m) AS m, max(moment) AS latest, min(day) AS earliest "
    "FROM t GROUP BY k",
)
TOTAL = ViewDefinition("total", "SELECT count(*) AS n, sum(d) AS s FROM t")
ROWS = ViewDefinition("big", "SELECT k, i, d, moment, day, yes FROM t WHERE i > 2")
SPARK_ONLY = ViewDefinition("spark_only", "SELECT date_format(day, 'yyyy') AS y, count(*) AS n FROM t GROUP BY 1")
ENGINES = ("duckdb", "spark")
FORMATS: Mapping[str, Format] = {"csv": Csv(), "json": Json(), "parquet": Parquet()}


def rows(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {
            "k": [None, "a", "b", "o'hare|\\1"][i % 4],
            "i": i,
            "d": i / 7,
            "m": f"{i}.25",
            "moment": f"2026-01-01T00:00:{i % 60:02d}Z",
            "day": f"2026-01-{1 + i % 28:02d}",
            "yes": i % 3 == 0,
        }
        for i in range(first, first + count)
    ]


def body(format: str, records: list[dict[str, Any]]) -> bytes:
    if format == "json":
        return "".join(json.dumps({**each, "m": float(each["m"]), "more": 1}) + "\n" for each in records).encode()
    if format == "csv":
        lines = [",".join(["i", "more", *[name for name in SCHEMA.names if name != "i"]])]
        for each in records:
            rest = [each[name] for name in SCHEMA.names if name != "i"]
            texts = ["" if value is None else str(value).lower() if value in (True, False) else value for value in rest]
            lines.append(",".join(map(str, [each["i"], "x", *texts])))
        return ("\n".join(lines) + "\n").encode()
    table = pa.Table.from_pylist(records).set_column(
        3, "m", pa.array([each["m"] for each in records]).cast(pa.decimal128(10, 2))
    )
    for name in ("moment", "day"):
        text = pa.array([each[name].removesuffix("Z") for each in records])
        kind = pa.timestamp("us") if name == "moment" else pa.date32()
        table = table.set_column(table.column_names.index(name), name, text.cast(kind))
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=3)
    return sink.getvalue()


def check(verification: Verification, view: str) -> ViewCheck:
    return next(each for each in verification.views if each.view == view)


def written(root: CommittedRoot, *views: ViewDefinition, format: str = "csv", schema: pa.Schema = SCHEMA) -> None:
    """Two files, read in two epochs, the second of them in two parts."""
    root.declare(FORMATS[format], schema, *views)
    root.put("a", body(format, rows(0, 10)))
    root.put("dir/b", body(format, rows(10, 20)))
    root.ingest({"a": 10, "dir/b": 5})
    root.ingest({"dir/b": 20})


@pytest.mark.more_after(1)
@pytest.mark.parametrize("format", few(FORMATS, "csv"))
@pytest.mark.parametrize("engine", ENGINES)
def test_views_are_equal_to_what_either_engine_computes(root: CommittedRoot, format: str, engine: str) -> None:
    written(root, GROUPED, ROWS, TOTAL, format=format)
    found = root.verify(engine=engine)
    assert [(each.view, each.outcome, each.engine, each.reason) for each in found.views] == [
        (name, Outcome.EQUAL, engine, "") for name in ("big", "grouped", "total")
    ]
    assert check(found, "grouped").rows == check(found, "grouped").expected_rows == 4
    assert found.all_equal and found.epoch == root.epochs[-1]


@pytest.mark.more
def test_an_older_epoch_is_checked_against_its_own_ledger(root: CommittedRoot) -> None:
    written(root, GROUPED, ROWS)
    found = root.verify(epoch=root.epochs[0])
    assert found.all_equal and found.epoch == root.epochs[0]
    assert check(found, "big").rows == 12
    with pytest.raises(EpochNotFoundError):
        root.verify(epoch=1)


@pytest.mark.more
@pytest.mark.parametrize("engine", few(ENGINES, "spark"))
def test_a_changed_value_is_named_with_both_values(root: CommittedRoot, engine: str) -> None:
    written(root, GROUPED, ROWS)
    wrong = root.stored("grouped").to_pylist()
    row = next(each for each in wrong if each["k"] == "b")
    right = row["s"]
    row["s"] += 1
    root.overwrite("grouped", pa.Table.from_pylist(wrong, root.stored("grouped").schema))
    found = check(root.verify(engine=engine), "grouped")
    assert (found.outcome, found.engine) == (Outcome.DIFFERENT, engine)
    assert found.differences is not None
    assert (found.differences.missing, found.differences.extra, found.differences.changed) == (0, 0, 1)
    (example,) = found.differences.examples
    assert example.view is not None and example.expected is not None
    assert (example.view["k"], example.view["s"], example.expected["s"]) == ("b", right + 1, right)
    assert check(root.verify(engine=engine), "big").outcome is Outcome.EQUAL


@pytest.mark.more
@pytest.mark.parametrize("engine", few(ENGINES, "duckdb"))
@pytest.mark.parametrize("view", few(["grouped", "big"], "big"))
def test_missing_and_extra_rows_are_counted_and_named(root: CommittedRoot, view: str, engine: str) -> None:
    written(root, GROUPED, ROWS)
    table = root.stored(view)
    lost = table.slice(0, 1).to_pylist()[0]
    root.overwrite(view, table.slice(1))
    found = check(root.verify(engine=engine), view).differences
    assert found is not None and (found.missing, found.extra, found.changed) == (1, 0, 0)
    assert dict(found.examples[0].expected or {}) == lost and found.examples[0].view is None

    root.overwrite(view, pa.concat_tables([table, table.slice(2, 1), table.slice(2, 1)]))
    found = check(root.verify(engine=engine), view).differences
    assert found is not None and (found.missing, found.extra, found.changed) == (0, 2, 0)
    assert dict(found.examples[0].view or {}) == table.slice(2, 1).to_pylist()[0]


@pytest.mark.more
def test_duckdb_alone_never_condemns_a_view(root: CommittedRoot) -> None:
    """Some SQL it does not understand, and some means another thing there: what Spark says counts, and why is told."""
    shifted = ViewDefinition("shifted", "SELECT i, substring(k, 0, 1) AS s FROM t")
    written(root, shifted, SPARK_ONLY)
    found = root.verify()
    assert [(each.view, each.outcome, each.engine) for each in found.views] == [
        ("shifted", Outcome.EQUAL, "spark"),
        ("spark_only", Outcome.EQUAL, "spark"),
    ]
    assert check(found, "spark_only").reason.startswith("duckdb: ")
    assert check(found, "shifted").reason == "duckdb has another result"
    alone = root.verify(engine="duckdb")
    assert check(alone, "spark_only").outcome is Outcome.NOT_CHECKABLE
    assert check(alone, "shifted").outcome is Outcome.DIFFERENT


@pytest.mark.more
def test_auto_reports_a_wrong_view_with_what_spark_has(root: CommittedRoot) -> None:
    written(root, GROUPED)
    root.overwrite("grouped", root.stored("grouped").slice(1))
    found = check(root.verify(), "grouped")
    assert (found.outcome, found.engine, found.reason) == (Outcome.DIFFERENT, "spark", "duckdb has another result")


@pytest.mark.more
def test_a_file_that_has_changed_or_is_gone_is_named(root: CommittedRoot) -> None:
    written(root, GROUPED, ROWS)
    root.put("a", body("csv", rows(0, 9)))
    root.remove("dir/b")
    found = root.verify()
    for view in ("grouped", "big"):
        one = check(found, view)
        assert (one.outcome, one.engine) == (Outcome.NOT_CHECKABLE, None)
        assert one.files == (
            FileProblem(f"{root.raw.url}/a", "changed"),
            FileProblem(f"{root.raw.url}/dir/b", "deleted"),
        )
        assert "/a has changed" in one.reason and "/dir/b is deleted" in one.reason
    assert not found.all_equal


@pytest.mark.more
def test_a_file_of_which_no_row_was_read_may_go(root: CommittedRoot) -> None:
    written(root, GROUPED)
    root.put("bad", b"\x00")
    root.ingest({"bad": 0}, status="quarantined")
    root.remove("bad")
    root.put("new", body("csv", rows(100, 5)))
    assert root.verify().all_equal


@pytest.mark.more
@pytest.mark.parametrize("format", few(["csv", "json"], "json"))
@pytest.mark.parametrize("engine", few(ENGINES, "duckdb"))
def test_of_a_quarantined_file_exactly_the_rows_before_the_bad_one_count(
    root: CommittedRoot, format: str, engine: str
) -> None:
    root.declare(FORMATS[format], SCHEMA, GROUPED, ROWS)
    lines = body(format, rows(0, 20)).splitlines(keepends=True)
    bad = 10 if format == "json" else 11
    lines[bad] = b'{"k": "a", "i": "no number"}\n' if format == "json" else lines[bad].replace(b"10,", b"ten,", 1)
    root.put("half", b"".join(lines))
    root.ingest({"half": 10}, status="quarantined")
    found = root.verify(engine=engine)
    assert found.all_equal and check(found, "big").rows == 7
    root.claim("half", 9)
    assert {each.outcome for each in root.verify(engine=engine).views} == {Outcome.DIFFERENT}


@pytest.mark.more
def test_a_ledger_that_claims_rows_that_a_file_does_not_have_is_wrong(root: CommittedRoot) -> None:
    written(root, GROUPED)
    root.claim("a", 11)
    found = check(root.verify(), "grouped")
    assert found.outcome is Outcome.DIFFERENT
    assert "the ledger says that 11 rows of a were ingested; it has 10" in found.reason


@pytest.mark.more
def test_a_stopped_view_is_checked_where_it_has_stopped(root: CommittedRoot) -> None:
    written(root, GROUPED, ROWS)
    stopped_at = root.epochs[-1]
    root.freeze("big")
    root.put("c", body("csv", rows(40, 6)))
    root.ingest({"c": 6})
    found = root.verify()
    assert found.all_equal
    assert (check(found, "big").epoch, check(found, "grouped").epoch) == (stopped_at, root.epochs[-1])
    assert (check(found, "big").rows, root.stored("grouped").num_rows) == (27, 4)


@pytest.mark.more
@pytest.mark.parametrize("engine", few(ENGINES, "duckdb"))
def test_a_failed_view_is_checked_where_it_stands(root: CommittedRoot, engine: str) -> None:
    """The row over which it failed came later, and is in the other views."""
    inverse = ViewDefinition("inverse", "SELECT 1 / (i - 40) AS x FROM t")
    written(root, GROUPED, inverse)
    stood_at = root.epochs[-1]
    root.fail("inverse", "[DIVIDE_BY_ZERO] zero")
    root.put("c", body("csv", rows(40, 6)))
    root.ingest({"c": 6})
    found = root.verify(engine=engine)
    assert found.all_equal
    one = check(found, "inverse")
    assert (one.epoch, one.rows, one.expected_rows) == (stood_at, 30, 30)
    assert one.reason == f"the view is stale since epoch {stood_at}: [DIVIDE_BY_ZERO] zero"
    assert (check(found, "grouped").epoch, check(found, "grouped").reason) == (root.epochs[-1], "")
    assert check(root.verify(epoch=stood_at, engine=engine), "inverse").reason == ""

    root.overwrite("inverse", root.stored("inverse").slice(1))
    assert check(root.verify(engine=engine), "inverse").outcome is Outcome.DIFFERENT


@pytest.mark.more
def test_a_view_that_failed_in_its_first_epoch_is_not_checkable(root: CommittedRoot) -> None:
    root.declare(Csv(), SCHEMA, GROUPED, ROWS)
    root.put("a", body("csv", rows(0, 10)))
    root.ingest({"a": 10})
    root.fail("big", "too wet", stopped_epoch=0)
    root.put("b", body("csv", rows(10, 20)))
    root.ingest({"b": 20})
    root.overwrite("big", root.stored("big").slice(0, 0))
    found = root.verify()
    one = check(found, "big")
    assert (one.outcome, one.engine, one.epoch, one.rows) == (Outcome.NOT_CHECKABLE, None, root.epochs[-1], 0)
    assert one.reason == "it failed in its first epoch, and has no rows: too wet; correct it, and retry it"
    assert check(found, "grouped").outcome is Outcome.EQUAL


@pytest.mark.more
def test_a_stale_view_of_an_expired_epoch_is_not_checkable(root: CommittedRoot) -> None:
    written(root, GROUPED, ROWS)
    later = root.epochs[-1] + 1
    root.fail("big", "too wet", stopped_epoch=later)
    root.put("c", body("csv", rows(40, 6)))
    root.ingest({"c": 6})
    one = check(root.verify(), "big")
    assert (one.outcome, one.epoch) == (Outcome.NOT_CHECKABLE, later)
    assert one.reason == f"the view is stale since epoch {later}, which is no longer retained"


@pytest.mark.more
def test_a_function_needs_its_app_and_no_other(root: CommittedRoot) -> None:
    def late(t: DataFrame) -> DataFrame:
        return t.where("i > 5").select("k", "i")

    def other() -> ViewDefinition:
        def late(t: DataFrame) -> DataFrame:
            return t.where("i > 6").select("k", "i")

        return ViewDefinition("late", function=late)

    written(root, ViewDefinition("late", function=late))
    steps: list[Step] = []
    without = check(root.verify(on_step=steps.append), "late")
    assert len(steps) == 1, "nothing is read for a view that nobody can compute"
    assert without.outcome is Outcome.NOT_CHECKABLE and "--app" in without.reason

    app = sw.Pipeline("p", root=root.root.url)
    app.source("t", root.raw.url, format="csv")
    app.view(late)
    found = check(root.verify(pipeline=app), "late")
    assert (found.outcome, found.engine, found.rows) == (Outcome.EQUAL, "spark", 24)
    root.overwrite("late", root.stored("late").slice(1))
    assert check(root.verify(pipeline=app), "late").outcome is Outcome.DIFFERENT

    changed = sw.Pipeline("p", root=root.root.url)
    changed.view(other().function or late)
    assert "not the function that the view was made by" in check(root.verify(pipeline=changed), "late").reason


@pytest.mark.more_after(1)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_csv_is_read_as_its_source_says(root: CommittedRoot, engine: str) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("te\"x't", pa.string()), ("raw", pa.binary()), ("moment", pa.timestamp("us"))]
    )
    format = Csv(delimiter=";", quote="'", header=False, null_values=("-",))
    root.declare(format, schema, ViewDefinition("every", "SELECT * FROM t"))
    text = "1;'a;''b''\nc';\\x41;2026-01-01 01:02:03.5\n\n2;-;-;-\n3;;NULL;2026-01-01\n"
    root.put("plain", text.encode())
    root.put("packed", gzip.compress(text.encode()))
    root.ingest({"plain": 3, "packed": 2})
    assert root.stored("every").num_rows == 5
    assert root.stored("every")["te\"x't"].to_pylist()[:3] == ["a;'b'\nc", None, ""]
    found = check(root.verify(engine=engine), "every")
    assert (found.outcome, found.reason) == (Outcome.EQUAL, "")


@pytest.mark.more
def test_a_csv_without_texts_for_null_is_left_to_spark(root: CommittedRoot) -> None:
    root.declare(Csv(null_values=()), pa.schema([("k", pa.string())]), ViewDefinition("every", "SELECT k FROM t"))
    root.put("a", b"k\nx\nNULL\n")
    root.ingest({"a": 2})
    found = check(root.verify(), "every")
    assert (found.outcome, found.engine) == (Outcome.EQUAL, "spark") and "null" in found.reason


@pytest.mark.more
def test_a_source_that_duckdb_cannot_read_leaves_the_others_to_it(tmp_path: Path) -> None:
    schema = pa.schema([("k", pa.string())])
    (tmp_path / "a").write_bytes(b"k\nx\n")
    ((path, etag, size, modified),) = next(ObjectStore(Location(str(tmp_path))).list_pages()).objects()
    file = IngestedFile(FileVersion("any", path, b"", etag, size, modified), 1)

    def source(name: str, format: Csv) -> IngestedFiles:
        definition = SourceDefinition(name=name, location=Location(str(tmp_path)), format=format, schema=schema)
        return IngestedFiles(RecordedSource(definition, (file,)))

    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with DuckDbEngine(scratch, {}) as engine:
        with pytest.raises(CannotComputeError):
            engine.load(source("bad", Csv(null_values=())), scratch)
        engine.load(source("good", Csv()), scratch)
        view = CatalogView("v", "append", "SELECT k FROM good", "", ("good",), (), 1)
        assert engine.answer(view, schema).to_pylist() == [{"k": "x"}]


@pytest.mark.more
def test_a_query_of_the_catalog_reaches_no_file(root: CommittedRoot) -> None:
    root.put("secret", b"a\n1\n")
    place = root.root.path
    with DuckDbEngine(place, {}) as engine:
        query = f"SELECT * FROM read_csv('{root.raw.path}/secret')"
        view = CatalogView("v", "append", query, "", ("t",), (), 1)
        with pytest.raises(CannotComputeError, match="the function read_csv is not served"):
            engine.answer(view, pa.schema([("a", pa.int64())]))


@pytest.mark.more
def test_a_worker_that_ends_leaves_its_views_to_spark(tmp_path: Path) -> None:
    with DuckDbEngine(tmp_path, {}) as engine:
        os.kill(engine.worker_pid, signal.SIGKILL)
        view = CatalogView("v", "append", "SELECT 1 AS a FROM t", "", ("t",), (), 1)
        for _ in range(2):
            with pytest.raises(CannotComputeError, match=r"memory|has ended"):
                engine.answer(view, pa.schema([("a", pa.int64())]))


@pytest.mark.more
def test_nested_columns_are_compared_too(root: CommittedRoot) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("tags", pa.list_(pa.string())), ("moment", pa.struct([("x", pa.float64())]))]
    )
    root.declare(Json(), schema, ViewDefinition("every", "SELECT id, tags, moment FROM t"))
    root.put("a", b'{"id":1,"tags":["x",null],"moment":{"x":0.1}}\n{"id":2,"moment":{}}\n{"id":3,"tags":[]}\n')
    root.ingest({"a": 3})
    assert check(root.verify(engine="duckdb"), "every").outcome is Outcome.EQUAL
    assert check(root.verify(engine="spark"), "every").outcome is Outcome.EQUAL
    wrong = [{**row, "tags": ["x"]} if row["id"] == 1 else row for row in root.stored("every").to_pylist()]
    root.overwrite("every", pa.Table.from_pylist(wrong, root.stored("every").schema))
    found = check(root.verify(), "every").differences
    assert found is not None and (found.missing, found.extra) == (1, 1)


@pytest.mark.more
def test_lists_of_groups_are_compared_in_any_order(root: CommittedRoot) -> None:
    written(root, ViewDefinition("lists", "SELECT k, collect_list(d) AS l, collect_set(yes) AS s FROM t GROUP BY k"))
    assert check(root.verify(engine="spark"), "lists").outcome is Outcome.EQUAL
    stored = root.stored("lists")
    root.overwrite("lists", pa.Table.from_pylist([{**r, "l": r["l"][::-1]} for r in stored.to_pylist()], stored.schema))
    assert check(root.verify(engine="spark"), "lists").outcome is Outcome.EQUAL
    root.overwrite("lists", pa.Table.from_pylist([{**r, "l": r["l"][1:]} for r in stored.to_pylist()], stored.schema))
    assert check(root.verify(engine="spark"), "lists").outcome is Outcome.DIFFERENT


@pytest.mark.more
def test_values_seen_once_and_grouping_sets_are_equal(root: CommittedRoot) -> None:
    written(
        root,
        ViewDefinition("once", "SELECT k, count(DISTINCT yes) AS n, bool_or(yes) AS o FROM t GROUP BY k"),
        ViewDefinition("sets", "SELECT k, yes, grouping_id() AS id, count(*) AS n FROM t GROUP BY CUBE (k, yes)"),
        ViewDefinition("rows", "SELECT DISTINCT k, yes FROM t"),
    )
    assert root.verify().all_equal
    assert root.verify(engine="spark").all_equal


@pytest.mark.more
def test_estimates_are_not_compared(root: CommittedRoot) -> None:
    written(root, ViewDefinition("estimate", "SELECT approx_count_distinct(i) AS n FROM t"))
    found = check(root.verify(), "estimate")
    assert found.outcome is Outcome.NOT_CHECKABLE
    assert "approx_count_distinct estimates" in found.reason


@pytest.mark.more
def test_many_rows_in_many_epochs_are_equal_in_spite_of_the_order_of_their_sums(root: CommittedRoot) -> None:
    chance = random.Random(5)
    schema = pa.schema([("k", pa.int64()), ("d", pa.float64())])
    sums = ViewDefinition("sums", "SELECT k, sum(d) AS s, stddev_samp(d) AS sd FROM t GROUP BY k")
    unkeyed = ViewDefinition("unkeyed", "SELECT sum(d) AS s, avg(d) AS a, count(*) AS n FROM t GROUP BY k")
    root.declare(Parquet(), schema, sums, unkeyed)
    for number in range(3):
        sink = io.BytesIO()
        keys = [chance.randrange(40) for _ in range(2_000)]
        pq.write_table(pa.table({"k": keys, "d": [chance.uniform(-1e6, 1e6) for _ in keys]}, schema=schema), sink)
        root.put(f"{number}.parquet", sink.getvalue())
        root.ingest({f"{number}.parquet": 2_000})
    for engine in ENGINES:
        assert root.verify(engine=engine).all_equal
    table = root.stored("unkeyed")
    root.overwrite("unkeyed", table.set_column(1, "a", pa.compute.multiply(table["a"], 1 + 1e-7)))
    found = check(root.verify(engine="duckdb"), "unkeyed").differences
    assert found is not None and (found.missing, found.extra) == (40, 40)


@pytest.mark.more
@pytest.mark.parametrize("engine", few(ENGINES, "duckdb"))
def test_it_works_in_a_bucket(root_s3: CommittedRoot, engine: str) -> None:
    written(root_s3, GROUPED, ROWS)
    assert root_s3.verify(engine=engine).all_equal
    root_s3.put("a", body("csv", rows(0, 10)))
    assert root_s3.verify(engine=engine).all_equal, "the same content is the same version"
    root_s3.put("a", body("csv", rows(1, 10)))
    found = check(root_s3.verify(engine=engine), "big")
    assert found.files == (FileProblem(f"{root_s3.raw.url}/a", "changed"),)


@pytest.mark.more
def test_an_engine_that_there_is_not_is_refused(root: CommittedRoot) -> None:
    written(root, GROUPED)
    with pytest.raises(UsageError, match="auto, duckdb, spark"):
        root.verify(engine="polars")
    for timeout_s in (0, -1, math.nan):
        with pytest.raises(UsageError, match="give a number above 0, or None"):
            root.verify(timeout_s=timeout_s)


OVER_VIEWS = (
    ViewDefinition("by_k", "SELECT k, count(*) AS n FROM t GROUP BY k"),
    ViewDefinition("sizes", "SELECT n, count(*) AS keys FROM by_k GROUP BY n"),
)


@pytest.mark.more_after(1)
@pytest.mark.parametrize(
    ("wrong", "parent", "child", "by_parents"),
    [
        ("", Outcome.EQUAL, Outcome.EQUAL, Outcome.EQUAL),
        pytest.param("sizes", Outcome.EQUAL, Outcome.DIFFERENT, Outcome.DIFFERENT, marks=pytest.mark.more),
        pytest.param("by_k", Outcome.DIFFERENT, Outcome.EQUAL, Outcome.DIFFERENT, marks=pytest.mark.more),
        ("by_k sizes", Outcome.DIFFERENT, Outcome.DIFFERENT, Outcome.EQUAL),
    ],
)
def test_a_view_over_views_is_compared_with_these_too(
    root: CommittedRoot, wrong: str, parent: Outcome, child: Outcome, by_parents: Outcome
) -> None:
    root.declare(Csv(), pa.schema([("k", pa.string())]), *OVER_VIEWS)
    root.put("a.csv", b"k\nx\ny\n")
    root.ingest({"a.csv": 2})
    if "by_k" in wrong:
        root.overwrite("by_k", pa.table({"k": ["x", "y"], "n": pa.array([1, 2], pa.int64())}))
    if "sizes" in wrong:
        root.overwrite("sizes", pa.table({"n": pa.array([1, 2], pa.int64()), "keys": pa.array([1, 1], pa.int64())}))
    checks = {check.view: check for check in root.verify().views}
    assert (checks["by_k"].outcome, checks["by_k"].by_parents) == (parent, None)
    assert (checks["sizes"].outcome, checks["sizes"].by_parents) == (child, by_parents)
    assert root.verify().all_equal is (not wrong)
    assert {check.by_parents for check in root.verify(engine="spark").views} == {None}, "Spark alone was asked for"


OVER_ALL_ROWS = (
    ViewDefinition("above", "SELECT k, i FROM t WHERE i > (SELECT avg(i) FROM t)"),
    ViewDefinition("numbered", "SELECT i, row_number() OVER (ORDER BY i DESC) AS place FROM t"),
    ViewDefinition("running", "SELECT day, sum(i) OVER (ORDER BY i) AS so_far FROM t"),
    ViewDefinition("skipped", "SELECT i FROM t ORDER BY i OFFSET 3"),
)


@pytest.mark.more
@pytest.mark.parametrize("engine", ["auto", *few(ENGINES)])
def test_views_that_read_all_rows_are_computed_again(root: CommittedRoot, engine: str) -> None:
    written(root, *OVER_ALL_ROWS)
    found = root.verify(engine=engine)
    assert [(each.view, each.outcome, each.reason) for each in found.views] == [
        (each.name, Outcome.EQUAL, "") for each in sorted(OVER_ALL_ROWS, key=lambda each: each.name)
    ]
    shifted = root.stored("numbered").to_pylist()
    for each in shifted:
        each["place"] += 1
    root.overwrite("numbered", pa.Table.from_pylist(shifted, root.stored("numbered").schema))
    assert check(root.verify(engine=engine), "numbered").outcome is Outcome.DIFFERENT


@pytest.mark.more
def test_sessions_are_left_to_spark_which_puts_whole_ones_together(root: CommittedRoot) -> None:
    grouped = "SELECT k, count(*) AS n FROM t GROUP BY k, session_window(moment, '4 seconds')"
    condition = "session_window.end > TIMESTAMP'2026-01-01 00:00:08'"
    common = f"WITH rows AS (SELECT * FROM t) {grouped.replace('FROM t', 'FROM rows')} HAVING {condition}"
    written(root, ViewDefinition("all", grouped), ViewDefinition("late", common))
    found = root.verify()
    assert [(each.view, each.outcome, each.engine) for each in found.views] == [
        (name, Outcome.EQUAL, "spark") for name in ("all", "late")
    ]
    assert root.stored("late").equals(root.stored("all")), "each key has one session"


@pytest.mark.more
def test_filters_by_the_time_are_computed_at_the_time_of_their_epoch(root: CommittedRoot) -> None:
    views = [
        ViewDefinition("timed", "SELECT k, i FROM t WHERE moment + INTERVAL '30 12' DAY TO HOUR > now()"),
        ViewDefinition("above", "SELECT k, count(*) AS n FROM timed GROUP BY k"),
        ViewDefinition("within", "SELECT count(DISTINCT k) AS n FROM t WHERE day > current_date() - 20"),
        ViewDefinition("either", "SELECT k, i FROM t WHERE i < 0 OR moment + INTERVAL '30 12' DAY TO HOUR > now()"),
    ]
    written(root, *views)
    root.put("later.csv", body("csv", rows(40, 8)))
    root.ingest({"later.csv": 8})
    root.ingest({})
    counts = []
    for epoch in root.epochs:
        found = root.verify(epoch=epoch)
        assert found.all_equal and {each.engine for each in found.views} == {"spark"}
        counts.append(check(found, "timed").rows)
    assert counts[-2] > counts[-1] > 0, "rows leave without files"
