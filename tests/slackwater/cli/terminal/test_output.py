"""Tests of tables for people, for pipes and for programs."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from slackwater.cli.terminal.output import Output
from slackwater.cli.terminal.safe_console import SafeConsole

_EPOCH = 116_000_000_000_000_001  # above 2**53: a double would change it
_TABLE = pa.table(
    {
        "epoch": [_EPOCH, None],
        "done_epoch": [5, None],
        "name": ["a\tb\nc", None],
        "at": pa.array([datetime(2024, 1, 2, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
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
    output.console = SafeConsole(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    output.table(pa.table({"name": ["[red]x[/red]"], "n": [1]}), title="things")
    shown = output.console.file.getvalue()  # type: ignore[attr-defined]
    assert "things" in shown and "[red]x[/red]" in shown


_HOSTILE = "\x1b[2J\x07\x08\x7f\x9b1m\u202eabc\u2028\t"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_what_a_file_contains_does_not_control_the_terminal(
    is_terminal: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    output = Output()
    if is_terminal:
        output.console = SafeConsole(force_terminal=True, width=300, color_system=None)
    output.table(pa.table({"reason": [_HOSTILE], "nested": [[{"x": _HOSTILE}]]}))
    output.text(f"first\nsecond {_HOSTILE}")
    output.paragraph(f"first\nsecond {_HOSTILE}")
    shown = capsys.readouterr().out
    # rich moves no cursor here, and colours nothing: whatever is no text would be the file's.
    assert not set(shown.replace("\x1b[1m", "").replace("\x1b[0m", "")) & set(_HOSTILE[:-1]) - set("[2J1mabc")
    assert r"\x1b[2J\x07\x08\x7f\x9b1m\u202eabc\u2028\t" in shown
    assert r"first\nsecond" in shown and "first\nsecond" in shown


def test_json_has_escapes_for_what_json_itself_lets_pass(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=True).document({"reason": _HOSTILE})
    shown = capsys.readouterr().out
    assert json.loads(shown) == {"reason": _HOSTILE}
    assert not set(shown) & set("\x1b\x7f\x9b\u202e\u2028")


def test_json_has_no_room_for_remarks(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=True).text("a remark")
    assert capsys.readouterr().out == ""


def _terminal(width: int, wide: bool = False) -> Output:
    output = Output(wide=wide)
    output.console = SafeConsole(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    return output


def _shown(output: Output) -> str:
    return output.console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("width", [60, 100, 130])
def test_a_path_is_one_piece_on_a_terminal_of_any_width(width: int) -> None:
    path = "s3://lake/" + "orders/of/the/northern/region/" * 5 + "1.json"
    output = _terminal(width)
    output.rows([{"n": 1, "path": path}], ["n", "path"], title="files of a very long title, " * 5)
    assert path in _shown(output)


def test_a_terminal_shows_the_short_columns_that_have_a_value_and_wide_all() -> None:
    row = {"name": "a", "etag": "xyz", "watermark": None, "url": "s3://a"}
    short, wide = _terminal(100), _terminal(100, wide=True)
    for output in (short, wide):
        output.rows([row], list(row), short=("name", "watermark", "url"))
    assert _shown(short).split("\n")[0].split() == ["name", "┃", "url"]
    assert _shown(wide).split("\n")[0].split() == ["name", "┃", "etag", "┃", "watermark", "┃", "url"]


def test_a_pipe_has_all_columns(capsys: pytest.CaptureFixture[str]) -> None:
    Output().rows([{"name": "a", "etag": "x"}], ["name", "etag"], short=("name",))
    assert capsys.readouterr().out == "name\tetag\na\tx\n"


def test_a_null_is_told_from_an_empty_text_and_from_its_own_name(capsys: pytest.CaptureFixture[str]) -> None:
    values = pa.table({"v": [None, "", "null", "\\N"]})
    Output().values(values)
    assert capsys.readouterr().out.splitlines() == ["v", "\\N", "", "null", "\\\\N"]
    output = Output()
    output.console = SafeConsole(file=io.StringIO(), force_terminal=True, width=80, color_system="standard")
    output.values(values)
    lines = _shown(output).splitlines()[2:]
    assert "null" in lines[0] and lines[0] != lines[2] and not lines[1].strip()
    Output(json=True).values(values)
    assert json.loads(capsys.readouterr().out)[0] == {"v": None}
