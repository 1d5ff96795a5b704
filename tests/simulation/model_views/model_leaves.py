"""The computed leaves of a materializer: joins, and filters by the time, with the rows that they are computed of.

What changes in an epoch, the look-ups of partners, the rows in memory, and the rows that the time reaches are those of
production; the condition of a join, a boundary in time, and the rows of a join without changes, are modelled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from actors.files import PathKey
from spark_bridge.changes.change_set import ChangeLog, ChangeSet, Parent
from spark_bridge.changes.memory_tier import KeptSize, MemoryTier
from spark_bridge.changes.rows_before import RowsBefore
from spark_bridge.changes.sides import Sides
from spark_bridge.ingest.epoch_rows import EpochRows, LateRows
from spark_bridge.ingest.followed_watermarks import FollowedWatermarks
from spark_bridge.operators.join.join_plan import Between, JoinPlan
from spark_bridge.operators.join.joined_changes import changed_rows
from spark_bridge.operators.temporal_filter.temporal_filter_plan import TemporalFilterPlan
from spark_bridge.operators.temporal_filter.temporal_filter_rows import TemporalFilterRows as TimedLeaves
from spark_bridge.plans.view_plan import ViewPlan
from state.tables.fingerprint import path_fingerprint
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD, WEIGHT_FIELD, base_name
from tests.simulation.model_views.model_closing import places_of
from tests.simulation.model_views.model_datasets import CorrectedSpans, Fails, computed
from tests.simulation.model_views.model_plans import (
    AT,
    BELOW,
    EXISTS,
    EXPIRING_SIDE,
    LEFT_AT,
    LEFT_KEY,
    LEFT_TIME,
    RIGHT_AT,
    RIGHT_KEY,
    RIGHT_TIME,
    SIDE,
    TIME,
)
from tests.simulation.model_views.model_rows import ModelRows
from tests.simulation.model_views.model_view import (
    ModelView,
    Pair,
    Pairs,
    RowsBelow,
    SideRow,
    follows_watermarks,
    in_order,
    joined,
    last_of,
    side_rows,
    timed_rows,
)
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.file_rows import Span, event_time_us
from tests.simulation.world.simulated_root import SimulatedRoot

_KEYS_A_HASH = 2
"""Different keys with one hash: the condition of the join tells them apart."""
_MANY = 1_000_000
_NUMBER = "__sw_number"
"""The position of a row among those of an epoch; a late row is shown without it."""


class _Condition:
    """The condition of joins, in place of Spark's expression; see `joined_changes.Conditions`.

    Args:
        between: the bounds of the times of partners, if there are some.
    """

    def __init__(self, between: Between | None = None) -> None:
        self._between = between

    def of(self, leaf: JoinPlan) -> _Condition:
        return _Condition(leaf.between)

    def table(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        return pa.table([self.of_columns(*rows.columns)], schema=schema)

    def of_columns(self, left_key: Any, right_key: Any, *times: Any) -> Any:
        are_equal = pc.equal(left_key, right_key)
        if self._between is None:
            return are_equal
        left, right = (pc.cast(each, pa.int64()) for each in times)
        apart, bounds = pc.subtract(right, left), self._between
        are_near = pc.and_(pc.greater_equal(apart, bounds.least_us), pc.less_equal(apart, bounds.most_us))
        return pc.and_(are_equal, are_near)


class ModelLeaves:
    """Makes the views over such leaves, and those with the rows that these are computed of.

    Args:
        root: by the materializer's way.
        fails: whether a view's own expression fails over some rows.
        log: gives the changes of a side, of which this is the version.
        thread: reads the rows that are kept in memory.
        memory_bytes: see `MemoryTier`.
        are_many: whether a computation over all rows is done beside the epochs.
        models: name → model of each view.
    """

    def __init__(
        self,
        root: SimulatedRoot,
        fails: Fails,
        log: Callable[[ViewVersion], ChangeLog],
        thread: Executor,
        memory_bytes: int,
        are_many: Callable[[], bool],
        models: Mapping[str, ModelView],
    ) -> None:
        self._root, self._fails, self._are_many, self._models = root, fails, are_many, models
        self._tier = MemoryTier(memory_bytes, thread)
        self._before = RowsBefore(self._opened, log, self._tier)
        self._timed = TimedLeaves()

    def side(self, model: ModelView, plan: ViewPlan) -> ModelSide:
        """The maintenance of an internal view, neither created nor open."""
        if plan.expiry is not None:
            return ModelExpiringSide(model, plan, self._root, self._fails)
        return ModelSide(model, plan, self._root, self._fails)

    def view(self, model: ModelView, plan: ViewPlan) -> ModelComputedView:
        """The maintenance of a view over such a leaf, neither created nor open."""
        return ModelComputedView(model, plan, self._root)

    @property
    def in_memory(self) -> dict[str, KeptSize]:
        """See `MemoryTier`."""
        return self._tier.sizes

    def begin_epoch(self) -> None:
        """See `MemoryTier`."""
        self._tier.begin_epoch()

    def rows(self, parents: Mapping[str, Parent], begun_us: int, time_us: int) -> ComputedParents:
        """The rows of leaves in an epoch, see `ComputedParents`."""
        return ComputedParents(
            self._root, parents, self._before, self._opened, self._timed, self._are_many, begun_us, time_us
        )

    def _opened(self, version: ViewVersion) -> Any:
        model = self._models[base_name(version.name)]
        return _Snapshot(self._root, model, version.path, version.version, has_files=True)


@dataclass(frozen=True)
class _Scan:
    """The rows of a snapshot, as a `lance.dataset.LanceScanner` gives them."""

    rows: pa.Table

    def to_table(self) -> pa.Table:
        return self.rows

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return iter(self.rows.to_batches())


class _Snapshot:
    """The rows of an internal view at a version, as a `lance.LanceDataset` gives them."""

    def __init__(self, root: SimulatedRoot, model: ModelView, path: str, version: int, *, has_files: bool) -> None:
        self._root, self._model, self._path, self._version, self._has_files = root, model, path, version, has_files
        self._read: pa.Table | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._rows.schema

    def count_rows(self) -> int:
        return int(self._rows.num_rows)

    def to_table(
        self,
        columns: list[str],
        filter: pc.Expression | None = None,
        limit: int | None = None,
        with_row_address: bool = False,
    ) -> pa.Table:
        rows = self._rows if filter is None else self._rows.filter(filter)
        return rows.select(columns)[:limit]

    def scanner(self, columns: list[str], filter: pc.Expression | None) -> _Scan:
        return _Scan(self.to_table(columns, filter))

    @property
    def _rows(self) -> pa.Table:
        if self._read is None:
            self._read = _table(self._model, self._root.view_rows(self._path, self._version), has_files=self._has_files)
        return self._read


class ModelSide(ModelRows):
    """The rows of a side of a join, or below a filter; see `spark_bridge.maintenance.append_view.AppendView`.

    Args:
        model: the internal view.
        plan: of the internal view.
        root: by the materializer's way.
        fails: whether a view's own expression fails over some rows.
    """

    def __init__(self, model: ModelView, plan: ViewPlan, root: SimulatedRoot, fails: Fails) -> None:
        super().__init__(model, root)
        self.changes, self._fails = ChangeLog(self._snapshot), fails
        self._has_files = any(FILE_FIELD.name in columns for columns in plan.columns.values())

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        return self._create(epoch, tuple(self._computed(rows.frames)))

    def apply(self, rows: EpochRows) -> ViewVersion:
        return self._follow(self._computed(rows.frames), frozenset())

    def correct(self, rows: Any) -> ViewVersion:
        """Removes the old rows of the corrected files, and adds their new rows.

        Args:
            rows: see `CorrectedSpans`.
        """
        corrected: CorrectedSpans = rows
        files = frozenset(file for file in corrected.files if file[0] in self._model.sources)
        return self._follow(self._computed(corrected.new(self._model.sources)), files)

    def tidy(self, audit: object = None) -> bool:
        """Makes a version with the same rows, which no epoch records."""
        self._commit(self._rows)
        return True

    def _computed(self, frames: Any) -> list[Span]:
        return computed(self._model, self._fails, {each: frames.get(each, ()) for each in self._model.sources})

    def _follow(self, spans: list[Span], files: frozenset[PathKey]) -> ViewVersion:
        before, begun = self._snapshot(), self._last
        kept = [span for span in self._rows if span.file[:2] not in files]
        version = self._commit((*kept, *spans))
        if self.changes.is_kept:
            keys = pa.array([path_fingerprint(*file) for file in sorted(files)], FILE_FIELD.type)
            self.changes.note(
                ChangeSet(keys, None, _table(self._model, spans, has_files=self._has_files), before, begun)
            )
        return version

    def _snapshot(self) -> Any:
        return _Snapshot(self._root, self._model, self._path, self._last, has_files=self._has_files)


class ModelExpiringSide(ModelSide):
    """The rows of a side that expire; see `spark_bridge.maintenance.expiring_rows.ExpiringRows`.

    Production tells which rows are late, and when rows leave.  Arguments as for `ModelSide`.
    """

    def __init__(self, model: ModelView, plan: ViewPlan, root: SimulatedRoot, fails: Fails) -> None:
        super().__init__(model, plan, root, fails)
        self._followed = FollowedWatermarks(plan)

    def open(self, version: ViewVersion) -> None:
        super().open(version)
        self._followed.open(version)

    def apply(self, rows: EpochRows) -> ViewVersion:
        if not self._followed.are_known and not rows.watermarks and not self.changes.is_kept:
            return super().apply(rows)  # a piece of a backfill
        found = [Span(each.file, row, row + 1) for each in self._computed(rows.frames) for row in range(*each[1:])]
        if found:
            places = places_of(found).append_column(_NUMBER, pa.array(range(len(found))))
            in_time = [found[number] for number in self._followed.in_time(places).column(_NUMBER).to_pylist()]
            if in_time:
                self._follow(in_time, frozenset())
        bound = self._followed.next_bound()
        if bound is not None:
            rest = [Span(each.file, row, row + 1) for each in self._rows for row in range(*each[1:])]
            self._commit(tuple(each for each in rest if event_time_us(each.file, each.start) >= bound))
            self.changes.expire(TIME, bound)
        self._followed.advance(rows.watermarks)
        return self._version()

    def take_late(self) -> list[LateRows]:
        return self._followed.take_late()

    def _version(self) -> ViewVersion:
        return replace(super()._version(), progress=self._followed.progress)


class ComputedParents:
    """The rows of leaves in an epoch, see `spark_bridge.maintenance.derived_views.RowsOfParents`.

    Args:
        root: by the materializer's way.
        by_name: name → parent, of all views that are read.
        before: finds their rows before the changes.
        opened: opens their rows at a version.
        timed: makes the rows of filters by the time.
        are_many: see `ModelLeaves`.
        begun_us: the time at which the rows of a view were right before the changes, in microseconds since 1970.
        time_us: the time of the epoch.
    """

    def __init__(
        self,
        root: SimulatedRoot,
        by_name: Mapping[str, Parent],
        before: RowsBefore,
        opened: Callable[[ViewVersion], Any],
        timed: TimedLeaves,
        are_many: Callable[[], bool],
        begun_us: int,
        time_us: int,
    ) -> None:
        self._root, self.by_name, self._before, self._opened = root, by_name, before, opened
        self._timed, self._are_many = timed, are_many
        self._begun_us, self._time_us = begun_us, time_us
        self._sides = Sides(before)

    def gone(self, name: str) -> pa.Table:
        """The rows of a parent that leave."""
        return self._before.gone(self.by_name[name])

    def dataset(self, name: str) -> Any:
        """The stored rows of a parent."""
        return self._opened(self.by_name[name].version)

    def all(self, plan: ViewPlan) -> EpochRows:
        [(name, leaf)] = plan.computed.items()
        if isinstance(leaf, TemporalFilterPlan):
            rows = self.dataset(leaf.rows).to_table([AT], self._timed.kept(leaf, self._time_us))
            pairs = in_order(Pair(at, None) for at in rows.column(AT).to_pylist())
        else:
            assert isinstance(leaf, JoinPlan), "other leaves are not simulated"
            bounds = leaf.between
            within = None if bounds is None else (bounds.least_us, bounds.most_us)
            pairs = joined(leaf.kind, self._rows(leaf.left), self._rows(leaf.right), within)
        frames: Any = {name: pairs}
        return EpochRows(frames, 0, 1, 0)

    def count(self, plan: ViewPlan) -> int:
        return _MANY if self._are_many() else sum(self.dataset(name).count_rows() for name in plan.parents)

    def are_due(self, plan: ViewPlan) -> bool:
        """Whether the time reaches a row of a filter by it."""
        [leaf] = plan.computed.values()
        assert isinstance(leaf, TemporalFilterPlan), "it is one"
        return self._timed.are_due(self, leaf, self._begun_us, self._time_us)

    def changed(self, plan: ViewPlan) -> list[tuple[Pair, int]]:
        """The rows that leave and those that come, each with its weight, -1 or 1."""
        [leaf] = plan.computed.values()
        if isinstance(leaf, TemporalFilterPlan):
            rows = self._timed.changed(self, leaf, [AT], self._begun_us, self._time_us)
            pairs = [Pair(at, None) for at in rows.column(AT).to_pylist()]
        else:
            assert isinstance(leaf, JoinPlan), "other leaves are not simulated"
            rows = self._joined(leaf)
            pairs = _pairs_of(leaf, rows)
        return [*zip(pairs, rows.column(WEIGHT_FIELD.name).to_pylist(), strict=True)]

    def _joined(self, join: JoinPlan) -> pa.Table:
        left, right = (self._sides.of(self.by_name[name]) for name in join.sides)
        rows = changed_rows(join, join.names, left, right, _Condition())
        if join.kind != "inner":
            return rows
        names = [LEFT_KEY, RIGHT_KEY, *([] if join.between is None else [LEFT_TIME, RIGHT_TIME])]
        return rows.filter(_Condition(join.between).of_columns(*map(rows.column, names)))

    def _rows(self, name: str) -> list[SideRow]:
        version = self.by_name[name].version
        return _rows_of(self._root.view_rows(version.path, version.version))


def _pairs_of(join: JoinPlan, rows: pa.Table) -> list[Pair]:
    ours, nothing = rows.column(LEFT_AT).to_pylist(), [None] * rows.num_rows
    other = EXISTS if join.kind == "existence" else RIGHT_AT
    theirs = rows.column(other).to_pylist() if other in join.names else nothing
    return [Pair(row, str(partner) if partner is not None else None) for row, partner in zip(ours, theirs, strict=True)]


class ModelComputedView(ModelRows):
    """The dataset of a view over a computed leaf, see `spark_bridge.maintenance.weighted_rows.WeightedRows`.

    Args:
        model: the view.
        plan: of the view.
        root: by the materializer's way.
    """

    def __init__(self, model: ModelView, plan: ViewPlan, root: SimulatedRoot) -> None:
        super().__init__(model, root)
        self.changes, self._plan = ChangeLog(), plan

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        return self._create(epoch, Pairs(in_order(_pairs_in(rows))))

    def apply(self, rows: EpochRows) -> ViewVersion:
        return self._commit(Pairs(in_order((*self._rows.rows, *_pairs_in(rows)))))

    def correct(self, rows: Any) -> ViewVersion:
        """Takes out the rows that leave, and adds those that come.

        Args:
            rows: see `ComputedParents`.

        Raises:
            PromiseBroken: a row that leaves is not there.
        """
        stored, changed = Counter[Pair](self._rows.rows), rows.computed.changed(self._plan)
        for weight in (-1, 1):
            for pair, each in changed:
                if each == weight:
                    stored[pair] += weight
        # Of rows that leave and come again the order does not matter: all that leave have left by now.
        missing = [pair for pair, count in stored.items() if count < 0]
        if missing:
            raise PromiseBroken("G1", f"{self._model.name} loses the rows {missing}, and has {self._rows.rows}")
        return self._commit(Pairs(in_order(stored.elements())))


def _pairs_in(rows: EpochRows) -> list[Pair]:
    frames: Any = rows.frames
    return [pair for pairs in frames.values() for pair in pairs]


def _rows_of(spans: Iterable[Span]) -> list[SideRow]:
    return [row for span in spans for row in side_rows(span.file, tuple(range(span.start, span.end)))]


def _table(model: ModelView, spans: Iterable[Span], *, has_files: bool) -> pa.Table:
    """Rows of an internal view; the first column is the file, by which rows are deleted."""
    spans = [*spans]
    table = _rows_below(model, spans) if isinstance(model, RowsBelow) else _side(model, spans)
    if not has_files:
        return table
    files = [path_fingerprint(*span.file[:2]) for span in spans for _ in range(span.start, span.end)]
    return table.add_column(0, FILE_FIELD, pa.array(files, FILE_FIELD.type))


def _rows_below(model: RowsBelow, spans: Iterable[Span]) -> pa.Table:
    rows = [row for span in spans for row in timed_rows(span.file, tuple(range(span.start, span.end)))]
    columns = [[row.at for row in rows], [row.first_us for row in rows], [last_of(model.filter, row) for row in rows]]
    return pa.table([pa.array(each, field.type) for each, field in zip(columns, BELOW, strict=True)], schema=BELOW)


def _side(model: ModelView, spans: Iterable[Span]) -> pa.Table:
    rows = _rows_of(spans)
    hashes = [None if row.key is None else row.key // _KEYS_A_HASH for row in rows]
    columns = [pa.array([row.at for row in rows], pa.string()), pa.array([row.key for row in rows], pa.int64())]
    table = pa.table([*columns, pa.array(hashes, pa.int64())], schema=SIDE)
    if not follows_watermarks(model):
        return table
    return table.add_column(2, EXPIRING_SIDE.field(TIME), pa.array([row.time_us for row in rows], pa.timestamp("us")))
