"""A state is sent without the epochs that its receiver knows, and is whole again there."""

from __future__ import annotations

from datetime import UTC, datetime

from actors.protocol.run_state import CommittedEpoch, RunState
from state.tables.records import EpochCounts, EpochSeconds

AT = datetime(2026, 1, 1, tzinfo=UTC)


def state_of(version: int, *epochs: int) -> RunState:
    recent = tuple(CommittedEpoch(each, AT, EpochCounts(), EpochSeconds()) for each in epochs)
    return RunState(version, "running", 1, epochs[-1], recent=recent, traces={each: f"trace {each}" for each in epochs})


def epochs_of(state: RunState) -> tuple[list[int], list[int]]:
    return [each.epoch for each in state.recent], list(state.traces)


def test_what_is_sent_is_what_is_new() -> None:
    state = state_of(7, 1, 2, 3)
    assert epochs_of(state.since(0)) == ([1, 2, 3], [1, 2, 3])
    assert epochs_of(state.since(2)) == ([3], [3])
    assert epochs_of(state.since(3)) == ([], [])
    assert state.since(3).version == 7


def test_with_what_was_known_it_is_whole_again() -> None:
    before, state = state_of(6, 1, 2), state_of(7, 1, 2, 3)
    assert state.since(before.epoch).after(before) == state
    assert before.since(before.epoch).after(before) == before


def test_of_epochs_the_last_are_kept_and_of_traces_fewer() -> None:
    state = state_of(1, 1)
    for epoch in range(2, 101):
        state = state_of(epoch, epoch).after(state)
    assert epochs_of(state) == (list(range(69, 101)), list(range(85, 101)))
    assert state.traces[100] == "trace 100"
