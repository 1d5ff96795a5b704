"""Tables for people, for pipes and for programs."""

from __future__ import annotations

import io
import json
from datetime import datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from rich.console import Console

from slackwater.cli.output import Output

_EPOCH = 116_000_000_000_000_001  # above 2**53: a double would change it
_TABLE = pa.table(
    {
        "epoch": [_EPOCH, None],
        "done_epoch": [5, None],
        "name": ["a\tb\nc", None],
        "at": pa.array([datetime(2024, 1, 2, tzinfo=timezone.utc), None], pa.timestamp("us", "UTC")),
        "big": [2**60, 1],
        "nan": [float("nan"), 0.5],
        "price": [Decimal("1.50"), None],
        "raw": [b"\x00\xff", None],
        "nested": [[{"epoch": _EPOCH}], None],
    }
)


def test_json_is_one_document_in_which_nothing_loses_digits(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=True).table(_TABLE)
    first, second = json.loads(capsys.readouterr().out)
    assert first == {
        "epoch": str(_EPOCH),
        "done_epoch": "5",
        "name": "a\tb\nc",
        "at": "2024-01-02T00:00:00+00:00",
        "big": str(2**60),
        "nan": None,
        "price": "1.50",
        "raw": "00ff",
        "nested": [{"epoch": str(_EPOCH)}],
    }
    assert second["epoch"] is None and second["big"] == 1 and second["nan"] == 0.5


def test_a_pipe_gets_one_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    Output().table(_TABLE)
    lines = capsys.readouterr().out.splitlines()
    assert [len(line.split("\t")) for line in lines] == [_TABLE.num_columns] * 3
    assert lines[0].split("\t") == _TABLE.column_names
    assert lines[1].split("\t")[:3] == [str(_EPOCH), "5", "a\\tb\\nc"]


def test_a_terminal_gets_a_table_whose_texts_are_no_markup() -> None:
    output = Output()
    output.console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    output.table(pa.table({"name": ["[red]x[/red]"], "n": [1]}), title="things")
    shown = output.console.file.getvalue()  # type: ignore[attr-defined]
    assert "things" in shown and "[red]x[/red]" in shown


def test_json_has_no_room_for_remarks(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=True).text("a remark")
    assert capsys.readouterr().out == ""
