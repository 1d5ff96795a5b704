"""The coordinator's shell: an error of the executor fails the attempt, wherever it comes from."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.coordination.caught_up import FIRST_MARK
from actors.hosting.coordinator import Coordinator
from actors.protocol.barrier import Pause
from actors.protocol.instructions import Fail, ProposeSchema
from actors.protocol.reports import CollectReport, ListProgress
from actors.protocol.run_state import RunState
from actors.recovery.attempt_plan import AttemptPlan
from actors.settings import BarrierSettings, FetchSettings
from actors.sources.pipeline_definition import PipelineDefinition
from state.errors import RunFailedError
from state.location import Location

_CALLS: dict[str, Callable[[Coordinator], Awaitable[object]]] = {
    "progress": lambda each: each.progress(ListProgress("list-s", "s"), 1),
    "collect": lambda each: each.collect(CollectReport("list-s", 1)),
    "propose_schema": lambda each: each.propose_schema(ProposeSchema("s", "a", None)),
    "propose_columns": lambda each: each.propose_columns("s", pa.schema([])),
    "views_declared": lambda each: each.views_declared(frozenset(), False, {}, False),
    "request": lambda each: each.request(Pause()),
    "rescale": lambda each: each.rescale(1, 1),
    "mark": lambda each: each.mark(),
}


class Executor:
    """In place of a `CoordinateExecutor`: raises, or answers with an instruction."""

    requests = rescalings = mark = 0

    def __init__(self, answer: Callable[[], Any]) -> None:
        self._answer = answer
        self.state = RunState(version=1, phase="running", term=1, epoch=0)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *arguments, **named: self._answer()


class Group:
    """In place of the actors."""

    def read_columns(self, columns: object) -> None:
        pass


def coordinator(root: Path, answer: Callable[[], Any]) -> Coordinator:
    definition = PipelineDefinition(
        name="p",
        root=Location(str(root)),
        sources=(),
        views={},
        ansi=True,
        barrier=BarrierSettings(),
        fetch=FetchSettings(),
    )
    made = Coordinator(definition, AttemptPlan("run"))
    made._executor, made._group = Executor(answer), Group()  # type: ignore[assignment]
    made._lists = True
    return made


def _raises() -> Any:
    raise KeyError("a bug")


def failure_of(made: Coordinator) -> Exception:
    failure = asyncio.run(made.watch(-1, 0)).failure
    assert failure is not None
    return failure


@pytest.mark.parametrize("name", _CALLS)
def test_an_error_in_any_call_fails_the_attempt(name: str, tmp_path: Path) -> None:
    made = coordinator(tmp_path, _raises)

    async def story() -> None:
        await _CALLS[name](made)

    asyncio.run(story())
    failure = failure_of(made)
    assert isinstance(failure, RunFailedError)
    assert str(failure) == "KeyError: 'a bug'"


def test_an_error_in_a_timer_fails_the_attempt(tmp_path: Path) -> None:
    made = coordinator(tmp_path, _raises)

    async def story() -> None:
        made.wake_at(0.0)
        while made._failure is None:
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(story(), 10))
    assert str(failure_of(made)) == "KeyError: 'a bug'"


def test_a_mark_before_the_first_listing_is_the_first_one(tmp_path: Path) -> None:
    made = coordinator(tmp_path, _raises)
    made._lists = False
    assert asyncio.run(made.mark()) == FIRST_MARK


def test_an_executor_can_fail_the_attempt(tmp_path: Path) -> None:
    made = coordinator(tmp_path, lambda: [Fail(RunFailedError("fetch-0 has not reported epoch 3"))])
    asyncio.run(_CALLS["mark"](made))  # type: ignore[arg-type]
    assert str(failure_of(made)) == "fetch-0 has not reported epoch 3"
