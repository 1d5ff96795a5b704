"""The joins of a materializer: their sides and their rows, on the simulated root.

What changes in an epoch, the look-ups of partners, and the rows in memory are those of production; the condition of a
join, and the rows of a view without changes, are modelled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from actors.files import PathKey
from slackwater.testing.simulation.hosting.model_datasets import CorrectedSpans, Fails, computed
from slackwater.testing.simulation.hosting.model_plans import EXISTS, LEFT_AT, LEFT_KEY, RIGHT_AT, RIGHT_KEY, SIDE
from slackwater.testing.simulation.hosting.model_rows import ModelRows
from slackwater.testing.simulation.promise_broken import PromiseBroken
from slackwater.testing.simulation.promises.model_view import (
    ModelView,
    Pair,
    Pairs,
    SideRow,
    in_order,
    joined,
    side_rows,
)
from slackwater.testing.simulation.world.file_rows import Span
from slackwater.testing.simulation.world.simulated_root import SimulatedRoot
from spark_bridge.analysis.computed_leaves import JoinPlan
from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.changes.change_set import ChangeLog, ChangeSet, Parent
from spark_bridge.changes.joined_changes import changed_rows
from spark_bridge.changes.memory_tier import KeptSize, MemoryTier
from spark_bridge.changes.rows_before import RowsBefore
from spark_bridge.changes.sides import Sides
from spark_bridge.hand_over.epoch_rows import EpochRows
from state.tables.fingerprint import path_fingerprint
from state.tables.records import ViewVersion
from state.tables.stored_rows import FILE_FIELD, WEIGHT_FIELD

_KEYS_A_HASH = 2
"""Different keys with one hash: the condition of the join tells them apart."""
_MANY = 1_000_000


class _EqualKeys:
    """The condition of every join, in place of Spark's expression; see `joined_changes.Conditions`."""

    def of(self, leaf: JoinPlan) -> _EqualKeys:
        return self

    def table(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        return pa.table([pc.equal(*rows.columns)], schema=schema)


class ModelJoins:
    """Makes the views that joins need.

    Args:
        root: by the materializer's way.
        fails: whether a view's own expression fails over some rows.
        log: gives the changes of a side, of which this is the version.
        thread: reads the rows that are kept in memory.
        memory_bytes: see `MemoryTier`.
        are_many: whether a computation over all rows is done beside the epochs.
    """

    def __init__(
        self,
        root: SimulatedRoot,
        fails: Fails,
        log: Callable[[ViewVersion], ChangeLog],
        thread: Executor,
        memory_bytes: int,
        are_many: Callable[[], bool],
    ) -> None:
        self._root, self._fails, self._are_many = root, fails, are_many
        self._tier = MemoryTier(memory_bytes, thread)
        self._before = RowsBefore(self._opened, log, self._tier)

    def side(self, model: ModelView, plan: ViewPlan) -> ModelSide:
        """The maintenance of a hidden view, neither created nor open."""
        return ModelSide(model, plan, self._root, self._fails)

    def view(self, model: ModelView, plan: ViewPlan) -> ModelJoinedView:
        """The maintenance of a view over a join, neither created nor open."""
        return ModelJoinedView(model, plan, self._root)

    @property
    def in_memory(self) -> dict[str, KeptSize]:
        """See `MemoryTier`."""
        return self._tier.sizes

    def begin_epoch(self) -> None:
        """See `MemoryTier`."""
        self._tier.begin_epoch()

    def rows(self, parents: Mapping[str, Parent]) -> JoinedParents:
        """The rows of joins in an epoch."""
        return JoinedParents(self._root, parents, Sides(self._before), self._are_many)

    def _opened(self, version: ViewVersion) -> Any:
        return _Snapshot(self._root, version.path, version.version, has_files=True)


class _Snapshot:
    """The rows of a side at a version, as a `lance.LanceDataset` gives them."""

    def __init__(self, root: SimulatedRoot, path: str, version: int, *, has_files: bool) -> None:
        self._root, self._path, self._version, self._has_files = root, path, version, has_files
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

    @property
    def _rows(self) -> pa.Table:
        if self._read is None:
            self._read = _table(self._root.view_rows(self._path, self._version), has_files=self._has_files)
        return self._read


class ModelSide(ModelRows):
    """The dataset with the rows of a side of a join; see `spark_bridge.views.append_view.AppendView`.

    Args:
        model: the hidden view.
        plan: of the hidden view.
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

    def tidy(self) -> bool:
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
            self.changes.note(ChangeSet(keys, None, _table(spans, has_files=self._has_files), before, begun))
        return version

    def _snapshot(self) -> Any:
        return _Snapshot(self._root, self._path, self._last, has_files=self._has_files)


class JoinedParents:
    """The rows of joins in an epoch, see `spark_bridge.views.derived_views.RowsOfParents`.

    Args:
        root: by the materializer's way.
        parents: name → parent, of all views that are read.
        sides: of the joins.
        are_many: see `ModelJoins`.
    """

    def __init__(
        self, root: SimulatedRoot, parents: Mapping[str, Parent], sides: Sides, are_many: Callable[[], bool]
    ) -> None:
        self._root, self._parents, self._sides, self._are_many = root, parents, sides, are_many

    def all(self, plan: ViewPlan) -> EpochRows:
        [(name, join)] = plan.computed.items()
        assert isinstance(join, JoinPlan), "it reads a join"
        frames: Any = {name: joined(join.kind, self._rows(join.left), self._rows(join.right))}
        return EpochRows(frames, 0, 1, 0)

    def count(self, plan: ViewPlan) -> int:
        return _MANY if self._are_many() else sum(len(self._rows(name)) for name in plan.parents)

    def changed(self, plan: ViewPlan) -> list[tuple[Pair, int]]:
        """The rows that leave and those that come, each with its weight, -1 or 1."""
        [join] = plan.computed.values()
        assert isinstance(join, JoinPlan), "it reads a join"
        left, right = (self._sides.of(self._parents[name]) for name in join.sides)
        rows = changed_rows(join, join.names, left, right, _EqualKeys())
        if join.kind == "inner":
            rows = rows.filter(pc.equal(rows.column(LEFT_KEY), rows.column(RIGHT_KEY)))
        ours, nothing = rows.column(LEFT_AT).to_pylist(), [None] * rows.num_rows
        other = EXISTS if join.kind == "existence" else RIGHT_AT
        theirs = rows.column(other).to_pylist() if other in join.names else nothing
        pairs = [
            Pair(row, str(partner) if partner is not None else None) for row, partner in zip(ours, theirs, strict=True)
        ]
        return [*zip(pairs, rows.column(WEIGHT_FIELD.name).to_pylist(), strict=True)]

    def _rows(self, name: str) -> list[SideRow]:
        version = self._parents[name].version
        return _rows_of(self._root.view_rows(version.path, version.version))


class ModelJoinedView(ModelRows):
    """The dataset of a view over a join, see `spark_bridge.views.weighted_rows.WeightedRows`.

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
            rows: see `JoinedParents`.

        Raises:
            PromiseBroken: a row that leaves is not there.
        """
        stored, changed = Counter[Pair](self._rows.rows), rows.joined.changed(self._plan)
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


def _table(spans: Iterable[Span], *, has_files: bool) -> pa.Table:
    """Rows of a side; the file, by which rows leave, comes first."""
    spans = [*spans]
    rows = _rows_of(spans)
    hashes = [None if row.key is None else row.key // _KEYS_A_HASH for row in rows]
    columns = [pa.array([row.at for row in rows], pa.string()), pa.array([row.key for row in rows], pa.int64())]
    table = pa.table([*columns, pa.array(hashes, pa.int64())], schema=SIDE)
    if not has_files:
        return table
    files = [path_fingerprint(*span.file[:2]) for span in spans for _ in range(span.start, span.end)]
    return table.add_column(0, FILE_FIELD, pa.array(files, FILE_FIELD.type))
