"""All backfills: views declared after their sources were read.  Each gets its history in pieces, beside new rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import NamedTuple

import structlog

from actors.protocol.blocks import Block
from actors.sources.pipeline_definition import DEFAULT_BACKFILL_WEIGHT
from spark_bridge.changes.view import Computed, Guard, View, no_guard
from spark_bridge.datasets.index_audit import IndexAudit
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.ingest.history import HistoryPiece, NotResumableError, OpenHistory
from spark_bridge.maintenance.backfill import Beginning, HistoryBackfill, PieceSeconds
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.clock import Clock
from state.tables.records import ViewVersion
from state.tables.stored_rows import declared_name, next_name

_PIECE, _PIECE_ALONE = PieceSeconds(1.0, 0.2), PieceSeconds(8.0, 8.0)
"""The longest durations of a piece, while epochs have rows and while they have none.

A large piece touches a group once; several small pieces touch it several times."""
_ALONE_AFTER_S = 10.0
_log = structlog.get_logger(actor="materializer")


class _Timed(NamedTuple):
    """A piece that is computed, and the seconds that it took."""

    computed: Computed
    seconds: float


class _Begun(NamedTuple):
    """A piece that is computed beside the epochs."""

    backfill: HistoryBackfill
    piece: HistoryPiece
    computed: Future[_Timed]


def _at_once(_: str, work: Callable[[], _Timed]) -> _Timed:
    return work()


class Backfills:
    """Creates the backfills, gives them rows and history, and hands over the complete ones.

    Readers do not see a backfill before it is complete.

    Args:
        make_view: makes the maintenance of a view.
        open_history: see `OpenHistory`.
        take_rows: hands a piece over to Spark: (epoch, piece) -> its rows.
        clock: measures the duration of a piece.
        threads: computes pieces in the background, one at a time.
        weight: the share of the time that pieces take at most while epochs have rows, above 0 and up to 1.
        run: runs the computation of a piece and translates its errors: (view, work) -> its result.
        guard: around the work on a view in the thread of the caller.
    """

    def __init__(
        self,
        make_view: Callable[[ViewPlan], View],
        open_history: OpenHistory,
        take_rows: Callable[[int, HistoryPiece], EpochRows],
        clock: Clock,
        threads: Executor,
        weight: float = DEFAULT_BACKFILL_WEIGHT,
        run: Callable[[str, Callable[[], _Timed]], _Timed] = _at_once,
        guard: Guard = no_guard,
    ) -> None:
        self._weight, self._run, self._guard = weight, run, guard
        self._threads = threads
        self._begun: _Begun | None = None
        self._rests_until_s = float("-inf")
        self._make_view = make_view
        self._open_history, self._take_rows, self._clock = open_history, take_rows, clock
        self._backfills: dict[str, HistoryBackfill] = {}
        self._restarted: set[str] = set()
        self._rows_came_s = float("-inf")

    @property
    def plans(self) -> list[ViewPlan]:
        return [each.plan for each in self._backfills.values()]

    @property
    def not_created(self) -> list[str]:
        """The recorded names of the backfills that have no dataset yet."""
        return [next_name(name) for name, each in self._backfills.items() if each.version is None]

    @property
    def has_news(self) -> bool:
        """Whether the next epoch creates or shows one of them."""
        return any(each.version is None or each.is_complete for each in self._backfills.values())

    @property
    def fractions(self) -> dict[str, float]:
        """Name → the share of its history that each has, from 0 to 1."""
        return {name: each.fraction for name, each in self._backfills.items() if each.needs_rows}

    @property
    def blocked(self) -> dict[str, tuple[str, ...]]:
        """Name → the missing files of each backfill that cannot become complete."""
        return {name: each.missing for name, each in self._backfills.items() if each.is_blocked}

    def declare(
        self,
        definitions: Mapping[str, ViewDefinition],
        plans: Mapping[str, ViewPlan],
        versions: Mapping[str, ViewVersion],
        beginnings: Mapping[str, Beginning],
    ) -> None:
        """Replaces the set of backfills.

        Args:
            definitions: name → definition, of all declared views.
            plans: name → plan, of each backfill.
            versions: the versions of backfills that the last epoch records; a backfill continues from there.
            beginnings: name → stored rows with which a backfill begins.

        Raises:
            ViewFailedError: the maintenance of a view cannot be made.
        """
        for name in [name for name in self._backfills if name not in plans]:
            self.drop(name)
        for name, plan in plans.items():
            begun = self._backfills.get(name)
            if begun is not None and begun.plan is plan:
                continue
            recorded = versions.get(next_name(name))
            if begun is not None:
                continues = begun.version is not None and begun.plan.identity == plan.identity
                recorded = begun.recorded() if continues else None
                begun.close()
            with self._guard(name):
                definition = definitions[declared_name(name)]
                beginning = beginnings.get(name) if recorded is None else None
                self._backfills[name] = HistoryBackfill(definition, plan, self._make_view(plan), recorded, beginning)

    def drop(self, name: str) -> None:
        """Forgets a backfill; its dataset is left to the vacuum."""
        backfill = self._backfills.pop(name, None)
        if backfill is not None:
            backfill.close()

    def work(
        self, epoch: int, rows: EpochRows, blocks: Mapping[str, Sequence[Block]]
    ) -> dict[str, Callable[[], ViewVersion]]:
        """Recorded name → the work on each backfill that the epoch creates or changes.

        A backfill restarts when the new rows lack a column that it uses: they become a part of its history.

        Args:
            blocks: source → the blocks of these rows.
        """
        if rows.frames:
            self._rows_came_s = self._clock.monotonic()
        work: dict[str, Callable[[], ViewVersion]] = {}
        for name, each in list(self._backfills.items()):
            if lacks_columns(each.plan, blocks):
                self._restart(name, each)
            elif each.version is None or any(source in rows.frames for source in each.plan.sources):
                work[next_name(name)] = partial(self._apply, each, epoch, rows)
        return work

    def restart(self, sources: Collection[str]) -> set[str]:
        """Restarts the backfills over these sources, whose ingested rows have changed.

        Returns:
            Their recorded names.
        """
        changed = [name for name, each in self._backfills.items() if not {*sources}.isdisjoint(each.plan.sources)]
        for name in changed:
            self._restart(name, self._backfills[name])
        return {next_name(name) for name in changed}

    def recorded(self) -> dict[str, ViewVersion]:
        """Recorded name → version of each backfill that has a dataset, for the next epoch."""
        return {next_name(name): each.recorded() for name, each in self._backfills.items() if each.version is not None}

    def take_restarted(self) -> set[str]:
        """The recorded names of the backfills restarted since the last call: the next epoch drops them."""
        restarted, self._restarted = self._restarted, set()
        return restarted

    def take_complete(self) -> list[HistoryBackfill]:
        """Removes the complete backfills and returns them, closed."""
        names = [name for name, each in self._backfills.items() if each.is_complete]
        complete = [self._backfills.pop(name) for name in names]
        for each in complete:
            each.close()
        return complete

    def next_due(self) -> HistoryBackfill | None:
        """A backfill that can take a piece of history, or has computed one; they take turns."""
        if self._begun is not None:
            if self._backfills.get(self._begun.backfill.plan.name) is self._begun.backfill:
                return self._begun.backfill if self._begun.computed.done() else None
            self._begun = None  # it was dropped meanwhile, or restarted
        if not self._is_alone and self._clock.monotonic() < self._rests_until_s:
            return None
        due = next((name for name, each in self._backfills.items() if each.is_due), None)
        if due is None:
            return None
        backfill = self._backfills.pop(due)
        self._backfills[due] = backfill
        return backfill

    def take_piece(self, backfill: HistoryBackfill) -> bool:
        """Adds a piece of history to a view, or begins to compute one, whose errors come when it is added.

        Returns:
            Whether the next epoch has to record it.
        """
        started, begun = self._clock.monotonic(), self._begun
        if begun is not None:
            self._begun = None
            computed, beside_s = begun.computed.result()
            self._add(backfill, begun.piece, computed, beside_s, started)
            return True
        try:
            piece = backfill.next_piece(self._open_history, _PIECE_ALONE if self._is_alone else _PIECE)
        except NotResumableError as error:
            _log.info("a view is rebuilt from its first row", view=backfill.plan.name, reason=str(error))
            self._restart(backfill.plan.name, backfill)
            return True
        if piece is None:
            if backfill.is_blocked:
                _log.warning(
                    "a view is not shown: files that it needs are deleted or have changed",
                    epoch=backfill.pinned_epoch, view=backfill.plan.name, files=len(backfill.missing),
                    first_file=backfill.missing[0],
                    next_step='bring them back and start again, or declare it with on_missing="allow"',
                )  # fmt: skip
            return backfill.is_complete
        rows = self._take_rows(backfill.pinned_epoch, piece)
        are_few = any(each is not None and each.few is not None for each in rows.frames.values())
        if backfill.is_beside and not are_few:
            work = partial(self._compute, backfill, rows)
            self._begun = _Begun(backfill, piece, self._threads.submit(self._run, backfill.plan.name, work))
            return False
        self._add(backfill, piece, Computed(partial(backfill.take, rows)), 0.0, started)
        return True

    def _compute(self, backfill: HistoryBackfill, rows: EpochRows) -> _Timed:
        started = self._clock.monotonic()
        computed = backfill.computed(rows)
        return _Timed(computed, self._clock.monotonic() - started)

    def _add(
        self, backfill: HistoryBackfill, piece: HistoryPiece, rows: Computed, beside_s: float, started: float
    ) -> None:
        version, ended = rows.merge(), self._clock.monotonic()
        seconds = PieceSeconds(beside_s, ended - started)
        backfill.on_piece(piece, version, seconds, rows.groups)
        if backfill.fraction < 1:
            self._rests_until_s = ended + sum(seconds) * (1 / self._weight - 1)

    @property
    def _is_alone(self) -> bool:
        """Whether no rows have come for a while."""
        return self._clock.monotonic() >= self._rows_came_s + _ALONE_AFTER_S

    def tidy(self, audit: IndexAudit | None = None) -> bool:
        """See `View.tidy`."""
        return any(each.view.tidy(audit) for each in self._backfills.values() if each.version is not None)

    def close(self) -> None:
        """Stops reading histories; no piece is computed."""
        for each in self._backfills.values():
            each.close()

    def _restart(self, name: str, begun: HistoryBackfill) -> None:
        begun.close()
        self._backfills[name] = HistoryBackfill(begun.definition, begun.plan, self._make_view(begun.plan))
        self._restarted.add(next_name(name))

    @staticmethod
    def _apply(backfill: HistoryBackfill, epoch: int, rows: EpochRows) -> ViewVersion:
        if backfill.version is None:
            backfill.on_created(epoch, backfill.create(epoch, rows))
        else:
            backfill.on_version(backfill.view.apply(rows))
        return backfill.recorded()


def lacks_columns(plan: ViewPlan, blocks: Mapping[str, Collection[Block]]) -> bool:
    """Whether a block was read without a column that a view uses."""
    return any(
        not plan.columns[source] <= {*block.columns}
        for source in plan.sources
        for block in blocks.get(source, ())
        if block.columns
    )
