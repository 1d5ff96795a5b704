"""The event time of a source: the column that tells when a row happened, and how late rows may come."""

from __future__ import annotations

import re
from dataclasses import dataclass
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

    The watermark is the highest event time of the files of a listing that is read to its end, less the lateness; of an
    idle source it follows the clock.

    Args:
        column: the column; a time or a date.
        lateness_us: microseconds by which a row may be older than a row of an earlier listing.
        max_ahead_us: microseconds by which a row may be ahead of the clock; a row further ahead is a bad record.
        idle_us: microseconds without rows after which the watermark follows the clock, so much behind it; None for
            never.

    Raises:
        SettingsError: the column has no name, or the idle time is 0.
    """

    column: str
    lateness_us: int = 0
    max_ahead_us: int = timedelta(days=1) // _MICROSECOND
    idle_us: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise SettingsError(f'event_time={self.column!r}: name a column of the source, as in event_time="at"')
        if self.idle_us == 0:
            raise SettingsError('idle=0: give the time without rows after which the source is idle, as "10 minutes"')

    @classmethod
    def of(cls, column: str, lateness: Duration, max_ahead: Duration, idle: Duration | None) -> EventTime:
        """The event time of these options of a source.

        Raises:
            SettingsError: an option is not valid.
        """
        idle_us = None if idle is None else microseconds("idle", idle)
        return cls(column, microseconds("lateness", lateness), microseconds("max_ahead", max_ahead), idle_us)

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
