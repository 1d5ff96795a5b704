"""A failed view in `slackwater status` and `slackwater why`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.cli.display.status import print_status
from slackwater.cli.terminal.output import Output
from slackwater.cli.terminal.safe_console import SafeConsole
from state.location import Location
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.reading.failed_views import OVERFLOW, fail_view
from tests.slackwater.reading.written_root import WrittenRoot, write_root

HOSTILE = f"{OVERFLOW}\n\x1b[2J[red]\u202e{' much' * 40}"


@pytest.fixture
def written(tmp_path: Path) -> WrittenRoot:
    return write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))


def on_terminal(root: str, capsys: pytest.CaptureFixture[str], width: int = 200) -> list[str]:
    """The lines of the status on a terminal."""
    output = Output()
    output.console = SafeConsole(force_terminal=True, width=width, color_system=None)
    print_status(sw.open(root), output)
    return capsys.readouterr().out.splitlines()


def states(lines: list[str]) -> dict[str, str]:
    """View → state, in a pipe."""
    start = next(at for at, line in enumerate(lines) if line.startswith("# views"))
    assert lines[start + 1].split("\t")[:3] == ["name", "class", "state"]
    return {row.split("\t")[0]: row.split("\t")[2] for row in lines[start + 2 : start + 4]}


def test_the_status_has_the_place_the_error_and_the_next_step_of_a_failed_view(written: WrittenRoot) -> None:
    fail_view(written.root, "late", written.epochs[2], error=HOSTILE)
    lines = slackwater("status", written.root.url).out.splitlines()
    assert states(lines) == {"late": "failed", "by_carrier": "maintained"}
    step = (
        f"view late has failed: it is stale since epoch {written.epochs[2]} (2026-01-31 12:00:02 UTC); correct it or "
        f"its "
        f"files, and rebuild it with `slackwater retry {written.root} --view late`"
    )
    assert step in lines
    [error] = [line for line in lines if line.startswith("view late: ")]
    assert error == rf"view late: {OVERFLOW} \x1b[2J[red]\u202e{' much' * 40}"


def test_on_a_terminal_the_error_is_one_line_and_only_text(
    written: WrittenRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_view(written.root, "late", written.epochs[2], error=HOSTILE)
    lines = on_terminal(written.root.url, capsys, 100)
    [error] = [line for line in lines if line.startswith("view late: ")]
    assert error.startswith(rf"view late: {OVERFLOW} \x1b[2J[red]\u202e much") and error.endswith("…")
    assert len(error.rstrip()) <= 100
    assert not any("\u202e" in line or "\x1b[2J" in line for line in lines)


def test_programs_get_the_error_of_a_view_and_the_epoch_as_text(written: WrittenRoot) -> None:
    fail_view(written.root, "late", written.epochs[2], error=HOSTILE)
    ended = slackwater("status", written.root.url, "--json")
    views = {view["name"]: view for view in json.loads(ended.out)["views"]}
    assert (views["late"]["state"], views["late"]["error"]) == ("failed", HOSTILE)
    assert views["late"]["reflects_epoch"] == str(written.epochs[2])
    assert (views["by_carrier"]["state"], views["by_carrier"]["error"]) == ("maintained", None)


def test_a_view_that_failed_in_its_first_epoch_has_no_rows(written: WrittenRoot) -> None:
    fail_view(written.root, "late", None)
    assert "view late has failed: it has no rows; " in slackwater("status", written.root.url).out


def test_a_stopped_view_has_not_failed(written: WrittenRoot) -> None:
    fail_view(written.root, "late", written.epochs[2], error=None)
    shown = slackwater("status", written.root.url).out
    assert states(shown.splitlines())["late"] == "stopped" and "has failed" not in shown


def test_a_view_that_is_rebuilt_says_so(written: WrittenRoot) -> None:
    fail_view(written.root, "late", written.epochs[2], error=None, begun="late.next")
    assert states(slackwater("status", written.root.url).out.splitlines())["late"] == "rebuilding"


@pytest.mark.more
def test_why_tells_that_a_failed_view_lacks_the_rows_of_a_file(written: WrittenRoot) -> None:
    fail_view(written.root, "late", written.epochs[2], error=HOSTILE)
    told = slackwater("why", written.root.url, "day=2/big.csv").out.splitlines()
    assert len(told) == 2 and told[1].startswith(
        f"View late does not have its rows: it failed, and is stale since epoch {written.epochs[2]} ("
    )
    assert rf". The error: {OVERFLOW} \x1b[2J[red]" in told[1]
    history = json.loads(slackwater("why", written.root.url, "day=2/big.csv", "--json").out)
    assert history["lacking_views"] == ["late"]
