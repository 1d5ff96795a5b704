"""Begins and ends of states, and the order and the tries of their notices."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from slackwater.plugins.alerts.alert_states import NAME, TRIED_FOR, AlertStates, read_states
from state.errors import DamagedStoreError
from state.location import Location
from tests.slackwater.reading.written_root import START


def told(states: AlertStates) -> list[tuple[str, str, str]]:
    return [(each.state.alert, each.state.subject, each.event) for each in states.notices]


def test_a_state_is_told_once_at_its_begin_and_once_at_its_end() -> None:
    states = AlertStates().found("lag", {"a": 7.0}, START)
    assert told(states) == [("lag", "a", "begin")]
    later = START + timedelta(minutes=1)
    assert states.found("lag", {"a": 900.0}, later) == states, "a state that goes on is no news"
    states = states.found("lag", {"b": 8.0}, later)
    assert told(states) == [("lag", "a", "begin"), ("lag", "a", "end"), ("lag", "b", "begin")]
    (begun,) = states.active
    assert (begun.subject, begun.since, begun.value) == ("b", later, 8.0)
    assert states.notices[1].state.since == START, "an end names the begin of its state"


def test_notices_of_one_alert_go_out_in_their_order_and_do_not_wait_for_other_alerts() -> None:
    states = AlertStates().found("lag", {"a": 1.0}, START).found("lag", {}, START).found("other", {"a": 1.0}, START)
    first, other = states.due(START)
    assert (first.event, other.state.alert) == ("begin", "other")
    waits = states.failed(first, "no answer", START)
    assert waits.due(START) == [other]
    assert [each.event for each in waits.due(START + timedelta(seconds=10))] == ["begin", "begin"]
    assert [each.event for each in states.delivered(first).due(START)] == ["end", "begin"]


def test_a_notice_is_tried_for_an_hour_and_then_given_up() -> None:
    states, now, tries = AlertStates().found("lag", {"a": 1.0}, START), START, 0
    while states.notices:
        (notice,) = states.due(now)
        states, tries = states.failed(notice, "no answer", now), tries + 1
        now = states.notices[0].next_at if states.notices else now
    assert START + TRIED_FOR - timedelta(minutes=5) < now <= START + TRIED_FOR and tries == 15
    assert [each.subject for each in states.active] == ["a"], "the state goes on"


def test_states_of_alerts_that_are_not_declared_any_more_go() -> None:
    states = AlertStates().found("lag", {"a": 1.0}, START).found("other", {"a": 1.0}, START).declared(["other"])
    assert [each.alert for each in states.active] == ["other"] and told(states) == [("other", "a", "begin")]


def test_the_last_arrival_of_a_source_is_the_last_growth_of_its_files() -> None:
    hour = timedelta(hours=1)
    states = AlertStates().counted({"a": 3}, START).counted({"a": 3}, START + hour).counted({"a": 2}, START + hour)
    assert states.arrivals["a"].at == START
    assert states.counted({"a": 4}, START + 2 * hour).arrivals["a"].at == START + 2 * hour


def test_states_are_the_same_after_a_restart_and_a_torn_file_is_named(tmp_path: Path) -> None:
    root = Location(str(tmp_path))
    assert read_states(root) == AlertStates()
    states = AlertStates().counted({"a": 3}, START).found("lag", {"a": 1.5}, START)
    states = states.failed(states.notices[0], "no answer", START)
    (tmp_path / NAME).write_bytes(states.to_json())
    assert read_states(root) == states
    (tmp_path / NAME).write_bytes(states.to_json()[:50])
    with pytest.raises(DamagedStoreError, match=r"alerts\.json is not a valid file of alerts"):
        read_states(root)
