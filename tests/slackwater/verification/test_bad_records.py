"""Files with bad records: the views hold the rows around them, and whatever the quarantine has wrong is seen."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.formats.options import Csv, Json, Parquet, Text
from actors.formats.registry import Format
from slackwater.verification.verification import Outcome, ViewCheck
from spark_bridge.plans.view_definition import ViewDefinition
from tests.cases import few
from tests.slackwater.reading.notified_root import poisoned
from tests.slackwater.verification.committed_root import CommittedRoot

ENGINES = ("duckdb", "spark")
SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64()), ("day", pa.date32())])
SUMS = ViewDefinition("sums", "SELECT k, count(*) AS c, sum(n) AS n, max(day) AS day FROM t GROUP BY k")
EVERY = ViewDefinition("every", "SELECT k, n, day FROM t")

CSV = b"""k,n,day
a,1,2026-01-01
b,two,2026-01-02
a,3,2026-01-03
c,4
d,5,2026-01-05,more
a,6.5,2026-01-06
b\xff,7,2026-01-07
b,,
b,9,the ninth
a,10,2026-01-10
"""
CSV_BAD = (1, 3, 4, 5, 6, 8)
JSON = b"""{"k": "a", "n": 1, "day": "2026-01-01"}
{"k": "b", "n": "2", "day": "2026-01-02"}

