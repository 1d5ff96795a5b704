"""Checks of the lives of views: each transition against the table, and each epoch's record against the states."""

from __future__ import annotations

from collections.abc import Mapping

from spark_bridge.ingest.epoch_rows import EpochViews
from spark_bridge.maintenance.view_life import TRANSITIONS, Transition, ViewState
from state.tables.records import CatalogView
from state.tables.stored_rows import declared_name
from tests.simulation.promise_broken import PromiseBroken

_ENDED_BY_EPOCH = (ViewState.DECLARED, ViewState.FAILING, ViewState.DROPPING)


class LifeChecker:
    """Follows the states of the views of one materializer."""

    def __init__(self) -> None:
        self._states: dict[str, ViewState] = {}
        self._catalog: Mapping[str, CatalogView] = {}

    def on_declared(self, known: Mapping[str, CatalogView]) -> None:
        """Records the catalog of a declaration."""
        self._catalog = known

    def on_transition(self, each: Transition) -> None:
        """Checks a transition: it starts at the last state, and the table allows it."""
        last = self._states.get(each.view, ViewState.ABSENT)
        if each.before is not last:
            raise PromiseBroken("no bug", f"view {each.view} was {last.value}, not {each.before.value}")
        if each.after not in TRANSITIONS.get((each.before, each.cause), ()):
            raise PromiseBroken("no bug", f"{each} is not in the table")
        self._states[each.view] = each.after

    def check_epoch(self, done: EpochViews) -> None:
        """Checks the record of an epoch: the rows of live views follow, and other shown rows have stopped."""
        self._catalog = done.catalog(self._catalog)
        for name, state in self._states.items():
            if state in _ENDED_BY_EPOCH:
                raise PromiseBroken("no bug", f"an epoch leaves view {name} {state.value}")
            if name in done.views:
                has_stopped = self._catalog[name].stopped_epoch is not None
                if has_stopped is (state is ViewState.LIVE):
                    stopped = "stopped" if has_stopped else "not stopped"
                    raise PromiseBroken("no bug", f"view {name} is {state.value}, and its rows have {stopped}")
            elif state is ViewState.STALE or (state is ViewState.LIVE and self._has_own_view(name)):
                raise PromiseBroken("no bug", f"view {name} is {state.value} without rows")

    def _has_own_view(self, name: str) -> bool:
        """Whether the view of an internal view is there; if it has left, other views have the rows."""
        own = self._states.get(declared_name(name), ViewState.ABSENT)
        return own not in (ViewState.ABSENT, ViewState.STALE)
