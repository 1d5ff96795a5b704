"""What the analysis of a view gives: all that is needed to maintain it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from spark_bridge.catalyst.catalyst import Plan
from spark_bridge.catalyst.epoch_timestamps import EpochTimestamps
from state.tables.stored_rows import FILE_FIELD

APPEND = "append"
AGGREGATE = "aggregate"
FULL = "full"


@dataclass(frozen=True)
class ViewPlan:
    """A view that can be maintained epoch by epoch.

    Args:
        name: of the view.
        view_class: `"append"`, `"aggregate"` or `"full"`.
        sources: the sources that it reads, in the order of their first use.
        columns: source → the columns of it that are used, with `__sw_file` if the view can follow files.
        schema: of the result.
        key: the result's columns that are the grouping's, in the grouping's order, when all of it is in the result; by
            their values a group can be looked up.
        identity: a text that is equal exactly when a view computes the same; stable from run to run.
        definition: the query, or the source of the function, for people.
        reason: why it has this class, for people.
        plan: the analysed plan, without aliases of relations and with empty leaves.
        moment: what `current_timestamp()` is in it; set it before the plan is run.
        leaves: the source that each leaf stands for, by the id of the leaf's first attribute.
    """

    name: str
    view_class: str
    sources: tuple[str, ...]
    columns: Mapping[str, frozenset[str]]
    schema: pa.Schema
    key: tuple[str, ...]
    identity: str
    definition: str
    reason: str
    plan: Plan = field(repr=False, compare=False)
    moment: EpochTimestamps = field(repr=False, compare=False)
    leaves: Mapping[int, str] = field(repr=False, compare=False)

    def _read(self) -> str:
        used = {source: sorted(self.columns[source] - {FILE_FIELD.name}) for source in self.sources}
        return "; ".join(f"{source} ({', '.join(names) or 'the number of rows'})" for source, names in used.items())

    def explain(self) -> str:
        """Class, reason, what is stored and what an epoch costs, for people."""
        columns = ", ".join(name for name in self.schema.names)
        if self.view_class == FULL:
            stored = f"the rows ({columns}) of the last recomputation, and the epoch that they reflect"
            cost = (
                "nothing; beside the epochs, one Spark job over all stored rows of its sources, when they have changed"
            )
        elif self.view_class == APPEND:
            stored = f"the rows ({columns})"
            cost = "one Spark job over the new rows, one append of what it gives"
        else:
            by = f" by ({', '.join(self.key)})" if self.key else ""
            stored = f"one row per group{by} ({columns}), with the partials that they do not contain themselves"
            cost = "one Spark job over the new rows; a look-up and an upsert of the groups that they touch"
        return (
            f"{self.name}: {self.view_class}\n"
            f"  because    {self.reason}\n"
            f"  reads      {self._read()}\n"
            f"  stores     {stored}\n"
            f"  per epoch  {cost}"
        )
