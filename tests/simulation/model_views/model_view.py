"""Models of views: they compute the rows of a view, and compare them with the ingested rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol, TypeAlias, TypeGuard
from zlib import crc32

from actors.files import FileKey
from spark_bridge.changes.joined_positions import JoinKind
from state.tables.stored_rows import inner_name, is_view
from tests.simulation.world.file_rows import RowsByFile, Span, event_time_us
from tests.simulation.world.simulated_clock import START_US

Groups: TypeAlias = Mapping[int, tuple[int, int]]
"""Group → number of its rows, and the sum of their values."""
_GROUPS, _OTHER_GROUPS = 3, 5
_ABOVE, _OTHER_ABOVE = 1, 2
_KEYS = 7
_WINDOW_US = 500
_SECOND_US, _MINUTE_US = 1_000_000, 60_000_000

TimeFilter = Literal["while", "minute"]
"""A filter by the time: each row is there for a while, or in the first seconds of each minute."""


class ModelView(Protocol):
    """The model of one view over some sources.

    Its stored value is of any type: its rows, or its partials if it has a dataset for them.
    """

    @property
    def name(self) -> str: ...

    @property
    def sources(self) -> frozenset[str]: ...

    @property
    def has_state(self) -> bool:
        """True for a view whose partials have their own dataset."""
        ...

    @property
    def is_full(self) -> bool:
        """True for a view that is recomputed as a whole."""
        ...

    @property
    def parents(self) -> tuple[str, ...]:
        """The views whose rows it reads, in place of those of its sources."""
        ...

    def after(self, stored: object, spans: Iterable[Span]) -> object:
        """The stored value after more rows; `stored` is None before the first."""
        ...

    def result(self, stored: object) -> object:
        """The rows of the view, from its stored value."""
        ...

    def difference(self, stored: object, ingested: RowsByFile) -> str | None:
        """The difference between a stored value and the query over the ingested rows, in words; None if equal."""
        ...


@dataclass(frozen=True)
class EveryRow:
    """`SELECT * FROM source`: spans, in any order."""

    name: str
    sources: frozenset[str]
    has_state: bool = False
    is_full: bool = False
    parents: tuple[str, ...] = ()

    def after(self, stored: object, spans: Iterable[Span]) -> tuple[Span, ...]:
        return (*(stored or ()), *spans)  # type: ignore[misc]

    def result(self, stored: object) -> object:
        return stored

    def difference(self, stored: object, ingested: RowsByFile) -> str | None:
        found: dict[FileKey, list[int]] = {}
        for span in sorted(stored):  # type: ignore[call-overload]
            found.setdefault(span.file, []).extend(range(span.start, span.end))
        for file in sorted(found.keys() | ingested.keys()):
            rows, expected = found.get(file, []), ingested.get(file, ())
            if tuple(rows) != expected:
                return f"it has the rows {rows} of {file[1]}, {list(expected)} were ingested"
        return None


@dataclass(frozen=True)
class GroupedRows:
    """`SELECT g, count(*), sum(x) FROM source GROUP BY g HAVING count(*) > 1`; its partials are all groups.

    Args:
        groups: the number of groups, in which definitions differ.
        above: the number of rows that a group has at least one more of, in which definitions of the same groups differ.
    """

    name: str
    sources: frozenset[str]
    has_state: bool = True
    is_full: bool = False
    parents: tuple[str, ...] = ()
    groups: int = _GROUPS
    above: int = _ABOVE

    def after(self, stored: object, spans: Iterable[Span]) -> Groups:
        groups: dict[int, tuple[int, int]] = dict(stored or {})  # type: ignore[call-overload]
        for file, start, end in spans:
            _add(groups, _groups_of(file[1], tuple(range(start, end)), self.groups))
        return groups

    def result(self, stored: object) -> Groups:
        groups: Groups = stored  # type: ignore[assignment]
        return {group: each for group, each in groups.items() if each[0] > self.above}

    def difference(self, stored: object, ingested: RowsByFile) -> str | None:
        expected: dict[int, tuple[int, int]] = {}
        for (_, path, _), rows in ingested.items():
            _add(expected, _groups_of(path, rows, self.groups))
        return None if stored == expected else f"its groups are {stored}, the ingested rows give {expected}"


@dataclass(frozen=True)
class CopiedGroups:
    """`SELECT * FROM parent`, of a `GroupedRows`, which may be an internal view."""

    name: str
    sources: frozenset[str]
    parents: tuple[str, ...]
    has_state: bool = False
    is_full: bool = False
    groups: int = _GROUPS
    above: int = _ABOVE

    def after(self, stored: object, spans: Iterable[Span]) -> Groups:
        assert stored is None and not [*spans], "it reads rows of its parent"
        return {}

    def result(self, stored: object) -> object:
        return stored

    def difference(self, stored: object, ingested: RowsByFile) -> str | None:
        groups = GroupedRows(self.name, self.sources, groups=self.groups, above=self.above)
        spans = [Span(file, row, row + 1) for file, rows in ingested.items() if file[0] in self.sources for row in rows]
        expected = groups.result(groups.after(None, spans))
        return None if stored == expected else f"its rows are {stored}, the ingested rows give {expected}"


@dataclass(frozen=True)
class ClosedWindows:
    """`SELECT window, count(*), sum(x) FROM source GROUP BY window`, with `emit="on_close"`.

    Its partials are the open groups.  A window is named by its end, in microseconds since 1970.
    """

    name: str
    sources: frozenset[str]
    has_state: bool = True
    is_full: bool = False
    parents: tuple[str, ...] = ()

    def after(self, stored: object, spans: Iterable[Span]) -> Groups:
        groups: dict[int, tuple[int, int]] = dict(stored or {})  # type: ignore[call-overload]
        for file, start, end in spans:
            for row in range(start, end):
                _add(groups, {window_end_us(file, row): (1, row + 1)})
        return groups

    def result(self, stored: object) -> Groups:
        return {}

    def difference(self, stored: object, ingested: RowsByFile) -> str | None:
        """As for a view that has closed no window, such as a backfill."""
        expected = self.after(None, [Span(file, row, row + 1) for file, rows in ingested.items() for row in rows])
        return None if stored == expected else f"its groups are {stored}, the ingested rows give {expected}"


def window_end_us(file: FileKey, row: int) -> int:
    """The end of the window of a row."""
    return (event_time_us(file, row) // _WINDOW_US + 1) * _WINDOW_US


class SideRow(NamedTuple):
    """A row of a side of a join: the place of the row, its key, and its event time; no key is equal to None."""

    at: str
    key: int | None
    time_us: int


class Pair(NamedTuple):
    """A row of a join: the places of the rows that it is made of; in place of the right one, whether there is one."""

    left: str | None
    right: str | None


@dataclass(frozen=True)
class Pairs:
    """The rows of a join, in their order."""

    rows: tuple[Pair, ...] = ()


@dataclass(frozen=True)
class SideOfJoin(EveryRow):
    """`SELECT *, key FROM source`, as the internal view with the rows of a side of a join.

    Args:
        join: the join, if its rows expire.
    """

    join: JoinOfSources | None = None


@dataclass(frozen=True)
class JoinOfSources:
    """`SELECT ... FROM left JOIN right USING (key)`, of two sources, or of one with itself.

    Args:
        name: of the view.
        kind: of the join.
        left: the source of the left side.
        right: that of the right side.
        within: the time of the right one of partners is at least, and at most, so many microseconds after that of the
            left one; then rows expire by the watermarks.  None for partners at all times.
    """

    name: str
    kind: JoinKind
    left: str
    right: str
    within: tuple[int, int] | None = None
    has_state: bool = False
    is_full: bool = False

    @property
    def sources(self) -> frozenset[str]:
        return frozenset((self.left, self.right))

    @property
    def parents(self) -> tuple[str, ...]:
        return tuple(self.sides)

    @property
    def sides(self) -> dict[str, str]:
        """Internal view with the rows of a side → its source; a join of a source with itself has one."""
        sources = dict.fromkeys((self.left, self.right))
        return {inner_name(self.name, number): source for number, source in enumerate(sources, 1)}

    def after(self, stored: object, spans: Iterable[Span]) -> Pairs:
        assert stored is None and not [*spans], "it reads rows of its sides"
        return Pairs()

    def result(self, stored: object) -> object:
        return stored

    def difference(self, stored: object, ingested: RowsByFile) -> str | None:
        left, right = (
            [row for file, rows in ingested.items() if file[0] == source for row in side_rows(file, rows)]
            for source in (self.left, self.right)
        )
        expected = Pairs(joined(self.kind, left, right, self.within))
        return None if stored == expected else f"its rows are {stored}, the ingested rows give {expected}"


@dataclass(frozen=True)
class RowsBelow(EveryRow):
    """`SELECT *, first, last FROM source`, as the internal view with the rows below a filter by the time."""

    filter: TimeFilter = "while"


@dataclass(frozen=True)
class TemporalFilterRows:
    """`SELECT * FROM source WHERE first <= now() AND last > now()`, or `... AND last > now() % 1 minute`.

    Args:
        name: of the view.
        sources: its source.
        filter: its filter.
        time_us: the time at which its rows are looked at, in microseconds since 1970; None for no rows.
    """

    name: str
    sources: frozenset[str]
    filter: TimeFilter
    time_us: int | None = None
    has_state: bool = False
    is_full: bool = False

    @property
    def parents(self) -> tuple[str, ...]:
        return (inner_name(self.name, 1),)

    def at(self, time_us: int | None) -> TemporalFilterRows:
        """The same view, at a time."""
        return replace(self, time_us=time_us)

    def after(self, stored: object, spans: Iterable[Span]) -> Pairs:
        assert stored is None and not [*spans], "it reads rows below it"
        return Pairs()

    def result(self, stored: object) -> object:
        return stored

    def rows(self, ingested: RowsByFile) -> Pairs:
        """Its rows, of those that were ingested."""
        found = [row for file, rows in ingested.items() if file[0] in self.sources for row in timed_rows(file, rows)]
        return Pairs(in_order(Pair(row.at, None) for row in found if self._keeps(row)))

    def difference(self, stored: object, ingested: RowsByFile) -> str | None:
        expected = self.rows(ingested)
        return None if stored == expected else f"at {self.time_us}, its rows are {stored}, and should be {expected}"

    def _keeps(self, row: TimedRow) -> bool:
        if self.time_us is None or row.first_us > self.time_us:
            return False
        return last_of(self.filter, row) > boundary_us(self.filter, self.time_us)


class TimedRow(NamedTuple):
    """A row below a filter by the time: the place of the row, and the times between which it is there."""

    at: str
    first_us: int
    last_us: int


def last_of(kind: TimeFilter, row: TimedRow) -> int:
    """The value at which a row leaves."""
    return row.last_us if kind == "while" else row.last_us % _MINUTE_US


def boundary_us(kind: TimeFilter, time_us: int) -> int:
    """The boundary in time that is compared with it; that of a minute goes back."""
    return time_us if kind == "while" else time_us % _MINUTE_US


@lru_cache(maxsize=4096)
def timed_rows(file: FileKey, rows: tuple[int, ...]) -> tuple[TimedRow, ...]:
    """The rows below a filter by the time, of some rows of a file."""
    source, path, version = file
    found = []
    for row in rows:
        chance = crc32(f"{path}#{row}".encode())
        first_us = START_US + (chance % 60 - 10) * _SECOND_US
        last_us = first_us + (4, 15, 30, 90)[chance // 60 % 4] * _SECOND_US
        found.append(TimedRow(f"{source}/{path}@{version.hex()}#{row}", first_us, last_us))
    return tuple(found)


def joined(
    kind: JoinKind, left: Sequence[SideRow], right: Sequence[SideRow], within: tuple[int, int] | None = None
) -> tuple[Pair, ...]:
    """The rows of a join of rows, in their order; see `JoinOfSources`."""
    theirs = _by_key(right)
    partners = {row.at: [each.at for each in theirs.get(row.key, ()) if are_near(row, each, within)] for row in left}
    pairs = [Pair(row.at, other) for row in left for other in partners[row.at]]
    if kind in ("left", "full"):
        pairs += [Pair(row.at, None) for row in left if not partners[row.at]]
    if kind == "full":
        met = {other for others in partners.values() for other in others}
        pairs += [Pair(None, row.at) for row in right if row.at not in met]
    if kind in ("semi", "anti"):
        pairs = [Pair(row.at, None) for row in left if bool(partners[row.at]) == (kind == "semi")]
    if kind == "existence":
        pairs = [Pair(row.at, str(bool(partners[row.at]))) for row in left]
    return in_order(pairs)


def are_near(left: SideRow, right: SideRow, within: tuple[int, int] | None) -> bool:
    """Whether the times of two rows let them be partners."""
    return within is None or within[0] <= right.time_us - left.time_us <= within[1]


def in_order(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """Rows of a join as they are kept."""
    return tuple(sorted(pairs, key=lambda pair: (pair.left or "", pair.right or "")))


@lru_cache(maxsize=4096)
def side_rows(file: FileKey, rows: tuple[int, ...]) -> tuple[SideRow, ...]:
    """The rows of a side of a join, of some rows of a file."""
    source, path, version = file
    first = crc32(path.encode())
    keys = [(first + row) % _KEYS for row in rows]
    return tuple(
        SideRow(f"{source}/{path}@{version.hex()}#{row}", key or None, event_time_us(file, row))
        for row, key in zip(rows, keys, strict=True)
    )


def _by_key(rows: Iterable[SideRow]) -> dict[int | None, list[SideRow]]:
    found: dict[int | None, list[SideRow]] = {}
    for row in rows:
        if row.key is not None:
            found.setdefault(row.key, []).append(row)
    return found


def internal_views_of(view: ModelView) -> list[ModelView]:
    """The models of the internal views of a view: aggregations, the sides of its join, or the rows below its filter."""
    if isinstance(view, TemporalFilterRows):
        return [RowsBelow(name, view.sources, filter=view.filter) for name in view.parents]
    if isinstance(view, JoinOfSources):
        join = None if view.within is None else view
        return [SideOfJoin(name, frozenset({source}), join=join) for name, source in view.sides.items()]
    if isinstance(view, CopiedGroups):
        own = GroupedRows(view.name, view.sources, groups=view.groups, above=view.above)
        return [replace(own, name=name) for name in view.parents if not is_view(name)]
    return []


def is_grouped(view: ModelView) -> TypeGuard[GroupedRows | CopiedGroups]:
    """Whether a view has groups; then other definitions of its name are in stories."""
    return isinstance(view, GroupedRows | CopiedGroups)


def with_other_groups(view: ModelView) -> ModelView:
    """A view of groups with another definition, of other groups; any other view as it is."""
    return replace(view, groups=_GROUPS + _OTHER_GROUPS - view.groups) if is_grouped(view) else view


def with_other_filter(view: ModelView) -> ModelView:
    """A view of groups with another definition, of the same groups; any other view as it is."""
    return replace(view, above=_ABOVE + _OTHER_ABOVE - view.above) if is_grouped(view) else view


def definitions_of(view: ModelView) -> list[ModelView]:
    """All definitions of the name of a view that are in stories, its own first."""
    own = [view, with_other_groups(view)]
    return [*own, *map(with_other_filter, own)] if is_grouped(view) else [view]


def identity_of(view: ModelView) -> str:
    """The identity of a view, as the catalog has it: two definitions of one name have two."""
    if not is_grouped(view) or (view.groups, view.above) == (_GROUPS, _ABOVE):
        return view.name
    return f"{view.name} by {view.groups} above {view.above}"


def follows_watermarks(view: ModelView) -> bool:
    """Whether rows of a view are late, or leave, by the watermarks."""
    join = view.join if isinstance(view, SideOfJoin) else view
    return isinstance(view, ClosedWindows) or (isinstance(join, JoinOfSources) and join.within is not None)


@lru_cache(maxsize=4096)
def _groups_of(path: str, rows: tuple[int, ...], number: int) -> Groups:
    """The groups of some rows of a file; the path and the position of a row give its group and its value."""
    groups: dict[int, tuple[int, int]] = {}
    for row in rows:
        _add(groups, {(crc32(path.encode()) + row) % number: (1, row + 1)})
    return groups


def _add(groups: dict[int, tuple[int, int]], more: Groups) -> None:
    for group, (count, total) in more.items():
        counts, totals = groups.get(group, (0, 0))
        groups[group] = counts + count, totals + total
