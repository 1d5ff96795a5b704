"""Models of views: they compute the rows of a view, and compare them with the ingested rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias
from zlib import crc32

from actors.files import FileKey
from slackwater.testing.simulation.promises.ingested_rows import RowsByFile
from slackwater.testing.simulation.world.file_rows import Span
from state.tables.stored_rows import is_view

Groups: TypeAlias = Mapping[int, tuple[int, int]]
"""Group → number of its rows, and the sum of their values."""
_GROUPS = 3


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
    """`SELECT g, count(*), sum(x) FROM source GROUP BY g HAVING count(*) > 1`; its partials are all groups."""

    name: str
    sources: frozenset[str]
    has_state: bool = True
    is_full: bool = False
    parents: tuple[str, ...] = ()

    def after(self, stored: object, spans: Iterable[Span]) -> Groups:
        groups: dict[int, tuple[int, int]] = dict(stored or {})  # type: ignore[call-overload]
        for file, start, end in spans:
            _add(groups, _groups_of(file[1], tuple(range(start, end))))
        return groups

    def result(self, stored: object) -> Groups:
        groups: Groups = stored  # type: ignore[assignment]
        return {group: each for group, each in groups.items() if each[0] > 1}

    def difference(self, stored: object, ingested: RowsByFile) -> str | None:
        expected: dict[int, tuple[int, int]] = {}
        for (_, path, _), rows in ingested.items():
            _add(expected, _groups_of(path, rows))
        return None if stored == expected else f"its groups are {stored}, the ingested rows give {expected}"


@dataclass(frozen=True)
class CopiedGroups:
    """`SELECT * FROM parent`, of a `GroupedRows`, which may be a hidden view."""

    name: str
    sources: frozenset[str]
    parents: tuple[str, ...]
    has_state: bool = False
    is_full: bool = False

    def after(self, stored: object, spans: Iterable[Span]) -> object:
        raise AssertionError("it reads rows of its parent")

    def result(self, stored: object) -> object:
        return stored

    def difference(self, stored: object, ingested: RowsByFile) -> str | None:
        groups = GroupedRows(self.name, self.sources)
        spans = [Span(file, row, row + 1) for file, rows in ingested.items() if file[0] in self.sources for row in rows]
        expected = groups.result(groups.after(None, spans))
        return None if stored == expected else f"its rows are {stored}, the ingested rows give {expected}"


def hidden_in(view: ModelView) -> list[ModelView]:
    """The models of the hidden views of a view: groupings whose rows it reads."""
    return [GroupedRows(name, view.sources) for name in view.parents if not is_view(name)]


@lru_cache(maxsize=4096)
def _groups_of(path: str, rows: tuple[int, ...]) -> Groups:
    """The groups of some rows of a file; the path and the position of a row give its group and its value."""
    groups: dict[int, tuple[int, int]] = {}
    for row in rows:
        _add(groups, {(crc32(path.encode()) + row) % _GROUPS: (1, row + 1)})
    return groups


def _add(groups: dict[int, tuple[int, int]], more: Groups) -> None:
    for group, (count, total) in more.items():
        counts, totals = groups.get(group, (0, 0))
        groups[group] = counts + count, totals + total
