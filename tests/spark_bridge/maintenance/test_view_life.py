"""The table of transitions, its picture in the documentation, and the one place where a transition is made."""

from __future__ import annotations

from itertools import product

import pytest

from spark_bridge.maintenance.view_life import TRANSITIONS, Cause, Transition, ViewLife, ViewLives, ViewState
from state.errors import ProtocolError
from tests.repository import REPOSITORY

_PAGE = REPOSITORY / "docs" / "design" / "view-life.md"
_HEADER = "| from | declare | epoch | fail | drop |\n|---|---|---|---|---|\n"


def _lives_in(state: ViewState, observed: list[Transition]) -> ViewLives:
    """The life of view `v`, brought to a state by way of allowed transitions."""
    lives = ViewLives(observed.append)
    path = {
        ViewState.FAILING: [(Cause.FAIL, state)],
        ViewState.DROPPING: [(Cause.DROP, state)],
        ViewState.ABSENT: [],
    }.get(state, [(Cause.DECLARE, state)])
    for cause, after in path:
        lives.move("v", cause, ViewLife(after))
    observed.clear()
    return lives


@pytest.mark.parametrize("before", ViewState, ids=lambda state: state.value)
def test_only_transitions_of_the_table_are_made(before: ViewState) -> None:
    for cause, after in product(Cause, ViewState):
        observed = list[Transition]()
        lives = _lives_in(before, observed)
        if after is before:
            lives.move("v", cause, ViewLife(after))
            assert (lives.state("v"), observed) == (before, [])
        elif after in TRANSITIONS.get((before, cause), ()):
            lives.move("v", cause, ViewLife(after))
            assert (lives.state("v"), observed) == (after, [Transition("v", before, cause, after)])
        else:
            with pytest.raises(ProtocolError, match=f"^view v: {before.value} does not become {after.value} by"):
                lives.move("v", cause, ViewLife(after))
            assert (lives.state("v"), observed) == (before, [])


def test_the_page_has_the_table() -> None:
    table = _PAGE.read_text().partition(_HEADER)[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    states = {state.value: state for state in ViewState}
    shown = {
        (states[row[0]], cause): frozenset(states[name.strip()] for name in cell.split(","))
        for row in rows
        for cause, cell in zip(Cause, row[1:], strict=True)
        if cell
    }
    allowed = {(before, cause): after - {before} for (before, cause), after in TRANSITIONS.items() if after - {before}}
    assert shown == allowed


def test_a_view_that_leaves_has_no_record() -> None:
    lives = _lives_in(ViewState.DROPPING, [])
    lives.move("v", Cause.EPOCH, ViewLife(ViewState.ABSENT))
    assert [*lives] == [] and lives.state("v") is ViewState.ABSENT


def test_rows_stop_once() -> None:
    lives = ViewLives(lambda _: None)
    lives.move("v", Cause.DECLARE, ViewLife(ViewState.BACKFILLING, stops=True))
    assert (lives.take_stopping(), lives.take_stopping()) == ({"v"}, set())
    assert lives.state("v") is ViewState.BACKFILLING
