"""Datasets, histories and threads for tests of recorded views without Spark."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from spark_bridge.changes.change_set import ChangeLog
from spark_bridge.ingest.history import HistoryPiece
from spark_bridge.plans.planned_view import PlannedView
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.errors import ViewFailedError
from state.tables.records import ViewClass, ViewVersion
from state.tables.stored_rows import declared_name

SCHEMA = pa.schema([("x", pa.int64())])


class Dataset:
    """The dataset of a view: each write makes the next version."""

    num_rows = 0
    lacks: tuple[int, ...] = ()

    def __init__(self, planned: PlannedView | ViewPlan) -> None:
        self.plan = planned.plan if isinstance(planned, PlannedView) else planned
        self.definition = ViewDefinition(declared_name(self.plan.name), "SELECT * FROM s")
        if isinstance(planned, PlannedView):
            self.definition = planned.definition
        self.version: ViewVersion | None = None
        self.changes = ChangeLog()

    def create(self, epoch: int, *_: object) -> ViewVersion:
        self.version = ViewVersion(self.plan.name, f"views/{self.plan.name}-{epoch}.lance", 1)
        return self.version

    def take_over(self, epoch: int, *_: object) -> ViewVersion:
        return self.create(epoch)

    def open(self, version: ViewVersion) -> None:
        self.version = version

    def apply(self, *_: object) -> ViewVersion:
        assert self.version is not None
        self.version = replace(self.version, version=self.version.version + 1)
        return self.version

    def refresh(self, epoch: int, *_: object) -> ViewVersion:
        self.version = replace(self.apply(), reflects_epoch=epoch)
        return self.version


class NoHistory:
    """A history without rows."""

    is_stored = False
    missing: tuple[str, ...] = ("s3://b/lost",)
    fraction = 1.0

    def take(self, nbytes: int) -> HistoryPiece | None:
        return None

    def close(self) -> None:
        pass


class AtOnce(Executor):
    """A thread that does its work in `submit`."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except ViewFailedError as error:
            future.set_exception(error)
        return future


def empty(plan: ViewPlan, epoch: int) -> ViewVersion:
    return ViewVersion(plan.name, f"views/{plan.name}-{epoch}-empty.lance", 1)


def plan_of(name: str, view_class: ViewClass, identity: str = "", source: str = "s") -> ViewPlan:
    nothing: Any = None
    unused: Any = SimpleNamespace(are_used=False)
    columns = {source: frozenset[str]()}
    text = identity or name
    return ViewPlan(
        name, view_class, (source,), (), (), columns, SCHEMA, (), False, text, name, "", nothing, unused, {}
    )
