"""An aggregate view: an epoch's new rows change the groups that they touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from spark_bridge.changes.change_set import ChangeLog, Changes, ChangeSet
from spark_bridge.changes.view import Computed
from spark_bridge.datasets.index_audit import IndexAudit
from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.session.spark_errors import ends_run
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.operators.group.aggregate_plan import AggregatePlan
from spark_bridge.operators.group.distinct_set import COUNT_FIELD
from spark_bridge.operators.group.group_tables import GroupTables
from spark_bridge.operators.group.merge_plan import KEY_FIELD, EpochPartials, MergedGroups
from spark_bridge.plans.view_plan import ViewPlan
from state.location import Location
from state.tables.group_key import KEY_COLUMN
from state.tables.records import ViewVersion

_NO_ROWS = pa.schema([KEY_FIELD]).empty_table()


class AggregateView:
    """Maintains one aggregate view, whose datasets are `GroupTables`.

    Attributes:
        changes: of the view's rows, if other views read them.
        lacks: the numbers of the measures, helper aggregates among them, that have no rows from before the groups were
            taken over.  An owner that records them sets them again after `open`.

    Args:
        root: the directory of the pipeline.
    """

    def __init__(self, catalyst: Catalyst, root: Location, plan: ViewPlan) -> None:
        self.changes = ChangeLog()
        self.lacks: Sequence[int] = ()
        self._root = root
        self._catalyst = catalyst
        self._name, self._view = plan.name, plan
        # Parents change in every epoch; files of sources seldom, so that a new row need not count its values.
        self._make_plan = partial(AggregatePlan, catalyst, plan, subtracts=plan.is_changing, counts=bool(plan.parents))
        self._plan = self._make_plan()
        self._of_earlier: AggregatePlan | None = None
        self._tables = GroupTables(root, plan.name)

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        """Makes the datasets in the epoch that creates the view, with that epoch's groups."""
        partials = self._partials(rows)
        self._tables = GroupTables(self._root, self._name)
        self._tables.add(epoch, self._first(self._plan.merge(partials, None)))
        if self._plan.has_distinct:
            self._tables.add_values(epoch, partials.distinct)
        return self._version

    def _first(self, merged: MergedGroups) -> MergedGroups:
        """What the datasets begin with, of the groups of the first rows."""
        return merged

    def open(self, version: ViewVersion) -> None:
        """Continues from a recorded version."""
        self._tables.open(version)
        names, distinct = {*self._tables.stored.schema.names}, self._tables.distinct
        if not self._plan.hidden_columns <= names:
            # The view is older than the retraction from doubles.
            self._lose_retraction()
        lacks_counts = self._plan.counts and distinct and COUNT_FIELD.name not in distinct.schema.names
        if lacks_counts or not self._plan.hidden_columns <= names:
            # The view is older than `materialize=True` of its sources, or than the counts of values.
            self._lose_counts()

    def take_over(self, epoch: int, before: ViewPlan, version: ViewVersion) -> ViewVersion:
        """Makes the view of the groups of another view, see `missing_calls`.

        All is copied: the datasets of the other view may have later versions that no epoch records.  Of the measures
        that the other view lacks the groups have no rows yet, see `lacks`.

        Args:
            epoch: the epoch in which the view replaces the other view.
            before: the plan of the other view.
            version: of the other view.
        """
        other = AggregateView(self._catalyst, self._root, before)
        other.open(version)
        if not other._plan.retracts:
            self._lose_retraction()
        if not other._plan.subtracts:
            self._lose_counts()
        self.lacks = self._plan.missing_in(other._plan)
        groups = (self._earlier if self.lacks else self._plan).groups_of(other._plan)
        self._tables = GroupTables(self._root, self._name)
        for part in other._tables.stored.parts(other._plan.stored_columns):
            self._tables.add(epoch, groups(part))
        if (distinct := other._tables.distinct) is not None:
            for part in distinct.parts(distinct.schema.names):
                self._tables.add_values(epoch, part)
        return replace(self._version, progress=version.progress)

    def _lose_retraction(self) -> None:
        self._make_plan = partial(self._make_plan, retracts=False)
        self._plan = self._make_plan()

    def _lose_counts(self) -> None:
        self._make_plan = partial(self._make_plan, subtracts=False, counts=False)
        self._plan = self._make_plan()

    @property
    def _earlier(self) -> AggregatePlan:
        """The plan by which earlier rows reach the measures that the groups lack."""
        if self._of_earlier is None:
            self._of_earlier = self._make_plan(reached=self.lacks)
        return self._of_earlier

    @property
    def earlier_columns(self) -> Mapping[str, frozenset[str]]:
        """Source → the columns that `complete` needs of its rows."""
        return self._earlier.rows.columns_reached()

    def apply(self, rows: EpochRows) -> ViewVersion:
        """Merges an epoch's rows into their groups; rows that touch no group make no new version.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        return self._merge(self._plan, self._partials(rows))

    @property
    def computes_beside(self) -> bool:
        """See `ComputesBeside`.  An epoch may bring a value of DISTINCT that a piece has, too.

        The time of an epoch is in the plan, which pieces share with epochs.
        """
        return not (self._plan.has_distinct or self._view.timestamps.are_used)

    def computed(self, rows: EpochRows) -> Computed:
        """See `ComputesBeside`."""
        partials = self._partials(rows)
        return Computed(partial(self._merge, self._plan, partials), partials.groups.num_rows)

    def complete(self, rows: EpochRows) -> ViewVersion:
        """Merges rows that came before the groups were taken over into the measures that these lack.

        Errors as `apply`.
        """
        return self._merge(self._earlier, self._partials(rows, self._earlier))

    def _merge(self, plan: AggregatePlan, partials: EpochPartials) -> ViewVersion:
        if partials.groups.num_rows == 0:
            return self._version
        keys = partials.groups.column(KEY_COLUMN)
        stored, before = self._look_up(keys)
        merged = plan.merge(partials, stored)
        self._tables.merge_values(partials.distinct, are_counted=self._plan.counts)
        if self._plan.has_filter:
            self._tables.delete_failing(stored.column(KEY_COLUMN), merged.result.column(KEY_COLUMN))
        self._tables.merge(merged)
        self._note(keys, before, merged)
        return self._version

    def correct(self, rows: Changes) -> ViewVersion:
        """Follows changed rows: the old ones are subtracted from their groups, and the new ones are merged.

        A group whose rows cannot be subtracted is computed again from all of its rows.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        if not self._plan.subtracts:
            self._compute_again(rows)
            return self._version
        try:
            self._exchange(rows)
        except (PySparkException, Py4JError) as error:
            # The sum of the deletes or of the inserts alone may overflow where the sum of all rows does not.
            if self._view.timestamps.are_used or ends_run(error):
                raise
            self._compute_again(rows)
        return self._version

    @property
    def computes_again(self) -> bool:
        """True if `apply_again` can follow a failed `apply`: all rows can be read, and no value uses the time."""
        return self._view.is_changing and not self._view.timestamps.are_used

    def apply_again(self, new: EpochRows, rows: Changes) -> ViewVersion:
        """Computes the groups of new and of changed rows from all of their rows, as Spark's batch does.

        Groups are merged before the rows of corrected files are subtracted.  In between a sum may overflow, or an
        expression over it fail, where the rows of the epoch have a result.

        Args:
            new: the new rows, over which `apply` has failed.
            rows: the changed rows, and all rows.

        Raises:
            CommitRefusedError: another process has written to the view.
        """
        self._compute_again(rows, new)
        return self._version

    def _exchange(self, rows: Changes) -> None:
        both = rows.both(self._view, weighted=True)
        self._view.timestamps.set_time(both.time_us)
        changed = self._plan.rows.changed_partials(both.frames, both.tasks, self._counts)
        gone, new = changed.gone, changed.new
        keys = pa.concat_tables([each.groups.select([KEY_COLUMN]) for each in (gone, new)]).column(KEY_COLUMN).unique()
        if len(keys) == 0:
            return
        stored, before = self._look_up(pa.chunked_array([keys]))
        done = self._plan.exchange(gone, new, stored)
        there = changed.distinct.filter(pc.greater(changed.distinct.column(COUNT_FIELD.name), 0))
        self._tables.exchange_values(changed.distinct.column(KEY_COLUMN).combine_chunks(), there)
        merged = done.merged
        if done.lost.num_rows:
            merged += self._plan.merge(self._recomputed(rows, done.lost), None)
        self._replace_groups(done.keys, merged, before)

    def _recomputed(self, rows: Changes, groups: pa.Table) -> EpochPartials:
        """The partials of groups, from all of their rows."""
        every = rows.all(self._view, self._plan.rows.values_of(groups))
        return self._plan.rows.partials_of(every.frames, every.tasks, lambda keys: pa.repeat(0, len(keys)), only=groups)

    def _compute_again(self, rows: Changes, new: EpochRows | None = None) -> None:
        both = rows.both(self._view, weighted=False)
        touched = self._plan.rows.touched_by(both.frames, both.tasks)
        if new is not None:
            touched += self._plan.rows.touched_by(new.frames, new.tasks)
        if touched.groups.num_rows == 0:
            return
        partials = self._recomputed(rows, touched.groups)
        values = partials.distinct.column(KEY_COLUMN).combine_chunks()
        if self._plan.counts:
            self._tables.exchange_values(pa.concat_arrays([touched.distinct, values]).unique(), partials.distinct)
        else:
            self._tables.replace_values(touched.distinct, values)
        keys = touched.groups.column(KEY_COLUMN)
        self._replace_groups(keys, self._plan.merge(partials, None), self._shown(keys))

    def _replace_groups(self, keys: pa.ChunkedArray, merged: MergedGroups, before: pa.Table) -> None:
        """Makes the datasets hold, of the groups with these keys, exactly the merged ones.

        Args:
            merged: those that are left.
            before: the rows of the view that the groups had, see `_shown`.
        """
        self._tables.exchange(keys.combine_chunks(), merged)
        self._note(keys, before, merged)

    def _note(self, keys: pa.ChunkedArray, before: pa.Table, merged: MergedGroups) -> None:
        if self.changes.is_kept:
            self.changes.note(ChangeSet(keys.combine_chunks(), before, merged.result.select(before.schema.names)))

    @property
    def num_rows(self) -> int:
        """Number of rows of the view."""
        return self._tables.num_rows

    def tidy(self, audit: IndexAudit | None) -> bool:
        """See `View.tidy`."""
        return self._tables.tidy(audit)

    def _partials(self, rows: EpochRows, plan: AggregatePlan | None = None) -> EpochPartials:
        self._view.timestamps.set_time(rows.time_us)
        return (plan or self._plan).rows.partials_of(rows.frames, rows.tasks, self._counts)

    def _counts(self, keys: pa.Array) -> pa.Array:
        """See `spark_bridge.operators.group.grouped_rows.Counts`."""
        return self._tables.counts_of(keys, are_counted=self._plan.counts)

    def _look_up(self, keys: pa.ChunkedArray) -> tuple[pa.Table, pa.Table]:
        """The buffers of the stored ones among these groups, and the rows of the view that they have.

        The buffers have their own names, with `__sw_key` in front.
        """
        columns = self._plan.buffer_columns
        if (state := self._tables.state) is not None:
            names = [column.name for column in columns]
            shown = self._shown(keys)
            rows = state.rows_of(keys.combine_chunks(), names)
        else:
            names = [column.result_name or column.name for column in columns]
            read = dict.fromkeys([*names, *(self._view.schema.names if self.changes.is_kept else ())])
            rows = self._tables.table.rows_of(keys.combine_chunks(), list(read))
            shown = rows.select([KEY_COLUMN, *self._view.schema.names]) if self.changes.is_kept else _NO_ROWS
        arrays = [rows.column(KEY_COLUMN), *[rows.column(name) for name in names]]
        return pa.table(arrays, names=[KEY_COLUMN, *[column.name for column in columns]]), shown

    def _shown(self, keys: pa.ChunkedArray) -> pa.Table:
        """The rows of the view with these keys, with `__sw_key` in front; none if no view reads them."""
        if not self.changes.is_kept:
            return _NO_ROWS
        return self._tables.table.rows_of(keys.combine_chunks(), self._view.schema.names)

    @property
    def _version(self) -> ViewVersion:
        return self._tables.version
