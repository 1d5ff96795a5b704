"""The views that were declared late: each gets its history in pieces, beside the new rows, until it is complete."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

import structlog

from actors.protocol.blocks import Block
from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.hand_over.epoch_rows import EpochRows
from spark_bridge.hand_over.history import HistoryPiece, OpenHistory
from spark_bridge.views.backfill import Backfill
from spark_bridge.views.view import View
from state.clock import Clock
from state.tables.records import ViewVersion
from state.tables.stored_rows import next_name

_PIECE_S, _PIECE_ALONE_S = 0.2, 8.0
"""An epoch waits for a piece that has begun: where epochs come with rows, no longer than it takes to compute one.

A large piece touches each group once that several small ones touch again and again."""
_ALONE_AFTER_S = 10.0
_log = structlog.get_logger(actor="materializer")


class Backfills:
    """Nothing of them is shown before it is complete.

    Args:
        make_view: the maintenance of an analysed view.
        open_history: see `OpenHistory`.
        take_rows: hands a piece over to Spark, as rows of an epoch.
        clock: measures how long a piece takes.
    """

    def __init__(
        self,
        make_view: Callable[[ViewPlan], View],
        open_history: OpenHistory,
        take_rows: Callable[[int, HistoryPiece], EpochRows],
        clock: Clock,
    ) -> None:
        self._make_view, self._open_history, self._take_rows, self._clock = make_view, open_history, take_rows, clock
        self._backfills: dict[str, Backfill] = {}
        self._restarted: set[str] = set()
        self._rows_came_s = float("-inf")

    def __iter__(self) -> Iterator[Backfill]:
        return iter(self._backfills.values())

    @property
    def fractions(self) -> dict[str, float]:
        """How much of its history each has, from 0 to 1."""
        return {name: each.fraction for name, each in self._backfills.items()}

    @property
    def blocked(self) -> dict[str, tuple[str, ...]]:
        """Those that cannot become complete → the files that they miss."""
        return {name: each.missing for name, each in self._backfills.items() if each.is_blocked}

    def declare(
        self,
        definitions: Mapping[str, ViewDefinition],
        plans: Mapping[str, ViewPlan],
        versions: Mapping[str, ViewVersion],
    ) -> None:
        """These views are late, and no others.

        Args:
            definitions: of each of them, and perhaps of others.
            plans: of each of them.
            versions: what the last epoch records of backfills; those that have begun go on from there.
        """
        for name in [name for name in self._backfills if name not in plans]:
            self.drop(name)
        for name, plan in plans.items():
            begun = self._backfills.get(name)
            if begun is not None and begun.plan is plan:
                continue
            recorded = versions.get(next_name(name))
            if begun is not None:
                recorded = begun.recorded() if begun.version is not None else None
                begun.close()
            view = self._make_view(plan)
            if recorded is not None:
                view.open(recorded)
            self._backfills[name] = Backfill(definitions[name], plan, view, recorded)

    def drop(self, name: str) -> None:
        """Forgets one; what it has written is nobody's."""
        backfill = self._backfills.pop(name, None)
        if backfill is not None:
            backfill.close()

    def work(
        self, epoch: int, rows: EpochRows, blocks: Mapping[str, Sequence[Block]]
    ) -> dict[str, Callable[[], ViewVersion]]:
        """What an epoch's rows make each of them do, by the name under which its version is recorded.

        A view whose rows were read before anybody knew that it needs them begins anew: they are its history.
        """
        if rows.frames:
            self._rows_came_s = self._clock.monotonic()
        work: dict[str, Callable[[], ViewVersion]] = {}
        for name, each in list(self._backfills.items()):
            if is_narrow(each.plan, blocks):
                self._begin_anew(name, each)
            elif each.version is None or any(source in rows.frames for source in each.plan.sources):
                work[next_name(name)] = partial(self._bring, each, epoch, rows)
        return work

    def restart(self, sources: Collection[str]) -> set[str]:
        """What was ingested of these sources has changed: the views over them begin anew.

        Returns:
            The names under which they were recorded.
        """
        changed = [name for name, each in self._backfills.items() if not {*sources}.isdisjoint(each.plan.sources)]
        for name in changed:
            self._begin_anew(name, self._backfills[name])
        return {next_name(name) for name in changed}

    def recorded(self) -> dict[str, ViewVersion]:
        """The versions of those that have begun, as the next epoch records them."""
        return {next_name(name): each.recorded() for name, each in self._backfills.items() if each.version is not None}

    def take_restarted(self) -> set[str]:
        """The recorded names of those that have begun anew since the last call: what is recorded is nobody's."""
        restarted, self._restarted = self._restarted, set()
        return restarted

    def take_complete(self) -> list[Backfill]:
        """Those that are complete; they are nobody's here from now on."""
        complete = [name for name, each in self._backfills.items() if each.is_complete]
        return [self._backfills.pop(name) for name in complete]

    def next_due(self) -> Backfill | None:
        """One of which a piece of history can be taken; they take turns."""
        due = next((name for name, each in self._backfills.items() if each.is_due), None)
        if due is None:
            return None
        backfill = self._backfills.pop(due)
        self._backfills[due] = backfill
        return backfill

    def take_piece(self, backfill: Backfill) -> bool:
        """Brings one view a piece further.  Returns whether there is something to record."""
        started = self._clock.monotonic()
        piece = backfill.next_piece(self._open_history)
        if piece is None:
            if backfill.is_blocked:
                _log.warning(
                    "a view is not shown: files that it needs are gone or have changed",
                    epoch=backfill.pinned_epoch, view=backfill.plan.name, files=len(backfill.missing),
                    first_file=backfill.missing[0],
                    next_step='bring them back and start again, or declare it with on_missing="allow"',
                )  # fmt: skip
            return backfill.is_complete
        version = backfill.view.apply(self._take_rows(backfill.pinned_epoch, piece))
        now = self._clock.monotonic()
        is_alone = now >= self._rows_came_s + _ALONE_AFTER_S
        backfill.on_piece(piece, version, now - started, _PIECE_ALONE_S if is_alone else _PIECE_S)
        return True

    def tidy(self) -> bool:
        """See `View.tidy`."""
        return any(each.view.tidy() for each in self._backfills.values() if each.version is not None)

    def close(self) -> None:
        """Reads nothing more."""
        for each in self._backfills.values():
            each.close()

    def _begin_anew(self, name: str, begun: Backfill) -> None:
        begun.close()
        self._backfills[name] = Backfill(begun.definition, begun.plan, self._make_view(begun.plan))
        self._restarted.add(next_name(name))

    @staticmethod
    def _bring(backfill: Backfill, epoch: int, rows: EpochRows) -> ViewVersion:
        if backfill.version is None:
            backfill.on_created(epoch, backfill.view.create(epoch, rows))
        else:
            backfill.on_version(backfill.view.apply(rows))
        return backfill.recorded()


def is_narrow(plan: ViewPlan, blocks: Mapping[str, Collection[Block]]) -> bool:
    """Whether rows were read without a column that a view uses."""
    return any(
        not plan.columns[source] <= {*block.columns}
        for source in plan.sources
        for block in blocks.get(source, ())
        if block.columns
    )
