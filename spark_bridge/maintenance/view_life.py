"""The life of a view: its states, the allowed transitions, and the record of the state of each view.

    absent ──declare──► waiting, declared, backfilling, live, stale
    declared, backfilling ──epoch──► live ──declare──► backfilling (replaced, or rebuilt)
    any but stale ──fail──► failing ──epoch──► stale ──declare──► backfilling (retried, or replaced)
    any ──drop──► dropping ──epoch──► absent

`docs/design/view-life.md` explains the states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

import structlog

from spark_bridge.plans.planned_view import PlannedView
from state.errors import ProtocolError
from state.tables.stored_rows import is_view

_log = structlog.get_logger(actor="materializer")


class ViewState(Enum):
    """The state of a declared or internal view.  The next epoch ends the states DECLARED, FAILING and DROPPING."""

    ABSENT = "absent"
    WAITING = "waiting for a schema"
    DECLARED = "declared"
    BACKFILLING = "backfilling"
    LIVE = "live"
    FAILING = "failing"
    STALE = "stale"
    DROPPING = "dropping"


class Cause(Enum):
    """The cause of a transition."""

    DECLARE = "declare"
    EPOCH = "epoch"
    FAIL = "fail"
    DROP = "drop"


_S = ViewState
_STARTS = frozenset({_S.ABSENT, _S.WAITING, _S.DECLARED, _S.BACKFILLING, _S.LIVE, _S.STALE})
"""The states that a declaration assigns: ABSENT to a view that it leaves out."""

TRANSITIONS: Mapping[tuple[ViewState, Cause], frozenset[ViewState]] = {
    (_S.ABSENT, Cause.DECLARE): _STARTS,
    (_S.WAITING, Cause.DECLARE): _STARTS,
    (_S.DECLARED, Cause.DECLARE): _STARTS - {_S.STALE},
    # STALE: a retry was refused.
    (_S.BACKFILLING, Cause.DECLARE): _STARTS,
    (_S.LIVE, Cause.DECLARE): _STARTS - {_S.STALE},
    # LIVE: no epoch has recorded the failure, and the stored definition is declared again.
    (_S.FAILING, Cause.DECLARE): _STARTS,
    # It lacks the rows of later epochs.
    (_S.STALE, Cause.DECLARE): frozenset({_S.ABSENT, _S.WAITING, _S.BACKFILLING}),
    # A view of the same name is another view: it has none of the rows.
    (_S.DROPPING, Cause.DECLARE): frozenset({_S.WAITING, _S.DECLARED, _S.BACKFILLING}),
    (_S.DECLARED, Cause.EPOCH): frozenset({_S.LIVE}),
    (_S.BACKFILLING, Cause.EPOCH): frozenset({_S.LIVE}),
    (_S.FAILING, Cause.EPOCH): frozenset({_S.STALE}),
    (_S.DROPPING, Cause.EPOCH): frozenset({_S.ABSENT}),
    # STALE: a retry fails in its analysis.
    **{
        (state, Cause.FAIL): frozenset({_S.FAILING})
        for state in (_S.ABSENT, _S.WAITING, _S.DECLARED, _S.BACKFILLING, _S.LIVE, _S.STALE)
    },
    **{(state, Cause.DROP): frozenset({_S.DROPPING}) for state in _S if state is not _S.DROPPING},
}
"""State and cause → the states that may follow.  A pair that is not here does not occur."""


@dataclass(frozen=True)
class ViewLife:
    """The record of the life of one view.

    Args:
        stops: whether the next epoch records that the shown rows stop: they belong to another definition, or the view
            is rebuilt.
        error: the reason of a failure that the next epoch records; empty in other states.
        failed: the view that fails, as it was declared; None if it cannot be analysed.
    """

    state: ViewState
    stops: bool = False
    error: str = ""
    failed: PlannedView | None = None


@dataclass(frozen=True)
class Transition:
    """One transition of a view.

    Args:
        view: the name of the view.
    """

    view: str
    before: ViewState
    cause: Cause
    after: ViewState


_ABSENT = ViewLife(ViewState.ABSENT)


def log_transition(each: Transition) -> None:
    """Logs a transition of a declared view."""
    if is_view(each.view):
        _log.info(
            "a view has changed its state",
            view=each.view, before=each.before.value, after=each.after.value, cause=each.cause.value,
        )  # fmt: skip


class ViewLives:
    """Name → life of each declared and internal view.  Every transition is made by `move`.

    Args:
        observe: is called after each transition.
    """

    def __init__(self, observe: Callable[[Transition], None]) -> None:
        self._lives: dict[str, ViewLife] = {}
        self._observe = observe

    def __getitem__(self, name: str) -> ViewLife:
        return self._lives.get(name, _ABSENT)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._lives))

    def state(self, name: str) -> ViewState:
        """The state of a view; ABSENT for an unknown name."""
        return self[name].state

    def within(self, *states: ViewState) -> list[str]:
        """The views in one of these states."""
        return [name for name, life in self._lives.items() if life.state in states]

    def move(self, name: str, cause: Cause, life: ViewLife) -> None:
        """Records the next state of a view.  The same state again changes the record, without a transition.

        Raises:
            ProtocolError: the transition is not one of `TRANSITIONS`.
        """
        before, after = self.state(name), life.state
        if after is not before and after not in TRANSITIONS.get((before, cause), ()):
            raise ProtocolError(f"view {name}: {before.value} does not become {after.value} by {cause.value}")
        if after is ViewState.ABSENT:
            self._lives.pop(name, None)
        else:
            self._lives[name] = life
        if after is not before:
            self._observe(Transition(name, before, cause, after))

    def take_stopping(self) -> set[str]:
        """The views whose shown rows stop, for the record of an epoch."""
        stopping = {name for name, life in self._lives.items() if life.stops}
        self._lives |= {name: replace(self._lives[name], stops=False) for name in stopping}
        return stopping
