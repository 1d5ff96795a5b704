"""The dataset of a model view over another one, and the rows that it gets from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from spark_bridge.changes.change_set import ChangeLog, ChangeSet, Parent
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.plans.view_plan import ViewPlan
from state.tables.records import ViewVersion
from tests.simulation.model_views.model_rows import ModelRows
from tests.simulation.model_views.model_view import Groups, ModelView
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.simulated_root import SimulatedRoot

if TYPE_CHECKING:
    from tests.simulation.model_views.model_leaves import ComputedParents

_GROUP = pa.schema([("group", pa.int64()), ("count", pa.int64()), ("total", pa.int64())])


def group_changes(before: Groups, after: Groups) -> ChangeSet:
    """The changes between two results of a view of groups."""
    changed = sorted(group for group in before.keys() | after.keys() if before.get(group) != after.get(group))
    return ChangeSet(pa.array(changed, pa.int64()), _table(before, changed), _table(after, changed))


class ModelParentRows:
    """See `spark_bridge.maintenance.parent_rows.ParentRows`.

    Args:
        root: by the materializer's way.
        parents: name → parent, of all views that are read.
        computed: makes the rows of leaves over them: (`begun_us`, `time_us`) -> them.
        time_us: the time of the epoch.
        begun_us: see `spark_bridge.maintenance.parent_rows.ParentRows`.
    """

    def __init__(
        self,
        root: SimulatedRoot,
        parents: Mapping[str, Parent],
        computed: Callable[[int, int], ComputedParents],
        time_us: int,
        begun_us: int | None = None,
    ) -> None:
        self._root, self._parents, self._computed, self.time_us = root, parents, computed, time_us
        self._begun_us = time_us if begun_us is None else begun_us

    @cached_property
    def computed(self) -> ComputedParents:
        """The rows of computed leaves."""
        return self._computed(self._begun_us, self.time_us)

    def since(self, begun_us: int | None) -> ModelParentRows:
        return ModelParentRows(self._root, self._parents, self._computed, self.time_us, begun_us)

    def all(self, plan: ViewPlan) -> EpochRows:
        if plan.computed:
            return self.computed.all(plan)
        frames: Any = {name: self._groups(name) for name in plan.parents}
        return EpochRows(frames, 0, 1, 0)

    def none(self) -> EpochRows:
        return EpochRows({}, 0, 1, 0)

    def count(self, plan: ViewPlan) -> int:
        return self.computed.count(plan) if plan.computed else sum(len(self._groups(name)) for name in plan.parents)

    def are_changed(self, plan: ViewPlan) -> bool:
        is_changed = any(self._parents[name].changes is not None for name in plan.parents)
        return is_changed or (plan.has_temporal_filter and self.computed.are_due(plan))

    def changes(self, plan: ViewPlan) -> ChangeSet | None:
        """The changes of the only parent."""
        [name] = plan.parents
        return self._parents[name].changes

    def _groups(self, name: str) -> Groups:
        version = self._parents[name].version
        groups: Groups = self._root.view_rows(version.path, version.version)
        return groups


class ModelDerivedView(ModelRows):
    """See `spark_bridge.maintenance.derived_views.DerivedView`: a copy of its parent, row by row.

    Args:
        model: the view.
        plan: of the view.
        root: by the materializer's way.
    """

    def __init__(self, model: ModelView, plan: ViewPlan, root: SimulatedRoot) -> None:
        super().__init__(model, root)
        self.changes, self._plan = ChangeLog(), plan

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        return self._create(epoch, _groups_of(rows))

    def apply(self, rows: EpochRows) -> ViewVersion:
        return self._commit({**self._rows, **_groups_of(rows)})

    def correct(self, rows: ModelParentRows) -> ViewVersion:
        """Exchanges the changed groups.

        Raises:
            PromiseBroken: a row that leaves is not there.
        """
        changes, stored = rows.changes(self._plan), dict(self._rows)
        assert changes is not None and changes.gone is not None, "it is called with changes of groups"
        for each in changes.gone.to_pylist():
            if stored.pop(each["group"], None) != (each["count"], each["total"]):
                raise PromiseBroken("G1", f"{self._model.name} loses the row {each}, and has {self._rows}")
        for each in changes.new.to_pylist():
            if each["group"] in stored:
                raise PromiseBroken("G1", f"{self._model.name} gets the row {each}, and has {self._rows}")
            stored[each["group"]] = (each["count"], each["total"])
        return self._commit(stored)


def _groups_of(rows: EpochRows) -> Groups:
    frames: Any = rows.frames
    return {group: each for groups in frames.values() for group, each in groups.items()}


def _table(groups: Groups, wanted: list[int]) -> pa.Table:
    rows = [(group, *groups[group]) for group in wanted if group in groups]
    return pa.Table.from_pylist([dict(zip(_GROUP.names, row, strict=True)) for row in rows], schema=_GROUP)
