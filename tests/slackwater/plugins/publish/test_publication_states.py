"""The states of publications at the end of a run, and the exit code that follows."""

from __future__ import annotations

from dataclasses import replace

import pytest

import slackwater as sw
from slackwater.cli.display.session import print_incomplete
from slackwater.plugins.publish.declaration import DeclaredPublication
from slackwater.plugins.publish.publication_loop import PublicationReport
from slackwater.plugins.publish.publication_states import PublicationStates
from slackwater.status.run_status import PublicationStatus, RunReport
from state.clock import SystemClock
from tests.slackwater.plugins.publish.beside import state

_NOW = SystemClock().now()


def states_of(*reports: PublicationReport) -> PublicationStates:
    """Two tables, and a run that has committed the epochs 1 and 2."""
    states = PublicationStates([DeclaredPublication("v", sw.ParquetFiles(f"/lake/{name}")) for name in "ab"])
    states.notify(state(1, 2))
    for report in reports:
        states.report(report)
    return states


def report_of(*publications: PublicationStatus) -> RunReport:
    return RunReport(
        epochs=2, files=0, rows=0, bytes=0, requests=0, seconds=1.0, quarantined=0, publications=publications
    )


def exit_code(*publications: PublicationStatus) -> int:
    return report_of(*publications).exit_code


def test_a_process_that_is_ended_in_time_makes_only_tables_incomplete_that_lack_an_epoch() -> None:
    states = states_of(PublicationReport(0, epoch=2, looked=2), PublicationReport(1, epoch=1, looked=1))
    states.end_in_time(30)
    whole, lacking = states.statuses(_NOW)
    assert (whole.state, whole.error, lacking.state) == ("current", None, "retrying")
    assert lacking.error == "the last epoch was not published within 30 s of the end of the run"
    assert (exit_code(whole, lacking), exit_code(whole)) == (3, 0)


def test_a_process_that_has_not_looked_at_an_epoch_of_an_earlier_run_says_of_no_table_that_it_is_complete() -> None:
    states = PublicationStates([DeclaredPublication("v", sw.ParquetFiles("/lake/a"))])
    states.notify(replace(state(2), recent=()))  # this run has committed none
    states.end_in_time(30)
    (unseen,) = states.statuses(_NOW)
    assert (unseen.state, exit_code(unseen)) == ("retrying", 3)


def test_the_last_error_of_a_table_that_has_every_epoch_makes_it_incomplete() -> None:
    states = states_of(PublicationReport(0, epoch=2, looked=2, error="no room"), PublicationReport(1, looked=2))
    failed, whole = states.statuses(_NOW)
    assert (failed.is_incomplete, whole.is_incomplete) == (True, False)


def test_a_dead_process_is_the_error_of_each_table_until_it_reports_again() -> None:
    states = states_of(PublicationReport(0, epoch=2, looked=2))
    states.death = "the process that publishes was killed by signal 9"
    assert [each.error for each in states.statuses(_NOW)] == [states.death] * 2
    states.report(PublicationReport(1, epoch=2, looked=2))
    assert [each.error for each in states.statuses(_NOW)] == [None] * 2


def test_tables_that_the_gate_holds_back_are_complete() -> None:
    report = PublicationReport(0, epoch=1, looked=2, later=1, is_held=True)
    states = states_of(report, PublicationReport(1, epoch=2, looked=2))
    states.end_in_time(30)
    held, other = states.statuses(_NOW)
    assert (held.state, exit_code(held, other)) == ("held", 0)


@pytest.mark.parametrize("is_held", [False, True])
def test_the_table_of_a_view_in_backfill_is_behind_and_named(is_held: bool, capsys: pytest.CaptureFixture[str]) -> None:
    building = PublicationReport(0, epoch=2, looked=2, is_building=True, is_held=is_held)
    first, whole = states_of(building, PublicationReport(1, epoch=2, looked=2)).statuses(_NOW)
    assert (first.state, first.error, whole.state) == ("behind", None, "current")
    assert (exit_code(first, whole), exit_code(whole)) == (3, 0)
    print_incomplete(report_of(first, whole))
    [line] = capsys.readouterr().err.splitlines()
    assert line == "error: view v: parquet:/lake/a is behind: the backfill of view v is not complete"
