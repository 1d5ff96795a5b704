"""Views that need no Spark: what the materializer keeps up to date, and what the rows must be, computed anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol
from zlib import crc32

from actors.files import FileKey
from slackwater.testing.simulation.world.file_rows import Span

Groups = Mapping[int, tuple[int, int]]
_GROUPS = 3


class ModelView(Protocol):
    """One view over some sources."""

    @property
    def name(self) -> str: ...

    @property
    def sources(self) -> frozenset[str]: ...

    @property
    def has_state(self) -> bool:
        """Whether its partials have a dataset of their own."""
        ...

    def after(self, stored: object, spans: Iterable[Span]) -> object:
        """What is kept after further rows; `stored` is None before the first."""
        ...

    def result(self, kept: object) -> object:
        """The rows of the view, out of what is kept."""
        ...

    def difference(self, kept: object, ingested: Mapping[FileKey, tuple[int, ...]]) -> str | None:
        """How what is kept differs from the query over these rows of each file; None if it does not."""
        ...


@dataclass(frozen=True)
class EveryRow:
    """`SELECT * FROM source`: spans, in any order."""

    name: str
    sources: frozenset[str]
    has_state: bool = False

    def after(self, stored: object, spans: Iterable[Span]) -> tuple[Span, ...]:
        return (*(stored or ()), *spans)  # type: ignore[misc]

    def result(self, kept: object) -> object:
        return kept

    def difference(self, kept: object, ingested: Mapping[FileKey, tuple[int, ...]]) -> str | None:
        there: dict[FileKey, list[int]] = {}
        for span in sorted(kept):  # type: ignore[call-overload]
            there.setdefault(span.file, []).extend(range(span.start, span.end))
        for file in sorted(there.keys() | ingested.keys()):
            found, wanted = there.get(file, []), ingested.get(file, ())
            if tuple(found) != wanted:
                return f"rows {found} of {file[1]} are there, {list(wanted)} were ingested"
        return None


@dataclass(frozen=True)
class GroupedRows:
    """`SELECT g, count(*), sum(x) FROM source GROUP BY g HAVING count(*) > 1`."""

    name: str
    sources: frozenset[str]
    has_state: bool = True

    def after(self, stored: object, spans: Iterable[Span]) -> Groups:
        groups: dict[int, tuple[int, int]] = dict(stored or {})  # type: ignore[call-overload]
        for file, start, end in spans:
            for row in range(start, end):
                group, value = _values(file[1], row)
                count, total = groups.get(group, (0, 0))
                groups[group] = count + 1, total + value
        return groups

    def result(self, kept: object) -> Groups:
        groups: Groups = kept  # type: ignore[assignment]
        return {group: each for group, each in groups.items() if each[0] > 1}

    def difference(self, kept: object, ingested: Mapping[FileKey, tuple[int, ...]]) -> str | None:
        expected: dict[int, tuple[int, int]] = {}
        for (_, path, _), rows in ingested.items():
            for group, (count, total) in _totals(path, rows):
                counts, totals = expected.get(group, (0, 0))
                expected[group] = counts + count, totals + total
        return None if kept == expected else f"the groups are {kept}, the ingested rows give {expected}"


def _values(path: str, row: int) -> tuple[int, int]:
    """A row's group and its value."""
    return (crc32(path.encode()) + row) % _GROUPS, row + 1


@lru_cache(maxsize=4096)
def _totals(path: str, rows: tuple[int, ...]) -> tuple[tuple[int, tuple[int, int]], ...]:
    totals: dict[int, tuple[int, int]] = {}
    for row in rows:
        group, value = _values(path, row)
        count, total = totals.get(group, (0, 0))
        totals[group] = count + 1, total + value
    return tuple(totals.items())
