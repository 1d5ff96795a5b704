"""The dataset of one full model view, and the thread that recomputes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any, TypeVar

from spark_bridge.plans.planned_view import PlannedView
from state.errors import SlackwaterError
from state.tables.records import ViewVersion
from tests.simulation.model_views.model_datasets import Fails, computed
from tests.simulation.model_views.model_view import ModelView
from tests.simulation.world.file_rows import Span
from tests.simulation.world.interruptions import Killed
from tests.simulation.world.simulated_root import SimulatedRoot

_Result = TypeVar("_Result")


class ModelFullView:
    """See `spark_bridge.maintenance.full_view.FullView`.

    Args:
        model: the view.
        planned: its definition and its plan.
        root: by the materializer's way.
        fails: whether the view's own expression fails over some rows.
    """

    num_rows = 0

    def __init__(self, model: ModelView, planned: PlannedView, root: SimulatedRoot, fails: Fails) -> None:
        self.definition, self.plan = planned.definition, planned.plan
        self._model, self._root, self._fails = model, root, fails
        self.version: ViewVersion | None = None

    def create(self, epoch: int) -> ViewVersion:
        path = f"views/{self._model.name}-{epoch}.lance"
        self.version = ViewVersion(self._model.name, path, self._root.commit_view(path, 0, ()))
        return self.version

    def open(self, version: ViewVersion) -> None:
        self.version = replace(version, name=self._model.name, pinned_epoch=None)

    def is_stale(self, stored: Mapping[str, ViewVersion]) -> bool:
        return self.version is None or self.version.progress != _fingerprint(stored, self._rows(stored))

    def refresh(self, epoch: int, stored: Mapping[str, ViewVersion]) -> ViewVersion:
        before = self.version
        assert before is not None, "it is created or opened first"
        rows = self._rows(stored)
        result = self._model.after(None, computed(self._model, self._fails, rows))
        version = self._root.commit_view(before.path, before.version, result)
        progress = _fingerprint(stored, rows)
        self.version = replace(before, version=version, reflects_epoch=epoch, progress=progress)
        return self.version

    def _rows(self, stored: Mapping[str, ViewVersion]) -> dict[str, tuple[Span, ...]]:
        found = {source: stored[source] for source in self.plan.sources if source in stored}
        return {source: self._root.view_rows(each.path, each.version) for source, each in found.items()}


def _fingerprint(stored: Mapping[str, ViewVersion], rows: Mapping[str, tuple[Span, ...]]) -> str:
    """As in production: the number of rows, since a take-over makes another version of the same rows."""
    counts = {source: sum(span.end - span.start for span in spans) for source, spans in rows.items()}
    return json.dumps({each: [stored[each].path, counts[each], stored[each].progress] for each in sorted(rows)})


class SimulatedThread(Executor):
    """A thread whose work is an event.

    Args:
        soon: lets an event happen at some moment.
        on_done: called after each piece of work.
    """

    def __init__(self, soon: Callable[[Callable[[], None]], None], on_done: Callable[[], None]) -> None:
        self._soon, self._on_done = soon, on_done

    def submit(self, fn: Callable[..., _Result], /, *args: Any, **kwargs: Any) -> Future[_Result]:
        future: Future[_Result] = Future()

        def recompute() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except SlackwaterError as error:
                future.set_exception(error)
            except Killed:
                return
            self._on_done()

        self._soon(recompute)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        pass
