"""The dataset of a model view over another one, and the rows that it gets from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from slackwater.testing.simulation.promise_broken import PromiseBroken
from slackwater.testing.simulation.promises.model_view import Groups, ModelView
from slackwater.testing.simulation.world.simulated_root import SimulatedRoot
from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.changes.change_set import ChangeLog, ChangeSet, Parent
from spark_bridge.hand_over.epoch_rows import EpochRows
from state.tables.records import ViewVersion

if TYPE_CHECKING:
    from slackwater.testing.simulation.hosting.model_joins import JoinedParents

_GROUP = pa.schema([("group", pa.int64()), ("count", pa.int64()), ("total", pa.int64())])


def group_changes(before: Groups, after: Groups) -> ChangeSet:
    """The changes between two results of a view of groups."""
    changed = sorted(group for group in before.keys() | after.keys() if before.get(group) != after.get(group))
    return ChangeSet(pa.array(changed, pa.int64()), _table(before, changed), _table(after, changed))


class ModelParentRows:
    """See `spark_bridge.changes.parent_rows.ParentRows`.

    Args:
        root: by the materializer's way.
        parents: name → parent, of all views that are read.
        joined: makes the rows of joins over them.
    """

    time_us = 0

    def __init__(self, root: SimulatedRoot, parents: Mapping[str, Parent], joined: Callable[[], JoinedParents]) -> None:
        self._root, self._parents, self._joined = root, parents, joined

    @cached_property
    def joined(self) -> JoinedParents:
        """The rows of joins."""
        return self._joined()

    def since(self, begun_us: int | None) -> ModelParentRows:
        """The same: no view of the simulator filters by the time."""
        return self

    def all(self, plan: ViewPlan) -> EpochRows:
        if plan.computed:
            return self.joined.all(plan)
        frames: Any = {name: self._groups(name) for name in plan.parents}
        return EpochRows(frames, 0, 1, 0)

    def none(self) -> EpochRows:
        return EpochRows({}, 0, 1, 0)

    def count(self, plan: ViewPlan) -> int:
        return self.joined.count(plan) if plan.computed else sum(len(self._groups(name)) for name in plan.parents)

    def are_changed(self, plan: ViewPlan) -> bool:
        return any(self._parents[name].changes is not None for name in plan.parents)

    def changes(self, plan: ViewPlan) -> ChangeSet | None:
        """The changes of the only parent."""
        [name] = plan.parents
        return self._parents[name].changes

    def _groups(self, name: str) -> Groups:
        version = self._parents[name].version
        groups: Groups = self._root.view_rows(version.path, version.version)
        return groups


class ModelDerivedView:
    """See `spark_bridge.views.derived_views.DerivedView`: a copy of its parent, row by row.

    Args:
        model: the view.
        plan: of the view.
        root: by the materializer's way.
    """

    num_rows = 0

    def __init__(self, model: ModelView, plan: ViewPlan, root: SimulatedRoot) -> None:
        self.changes = ChangeLog()
        self._model, self._plan, self._root = model, plan, root
        self._version: ViewVersion | None = None

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        path = f"views/{self._model.name}-{epoch}.lance"
        self._version = ViewVersion(self._model.name, path, self._root.commit_view(path, 0, _groups_of(rows)))
        return self._version

    def open(self, version: ViewVersion) -> None:
        self._version = ViewVersion(self._model.name, version.path, version.version)

    def apply(self, rows: EpochRows) -> ViewVersion:
        return self._write({**self._stored(), **_groups_of(rows)})

    def correct(self, rows: ModelParentRows) -> ViewVersion:
        """Exchanges the changed groups.

        Raises:
            PromiseBroken: a row that leaves is not there.
        """
        changes, stored = rows.changes(self._plan), dict(self._stored())
        assert changes is not None and changes.gone is not None, "it is called with changes of groups"
        for each in changes.gone.to_pylist():
            if stored.pop(each["group"], None) != (each["count"], each["total"]):
                raise PromiseBroken("G1", f"{self._model.name} loses the row {each}, and has {self._stored()}")
        for each in changes.new.to_pylist():
            if each["group"] in stored:
                raise PromiseBroken("G1", f"{self._model.name} gets the row {each}, and has {self._stored()}")
            stored[each["group"]] = (each["count"], each["total"])
        return self._write(stored)

    def tidy(self) -> bool:
        return False

    def _stored(self) -> Groups:
        assert self._version is not None, "it is created or opened first"
        groups: Groups = self._root.view_rows(self._version.path, self._version.version)
        return groups

    def _write(self, groups: Groups) -> ViewVersion:
        before = self._version
        assert before is not None, "it is created or opened first"
        version = self._root.commit_view(before.path, before.version, groups)
        self._version = ViewVersion(self._model.name, before.path, version)
        return self._version


def _groups_of(rows: EpochRows) -> Groups:
    frames: Any = rows.frames
    return {group: each for groups in frames.values() for group, each in groups.items()}


def _table(groups: Groups, wanted: list[int]) -> pa.Table:
    rows = [(group, *groups[group]) for group in wanted if group in groups]
    return pa.Table.from_pylist([dict(zip(_GROUP.names, row, strict=True)) for row in rows], schema=_GROUP)
