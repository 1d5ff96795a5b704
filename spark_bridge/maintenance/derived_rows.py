"""A projection view over parents: each of its rows is computed from one row of a parent, and deleted with it.

The origin of a row has the name of the parent.  Internal views with the same rows share one dataset, see `SharedViews`.
The dataset may outlive the view under whose name it was created.  Another view then continues it, with parents of other
names, so the version records the names that the origins contain.
"""

from __future__ import annotations

import json
from dataclasses import replace

from spark_bridge.changes.change_set import ChangeSet
from spark_bridge.datasets.result_rows import new_rows
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.maintenance.parent_rows import ParentRows
from spark_bridge.maintenance.row_view import RowView
from spark_bridge.plans.view_plan import ViewPlan
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import ORIGIN_FIELD, is_view

_ORIGINS = "origins"


class DerivedRows(RowView):
    """Maintains one such view.

    Its dataset has the origin of each row in a hidden column, by which the rows are found.

    Args:
        root: the directory of the pipeline.
    """

    def __init__(self, catalyst: Catalyst, root: Location, plan: ViewPlan) -> None:
        super().__init__(catalyst, root, plan, ORIGIN_FIELD)

    def open(self, version: ViewVersion) -> None:
        """Continues from a recorded version, whose rows may have been made under other names."""
        super().open(version)
        self._plan = replace(self._plan, origins=tuple(version.noted.get(_ORIGINS, ())))

    def correct(self, rows: ParentRows) -> ViewVersion:
        """Exchanges the rows that are made of changed rows of the parents.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        origins = rows.origins(self._plan)
        new = new_rows(self._table, self._query.over(rows.new(self._plan)))
        names = [ORIGIN_FIELD.name, *self._plan.schema.names]
        before, begun = self._snapshot() if self.changes.is_kept else None, self._table.version
        gone = None if before is None else self._table.rows_of(origins, names)
        self._table.exchange(origins, new)
        if before is not None:
            self.changes.note(ChangeSet(origins, gone, self._added(new, before, names), before, begun))
        return self._version()

    def _version(self) -> ViewVersion:
        version, plan = super()._version(), self._plan
        if all(map(is_view, plan.parents)):
            return version
        return replace(version, progress=json.dumps({_ORIGINS: plan.origins or plan.parents}))
