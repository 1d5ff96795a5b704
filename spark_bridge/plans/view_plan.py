"""The result of the analysis of a view: its class, its columns, and the plan that maintains it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from actors.sources.event_time import duration_text
from state.tables.records import ViewClass
from state.tables.stored_rows import FILE_FIELD, JOIN_FIELD, hidden

if TYPE_CHECKING:
    from spark_bridge.engine.catalyst.epoch_timestamps import EpochTimestamps
    from spark_bridge.engine.catalyst.trees import Plan
    from spark_bridge.plans.expiry import Expiry
    from spark_bridge.plans.operator_plan import OperatorPlan


@dataclass(frozen=True)
class Closing:
    """The windows of a view that shows a group when its window, or its session, closes.

    Args:
        source: the source whose watermark closes them.
        position: of the window in the grouping.
        session_time: the event time that sessions are of; None for other windows.
    """

    source: str
    position: int
    session_time: str | None = None

    @property
    def what(self) -> str:
        """What closes, for people."""
        return "window" if self.session_time is None else "session"


@dataclass(frozen=True)
class ViewPlan:
    """A view that can be maintained.

    Args:
        sources: the sources that it reads, also by way of views, in the order of their first use.
        views: the views that its definition reads, in the order of their first use.
        parents: the views whose stored rows it reads, in the order of their first use, internal views among them; the
            definitions of other views are expanded in its plan.
        columns: source, parent or operator → its used columns, with `__sw_file` if the rows of the view can name
            their file.
        key: the columns of the result that hold the grouping, in the grouping's order: a look-up finds a group by
            them.  Empty unless the result has the whole grouping.
        is_changing: whether its rows can leave: it has parents, whose rows change, or all its sources are
            materialized, so that files can be replaced or forgotten.
        identity: a text, equal for views that compute the same, and stable from run to run.
        content: a text, equal for internal views of any views that have the same rows; None for an internal view that
            is not shared.
        definition: the query, or the source text of the function, for people.
        reason: the reason for its class, for people.
        plan: the analysed plan, without aliases of relations and with empty leaves.
        timestamps: the value of `current_timestamp()` in the plan; set it before the plan runs.
        leaves: id of a leaf's first attribute → the source, the parent or the operator.
        computed: name → operator, of those whose rows its plan reads; the views below them are among its parents.
        inner: the plans of its internal views: lower aggregations, sides of joins, rows below windows and limits, and
            scalar subqueries with the rows that use them.  Each plan follows the plans that it reads.
        closing: its windows, if it shows a group when its window closes.
        expiry: of an internal view whose rows expire: when no partner can arrive, or by a time to live.
        clock: the source whose watermark is the time of its filters, by a time to live; None for the time of the epoch.
        origins: the names of its parents in the origins of its rows, in the order of `parents`; empty if they are the
            same.
    """

    name: str
    view_class: ViewClass
    sources: tuple[str, ...]
    views: tuple[str, ...]
    parents: tuple[str, ...]
    columns: Mapping[str, frozenset[str]]
    schema: pa.Schema
    key: tuple[str, ...]
    is_changing: bool
    identity: str
    definition: str
    reason: str
    plan: Plan = field(repr=False, compare=False)
    timestamps: EpochTimestamps = field(repr=False, compare=False)
    leaves: Mapping[int, str] = field(repr=False, compare=False)
    computed: Mapping[str, OperatorPlan] = field(default_factory=dict)
    inner: tuple[ViewPlan, ...] = field(default=(), repr=False)
    content: str | None = field(default=None, repr=False)
    closing: Closing | None = None
    expiry: Expiry | None = None
    clock: str | None = None
    origins: tuple[str, ...] = ()

    def origin_of(self, parent: str) -> str:
        """The name of a parent in the origins of its rows."""
        return self.origins[self.parents.index(parent)] if self.origins else parent

    @property
    def is_read_as_stored(self) -> bool:
        """Whether views over it read its stored rows, and follow their changes; else they expand its definition."""
        return self.view_class == "aggregate" or (self.view_class == "append" and bool(self.parents))

    @property
    def has_temporal_filter(self) -> bool:
        """Whether its rows come or leave as time passes, by a filter of its own."""
        return any(leaf.is_timed for leaf in self.computed.values())

    @property
    def sources_read(self) -> tuple[str, ...]:
        """The sources whose rows its query reads, and not by way of another view."""
        own = [name for name in self.columns if name not in self.parents and name not in self.computed]
        return tuple(dict.fromkeys([*own, *(name for each in self.inner for name in each.sources_read)]))

    def _read(self) -> str:
        used = {self._leaf(leaf): sorted(self.columns[leaf] - {FILE_FIELD.name}) for leaf in self.columns}
        return "; ".join(f"{leaf} ({', '.join(names) or 'the number of rows'})" for leaf, names in used.items())

    def _leaf(self, name: str) -> str:
        """A source, a parent or a operator, for people."""
        leaf = self.computed.get(name)
        return name if leaf is None else f"{name}, {leaf.text}, of {' and '.join(leaf.sides)}"

    def _met(self) -> tuple[str, str]:
        """What an epoch looks up before its job, and the rows of the job, for people."""
        rows = f"the rows of {' and '.join(self.parents)} that the epoch changes, old and new"
        if not self.parents:
            return "", "the new rows"
        if not self.computed:
            return "", rows
        costs = [leaf.cost(rows) for leaf in self.computed.values()]
        before, over = (
            dict.fromkeys(texts) for texts in zip(*((each.before, each.over) for each in costs), strict=True)
        )
        return "".join(before), " and ".join(over)

    def explain(self) -> str:
        """Class, reason, stored data and costs of an epoch, for people."""
        columns = ", ".join(name for name in self.schema.names if not hidden(name))
        parents = " and ".join(self.parents)
        by_key = ", each found by the hash of its key" if JOIN_FIELD.name in self.schema.names else ""
        match self.view_class:
            case "append" if self.computed:
                stored = f"the rows ({columns}), each with a hash of its values{by_key}"
                met, over = self._met()
                cost = f"{met}one Spark job over {over}; a look-up of the rows that leave"
            case "append" if self.parents:
                stored = f"the rows ({columns}), each with the key of the row of {parents} that it is made of{by_key}"
                cost = (
                    f"one Spark job over the rows of {parents} that the epoch changes; a look-up of their old results"
                )
            case "append":
                stored = f"the rows ({columns}){by_key}"
                cost = "one Spark job over the new rows, one append of its result"
                if self.expiry is not None:
                    stored += f", {_until(self.expiry)}"
                    cost += "; one pass over the times of the stored rows, when they expire"
            case "aggregate":
                by = f" by ({', '.join(self.key)})" if self.key else ""
                stored = f"one row per group{by} ({columns}), with the partials that the result does not contain"
                met, over = self._met()
                cost = f"{met}one Spark job over {over}; a look-up and an upsert of the groups that they touch"
                if self.closing is not None:
                    what = self.closing.what
                    stored += f", of closed {what}s; apart, the partials of open ones"
                    if self.closing.session_time is not None:
                        cost += ", whose open sessions are put together with those of the rows"
                    cost += f"; the groups whose {what}s the watermark closes are moved to the rows"
            case "full":
                stored = f"the rows ({columns}) of the last recomputation, and the epoch that they reflect"
                cost = (
                    f"nothing; beside the epochs, one Spark job over all stored rows of {' and '.join(self.columns)}, "
                    "when they have changed"
                )
        read = {*self.parents}.union(*(each.parents for each in self.inner))
        expanded = [name for name in self.views if name not in read]
        reads = self._read() + (f", through the definition of {' and '.join(expanded)}" if expanded else "")
        return (
            f"{self.name}: {self.view_class}\n"
            f"  because    {self.reason}\n"
            f"  reads      {reads}\n"
            f"  stores     {stored}\n"
            f"  per epoch  {cost}"
        )


def _until(expiry: Expiry) -> str:
    """When rows expire, for people."""
    time, source = expiry.time.column, expiry.time.source
    if expiry.ages:
        [(_, us)] = expiry.needed
        return f"each until the watermark of {source} {_passed(us)}, by its {time}"
    passed = " and ".join(f"that of {name} {_passed(us)}" for name, us in sorted(expiry.needed))
    return (
        f"each until the watermarks have passed its {time}: {passed}; a row whose {time} is before the watermark of "
        f"{source} when it comes is late, and is left out"
    )


def _passed(us: int) -> str:
    length = duration_text(abs(us)) if us else "0 seconds"
    return f"is less than {length} before it" if us < 0 else f"is more than {length} after it"
