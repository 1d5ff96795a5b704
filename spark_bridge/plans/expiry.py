"""When rows of an internal view leave without a trace: by the watermarks of sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class EventTime:
    """The event time of a side of a join.

    Args:
        source: whose rows the side has.
    """

    source: str
    column: str


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
