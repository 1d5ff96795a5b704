"""Models of views: each can tell its rows from the rows that were ingested."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol
from zlib import crc32

from actors.files import FileKey
from slackwater.testing.simulation.world.bucket import Content
from slackwater.testing.simulation.world.file_rows import Span
from state.tables.records import ViewVersion
from state.tables.stored_rows import next_name
from state.tables.tables import REMOVED_STATUSES

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
        """True for a view whose partials have a dataset of their own."""
        ...

    def after(self, stored: object, spans: Iterable[Span]) -> object:
        """The stored value after further rows; `stored` is None before the first."""
        ...

    def result(self, kept: object) -> object:
        """The rows of the view, from its stored value."""
        ...

    def difference(self, kept: object, ingested: Mapping[FileKey, tuple[int, ...]]) -> str | None:
        """Difference between the stored value and the query over these rows of each file; None without one."""
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


_PIECE_SPANS = 2
_SPAN_ROWS = 3


class ModelBackfill:
    """Progress of one backfill.

    Args:
        view: the view that is filled.
        recorded: its version in the last epoch, if it has begun.
    """

    def __init__(self, view: ModelView, recorded: ViewVersion | None = None) -> None:
        self.view = view
        self.version = recorded
        self.pinned_epoch = 0 if recorded is None or recorded.pinned_epoch is None else recorded.pinned_epoch
        self._taken = taken_spans(recorded)
        self._history: list[Span] | None = None

    @property
    def is_complete(self) -> bool:
        """True when it has every row that was ingested before it."""
        return self.version is not None and self._history is not None and self._taken >= len(self._history)

    @property
    def needs_history(self) -> bool:
        """True until `open`."""
        return self._history is None

    def on_created(self, epoch: int, version: ViewVersion) -> None:
        """It gets new rows from this epoch on."""
        self.pinned_epoch, self.version = epoch - 1, version

    def open(self, history: list[Span]) -> None:
        """Sets the rows that were ingested before it."""
        self._history = history

    def next_spans(self) -> list[Span]:
        """The next piece of the history."""
        assert self._history is not None, "open comes first"
        return self._history[self._taken : self._taken + _PIECE_SPANS]

    def on_piece(self, spans: list[Span], version: ViewVersion) -> None:
        """A piece is written."""
        self._taken, self.version = self._taken + len(spans), version

    def recorded(self) -> ViewVersion:
        """Its version as an epoch records it."""
        assert self.version is not None, "it was created"
        name = next_name(self.view.name)
        return replace(self.version, name=name, pinned_epoch=self.pinned_epoch, progress=json.dumps(self._taken))

    def shown(self) -> ViewVersion:
        """Its version as epochs record it from its completion on."""
        assert self.version is not None, "it was created"
        return replace(self.version, name=self.view.name, pinned_epoch=None, progress=None)


def taken_spans(recorded: ViewVersion | None) -> int:
    """Number of spans of its history that a recorded view has."""
    return 0 if recorded is None or recorded.progress is None else int(json.loads(recorded.progress))


def history_of(
    ledger: Iterable[Mapping[str, Any]],
    queue: Iterable[Mapping[str, Any]],
    contents: Mapping[FileKey, Content],
    sources: frozenset[str],
) -> list[Span]:
    """The rows that were ingested of some sources, in a fixed order.

    Args:
        ledger: rows of the ledger at some epoch.
        queue: rows of the queue at the same epoch.
        contents: contents of every file version that ever existed.
        sources: the sources that count.
    """
    offsets = {
        (row["source"], row["path"], row["version"]): row[offset]
        for rows, offset in ((ledger, "rows_read"), (queue, "row_offset"))
        for row in rows
        if row["source"] in sources and row[offset] and row.get("status") not in REMOVED_STATUSES
    }
    return [span for file in sorted(offsets) for span in _spans(file, contents[file].good_rows(offsets[file]))]


def _spans(file: FileKey, rows: tuple[int, ...]) -> list[Span]:
    borders = [at for at in range(1, len(rows)) if rows[at] != rows[at - 1] + 1]
    runs = [rows[start:end] for start, end in itertools.pairwise([0, *borders, len(rows)])]
    return [
        Span(file, run[at], run[min(at + _SPAN_ROWS, len(run)) - 1] + 1)
        for run in runs
        for at in range(0, len(run), _SPAN_ROWS)
    ]
