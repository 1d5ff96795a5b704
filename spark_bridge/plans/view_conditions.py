"""Conditions over a view as a whole, at each of its epochs: its number of rows, their age, the records behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from actors.sources.event_time import Duration, duration_text, microseconds
from state.errors import SettingsError, ViewError


@dataclass(frozen=True)
class RowCount:
    """The view has a number of rows.

    Args:
        at_most: the largest number; None for any.

    Raises:
        SettingsError: no view can have such a number, or every view has.
    """

    at_least: int = 0
    at_most: int | None = None

    def __post_init__(self) -> None:
        numbers = [each for each in (self.at_least, self.at_most) if each is not None]
        is_whole = all(isinstance(each, int) and not isinstance(each, bool) for each in numbers)
        if not is_whole or self.at_least < 0 or (self.at_most is not None and self.at_most < self.at_least):
            raise SettingsError(f"{self.text}: at_most must be at least at_least, and both whole numbers from 0 on")
        if self.at_least == 0 and self.at_most is None:
            raise SettingsError("row_count(): every view has so many rows; write at_least= or at_most=")

    @property
    def text(self) -> str:
        """The condition as it is written."""
        most = [] if self.at_most is None else [f"at_most={self.at_most}"]
        least = [f"at_least={self.at_least}"] if self.at_least or not most else []
        return f"row_count({', '.join([*least, *most])})"

    def check(self, where: str, schema: pa.Schema) -> None:
        """Every view has a number of rows."""

    def is_fulfilled(self, rows: int) -> bool:
        """Whether a view with so many rows fulfils it."""
        return self.at_least <= rows and (self.at_most is None or rows <= self.at_most)


@dataclass(frozen=True)
class Freshness:
    """The newest row of the view is young: the time in a column is not further before the epoch than a duration.

    A view without a time in that column is not.

    Args:
        column: a date or a timestamp; one without a time zone is in UTC.
        within: a duration.

    Raises:
        SettingsError: `within` is not a duration above 0.
    """

    column: str
    within: Duration

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise SettingsError(f"freshness({self.column!r}, ...): name a column with a time")
        if microseconds("within", self.within) <= 0:
            raise SettingsError(f'{self.text}: give a duration above 0, such as within="2 hours"')

    @property
    def text(self) -> str:
        """The condition as it is written."""
        within = self.within.strip() if isinstance(self.within, str) else duration_text(self._within_us)
        return f'freshness("{self.column}", within="{within}")'

    def is_fulfilled(self, newest_us: int | None, now_us: int) -> bool:
        """Whether a view is fresh.

        Args:
            newest_us: the largest time of the column, in microseconds since 1970; None without one.
            now_us: the time of the epoch, in the same unit.
        """
        return newest_us is not None and now_us - newest_us <= self._within_us

    def check(self, where: str, schema: pa.Schema) -> None:
        """Refuses a column that has no time.

        Raises:
            ViewError: the view has no such column, or it is of another type.
        """
        if self.column not in schema.names:
            raise ViewError(f"{where}: {self.text}: there is no such column; there are {', '.join(schema.names)}")
        kind = schema.field(self.column).type
        if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            raise ViewError(f"{where}: {self.text}: the column is of type {kind}; name a date or a timestamp")

    @property
    def _within_us(self) -> int:
        return microseconds("within", self.within)


@dataclass(frozen=True)
class ShareOfBadRecords:
    """Of the records that came in an epoch, from all sources of the view, few could not be read.

    Args:
        at_most: the largest share of those in quarantine, from 0 to below 1.

    Raises:
        SettingsError: it is no such share.
    """

    at_most: float

    def __post_init__(self) -> None:
        is_number = isinstance(self.at_most, int | float) and not isinstance(self.at_most, bool)
        if not is_number or not 0 <= self.at_most < 1:
            raise SettingsError(f"{self.text}: at_most is a share from 0 to below 1, such as 0.01")

    @property
    def text(self) -> str:
        """The condition as it is written."""
        return f"share_of_bad_records(at_most={self.at_most})"

    def check(self, where: str, schema: pa.Schema) -> None:
        """Every view has sources."""

    def is_fulfilled(self, records: int, bad: int) -> bool:
        """Whether so many records, with the bad ones among them, fulfil it."""
        return bad <= self.at_most * records


ViewCondition: TypeAlias = RowCount | Freshness | ShareOfBadRecords
"""A condition over a view as a whole."""
