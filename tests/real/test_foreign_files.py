"""Files that ended a run, or were read as data: they are named in the quarantine, and the others are read."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

import slackwater as sw
from tests.actors.formats.foreign_parquet import with_fewer_columns, write_encrypted
from tests.real.event_pipeline import FAST, ONE_FETCHER, expected, totals
from tests.real.events import events, parquet, write

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]


def _zip() -> bytes:
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w") as archive:
        archive.writestr("a.csv", "user,amount\n1,1\n")
    return box.getvalue()


def test_foreign_and_damaged_files_end_no_run_and_no_attempt(tmp_path: Path) -> None:
    table = pa.table({"user": [1, 2], "amount": [1.5, 2.5]})
    directory = tmp_path / "in"
    for name, content in {
        "a.parquet": parquet(events(0)),
        "b.parquet": write_encrypted(table, plaintext_footer=True, column_keys={"key": ["amount"]}),
        "c.parquet": with_fewer_columns(table),
        "d.parquet": _zip(),
        "e.parquet": b"%PDF-1.7\n",
        "f.parquet.tmp": parquet(events(100)),
        "g.parquet": parquet(events(10)),
    }.items():
        write(directory, name, content)
    write(directory / "_temporary" / "0", "a.parquet", parquet(events(200)))
    pipeline = sw.Pipeline("events", tmp_path / "root", settings=ONE_FETCHER)
    pipeline.source("events", directory, format="parquet", discovery=FAST)
    pipeline.view("totals", "SELECT user, count(*) AS n, sum(amount) AS total FROM events GROUP BY user")
    report = pipeline.run(until="caught_up")
    assert (report.recoveries, report.files, report.rows) == (0, 6, 20)
    assert totals(tmp_path / "root") == expected(events(0) + events(10))
    files = {Path(row["path"]).name: row for row in sw.open(tmp_path / "root").ledger.files().to_pylist()}
    assert {name: row["error"].partition(";")[0] for name, row in files.items() if row["status"] != "done"} == {
        "b.parquet": "its columns are encrypted",
        "c.parquet": "damaged Parquet file: row group 0 has 1 columns, and the schema 2",
        "d.parquet": "it is a zip archive, not Parquet: unpack it, or leave it out with pattern=...",
        "e.parquet": "it is a PDF document, not Parquet: leave it out with pattern=...",
    }
