"""Tests of the display of a run on a terminal."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from slackwater.cli.display.live_display import LiveDisplay
from slackwater.cli.display.run_display import RunDisplay
from slackwater.status.run_status import (
    MessageStatus,
    PublicationStatus,
    RunStatus,
    SourceStatus,
    StartupStep,
    ViewStatus,
)
from state.clock import ManualClock
from tests.slackwater.cli.run_statuses import EPOCH, failed, late, running, source


def shown(status: RunStatus, width: int = 120, height: int = 30, display: RunDisplay | None = None) -> list[str]:
    """The lines of the picture, without the blanks at their ends."""
    console = Console(file=io.StringIO(), record=True, width=width, height=height, color_system=None)
    console.print((display or RunDisplay("flights", "/data/root")).render(status, width, height))
    return [line.rstrip() for line in console.export_text().splitlines()]


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("count", [1, 5, 40])
def test_the_picture_fits_the_terminal_whatever_there_is_to_show(width: int, count: int) -> None:
    status = running(count, count, message="x" * 300)
    sources = {**status.sources, "source_0": source(rows_bad=3)}
    lines = shown(replace(status, sources=sources), width, 24)
    assert len(lines) < 24
    assert max(cell_len(line) for line in lines) <= width


def test_the_numbers_of_the_run_are_there() -> None:
    head, _, _, titles, row, _, phases, last, in_flight, _, view_titles, view = shown(running())
    assert re.split(" {2,}", head) == [
        "flights",
        "running",
        "1 min 04 s",
        f"epoch {EPOCH}",
        "34 epochs",
        "2 fetch actors",
    ]
    assert dict(zip(titles.split(), row.split(), strict=False))["source"] == "source_0"
    for expected in ("90,000", "41", "46", "12,345", "45.2 k", "12.3 MB", "51", "0.83 s"):
        assert expected in row
    assert phases.split()[:6] == ["epoch", "fetch", "align", "Spark", "collect", "commit"]
    assert last.split()[:11] == ["last", "0.52", "s", "0.25", "s", "1.00", "s", "0.25", "s", "0.02", "s"]
    assert in_flight.split() == ["in", "flight", "0.31", "s", "1.20", "s"]
    assert in_flight.index("1.20 s") == phases.index("Spark") - 1
    assert view_titles.split() == ["view", "class", "rows", "lag"]
    assert view.split() == ["view_0", "aggregate", "1,000", "current"]


def test_nothing_moves_while_the_numbers_grow() -> None:
    before = running(2, 2)
    grown = source(waiting=0, reading=0, done=8_765_432, rows=1_234_567_890_123, rows_per_s=3.2e6, bytes_per_s=0.0)
    after = replace(before, sources={"source_0": grown, "source_1": source()}, in_flight=(), seconds=4_000.0)
    first, second = shown(before), shown(after)
    assert len(first) == len(second)
    for number in (3, 6, 10):
        assert first[number] == second[number], "the heads of the columns"
    for row in (4, 5):
        assert len(first[row]) == len(second[row])
    assert "8.8 M" in second[4] and "1234.6 G" not in second[4]


def test_what_does_not_fit_is_summed_up_in_a_last_line() -> None:
    status = running(40, 40)
    bad = {f"source_{number}": source(number, quarantined=1) for number in range(40)}
    lines = shown(replace(status, sources=bad), 120, 24)
    rows = [line for line in lines if line.startswith("source_")]
    others, _ = [line for line in lines if " others" in line]
    hidden = 40 - len(rows)
    assert rows[0].startswith("source_0 ") and others.startswith(f"{hidden} others")
    assert others.split()[4:8] == [f"{hidden * 41:,}", f"{hidden * 2:,}", f"{hidden * 46:,}", str(hidden)]
    views = [line for line in lines if line.startswith("view_")]
    assert any(line.startswith(f"{40 - len(views)} others") for line in lines)


def test_few_sources_leave_their_room_to_many_views() -> None:
    lines = shown(running(1, 40), 120, 30)
    assert len(lines) == 29 and sum(line.startswith("view_") for line in lines) == 17


def test_a_narrow_terminal_keeps_what_matters_most() -> None:
    lines = shown(running(), 40)
    assert lines[3].split() == ["source", "waiting", "done", "rows/s"]
    assert "freshness" in shown(running(), 80)[3] and "listed" not in shown(running(), 80)[3]
    assert "files/s" in shown(running(), 200)[3]


def test_a_run_says_what_it_waits_for() -> None:
    assert shown(running(message="waiting for a first file in [flights]"))[1] == "waiting for a first file in [flights]"
    assert shown(running(phase="starting", spark="starting"))[1] == "Spark starts"
    idle = running(sources=0, caught_up=True, in_flight=())
    assert shown(replace(idle, sources={"a": SourceStatus(done=3)}))[1].endswith("waiting for new files")
    assert shown(replace(idle, sources={"a": SourceStatus(waiting=1)}))[1] == ""
    assert shown(replace(idle, sources={"a": SourceStatus()}, phase="paused"))[1] == ""


def test_a_start_shows_its_steps_and_those_under_way_where_there_is_no_room_for_all() -> None:
    steps = (
        StartupStep("Ray", 2.13, True),
        StartupStep("coordinator and actors", 3.0, True),
        StartupStep("executor", 12.0, False),
    )
    status = running(phase="starting", startup=steps, message="starting; waiting for executor")
    assert shown(status, 80)[1] == "Ray 2.13 s   coordinator and actors 3.00 s   executor 12.0 s"
    assert shown(status, 40)[1] == "executor 12.0 s"
    assert shown(replace(status, phase="recovering"))[1] == "starting; waiting for executor"
    done = tuple(replace(step, done=True) for step in steps)
    assert shown(replace(status, phase="running", startup=done, message=""))[1] == ""


def test_a_warning_takes_the_place_of_the_message() -> None:
    display = RunDisplay("flights", "/data/root", "process 7 on host", "nothing heard for 25 s")
    lines = shown(running(message="all is well"), display=display)
    assert "process 7 on host" in lines[0] and lines[1] == "nothing heard for 25 s"


def test_views_that_lag_and_views_that_are_late_say_so() -> None:
    views = {"full": ViewStatus("full", 7, 12.3), "none": ViewStatus("append"), "late": ViewStatus("append")}
    lines = shown(replace(running(), views=views, backfills=late(0.454)))
    rows = {line.split()[0]: line.split()[1:] for line in lines[-3:]}
    assert rows["full"] == ["full", "7", "12.3", "s", "behind"]
    assert rows["none"] == ["append"]
    assert rows["late"] == ["append", "backfill:", "45%"]
    joined = {"joined": ViewStatus("append", 7, late_rows=3), "closed": ViewStatus("append", 7, 0.0, 2, 4)}
    lines = shown(replace(running(), views=joined))
    rows = {line.split()[0]: line.split()[1:] for line in lines[-2:]}
    assert rows == {
        "joined": ["append", "7", "current,", "3", "late"],
        "closed": ["append", "7", "2", "open,", "4", "late"],
    }
    assert "misses 2 files" in shown(replace(running(), backfills=late(0.5, "a", "b")))[-1]


def test_bad_records_and_queues_have_a_line_below_everything_else() -> None:
    told = source(rows_bad=4, messages=MessageStatus("https://sqs", 1_204, 37.4, poison=2))
    lines = shown(replace(running(2), sources={"told": told, "quiet": source()}))
    assert lines[-1] == "told: 4 bad records, 1,204 messages in flight, oldest 37 s, 2 poison"
    assert not any("quiet:" in line for line in lines)
    many = {f"s{number}": source(rows_bad=1) for number in range(9)}
    assert shown(replace(running(), sources=many))[-1] == "6 other sources have such notes"


def test_paused_removals_have_a_line() -> None:
    lines = shown(replace(running(), sources={"s": source(paused_removals=1_204)}), 200)
    assert lines[-1] == "s: removals are paused: 1,204 missing files; see `slackwater allow-removals`"


def test_columns_that_files_lack_have_a_line() -> None:
    filled = source(filled_columns=("qty", *(f"c{number}" for number in range(6))))
    lines = shown(replace(running(), sources={"s": filled}), 200)
    assert lines[-1] == "s: files lack qty, c0, c1, c2, c3 and 2 others: null in their rows"


def test_a_paused_source_has_a_line() -> None:
    lines = shown(replace(running(), sources={"s": source(paused="s3://raw is a Delta table; move it")}), 200)
    assert lines[-1] == "s: paused: s3://raw is a Delta table; move it"


def test_a_failed_view_says_since_when_it_is_stale_why_and_what_to_do() -> None:
    status = replace(running(1, 2), views={"wet": failed(), "dry": ViewStatus("append", 7)})
    lines = shown(status, 80)
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.startswith(("wet ", "dry "))}
    assert rows["dry"] == ["append", "7", "current"]
    assert "wet".ljust(12) + "append                  failed" in lines
    assert lines[-2:] == [
        "wet: stale at 2026-08-19 17:55:21 UTC; `slackwater retry /data/root --view wet`",
        "wet: [CAST_INVALID_INPUT] no number",
    ]


def test_a_view_that_failed_in_the_first_epoch_has_no_rows() -> None:
    lines = shown(replace(running(), views={"wet": failed(stale_epoch=None)}))
    assert lines[-2] == "wet: no rows; `slackwater retry /data/root --view wet`"


def test_the_error_of_a_view_is_one_line_and_cannot_move_the_cursor() -> None:
    hostile = f"no\n\x1b[2Jnumber\u202e{' much' * 40}"
    last = shown(replace(running(), views={"wet": failed(hostile)}), 60)[-1]
    assert last.startswith(r"wet: no \x1b[2Jnumber\u202e much") and cell_len(last) == 60 and last.endswith("…")


@pytest.mark.parametrize("height", [24, 40])
@pytest.mark.parametrize("count", [1, 2, 3, 30])
def test_failed_views_leave_room_for_the_rest(count: int, height: int) -> None:
    views = {f"view_{number}": failed() for number in range(count)}
    bad = {f"source_{number}": source(number, rows_bad=1) for number in range(30)}
    lines = shown(replace(running(), sources=bad, views=views), 120, height)
    assert len(lines) < height
    notes = [line for line in lines if ": stale at " in line]
    assert len(notes) == (count if count <= 2 else 1)
    if count > 2:
        assert lines[-1] == f"{count - 1} other views failed; see `slackwater status`"


def test_failed_views_that_do_not_fit_are_counted() -> None:
    views = {f"view_{number}": failed() if number == 39 else ViewStatus("append", 1) for number in range(40)}
    lines = shown(replace(running(), views=views), 120, 24)
    [others] = [line for line in lines if " others" in line]
    assert others.endswith("1 of them failed")


def test_failed_publications_have_a_line_and_others_none() -> None:
    def publication(number: int, **changes: Any) -> PublicationStatus:
        return PublicationStatus(f"view_{number}", f"delta:/pub/{number}", **changes)

    behind = publication(0, behind_epochs=3, behind_s=12.0)
    refused = publication(1, behind_epochs=1, behind_s=75.0, error="delta:/pub/1 was written by\nanother\x1b program")
    lines = shown(replace(running(), publications=(behind, refused)), 120)
    notes = [line for line in lines if "/pub/" in line]
    assert notes == [
        r"view view_1 (1 epoch, 1 min 15 s behind): delta:/pub/1 was written by another\x1b program; it is tried again"
    ]
    many = tuple(publication(number, error="no room") for number in range(9))
    lines = shown(replace(running(), publications=many), 120)
    assert lines[-4:] == [
        *(f"view view_{number}: delta:/pub/{number}: no room; it is tried again" for number in range(3)),
        "6 other publications failed; see `slackwater status`",
    ]


def test_names_from_outside_cannot_move_the_cursor_or_style_the_terminal() -> None:
    hostile = "\x1b[2J[bold]\u202e"
    status = replace(
        running(message=hostile), sources={hostile: source(rows_bad=1)}, views={hostile: ViewStatus("full")}
    )
    text = "\n".join(shown(status, 200, display=RunDisplay(hostile, hostile, hostile)))
    assert "\x1b" not in text and "\u202e" not in text
    assert text.count(r"\x1b[2J[bold]\u202e") == 6


def test_a_terminal_keeps_the_last_picture_and_counts_the_seconds_before_the_run() -> None:
    stream, clock = io.StringIO(), ManualClock()
    console = Console(file=stream, force_terminal=True, width=100, height=30, color_system=None)
    with LiveDisplay(RunDisplay("flights", "/data/root"), console, clock) as display:
        clock.advance(7)
        display.show(RunStatus(message="Ray starts"))
    assert "flights  starting     7 s" in stream.getvalue() and "Ray starts" in stream.getvalue()
