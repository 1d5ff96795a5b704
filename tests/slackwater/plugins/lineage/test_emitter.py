"""Events reach a real endpoint or file in their order, once, and wait while it does not answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.plugins.lineage import emitter as emitting
from slackwater.plugins.lineage.emitter import Emitter
from slackwater.plugins.lineage.run_lineage import RunLineage
from slackwater.status.run_status import RunStatus
from state.clock import ManualClock
from tests.slackwater.reading.written_root import START
from tests.slackwater.web_receiver import WebReceiver, web_receiver


@pytest.fixture
def endpoint() -> Iterator[WebReceiver]:
    with web_receiver() as endpoint:
        yield endpoint


def events_of(target: sw.OpenLineage, run: str) -> list[Any]:
    """The first and the last event of a run without an epoch."""

    def no_store() -> sw.Store:
        raise AssertionError("a run without an epoch has no store to look at")

    lineage = RunLineage(target, "flights", run, no_store, ManualClock(START))
    return lineage.end(RunStatus("stopped"), None)


def test_events_are_posted_in_their_order_with_the_key_of_the_environment(
    endpoint: WebReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "secret")
    target = sw.OpenLineage(endpoint.url, namespace="team")
    sender = Emitter(target, ManualClock(START))
    sender.put([*events_of(target, "one"), *events_of(target, "two")])
    sender.send()
    assert [each["eventType"] for each in endpoint.got] == ["START", "COMPLETE"] * 2
    assert {each["job"]["namespace"] for each in endpoint.got} == {"team"}
    assert len({each["run"]["runId"] for each in endpoint.got}) == 2
    assert set(endpoint.asked) == {("/api/v1/lineage", "Bearer secret")}


def test_events_wait_while_the_endpoint_fails_and_are_told_once(
    endpoint: WebReceiver, capsys: pytest.CaptureFixture[str]
) -> None:
    target = sw.OpenLineage(f"{endpoint.url}/T0/secret/")
    clock = ManualClock(START)
    sender = Emitter(target, clock)
    sender.put(events_of(target, "one"))
    endpoint.answers = [503, 429]
    for _ in range(3):
        sender.send()
    assert len(endpoint.asked) == 1, "no second try before its pause is over"
    clock.advance(1)
    sender.send()
    clock.advance(1)
    sender.send()
    assert len(endpoint.asked) == 2, "the pause has doubled"
    clock.advance(1)
    sender.send()
    assert [each["eventType"] for each in endpoint.got] == ["START", "COMPLETE"]
    said = "".join(capsys.readouterr())
    assert said.count("lineage waits") == 1 and "answered 503" in said and "secret" not in said


def test_an_event_that_the_endpoint_refuses_is_left_out(
    endpoint: WebReceiver, capsys: pytest.CaptureFixture[str]
) -> None:
    target = sw.OpenLineage(endpoint.url)
    sender = Emitter(target, ManualClock(START))
    sender.put(events_of(target, "one"))
    endpoint.answers = [422]
    sender.send()
    assert [each["eventType"] for each in endpoint.got] == ["COMPLETE"]
    assert "http://127.0.0.1 answered 422" in "".join(capsys.readouterr())


def test_the_oldest_events_are_left_out_of_too_many(endpoint: WebReceiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emitting, "MOST_WAITING", 3)
    target = sw.OpenLineage(endpoint.url)
    sender = Emitter(target, ManualClock(START))
    sender.put([*events_of(target, "one"), *events_of(target, "two")])
    sender.send()
    assert [each["eventType"] for each in endpoint.got] == ["COMPLETE", "START", "COMPLETE"]


def test_the_end_of_a_run_waits_ten_seconds_for_an_endpoint_that_is_away(
    endpoint: WebReceiver, capsys: pytest.CaptureFixture[str]
) -> None:
    target = sw.OpenLineage(endpoint.url)
    clock = ManualClock(START)
    sender = Emitter(target, clock)
    sender.put(events_of(target, "one"))
    endpoint.answers = [500] * 100
    sender.end()
    assert clock.monotonic() == 10
    assert "the run is over" in "".join(capsys.readouterr())


def test_a_file_gets_a_line_for_each_event_behind_those_it_has(tmp_path: Path) -> None:
    target = sw.OpenLineage(str(tmp_path / "events.jsonl"))
    for run in ("one", "two"):
        sender = Emitter(target, ManualClock(START))
        sender.put(events_of(target, run))
        sender.end()
    lines = (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["eventType"] for line in lines] == ["START", "COMPLETE"] * 2
