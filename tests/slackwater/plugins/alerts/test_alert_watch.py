"""The watch of a run over a real root: notices to a web server and to programs, across restarts and failures."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from slackwater.plugins.alerts.alert import Alert
from slackwater.plugins.alerts.alert_states import NAME, read_states
from slackwater.plugins.alerts.alert_watch import AlertWatch
from slackwater.status.run_status import RunStatus, SourceStatus
from state.clock import ManualClock
from state.errors import SettingsError
from state.location import Location
from tests.slackwater.cli.called_command import slackwater
from tests.slackwater.reading.written_root import START, WrittenRoot, begin_root, write_root
from tests.slackwater.web_receiver import WebReceiver, web_receiver

LAG = "lag > 5 minutes"
QUARANTINED = "quarantined files > 0"


@pytest.fixture
def hook() -> Iterator[WebReceiver]:
    with web_receiver() as hook:
        hook.url += "/T0/secret"
        yield hook


@pytest.fixture
def written(tmp_path: Path) -> WrittenRoot:
    return write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))


def run_of(written: WrittenRoot, phase: str = "running", lag_s: float = 0.0) -> RunStatus:
    return RunStatus(phase, written.epochs[-1], sources={"flights": SourceStatus(oldest_unfinished_s=lag_s)})


def watch_of(written: WrittenRoot, *alerts: Alert, clock: ManualClock | None = None) -> AlertWatch:
    return AlertWatch(alerts, "flights", written.root, clock or ManualClock(START))


def test_a_webhook_gets_the_begin_and_the_end_of_a_state_once_also_across_restarts(
    written: WrittenRoot, hook: WebReceiver
) -> None:
    clock, alert = ManualClock(START), Alert(LAG, hook.url)
    watch = watch_of(written, alert, clock=clock)
    for lag_s in (300.0, 301.0, 400.0):
        watch.look(run_of(written, lag_s=lag_s))
    assert [each["text"] for each in hook.got] == [f"flights, source flights: {LAG} (0:05:01)"]
    root = str(written.root)
    assert {**hook.got[0], "text": ""} == {
        "text": "",
        "alert": LAG,
        "event": "begin",
        "when": LAG,
        "pipeline": "flights",
        "root": root,
        "source": "flights",
        "value": 301.0,
        "unit": "seconds",
        "since": START.isoformat(),
        "at": START.isoformat(),
    }
    clock.advance(60)
    watch = watch_of(written, alert, clock=clock)
    watch.look(run_of(written, "starting"))
    watch.look(run_of(written, lag_s=302.0))
    assert len(hook.got) == 1, "a restart does not end a state"
    watch.look(run_of(written))
    assert [each["event"] for each in hook.got] == ["begin", "end"]
    assert hook.got[1]["since"] == START.isoformat() != hook.got[1]["at"]
    states = read_states(written.root)
    assert not states.active and not states.notices


def test_a_webhook_that_fails_is_tried_again_without_its_secret_in_the_log(
    written: WrittenRoot, hook: WebReceiver, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = ManualClock(START)
    hook.answers = [500, 404]
    watch = watch_of(written, Alert(LAG, hook.url), clock=clock)
    for _ in range(3):
        watch.look(run_of(written, lag_s=301))
    assert hook.answers == [404], "it is tried again after ten seconds, not before"
    shown = slackwater("alerts", written.root.url)
    assert (shown.code, shown.out.splitlines()[1].split("\t")[-1]) == (0, "begin: http://127.0.0.1 answered 500")
    clock.advance(10)
    watch = watch_of(written, Alert(LAG, hook.url), clock=clock)
    watch.look(run_of(written, lag_s=301))
    assert hook.answers == [] and hook.got == []
    clock.advance(30)
    watch.look(run_of(written, lag_s=301))
    assert [each["event"] for each in hook.got] == ["begin"]
    printed = capsys.readouterr()
    assert "alert is tried again for an hour" in printed.err + printed.out
    assert "secret" not in printed.err + printed.out + (written.root.path / NAME).read_text()


def test_the_ledger_tells_quarantined_files_of_all_runs_and_a_retry_ends_the_state(tmp_path: Path) -> None:
    told = tmp_path / "told.jsonl"
    keep = [sys.executable, "-c", f"import sys; open({str(told)!r}, 'a').write(sys.stdin.read() + '\\n')"]
    writer = begin_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))
    watch = AlertWatch([Alert(QUARANTINED, keep)], "flights", writer.root, ManualClock(START))
    for status, events in (("quarantined", ["begin"]), ("quarantined", ["begin"]), ("done", ["begin", "end"])):
        writer.finish("bad.csv", status=status, rows_read=0)
        writer.commit()
        watch.look(RunStatus("running", writer.records[-1].epoch))
        documents = [json.loads(each) for each in told.read_text().splitlines()]
        assert [each["event"] for each in documents] == events
        assert {(each["source"], each["value"]) for each in documents} == {("flights", 1.0)}


def test_a_command_that_fails_or_is_missing_is_named(written: WrittenRoot) -> None:
    fails = [sys.executable, "-c", "import sys; sys.exit('no one is there')"]
    watch = watch_of(written, Alert(QUARANTINED, fails))
    watch.look(run_of(written))
    (notice,) = watch.states.notices
    assert notice.error == f"{sys.executable} ended with 1: no one is there"
    with pytest.raises(SettingsError, match="there is no program 'no-such-program' on this machine"):
        Alert(QUARANTINED, ["no-such-program"])
    with pytest.raises(SettingsError, match="to is neither 'log' nor an http"):
        Alert(QUARANTINED, "someone")
    with pytest.raises(SettingsError, match="a command is a list of texts"):
        Alert(QUARANTINED, [])


def test_no_file_for_a_while_is_counted_from_the_last_one_across_runs(written: WrittenRoot, hook: WebReceiver) -> None:
    clock, alert = ManualClock(START), Alert("no file for 2 hours", hook.url, name="silence")
    watch_of(written, alert, clock=clock).look(run_of(written))
    clock.advance(timedelta(hours=3).total_seconds())
    watch_of(written, alert, clock=clock).look(run_of(written))
    assert [(each["alert"], each["value"]) for each in hook.got] == [("silence", 10_800.0)]


def test_an_alert_that_is_not_declared_any_more_is_forgotten_with_its_notices(
    written: WrittenRoot, hook: WebReceiver
) -> None:
    hook.answers = [500]
    watch_of(written, Alert(LAG, hook.url)).look(run_of(written, lag_s=301))
    watch_of(written, Alert(QUARANTINED, hook.url)).look(run_of(written, lag_s=301))
    assert [each["alert"] for each in hook.got] == [QUARANTINED]
    assert [each.alert for each in read_states(written.root).active] == [QUARANTINED]


def test_a_run_whose_root_has_another_owner_writes_no_alerts(written: WrittenRoot) -> None:
    old, new = watch_of(written, Alert(LAG)), watch_of(written, Alert(LAG))
    assert new.look(run_of(written, lag_s=301))
    assert not old.look(run_of(written, lag_s=301))
    assert [each.alert for each in read_states(written.root).active] == [LAG]


def test_a_torn_file_begins_again(written: WrittenRoot) -> None:
    (written.root.path / NAME).write_bytes(b'{"active": [')
    watch = watch_of(written, Alert(LAG))
    watch.look(run_of(written, lag_s=301))
    assert [each.alert for each in read_states(written.root).active] == [LAG]
