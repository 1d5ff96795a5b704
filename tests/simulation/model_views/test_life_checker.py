"""Each forbidden transition of a view, and each record that contradicts its state, breaks a promise."""

from __future__ import annotations

import pytest

from spark_bridge.ingest.epoch_rows import EpochViews, Stopped
from spark_bridge.maintenance.view_life import Cause, Transition, ViewState
from state.tables.records import CatalogView, ViewVersion
from tests.simulation.model_views.life_checker import LifeChecker
from tests.simulation.promise_broken import PromiseBroken

VERSION = ViewVersion("v", "views/v-1.lance", 1)
CREATED = CatalogView("v", "append", "SELECT 1", "v", ("s",), (), 1)
DECLARED = Transition("v", ViewState.ABSENT, Cause.DECLARE, ViewState.DECLARED)
LIVE = Transition("v", ViewState.DECLARED, Cause.EPOCH, ViewState.LIVE)
FAILING = Transition("v", ViewState.LIVE, Cause.FAIL, ViewState.FAILING)
STALE = Transition("v", ViewState.FAILING, Cause.EPOCH, ViewState.STALE)
REPLACED = Transition("v", ViewState.LIVE, Cause.DECLARE, ViewState.BACKFILLING)


def check(done: EpochViews, *transitions: Transition) -> None:
    checker = LifeChecker()
    checker.on_declared({"v": CREATED})
    for each in transitions:
        checker.on_transition(each)
    checker.check_epoch(done)


def record(*, version: bool = True, stopped: Stopped | None = None) -> EpochViews:
    return EpochViews({"v": VERSION} if version else {}, (), (), (), {} if stopped is None else {"v": stopped})


def test_a_view_is_created_fails_and_is_stale() -> None:
    check(record(), DECLARED, LIVE)
    check(record(stopped=Stopped(1, "too wet")), DECLARED, LIVE, FAILING, STALE)
    check(record(stopped=Stopped(1)), DECLARED, LIVE, REPLACED)


@pytest.mark.parametrize(
    ("done", "transitions"),
    [
        pytest.param(record(), [LIVE], id="another state"),
        pytest.param(
            record(), [DECLARED, Transition("v", ViewState.DECLARED, Cause.EPOCH, ViewState.STALE)], id="table"
        ),
        pytest.param(record(), [DECLARED], id="an epoch leaves it declared"),
        pytest.param(record(), [DECLARED, LIVE, FAILING], id="an epoch leaves it failing"),
        pytest.param(record(), [DECLARED, LIVE, REPLACED], id="replaced rows have not stopped"),
        pytest.param(record(stopped=Stopped(1)), [DECLARED, LIVE], id="live rows have stopped"),
        pytest.param(record(version=False), [DECLARED, LIVE], id="live without rows"),
        pytest.param(record(version=False), [DECLARED, LIVE, FAILING, STALE], id="stale without rows"),
    ],
)
def test_another_life_breaks_a_promise(done: EpochViews, transitions: list[Transition]) -> None:
    with pytest.raises(PromiseBroken):
        check(done, *transitions)
