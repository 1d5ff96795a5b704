"""Late rows in the quarantine: each with its file, its row and the view; they are no bad records of their file."""

from __future__ import annotations

import json

import pyarrow as pa

from spark_bridge.ingest.epoch_rows import LateRows
from spark_bridge.ingest.late_rows import late_delta
from state.tables.delta import Delta

_CLOSED = 1_704_067_200_000_000
_ROWS = pa.table({"_path": ["s3://b/in/a/1", "s3://b/in/a/1"], "_row": [4, 7], "x": [1, None]})


def test_a_late_row_is_kept_with_its_file_its_row_and_the_view() -> None:
    late = [LateRows("per_hour", "t", _CLOSED, _ROWS), LateRows("per_day", "t", _CLOSED, _ROWS.slice(1))]
    changes = late_delta(late, {"t": "s3://b/in"}, 3).changes["quarantine"]
    rows = [change.fields for change in changes.values()]
    assert [(row["source"], row["path"], row["row"], json.loads(row["raw"])) for row in rows] == [
        ("t", "a/1", 4, {"x": 1}),
        ("t", "a/1", 7, {"x": None}),
        ("t", "a/1", 7, {"x": None}),
    ]
    assert rows[0]["reason"] == (
        "view per_hour: its window was closed, by the watermark 2024-01-01 00:00:00.000000 UTC"
    )
    assert all("version" not in row for row in rows), "with a version it would be a bad record of the file"


def test_a_late_row_of_another_version_of_the_file_is_kept_beside_the_first() -> None:
    changed = _ROWS.set_column(2, "x", [[5, 6]])
    # A row of a hopping window may be late for several windows: that is one row.
    deltas = [
        late_delta([LateRows("v", "t", _CLOSED, rows) for rows in each], {}, epoch)
        for epoch, each in enumerate([[_ROWS, _ROWS], [changed], [_ROWS, changed]])
    ]
    kept = Delta.merge(deltas).changes["quarantine"].values()
    assert sorted(json.loads(each.fields["raw"])["x"] or 0 for each in kept) == [0, 0, 1, 1, 5, 5, 6, 6]


def test_of_a_long_row_the_beginning_is_kept() -> None:
    long = LateRows("v", "t", _CLOSED, _ROWS.slice(0, 1).set_column(2, "x", [["x" * 100_000]]))
    [change] = late_delta([long], {}, 3).changes["quarantine"].values()
    assert change.fields["raw"] == b'{"x": "' + b"x" * (64 * 1024 - 7)


def test_an_epoch_without_late_rows_changes_nothing() -> None:
    assert late_delta([], {}, 3) == Delta({})
