"""`slackwater quarantine`, and bad records in `status` and `why`, on a root without a run."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.cli.commands.quarantine import as_values, export, print_quarantine
from slackwater.cli.terminal.output import Output
from slackwater.cli.terminal.safe_console import SafeConsole
from state.errors import UsageError
from state.location import Location
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.reading.bad_records import BIG, DONE, quarantine
from tests.slackwater.reading.written_root import WrittenRoot, write_root

HOSTILE = b'"x\x1b[2J\n\ty",1'


@pytest.fixture
def written(tmp_path: Path) -> WrittenRoot:
    """A root with three bad records in two files."""
    root = write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))
    quarantine(
        root, BIG, (7, b"\xff\x00,1", "no UTF-8"), (300, b"z" * 500, "column day: 'z' is no date"), table="queue"
    )
    quarantine(root, DONE, (1, HOSTILE, "2 columns, got 1: \x1b[2J"))
    return root


def read(root: WrittenRoot, *arguments: str) -> Any:
    ended = slackwater("quarantine", str(root.root), *arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


@pytest.mark.more
def test_the_records_are_told_to_programs_and_to_people(written: WrittenRoot) -> None:
    first, second, third = read(written, "--source", "flights")
    assert first["path"] == f"{written.raw.url}/{DONE}" and first["epoch"].isdigit()
    assert (first["row"], first["raw"], first["raw_base64"]) == (1, HOSTILE.decode(), None)
    assert (second["row"], second["raw"], second["raw_base64"]) == (7, None, "/wAsMQ==")
    assert third["raw"] == "z" * 500
    piped = slackwater("quarantine", str(written.root)).out
    assert "\x1b" not in piped and r"x\x1b[2J\n\ty" in piped and "z" * 500 in piped
    assert len(piped.splitlines()) == 5
    unknown = slackwater("quarantine", str(written.root), "--source", "x")
    assert unknown.code == 1 and "the sources are: flights" in unknown.err


def test_a_terminal_shows_the_beginning_of_each(written: WrittenRoot, capsys: pytest.CaptureFixture[str]) -> None:
    output = Output()
    output.console = SafeConsole(force_terminal=True, width=500, color_system=None)
    print_quarantine(str(written.root), {}, None, output)
    shown = capsys.readouterr().out
    assert "z" * 60 + "…" in shown and "z" * 61 not in shown
    assert "bad records: 3" in shown and "no UTF-8" in shown and "[2J" in shown and "\x1b[2J" not in shown


@pytest.mark.more
def test_every_kind_of_export_has_everything(written: WrittenRoot, tmp_path: Path) -> None:
    records = sw.open(written.root.url).ledger.quarantine()
    for name in ("bad.parquet", "bad.csv", "bad.json", "bad.jsonl"):
        assert read(written, "--export", str(tmp_path / name)) == {"exported": 3, "file": str(tmp_path / name)}
    assert pq.read_table(tmp_path / "bad.parquet") == records
    lines = (tmp_path / "bad.json").read_text(encoding="utf-8").splitlines()
    assert [{**row, "epoch": int(row["epoch"])} for row in map(json.loads, lines)] == list(as_values(records))
    assert (tmp_path / "bad.jsonl").read_bytes() == (tmp_path / "bad.json").read_bytes()
    with (tmp_path / "bad.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["raw"] for row in rows] == [HOSTILE.decode(), "", "z" * 500]
    assert [row["raw_base64"] for row in rows] == ["", "/wAsMQ==", ""]
    assert [int(row["epoch"]) for row in rows] == records["epoch"].to_pylist()


@pytest.mark.more
def test_an_export_that_cannot_be_written_clears_nothing(written: WrittenRoot, tmp_path: Path) -> None:
    taken = tmp_path / "taken.csv"
    taken.write_text("what was exported before")
    for name, said in (
        ("bad.xlsx", "must end in one of .parquet, .csv, .json, .jsonl"),
        ("taken.csv", "exists, and is not overwritten"),
        ("nowhere/bad.csv", "No such file or directory"),
    ):
        ended = slackwater("quarantine", str(written.root), "--export", str(tmp_path / name), "--clear")
        assert ended.code == 2 and said in ended.err and ended.err.count("\n") == 1
    assert taken.read_text() == "what was exported before"
    assert sw.open(written.root.url).ledger.quarantine().num_rows == 3


def test_a_failed_export_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        export(pa.table({"x": [1]}), tmp_path / "bad.json")
    assert not (tmp_path / "bad.json").exists()
    with pytest.raises(UsageError):
        export(pa.table({"x": [1]}), tmp_path)


def test_what_is_cleared_is_exported_before_or_that_is_confirmed(written: WrittenRoot, tmp_path: Path) -> None:
    place, store = str(written.root), sw.open(written.root.url)
    refused = slackwater("quarantine", place, "--clear")
    assert refused.code == 2 and "--export FILE" in refused.err
    assert store.ledger.quarantine().num_rows == 3
    ended = slackwater("quarantine", place, "--export", str(tmp_path / "bad.json"), "--clear")
    assert ended.code == 0, ended.err
    assert ended.out == f"3 bad records exported to {tmp_path / 'bad.json'}\n3 bad records are cleared\n"
    assert store.ledger.quarantine().num_rows == 0
    assert store.ledger.files(status="reading")["rows_bad"].to_pylist() == [2]
    quarantine(written, DONE, (2, b"later", "later"))
    assert read(written, "--clear", "--yes", "--source", "flights") == {"cleared": 1}
    assert slackwater("quarantine", place, "--clear", "--yes").out == "nothing to clear\n"
    assert "their content is cleared" in slackwater("status", place).out


def test_status_and_why_know_them(written: WrittenRoot) -> None:
    status = json.loads(slackwater("status", str(written.root), "--json").out)
    (source,) = status["sources"]
    assert (source["rows"], source["rows_bad"]) == (1_002, 3)
    assert status["bad_records"] == [
        {
            "source": "flights",
            "records": 3,
            "files": 2,
            "path": f"{written.raw.url}/{DONE}",
            "first": "row 1: 2 columns, got 1: \x1b[2J",
        }
    ]
    shown = slackwater("status", str(written.root)).out
    assert r"row 1: 2 columns, got 1: \x1b[2J" in shown
    assert f"`slackwater quarantine {written.root}` shows all of them" in shown
    why = slackwater("why", str(written.root), BIG).out
    assert "except 2 of them, which are quarantined" in why and why.endswith("is row 7: no UTF-8.\n")
