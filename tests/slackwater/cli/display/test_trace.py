"""`slackwater trace`: a waterfall on a terminal, lines in a pipe, JSON for programs."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.cli.display.trace import print_trace
from slackwater.cli.terminal.output import Output
from slackwater.cli.terminal.safe_console import SafeConsole
from slackwater.status.trace import Trace
from state.location import Location
from state.tables.epoch_trace import EpochTrace, HotKey, Span, WorkCost
from state.tables.records import EpochCounts
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.reading.written_root import SPANS, START, WrittenRoot, write_root


@pytest.fixture
def written(tmp_path: Path) -> WrittenRoot:
    return write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))


def trace(*spans: Span, commit_s: float | None = None) -> Trace:
    return Trace.of(7, START, EpochCounts(1, 2, 3, 4), EpochTrace.of(spans or SPANS), commit_s)


def shown(told: Trace, width: int = 100) -> list[str]:
    """The lines that a terminal gets."""
    output, stream = Output(), io.StringIO()
    output.console = SafeConsole(file=stream, force_terminal=True, width=width, color_system=None)
    print_trace(told, output)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_the_hottest_key_stands_beside_its_view(capsys: pytest.CaptureFixture[str]) -> None:
    told = trace(Span("spark", "v", 0.0, 0.5, WorkCost(given=20_000, written=2), HotKey("customer=17", 20_000)))
    assert any("v  20,000 rows → 2  customer=17: 20,000 rows" in line for line in shown(told, width=160))
    output = Output()
    output.console = SafeConsole(file=io.StringIO(), force_terminal=False, width=200)
    print_trace(told, output)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("hot_key\thot_rows") and lines[1].endswith("customer=17\t20000")


def test_a_pipe_gets_a_line_for_each_span_of_the_epoch_that_is_asked_for(written: WrittenRoot) -> None:
    ended = slackwater("trace", written.root.url, "--epoch", str(written.epochs[2]))
    assert ended.code == 0, ended.err
    head, seconds, *lines = ended.out.splitlines()
    assert head.startswith(f"epoch {written.epochs[2]}, committed at")
    assert head.endswith("2 files, 5 rows, 50 B, 2 requests")
    assert seconds == "2.062 s from the opening of the epoch to the end of its commit; 0 is its barrier"
    assert lines[0] == "phase\tname\tstart_s\tseconds"
    assert "spark\tby_carrier\t0.5\t0.75" in lines and lines[-1] == "commit\t\t1.5\t0.0625"


def test_json_has_what_python_has(written: WrittenRoot) -> None:
    ended = slackwater("trace", written.root.url, "--epoch", "latest", "--json")
    document = json.loads(ended.out)
    told = sw.open(written.root.url).trace()
    assert (document["epoch"], document["rows"], document["commit_s"]) == (str(written.epochs[3]), 1000, None)
    assert [tuple(span.values()) for span in document["spans"]] == [tuple(vars(span).values()) for span in told.spans]
    assert document["seconds"] == told.seconds


def test_an_epoch_that_is_not_there_is_one_line_and_a_failure(written: WrittenRoot) -> None:
    ended = slackwater("trace", written.root.url, "--epoch", "3")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: epoch 3 was never committed") and len(ended.err.splitlines()) == 1
    assert slackwater("trace", written.root.url, "--epoch", "yesterday").code == 2


def test_lines_have_no_digits_that_nobody_measured(capsys: pytest.CaptureFixture[str]) -> None:
    print_trace(trace(Span("fetch", "", -0.1 - 0.2, 0.1 + 0.2)), Output())
    assert capsys.readouterr().out.splitlines()[-1] == "fetch\t\t-0.3\t0.3"


def test_bars_begin_where_the_one_before_ends() -> None:
    lines = shown(trace(Span("fetch", "", -1.0, 1.0), Span("align", "", 0.0, 1.0), Span("spark", "", 1.0, 2.0)))
    bars = {name: (line.index("█"), line.rindex("█")) for line in lines for name in [line.split()[0]] if "█" in line}
    assert bars["fetch"][1] < bars["align"][0] and bars["align"][1] < bars["spark"][0]
    widths = {name: end - begin + 1 for name, (begin, end) in bars.items()}
    assert widths["spark"] == pytest.approx(2 * widths["fetch"], abs=1)


def test_what_is_too_short_for_a_bar_is_seen() -> None:
    lines = shown(trace(Span("fetch", "", -9.0, 9.0), Span("align", "", 0.0, 0.0), commit_s=1.0))
    [align] = [line for line in lines if line.startswith("align")]
    assert align.endswith(("▏", "▕", "▎", "▐", "█", "▍", "▌"))


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_terminal_of_any_width_shows_every_span_on_a_line(width: int) -> None:
    lines = shown(trace(commit_s=0.1), width)
    assert [line.split()[0] for line in lines[2:] if line and line[0].isalpha()] == [
        "phase",
        "fetch",
        "align",
        "spark",
        "collect",
        "commit",
    ]
    assert sum(line.startswith("  ") for line in lines) == sum(bool(span.name) for span in SPANS)
    assert max(map(len, lines[2:])) <= width
    assert any("+1.500" in line and "0.100" in line for line in lines), "numbers are never cut"
    assert any("█" in line for line in lines)


def test_it_says_what_is_left_out_and_what_is_not_known_yet() -> None:
    many = [Span("align", f"fetch-{at}", 0.0, float(at)) for at in range(20)]
    lines = shown(trace(Span("align", "", 0.0, 20.0), *many))
    assert lines[-1] == "align: 4 shorter ones are not shown"
    assert "whose duration is not known yet" in lines[1]


def test_a_name_does_not_control_the_terminal() -> None:
    lines = shown(trace(Span("spark", "a\x1b[2Jb", 0.0, 1.0)))
    assert not any("\x1b[2J" in line for line in lines)
