"""Late rows in the quarantine: each with its file, its row and the view; they are no bad records of their file."""

from __future__ import annotations

import json

import pyarrow as pa

from slackwater.running.late_rows import late_delta
from spark_bridge.hand_over.epoch_rows import LateRows
from state.tables.delta import Delta

_CLOSED = 1_704_067_200_000_000
_ROWS = pa.table({"_path": ["s3://b/in/a/1", "s3://b/in/a/1"], "_row": [4, 7], "x": [1, None]})


def test_a_late_row_is_kept_with_its_file_its_row_and_the_view() -> None:
    late = [LateRows("per_hour", "t", _CLOSED, _ROWS), LateRows("per_day", "t", _CLOSED, _ROWS.slice(1))]
    changes = late_delta(late, {"t": "s3://b/in"}).changes["quarantine"]
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


def test_an_epoch_without_late_rows_changes_nothing() -> None:
    assert late_delta([], {}) == Delta({})
