"""Leaves whose rows are computed in each epoch, and stored nowhere: joins, windows, limits, rows beside values, timers.

The rows that they are computed of are stored, as hidden views: the sides of a join, the rows below a window, a limit
or a filter by the time, and the rows and the values beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import and_, invert, or_
from typing import TYPE_CHECKING, Literal, Protocol

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from spark_bridge.engine.catalyst.catalyst import Plan

JoinKind = Literal["inner", "left", "semi", "anti", "existence", "full"]
"""The rows of a join: pairs, also with nulls in place of a partner, or rows of the left side.

`existence` has every row of the left side, and whether it has a partner as a column.  A right join is a left one with
its sides exchanged.
"""

LEFT, RIGHT = "left", "right"
ROWS = "rows"

POSITION_FIELD = pa.field("__sw_position", pa.int64())
"""The number of a row among those that are put in order."""

OF_ALL_ROWS = frozenset({"whole", "values"})
"""The values of `touched` for leaves of which an epoch may read all rows."""

AFTER = "__sw_after"
"""The prefix of a value as it is, where it stands beside the value as it was."""

BEFORE_ALL_US = -(1 << 60)
"""A time before all rows: that of filters by a watermark, until there is one."""


def watermark_time(source: str, watermarks: Mapping[str, int], begun_us: int | None) -> int:
    """The time of filters by a watermark, in microseconds since 1970; it never goes back.

    Args:
        source: with the watermark.
        watermarks: source → its watermark.
        begun_us: the time before; None for a view that has none yet.
    """
    return max(watermarks.get(source, BEFORE_ALL_US), BEFORE_ALL_US if begun_us is None else begun_us)


@dataclass(frozen=True)
class EventTime:
    """The event time of a side of a join.

    Args:
        source: whose rows the side has.
        column: of the side.
    """

    source: str
    column: str


@dataclass(frozen=True)
class Between:
    """The bounds of a join for the event times of partners.

    Args:
        left: of the left side.
        right: of the right side.
        least_us: the time of the right one is at least so many microseconds after that of the left one; may be
            negative, as may be `most_us`.
        most_us: and at most so many.
    """

    left: EventTime
    right: EventTime
    least_us: int
    most_us: int


@dataclass(frozen=True)
class Expiry:
    """When rows of a side leave without a trace: no row that comes in time can change what the join makes of them.

    Args:
        time: the event time of the side.
        needed: source and microseconds: a row is needed until the watermark of the source is more than so many after
            its time; it leaves when that is true of all of these.
        ages: whether a row leaves all that is made of it too, by a time to live.  Then no row is late.
    """

    time: EventTime
    needed: frozenset[tuple[str, int]]
    ages: bool = False

    @property
    def sources(self) -> set[str]:
        """The sources whose watermarks it follows."""
        return {self.time.source, *(source for source, _ in self.needed)}

    def bound(self, watermarks: Mapping[str, int]) -> int | None:
        """The time before which rows leave, in microseconds since 1970; None for none.

        Args:
            watermarks: source → its watermark in microseconds since 1970.
        """
        if any(source not in watermarks for source, _ in self.needed):
            return None
        return min(watermarks[source] - us for source, us in self.needed)


@dataclass(frozen=True, eq=False)
class JoinPlan:
    """A join.

    Args:
        name: of the leaf that stands for it in the plan of its view.
        kind: what its rows are.
        left: the hidden view with the rows of the left side; they have the hash of their key in `__sw_join`.
        right: that of the right side; it may be the same one.
        columns: the columns of the result: its name, its side, and the column of that side; no column of a side for a
            value that the join itself computes.
        key: the columns of the left side that are its key, as far as the key is columns.
        identity: a text, equal for joins that compute the same.
        text: for people.
        plan: the join with two empty leaves; its columns are those of the result.
        leaves: id of a leaf's first attribute → its side.
        condition: a query over one leaf, whose only column is true for partners.
        condition_columns: the columns of that leaf: their side, and the column of that side.
        between: the bounds of the event times of partners, if there are two and they are asked for.
    """

    name: str
    kind: JoinKind
    left: str
    right: str
    columns: tuple[tuple[str, str, str | None], ...]
    key: tuple[str, ...]
    identity: str
    text: str
    plan: Plan = field(repr=False)
    leaves: Mapping[int, str] = field(repr=False)
    condition: Plan = field(repr=False)
    condition_columns: tuple[tuple[str, str], ...] = field(repr=False)
    between: Between | None = None

    @property
    def expiries(self) -> Iterator[tuple[str, Expiry]]:
        """Yields each side, by its hidden view, with the moment at which its rows leave; of joins with bounds.

        A row is needed as long as a partner may come.  Where a row without a partner counts, the partners of a row that
        may still get one are needed too: they tell that it has one.
        """
        if self.between is None:
            return
        left, right = self.between.left, self.between.right
        least, most = self.between.least_us, self.between.most_us
        of_left, of_right = {(right.source, most)}, {(left.source, -least)}
        if self.kind != "inner":
            of_right.add((right.source, most - least))
        if self.kind == "full":
            of_left.add((left.source, most - least))
        yield self.left, Expiry(left, frozenset(of_left))
        yield self.right, Expiry(right, frozenset(of_right))

    @property
    def sides(self) -> tuple[str, ...]:
        """The views with the rows of its sides, the left one first."""
        return self.left, self.right

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [name for name, _, _ in self.columns]

    @property
    def touched(self) -> str:
        """What an epoch makes of it, for people."""
        return "pairs"

    @property
    def definition(self) -> str:
        """What it computes of which views, for an identity."""
        return f"{self.name} of {self.left} and {self.right} is {self.identity}"


@dataclass(frozen=True, eq=False)
class _OverRows:
    """A leaf over the rows of one hidden view.

    Args:
        name: of the leaf that stands for its rows in the plan of its view.
        rows: the hidden view.
    """

    name: str
    rows: str

    @property
    def sides(self) -> tuple[str, ...]:
        """The view with the rows below it."""
        return (self.rows,)


@dataclass(frozen=True, eq=False)
class WindowPlan(_OverRows):
    """Window functions over the rows of each key: the columns of their `PARTITION BY`.

    Args:
        name: of the leaf that stands for its rows in the plan of its view.
        rows: the hidden view with the rows below it; they have the hash of their key in `__sw_join`.
        columns: of the result: the name, and the column of the hidden view that it has unchanged, if any.
        key: the columns of the hidden view that are its key, as far as the key is columns.
        identity: a text, equal for windows that compute the same.
        text: for people.
        plan: the windows over a leaf with the rows and `__sw_weight`, which is the last column of the result, too.
            Rows of different weights do not see each other.
        schema: of the result of that plan.
        whole: the windows over a leaf with the rows alone.
        leaves: id of the first attribute of either leaf → `ROWS`.
    """

    columns: tuple[tuple[str, str | None], ...]
    key: frozenset[str]
    identity: str
    text: str
    plan: Plan = field(repr=False)
    schema: pa.Schema = field(repr=False)
    whole: Plan = field(repr=False)
    leaves: Mapping[int, str] = field(repr=False)

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [name for name, _ in self.columns]

    @property
    def touched(self) -> str:
        """What an epoch makes of it, for people."""
        return "keys"

    @property
    def definition(self) -> str:
        """What it computes of which view, for an identity."""
        return f"{self.name} of {self.rows} is {self.identity}"


@dataclass(frozen=True, eq=False)
class LimitPlan(_OverRows):
    """The first rows in an order: an `ORDER BY` with a `LIMIT`, and perhaps an `OFFSET`.

    Args:
        name: of the leaf that stands for its rows in the plan of its view.
        rows: the hidden view with the rows below it; it has the same columns.
        names: of its columns.
        skipped: the number of first rows that are left out.
        end: the number of first rows, with those that are left out.
        identity: a text, equal for limits that compute the same.
        plan: the numbers of rows, in the order of the rows; of rows that tie, the least number comes first.  Its leaf
            has the rows, with the numbers in `__sw_position`, the last column.
        whole: the rows of a leaf in their order.
        leaves: id of the first attribute of either leaf → `ROWS`.
    """

    names: list[str]
    skipped: int
    end: int
    identity: str
    plan: Plan = field(repr=False)
    whole: Plan = field(repr=False)
    leaves: Mapping[int, str] = field(repr=False)

    @property
    def text(self) -> str:
        """For people."""
        after = f" after {self.skipped:,} others" if self.skipped else ""
        return f"the first {self.end - self.skipped:,} rows in an order{after}"

    @property
    def touched(self) -> str:
        """What an epoch makes of it, for people."""
        return "order"

    @property
    def definition(self) -> str:
        """What it computes of which view, for an identity."""
        return f"{self.name} of {self.rows} is rows {self.skipped} to {self.end} of {self.identity}"


@dataclass(frozen=True, eq=False)
class GlobalWindowPlan(_OverRows):
    """A query over all rows at once: a window without `PARTITION BY`, a long limit, an `OFFSET`.

    Args:
        name: of the leaf that stands for its rows in the plan of its view.
        rows: the hidden view with the rows below it; it has the same columns as the leaf of the plan.
        names: of the columns of the result.
        text: for people.
        identity: a text, equal for queries that compute the same.
        plan: the query over a leaf.
        schema: of its result.
        leaves: id of the first attribute of the leaf → `ROWS`.
    """

    names: list[str]
    text: str
    identity: str
    plan: Plan = field(repr=False)
    schema: pa.Schema = field(repr=False)
    leaves: Mapping[int, str] = field(repr=False)

    @property
    def touched(self) -> str:
        """What an epoch makes of it, for people."""
        return "whole"

    @property
    def definition(self) -> str:
        """What it computes of which view, for an identity."""
        return f"{self.name} of {self.rows} is {self.identity}"


@dataclass(frozen=True)
class SingleValue:
    """The one row of a view, beside other rows.

    Args:
        view: the hidden view that has it, or no row.
        columns: its columns, and their names beside the rows.
        flag: the column beside the rows that tells whether there is a row.
    """

    view: str
    columns: tuple[tuple[str, str], ...]
    flag: str


@dataclass(frozen=True, eq=False)
class ScalarSubqueryPlan:
    """Projections and filters over rows with single values beside each, as those of subqueries without correlation.

    Args:
        name: of the leaf that stands for its rows in the plan of its view.
        rows: the hidden view with the rows.
        values: the single values.
        names: of the columns of the result.
        unchanged: column of the result → the column of the rows that it is.
        identity: a text, equal for those that compute the same.
        plan: the query over a leaf with the rows, the values of `values` beside each, and `__sw_weight`, which is the
            last column of the result, too.
        schema: of the result of that plan.
        pairs: a query over a leaf with the rows, all values as they were, and all as they are, which have the prefix
            `AFTER`; its columns are the structs `before` and `after` of each row whose result differs, null for none.
        leaves: id of the first attribute of either leaf → `ROWS`.
    """

    name: str
    rows: str
    values: tuple[SingleValue, ...]
    names: list[str]
    unchanged: Mapping[str, str]
    identity: str
    plan: Plan = field(repr=False)
    schema: pa.Schema = field(repr=False)
    pairs: Plan = field(repr=False)
    leaves: Mapping[int, str] = field(repr=False)

    @property
    def sides(self) -> tuple[str, ...]:
        """The view with the rows, and those with the values."""
        return (self.rows, *dict.fromkeys(each.view for each in self.values))

    @property
    def text(self) -> str:
        """For people."""
        return "rows with single values beside them"

    @property
    def touched(self) -> str:
        """What an epoch makes of it, for people."""
        return "values"

    @property
    def definition(self) -> str:
        """What it computes of which views, for an identity."""
        values = " and ".join(each.view for each in self.values)
        return f"{self.name} of {self.rows} beside {values} is {self.identity}"


class Boundary(Protocol):
    """An expression of the time alone, see `spark_bridge.operators.temporal_filter.temporal_conditions.Boundary`."""

    def at(self, time_us: int) -> int: ...


@dataclass(frozen=True, eq=False)
class TimeBound:
    """A condition on the time over stored rows.

    Args:
        column: with the values of the rows.
        kind: its type.
        leaves: see `spark_bridge.operators.temporal_filter.temporal_conditions.TemporalCondition`.
        at_equal: as `leaves`.
        boundary: the boundary in time.
    """

    column: str
    kind: pa.DataType
    leaves: bool
    at_equal: bool
    boundary: Boundary = field(repr=False)

    def at(self, time_us: int) -> int:
        """The boundary at a time, in microseconds since 1970: a number, as Arrow stores it."""
        return self.boundary.at(time_us)

    def has_reached(self, value: int, time_us: int) -> bool:
        """Whether the boundary has reached a value at a time."""
        boundary = self.at(time_us)
        return value < boundary or (self.at_equal and value == boundary)

    def reached(self, time_us: int) -> pc.Expression:
        """Whether the boundary has reached a row at a time; null for a row without a value."""
        return self._reached(self.at(time_us))

    def keeps(self, time_us: int) -> pc.Expression:
        """Whether a row fulfils the condition at a time."""
        return ~self.reached(time_us) if self.leaves else self.reached(time_us)

    def turns(self, begun_us: int, time_us: int) -> pc.Expression | None:
        """Whether a row fulfils the condition at one of two times alone; None if no row can."""
        low, high = sorted([self.at(begun_us), self.at(time_us)])
        return None if low == high else self._reached(high) & ~self._reached(low)

    def goes_back(self, begun_us: int, time_us: int) -> bool:
        """Whether the boundary is before that of an earlier time, as that of `hour(now())` is after midnight."""
        return self.at(time_us) < self.at(begun_us)

    def _reached(self, boundary: int) -> pc.Expression:
        value, limit = pc.field(self.column), pa.array([boundary], self._number).cast(self.kind)[0]
        return value <= limit if self.at_equal else value < limit

    @property
    def _number(self) -> pa.DataType:
        return pa.int32() if pa.types.is_date32(self.kind) else pa.int64()

    def first_of(self, values: pa.ChunkedArray) -> int | None:
        """The least of some values, as a number; None without one."""
        first: int | None = pc.min(values.cast(self._number)).as_py()
        return first


@dataclass(frozen=True, eq=False)
class RowFlag:
    """A condition that time does not change, over stored rows.

    Args:
        column: that tells whether a row fulfils it.
    """

    column: str

    def keeps(self, time_us: int) -> pc.Expression:
        """See `TimeBound.keeps`."""
        return pc.field(self.column)


_LOGIC: Mapping[str, Callable[..., pc.Expression]] = {
    "and": lambda *parts: reduce(and_, parts),
    "or": lambda *parts: reduce(or_, parts),
    "not": invert,
    "has a value": pc.Expression.is_valid,
}
"""See `Logic` in the room `operators.temporal_filter`: Arrow and Lance have the three truth values of SQL."""


@dataclass(frozen=True, eq=False)
class CombinedBounds:
    """A condition made of others, over stored rows.

    Args:
        logic: how, see `spark_bridge.operators.temporal_filter.temporal_conditions.CombinedCondition`.
        parts: the others.
    """

    logic: str
    parts: tuple[TimeBound | RowFlag | CombinedBounds, ...]

    def keeps(self, time_us: int) -> pc.Expression:
        """See `TimeBound.keeps`."""
        return _LOGIC[self.logic](*(each.keeps(time_us) for each in self.parts))


@dataclass(frozen=True, eq=False)
class TemporalFilterPlan(_OverRows):
    """A filter by the time of the epoch: rows come and leave as time passes.

    Args:
        name: of the leaf that stands for its rows in the plan of its view.
        rows: the hidden view with the rows below it, whose first columns are its own; `conditions` need the others.
        names: of its columns.
        conditions: a row fulfils all of them.
        text: its conditions, for people.
        identity: a text, equal for filters that keep the same.
        clock: the source whose watermark is the time; None for the time of the epoch.
    """

    names: list[str]
    conditions: tuple[TimeBound | RowFlag | CombinedBounds, ...]
    text: str
    identity: str
    clock: str | None = None

    @cached_property
    def bounds(self) -> tuple[TimeBound, ...]:
        """The bounds of its conditions."""
        return tuple(each for each in self._leaves if isinstance(each, TimeBound))

    @cached_property
    def columns_compared(self) -> tuple[str, ...]:
        """The columns of its conditions."""
        return tuple(dict.fromkeys(each.column for each in self._leaves))

    def keeps(self, time_us: int) -> pc.Expression:
        """Whether a row fulfils its conditions at a time."""
        return CombinedBounds("and", self.conditions).keeps(time_us)

    @property
    def _leaves(self) -> Iterator[TimeBound | RowFlag]:
        waiting: list[TimeBound | RowFlag | CombinedBounds] = [*self.conditions]
        for each in waiting:
            if isinstance(each, CombinedBounds):
                waiting.extend(each.parts)
            else:
                yield each

    @property
    def touched(self) -> str:
        """What an epoch makes of it, for people."""
        return "time"

    @property
    def definition(self) -> str:
        """What it computes of which view, for an identity."""
        return f"{self.name} of {self.rows} is {self.identity}"


QueriedLeaf = JoinPlan | WindowPlan | LimitPlan | GlobalWindowPlan | ScalarSubqueryPlan
"""Those of which Spark computes a query in an epoch."""

ComputedLeaf = QueriedLeaf | TemporalFilterPlan
