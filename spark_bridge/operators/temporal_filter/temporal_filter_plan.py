"""The plan of a temporal filter: conditions on the time, over stored rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import and_, invert, or_
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.plans.operator_plan import EpochCost, OverRows, StoredRows

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


class Boundary(Protocol):
    """An expression of the time alone, see `spark_bridge.operators.temporal_filter.temporal_conditions.Boundary`."""

    def at(self, time_us: int) -> int: ...


@dataclass(frozen=True, eq=False)
class TimeBound:
    """A condition on the time over stored rows.

    Args:
        column: with the values of the rows.
        leaves: see `spark_bridge.operators.temporal_filter.temporal_conditions.TemporalCondition`.
        at_equal: as `leaves`.
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
        """True if the boundary is lower at `time_us` than at `begun_us`: `hour(now())` falls at midnight."""
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
class TemporalFilterPlan(OverRows):
    """A filter by the time of the epoch: rows come and leave as time passes.

    Args:
        name: of the leaf that stands for its rows in the plan of its view.
        rows: the internal view with the rows below it, whose first columns are its own; `conditions` need the others.
        conditions: a row fulfils all of them.
        text: its conditions, for people.
        identity: a text, equal for filters that keep the same.
        clock: the source whose watermark is the time; None for the time of the epoch.
    """

    names: list[str]
    conditions: tuple[TimeBound | RowFlag | CombinedBounds, ...]
    text: str
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
    def touched(self) -> None:
        """Nothing by itself: see `also_read`."""

    @property
    def is_timed(self) -> bool:
        """Always."""
        return True

    def also_read(self, stored: StoredRows) -> str:
        """The rows that the time has reached."""
        return f"; the rows of {self.rows} that the time has reached"

    def cost(self, rows: str) -> EpochCost:
        """See `OperatorPlan.cost`."""
        before = f"a scan of {self.rows} for the rows that the time has reached since the last epoch; "
        return EpochCost(before, "the rows that come and leave")
