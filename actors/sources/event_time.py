"""The event time of a source: the column that tells when a row happened, and how late rows may come."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from state.errors import SchemaError, SettingsError

Duration = str | timedelta
"""A duration as users give it: `"10 minutes"`, or a `timedelta`."""

_MICROSECOND = timedelta(microseconds=1)
_DAY_US = timedelta(days=1) // _MICROSECOND
_MOST_DAYS = 100_000_000
_UNITS = {unit: timedelta(**{f"{unit}s": 1}) for unit in ("millisecond", "second", "minute", "hour", "day", "week")}
_SHORT = {"ms": "millisecond", "s": "second", "min": "minute", "h": "hour", "d": "day"}
_DURATION = re.compile(rf"(\d+(?:\.\d+)?) ?(?:({'|'.join(_UNITS)})s?|({'|'.join(_SHORT)}))")


@dataclass(frozen=True)
class EventTime:
    """The event time of a source, and its watermark.

    The watermark is the highest event time of the files of a completed listing, less the lateness.  The watermark of
    an idle source follows the clock.

    Args:
        column: the column with the time at which a row happened: a timestamp or a date.  A row with a null in it is a
            bad record.  The first declaration of the source decides the column.
        lateness: a duration, such as `"10 minutes"` or a `timedelta`.  A row may be older than the rows of an earlier
            listing by this duration.
        max_ahead: a duration.  A row whose event time is further ahead of the machine's clock is a bad record, and
            moves no watermark.
        idle: a duration.  If the source gets no row for this duration, and all of its files are finished, the
            watermark follows the clock at this distance: windows close, and rows of joins expire.  A later row before
            the watermark is late.  None: a source without rows keeps its watermark.

    Raises:
        SettingsError: the column has no name, a duration is not valid, or the idle time is 0.
    """

    column: str
    lateness: Duration = field(default="0 seconds", kw_only=True)
    max_ahead: Duration = field(default="1 day", kw_only=True)
    idle: Duration | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise SettingsError(
                f'EventTime(column={self.column!r}): name a column of the source, as in EventTime("at")'
            )
        # Reading them checks them.
        _ = self.lateness_us, self.max_ahead_us
        if self.idle_us == 0:
            raise SettingsError(
                f"EventTime(idle={self.idle!r}): give the time without rows after which the source is idle, as "
                '"10 minutes"'
            )

    @property
    def lateness_us(self) -> int:
        """The lateness in microseconds."""
        return microseconds("EventTime(lateness)", self.lateness)

    @property
    def max_ahead_us(self) -> int:
        """The time that a row may be ahead of the clock, in microseconds."""
        return microseconds("EventTime(max_ahead)", self.max_ahead)

    @property
    def idle_us(self) -> int | None:
        """The time without rows after which the source is idle, in microseconds; None for never."""
        return None if self.idle is None else microseconds("EventTime(idle)", self.idle)

    def require_column(self, source: str, schema: pa.Schema) -> None:
        """Refuses a source without the column, or with one that is no time.

        Raises:
            SchemaError: naming the source and the column.
        """
        if self.column not in schema.names:
            raise SchemaError(
                f"source {source}: event_time names the column {self.column}, which it does not have; it has "
                f"{', '.join(schema.names)}"
            )
        kind = schema.field(self.column).type
        if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            raise SchemaError(
                f"source {source}: event_time names the column {self.column} of type {kind}; it must be a timestamp or "
                "a date: declare a schema in which it is one"
            )


def event_times_us(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values of an event-time column as microseconds since 1970; a time without a zone counts as UTC."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        return values.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    days = values.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
    # Days that no timestamp has are far ahead, or before all others.
    return pc.multiply(pc.min_element_wise(pc.max_element_wise(days, -_MOST_DAYS), _MOST_DAYS), _DAY_US)


def duration_text(us: int) -> str:
    """A number of microseconds above 0 as users write a duration, in the largest unit that divides it: "7 days"."""
    length = timedelta(microseconds=us)
    unit = next((each for each in ("day", "hour", "minute", "second") if not length % _UNITS[each]), "millisecond")
    count = length / _UNITS[unit]
    return f"{count:g} {unit}" if count == 1 else f"{count:.15g} {unit}s"


def microseconds(option: str, given: Duration) -> int:
    """A duration in microseconds.

    Args:
        option: the name of the option, for the message.
        given: the duration.

    Raises:
        SettingsError: it is not a duration, or is below zero.
    """
    if isinstance(given, timedelta) and given >= timedelta():
        return given // _MICROSECOND
    if isinstance(given, str) and (found := _DURATION.fullmatch(given.strip().lower())):
        return round(float(found[1]) * (_UNITS[found[2] or _SHORT[found[3]]] / _MICROSECOND))
    raise SettingsError(
        f'{option}={given!r}: give a duration such as "10 minutes" (of {"s, ".join(_UNITS)}s), or a timedelta of 0 or '
        "more"
    )
