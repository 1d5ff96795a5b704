"""Checks of joins whose rows expire by the watermarks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from state.tables.records import ViewVersion
from tests.simulation.memory.file_tables import FileTables
from tests.simulation.memory.memory_disk import MemoryDataset
from tests.simulation.model_views.model_view import (
    JoinOfSources,
    ModelView,
    Pairs,
    SideRow,
    joined,
    side_rows,
)
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.promises.closing_checker import LateRow, LateRowChecker, untimely
from tests.simulation.world.file_rows import RowsByFile, event_time_us


@dataclass
class _Side:
    """One side, from the version that shows it.

    Args:
        watermarks: those that it follows.
        earlier_us: the one of the other source that it followed before; None for none.
        late: its late rows.
    """

    watermarks: Mapping[str, int] = field(default_factory=dict)
    earlier_us: int | None = None
    late: list[LateRow] = field(default_factory=list)


class ExpiryChecker:
    """Checks that such a join is that of the rows in time, and that rows leave only when no partner can come.

    Args:
        datasets: path → dataset of a view.
        files: checks the files of late rows.
        models: the models of all views.
    """

    def __init__(
        self, datasets: Mapping[str, MemoryDataset], files: LateRowChecker, models: Iterable[ModelView]
    ) -> None:
        self._datasets, self._files = datasets, files
        joins = [model for model in models if isinstance(model, JoinOfSources) and model.within is not None]
        self._joins = {model.name: model for model in joins}
        self._sides: dict[str, _Side] = {}

    @property
    def late_rows(self) -> tuple[LateRow, ...]:
        """The late rows of all sides."""
        return tuple(row for side in self._sides.values() for row in side.late)

    def check(
        self,
        tables: FileTables,
        views: Mapping[str, ViewVersion],
        ingested: RowsByFile,
        late: Mapping[str, list[LateRow]],
    ) -> None:
        """Checks the joins of the next version of the store.

        Args:
            tables: its rows about files.
            views: those of its head.
            ingested: the rows of each file version.
            late: view → its new late rows.
        """
        if unknown := late.keys() - self._joins.keys():
            raise PromiseBroken("time", f"rows are late for {sorted(unknown)}, which take none")
        stopped = tables.stopped_views()
        for name, join in self._joins.items():
            if name in stopped:
                continue
            rows: dict[str, list[SideRow]] = {}
            for internal, source in join.sides.items():
                if internal in views and internal not in stopped:
                    own = {file: each for file, each in ingested.items() if file[0] == source}
                    new = [each for each in late.get(name, ()) if each[0][0] == source]
                    rows[source] = self._check_side(join, source, views[internal], own, new, tables)
            if name in views:
                view = views[name]
                expected = Pairs(joined(join.kind, rows[join.left], rows[join.right], join.within))
                found = self._datasets[view.path].rows(view.path, view.version)
                if found != expected:
                    text = f"its rows are {found}, those in time give {expected}"
                    raise PromiseBroken("G1", f"{name} at version {view.version}: {text}")

    def _check_side(
        self,
        join: JoinOfSources,
        source: str,
        view: ViewVersion,
        ingested: RowsByFile,
        late: list[LateRow],
        tables: FileTables,
    ) -> list[SideRow]:
        """Returns the rows in time of a side."""
        side = self._sides.setdefault(view.path, _Side())
        [other] = join.sources - {source}
        before, side.watermarks = side.watermarks, view.noted.get("watermarks", {})
        for file, row in late:
            if source not in before or event_time_us(file, row) >= before[source]:
                raise untimely(view, f"row {row} of {file[1]} is late, and the watermarks are {before}")
            self._files.check(view.name, file, before[source], tables)
        side.late += late
        if len(side.late) != view.noted.get("late", 0):
            raise untimely(view, f"it counts {view.noted.get('late')} late rows, and {side.late} are in quarantine")
        if any(side.watermarks.get(each, us - 1) < us for each, us in before.items()):
            raise untimely(view, f"its watermarks were {before}, and are {side.watermarks}")
        in_time = {(file, row) for file, rows in ingested.items() for row in rows}.difference(side.late)
        spans = self._datasets[view.path].rows(view.path, view.version)
        stored = [(span.file, row) for span in spans for row in range(span.start, span.end)]
        if len(stored) != len({*stored}) or not in_time.issuperset(stored):
            raise PromiseBroken("G1", f"{view.name} at version {view.version} has {stored}, in time are {in_time}")
        for file, row in in_time.difference(stored):
            if event_time_us(file, row) >= side.watermarks.get(other, 0) + _furthest_us(join):
                raise untimely(view, f"row {row} of {file[1]} has left, and the watermarks are {side.watermarks}")
        # It has followed these watermarks.  Rows that come below a bound leave with the next one.
        if side.watermarks != before and join.sources <= before.keys() and before[other] != side.earlier_us:
            bound = min(before.values()) - 2 * _furthest_us(join)
            if long_ago := [(file, row) for file, row in stored if event_time_us(file, row) < bound]:
                raise untimely(view, f"no partner of {long_ago} comes since the watermarks {before}, and they stay")
        if side.watermarks != before:
            side.earlier_us = before.get(other)
        return [row for file, number in sorted(in_time) for row in side_rows(file, (number,))]


def _furthest_us(join: JoinOfSources) -> int:
    """The furthest that partners are apart."""
    assert join.within is not None, "its rows expire"
    return max(map(abs, join.within))
