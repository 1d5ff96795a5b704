"""Text from data cannot control a terminal: all of it goes through one door, `slackwater/cli/terminal`."""

from __future__ import annotations

import ast
import os
import pty
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from slackwater.cli.app import main
from state.capabilities.store_record import NAME, StoreRecord
from state.errors import BadInputError
from state.lance import view_dataset
from state.location import Location
from state.tables.catalog import CatalogPipeline, put_pipeline, put_view
from state.tables.records import CatalogView, ViewVersion
from tests.cases import few
from tests.repository import ONE_PROCESS, REPOSITORY, trees
from tests.slackwater.reading.written_root import START, RootWriter

pytestmark = ONE_PROCESS

_TITLE_AND_CLEAR = "\x1b]0;PWNED\x1b\\\x1b[2Jid"
_MARKUP = "amount [/eur]"
_EMOJI = ":bomb:"
# Colours and other styles; the only escapes of rich in a table.
_STYLE = "\x1b\\[[0-9;]*m"
_DOORS = {
    "actors/telemetry/logging.py",  # log lines
    "slackwater/running/foreground.py",  # a constant
    "slackwater/cli/terminal",
    "slackwater/plugins/doctor/ray_probe.py",  # read by the process that starts it
    "slackwater/plugins/doctor/spark_probe.py",
    "slackwater/testing",
}
_WRITERS = {"Console", "Progress", "Status", "TextColumn", "echo", "secho"}


def _root(directory: Path, column: str) -> Location:
    """A root with a view that has a column of any name."""
    root = Location(str(directory / "root"))
    writer = RootWriter(root, Location(str(directory / "raw")))
    put_pipeline(writer.delta, CatalogPipeline("p", ansi=False))
    put_view(writer.delta, CatalogView("v", "append", "SELECT *", "plan", ("flights",), (), writer.epoch))
    path = f"views/v-{writer.epoch}.lance"
    rows = pa.table({column: ["1"]})
    writer.views["v"] = ViewVersion("v", path, view_dataset.create(root.child(path), rows).version)
    writer.commit(files=1, rows=1)
    return root


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\x1b", "\\x1b")


def _on_a_terminal(*arguments: str) -> tuple[str, int]:
    """The output of a command on a terminal of its own, and its exit code."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm", COLUMNS="120", PYTHONPATH=str(REPOSITORY))
        os.execv(sys.executable, [sys.executable, "-m", "slackwater", *arguments])
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the terminal is closed at the other end
            break
    os.close(terminal)
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.more_after(1)
@pytest.mark.parametrize("column", few([_TITLE_AND_CLEAR, _MARKUP, _EMOJI], _TITLE_AND_CLEAR))
@pytest.mark.parametrize("command", [("show", "v"), ("sql", "SELECT * FROM v")])
def test_name_of_a_column_is_only_text_on_a_terminal(tmp_path: Path, column: str, command: tuple[str, str]) -> None:
    name, argument = command
    shown, code = _on_a_terminal(name, _root(tmp_path, column).url, argument)
    plain = re.sub(_STYLE, "", shown)
    assert code == 0, shown
    assert "\x1b" not in plain
    assert _escaped(column) in plain


def test_column_of_a_partners_header_is_only_text_in_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from slackwater.cli.terminal.output import Output

    Output().rows([{_TITLE_AND_CLEAR: 1, "a\tb": 2}], [_TITLE_AND_CLEAR, "a\tb"], title="\x1b[2J")
    title, head, _ = capsys.readouterr().out.splitlines()
    assert title == "# \\x1b[2J"
    assert head == f"{_escaped(_TITLE_AND_CLEAR)}\ta\\tb"


def test_a_text_that_others_wrote_into_a_root_is_no_line_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = _root(tmp_path, "id")
    forged = ("lost\nerror: forged\x1b[2J" + "v" * 5_000,)
    (tmp_path / "root" / NAME).write_bytes(StoreRecord(START, "0", (), forged, forged).to_json())
    with pytest.raises(SystemExit):
        main(["status", root.url])
    [line] = [line for line in capsys.readouterr().out.splitlines() if "forged" in line]
    assert line.startswith("warning: the store of ") and line.count(r"lost\nerror: forged\x1b[2Jvvv") == 2
    assert len(line) < 2_500


def test_traceback_of_a_program_shows_an_error_without_control_characters() -> None:
    error = BadInputError("a.csv\x1b[2J: row 1\nthe next step")
    assert str(error) == "a.csv\\x1b[2J: row 1\nthe next step"


def _writes(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls that write to a terminal, or make something that does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            to_stream = name.startswith(("sys.stdout.write", "sys.stderr.write", "sys.__std"))
            if to_stream or name == "print" or name.rpartition(".")[2] in _WRITERS:
                yield node


def test_nothing_else_writes_to_a_terminal() -> None:
    found = [
        f"{path}:{call.lineno} {ast.unparse(call.func)}"
        for path, tree in trees().items()
        if not any(str(path) == door or str(path).startswith(f"{door}/") for door in _DOORS)
        for call in _writes(tree)
    ]
    assert found == [], "print through slackwater.cli.terminal"