{"k": "a", "n": 3}
{"k": "c", "n": 4
[5]
{"k": 6, "n": 6}
{"k": "d", "n": 6.5}
{"k": "b", "n": null, "day": null, "more": {"x": []}}
{"k": "e\xff", "n": 8}
{"k": "f", "n": 9, "day": "the ninth"}
{"k": "a", "n": 10, "day": "2026-01-10"}
"""
JSON_BAD = (1, 3, 4, 6, 8, 9)
TEXTS: dict[str, tuple[Format, bytes, tuple[int, ...], int]] = {
    "csv": (Csv(), CSV, CSV_BAD, 10),
    "json": (Json(), JSON, JSON_BAD, 11),
}
PACKED: dict[str, Callable[[bytes], bytes]] = {"plain": bytes, "gzip": gzip.compress}


def check(root: CommittedRoot, view: str, engine: str = "auto") -> ViewCheck:
    return next(each for each in root.verify(engine=engine).views if each.view == view)


def bad_rows(root: CommittedRoot) -> list[int]:
    rows: list[int] = root.store().ledger.quarantine()["row"].to_pylist()
    return rows


def written(root: CommittedRoot, kind: str = "csv", packed: str = "plain") -> None:
    """One file with bad records, read in two epochs, and one without."""
    format, text, _, count = TEXTS[kind]
    root.declare(format, SCHEMA, SUMS, EVERY)
    root.put("bad", PACKED[packed](text))
    root.ingest({"bad": 5}, status="reading")
    root.ingest({"bad": count})


@pytest.mark.more_after(1)
@pytest.mark.parametrize("engine", few(ENGINES, "duckdb"))
@pytest.mark.parametrize("packed", few(PACKED, "gzip"))
@pytest.mark.parametrize("kind", TEXTS)
def test_the_rows_around_bad_records_are_equal_to_what_either_engine_finds_fit(
    root: CommittedRoot, kind: str, packed: str, engine: str
) -> None:
    written(root, kind, packed)
    assert tuple(bad_rows(root)) == TEXTS[kind][2]
    for epoch in root.epochs:
        found = root.verify(engine=engine, epoch=epoch)
        assert [(each.outcome, each.engine, each.reason) for each in found.views] == [(Outcome.EQUAL, engine, "")] * 2
    root.overwrite("every", root.stored("every").slice(1))
    assert check(root, "every", engine).outcome is Outcome.DIFFERENT


@pytest.mark.more_after(1)
@pytest.mark.parametrize("engine", ENGINES)
def test_bad_values_of_a_parquet_file_are_left_out(root: CommittedRoot, engine: str) -> None:
    schema = pa.schema([("k", pa.string()), ("m", pa.decimal128(4, 2))])
    decimals = pa.array([Decimal("1.00"), Decimal("12345.00"), Decimal("3.00"), None], pa.decimal128(20, 2))
    table = pa.table({"k": ["a", "b", "c", "d"], "m": decimals})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    root.declare(Parquet(), schema, ViewDefinition("every", "SELECT k, m FROM t"))
    root.put("bad.parquet", sink.getvalue())
    root.ingest({"bad.parquet": 4})
    assert bad_rows(root) == [1]
    assert json.loads(root.store().ledger.quarantine()["raw"][0].as_py())["m"] == "12345.00"
    assert check(root, "every", engine).outcome is Outcome.EQUAL
    assert root.stored("every")["k"].to_pylist() == ["a", "c", "d"]


@pytest.mark.more
def test_a_record_that_only_duckdb_can_read_is_left_to_spark(root: CommittedRoot) -> None:
    root.declare(Csv(), pa.schema([("yes", pa.bool_())]), ViewDefinition("every", "SELECT yes FROM t"))
    root.put("a", b"yes\ntrue\nyes\nfalse\n")
    root.ingest({"a": 3})
    assert bad_rows(root) == [1]
    found = check(root, "every")
    assert (found.outcome, found.engine) == (Outcome.EQUAL, "spark")
    assert found.reason == "duckdb: it can read a record of a that is quarantined"
    assert check(root, "every", "duckdb").outcome is Outcome.NOT_CHECKABLE


@pytest.mark.more
@pytest.mark.parametrize("engine", few(["auto", "spark"], "auto"))
def test_a_quarantine_that_is_not_what_is_bad_is_a_wrong_ledger(root: CommittedRoot, engine: str) -> None:
    written(root)
    right = root.epochs[-1]
    root.claim_bad("bad", 0)
    found = check(root, "sums", engine)
    assert found.outcome is Outcome.DIFFERENT
    assert "says that 6 records of bad are quarantined; the quarantine has 7" in found.reason
    root.claim("bad", 10, rows_bad=7)
    assert "says that row 0 (from 0) of bad is bad; read again it is good" in check(root, "sums", engine).reason
    root.forget_bad("bad", 0)
    root.forget_bad("bad", 8)
    root.claim("bad", 10, rows_bad=5)
    assert "says that row 8 (from 0) of bad is good; read again it is bad" in check(root, "sums", engine).reason
    assert root.verify(engine=engine, epoch=right).all_equal


@pytest.mark.more
@pytest.mark.parametrize("engine", few(ENGINES, "duckdb"))
def test_what_was_cleared_changes_nothing(root: CommittedRoot, engine: str) -> None:
    written(root)
    assert root.clear_quarantine() == 6
    root.put("more", b"k,n,day\nz,1,2026-01-01\n")
    root.ingest({"more": 1})
    assert bad_rows(root) == []
    assert root.verify(engine=engine).all_equal


@pytest.mark.more
@pytest.mark.parametrize("engine", few(ENGINES, "duckdb"))
def test_poison_messages_are_nothing_to_compare(root: CommittedRoot, engine: str) -> None:
    written(root)
    poisoned(root.root, ("m1", "[]"), ("m2", "{}"), source="t")
    assert sorted(map(str, bad_rows(root))) == sorted(map(str, (*CSV_BAD, None, None)))
    assert root.verify(engine=engine).all_equal


@pytest.mark.more
@pytest.mark.parametrize("engine", few(ENGINES, "duckdb"))
def test_text_files_are_compared_line_by_line(root: CommittedRoot, engine: str) -> None:
    root.declare(Text(), pa.schema([("line", pa.string())]), ViewDefinition("every", "SELECT line FROM t"))
    root.put("whole", b"a\n\n  b\t\r\n'\"c\n")
    root.put("no end", b"x\ny")
    root.put("half", b"1\n2\n3\n")
    root.ingest({"whole": 4, "no end": 2})
    root.ingest({"half": 2}, status="reading")
    assert sorted(root.stored("every")["line"].to_pylist()) == sorted(["a", "", "  b\t", "'\"c", "x", "y", "1", "2"])
    found = check(root, "every", engine)
    assert (found.outcome, found.reason) == (Outcome.EQUAL, "")


def lz4(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as packed:
        packed.write(content)
    return bytes(sink.getvalue())


_LATIN = Csv(encoding="latin-1")


@pytest.mark.more
@pytest.mark.parametrize(
    ("format", "body", "why"),
    [
        (_LATIN, "k\né\n".encode("latin-1"), "cannot read the encoding latin-1"),
        (Csv(), bz2.compress("k\né\n".encode()), "does not decompress bzip2"),
        (Csv(), lz4("k\né\n".encode()), "does not decompress lz4"),
        (Csv(), lzma.compress("k\né\n".encode()), "does not decompress xz"),
        (Text(), gzip.compress("é\n".encode(), mtime=0), "cannot read compressed text"),
        (Text(), "é\n".encode() + b"\xff\n", "UTF-8"),
    ],
    ids=["encoding", "bzip2", "lz4", "xz", "packed text", "bad text"],
)
def test_what_duckdb_cannot_read_is_left_to_spark(root: CommittedRoot, format: Format, body: bytes, why: str) -> None:
    root.declare(format, pa.schema([("k", pa.string())]), ViewDefinition("every", "SELECT k FROM t"))
    root.put("a", body)
    root.ingest({"a": 2 if why == "UTF-8" else 1})
    found = check(root, "every")
    assert (found.outcome, found.engine) == (Outcome.EQUAL, "spark")
    assert "duckdb: " in found.reason and why in found.reason
    assert root.stored("every")["k"].to_pylist() == ["é"]


@pytest.mark.more
def test_times_that_were_truncated_are_left_to_spark_and_truncated_again(root: CommittedRoot) -> None:
    schema = pa.schema([("at", pa.timestamp("us"))])
    root.declare(Csv(), schema, ViewDefinition("every", "SELECT at FROM t"), timestamps="truncate")
    root.put("a", b"at\n2020-01-02 03:04:05.1234569\n2020-01-02 03:04:05\n")
    root.ingest({"a": 2})
    assert root.stored("every")["at"].cast(pa.int64()).to_pylist() == [1_577_934_245_123_456, 1_577_934_245_000_000]
    found = check(root, "every")
    assert (found.outcome, found.engine) == (Outcome.EQUAL, "spark")
    assert "DuckDB rounds" in found.reason
