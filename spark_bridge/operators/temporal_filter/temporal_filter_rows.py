"""The rows of filters by the time of the epoch, or those that an epoch changes.  Nobody stores them.

The rows below such a filter are stored.  With `F` the filter as of the time at which the view was right last, and `G`
that of this epoch, `-` and `+` for the rows that leave and come, an epoch changes::

    F(rows+) - F(rows-)     +     G(rows after) - F(rows after)

The second difference is read by the values that a boundary in time has passed since; no other row can be in it,
whatever else the filter asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from threading import Lock
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.changes.change_set import Parent, with_weights
from spark_bridge.changes.equal_rows import different
from spark_bridge.operators.temporal_filter.temporal_filter_plan import TemporalFilterPlan, TimeBound
from spark_bridge.work_cost import count
from state.lance.filtered_scan import filtered_scan
from state.tables.epoch_trace import WorkCost
from state.tables.stored_rows import WEIGHT_FIELD

if TYPE_CHECKING:
    import lance


class StoredParents(Protocol):
    """The parents of views in an epoch, and their stored rows; see `spark_bridge.changes.parents.Parents`."""

    @property
    def by_name(self) -> Mapping[str, Parent]: ...

    def gone(self, name: str) -> pa.Table: ...

    def dataset(self, name: str) -> lance.LanceDataset: ...


class TemporalFilterRows:
    """Makes the rows of these filters, and knows the next value of each that the time reaches.

    The values are kept in this process between epochs; they are made from the datasets, when they are not known.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._next: WeakKeyDictionary[TemporalFilterPlan, dict[TimeBound, int | None]] = WeakKeyDictionary()

    def changed(
        self, parents: StoredParents, plan: TemporalFilterPlan, columns: list[str], begun_us: int, time_us: int
    ) -> pa.Table:
        """The rows that leave and those that come, with their weights at the end.

        Args:
            parents: the view with the rows below the filter is among them.
            columns: of its result that are wanted, in its order.
            begun_us: the time at which its rows were right last, in microseconds since 1970.
            time_us: the time of the epoch.
        """
        read = _read(plan, columns)
        changes = parents.by_name[plan.rows].changes
        turned = self._turned(parents, plan, read, begun_us, time_us)
        was, is_now = plan.keeps(begun_us), plan.keeps(time_us)
        gone, new = [turned.filter(was)], [turned.filter(is_now)]
        if changes is not None:
            gone.append(parents.gone(plan.rows).select(read).filter(was))
            new.append(changes.new.select(read).filter(was))
            self._note(plan, changes.new, begun_us)
        if any(bound.goes_back(begun_us, time_us) for bound in plan.bounds):
            self._forget(plan)  # rows that the time had reached are ahead of it again
        both = with_weights(pa.concat_tables(gone), pa.concat_tables(new))
        return different(both.select([*columns, WEIGHT_FIELD.name]))

    def kept(self, plan: TemporalFilterPlan, time_us: int) -> pc.Expression:
        """Whether a row is kept at a time, for a reading of all rows.

        Args:
            time_us: the time, in microseconds since 1970.
        """
        self._forget(plan)  # rows may have come before that `changed` has not seen
        return plan.keeps(time_us)

    def are_due(self, parents: StoredParents, plan: TemporalFilterPlan, begun_us: int, time_us: int) -> bool:
        """Whether the time reaches a row between two times.  Arguments as for `changed`."""
        with self._lock:
            known = self._next.setdefault(plan, {})
        for bound in plan.bounds:
            if bound.turns(begun_us, time_us) is None:
                continue
            if bound.goes_back(begun_us, time_us):
                return True
            first = known.get(bound)
            if bound not in known or (first is not None and bound.has_reached(first, begun_us)):
                first = known[bound] = _first_after(parents, plan, bound, begun_us)
            if first is not None and bound.has_reached(first, time_us):
                return True
        return False

    def _forget(self, plan: TemporalFilterPlan) -> None:
        with self._lock:
            self._next.pop(plan, None)

    def _note(self, plan: TemporalFilterPlan, new: pa.Table, begun_us: int) -> None:
        """Notes the values of rows that come, among those that the time reaches next."""
        with self._lock:
            known = self._next.get(plan, {})
        for bound, first in known.items():
            values = new.filter(~bound.reached(begun_us)).column(bound.column)
            found = [each for each in (first, bound.first_of(values)) if each is not None]
            known[bound] = min(found, default=None)

    @staticmethod
    def _turned(
        parents: StoredParents, plan: TemporalFilterPlan, read: list[str], begun_us: int, time_us: int
    ) -> pa.Table:
        """The rows after the changes that may be kept at one of the two times alone."""
        turning = [each for bound in plan.bounds if (each := bound.turns(begun_us, time_us)) is not None]
        dataset = parents.dataset(plan.rows)
        if not turning:
            return dataset.schema.empty_table().select(read)
        rows = filtered_scan(dataset, reduce(lambda one, other: one | other, turning), read).to_table()
        count(WorkCost(given=rows.num_rows))
        return rows


def _read(plan: TemporalFilterPlan, columns: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*columns, *plan.columns_compared]))


def _first_after(parents: StoredParents, plan: TemporalFilterPlan, bound: TimeBound, time_us: int) -> int | None:
    """The least value of all rows that the time has not reached."""
    scan = filtered_scan(parents.dataset(plan.rows), ~bound.reached(time_us), [bound.column])
    return min(_firsts(bound, scan.to_batches()), default=None)


def _firsts(bound: TimeBound, batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        first = bound.first_of(pa.chunked_array([batch.column(0)]))
        if first is not None:
            yield first
