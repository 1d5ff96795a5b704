"""A backfill: a view that gets the rows ingested before its declaration, piece by piece."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from spark_bridge.changes.view import Computed, ComputesBeside
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.ingest.history import History, HistoryPiece, OpenHistory
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.tables.records import ViewVersion
from state.tables.stored_rows import next_name

if TYPE_CHECKING:
    from spark_bridge.changes.view import GroupedView, View

_FIRST_BYTES_A_S, _FIRST_BESIDE_BYTES_A_S = 4 << 20, 16 << 20
# Each piece has fixed costs, so tiny pieces do not pay.  A piece may have as many groups as rows, all in this process.
_LEAST_BYTES, _LEAST_BESIDE_BYTES, _MOST_BYTES = 256 << 10, 4 << 20, 256 << 20
_GROWTH = 8
_ROWS_A_GROUP = 4


class PieceSeconds(NamedTuple):
    """The duration of a piece.

    Args:
        beside: of the work beside the epochs.
        between: of the work between two epochs, for which an epoch may wait.
    """

    beside: float
    between: float


class TakenGroups(NamedTuple):
    """The groups with which a view begins.

    Args:
        plan: of the view with these groups.
        version: the last version of that view.
        have_all: whether the groups have all measures of the view that begins with them.
    """

    plan: ViewPlan
    version: ViewVersion
    have_all: bool


class Backfill:
    """The state of one backfill, and the size of its pieces.

    From the epoch that creates its dataset, the view gets new rows like any other.  The rows ingested up to
    `pinned_epoch` are its history.  They come in pieces between the epochs: partials merge in any order.  An epoch
    records the version after a piece together with the position in the history, so that a crash repeats no row.

    Args:
        view: the maintenance of the view.
        version: the recorded version, if an earlier attempt has begun the backfill.
    """

    def __init__(
        self, definition: ViewDefinition, plan: ViewPlan, view: View, version: ViewVersion | None = None
    ) -> None:
        self.definition, self.plan, self.view = definition, plan, view
        self.pinned_epoch = 0 if version is None or version.pinned_epoch is None else version.pinned_epoch
        self.version = version
        recorded = {} if version is None else version.noted
        self.is_complete = bool(recorded.get("complete"))
        self._missing: tuple[str, ...] = tuple(recorded.get("missing", ()))
        self._progress: str | None = recorded.get("history")
        self._history: History | None = None
        self._bytes_a_s: tuple[float, float] | None = None
        self._most_bytes = _MOST_BYTES
        self._fraction = 0.0

    @property
    def _history_plan(self) -> ViewPlan:
        """The plan, with the columns that are read of the history."""
        return self.plan

    @property
    def missing(self) -> tuple[str, ...]:
        """URLs of the files that could not be read again."""
        return tuple(dict.fromkeys([*self._missing, *(self._history.missing if self._history else ())]))

    @property
    def is_blocked(self) -> bool:
        """Whether it waits for missing files."""
        return bool(self.missing) and self.definition.on_missing != "allow"

    @property
    def needs_history(self) -> bool:
        """Whether it reads earlier rows; else the next epoch completes it."""
        return True

    @property
    def fraction(self) -> float:
        """The share of the history that it has, from 0 to 1."""
        return 1.0 if self.is_complete else self._fraction

    @property
    def is_beside(self) -> bool:
        """Whether its pieces are computed beside the epochs."""
        is_stored = self._history is not None and self._history.is_stored
        return is_stored and isinstance(self.view, ComputesBeside) and self.view.computes_beside

    @property
    def is_due(self) -> bool:
        """Whether a piece of history can be taken."""
        return self.version is not None and not self.is_complete and not self.is_blocked

    def next_piece(self, open_history: OpenHistory, wanted: PieceSeconds) -> HistoryPiece | None:
        """The next rows; None if no rows are available now, and None at the end of the history.

        Args:
            open_history: see `OpenHistory`.
            wanted: the longest duration of the piece.
        """
        if self._history is None:
            self._history = open_history(self._history_plan, self.pinned_epoch, self._progress)
            if self._history is None:
                return None
            self._fraction = self._history.fraction
        piece = self._history.take(self._bytes_for(wanted))
        if self.is_blocked:
            # The recorded position must stay before a file that may come back.
            return None
        self.is_complete = piece is None
        return piece

    def _bytes_for(self, wanted: PieceSeconds) -> int:
        """The size of a piece."""
        first, least = (
            (_FIRST_BESIDE_BYTES_A_S, _LEAST_BESIDE_BYTES) if self.is_beside else (_FIRST_BYTES_A_S, _LEAST_BYTES)
        )
        speeds = self._bytes_a_s or (first, first)
        nbytes = min(speed * seconds for speed, seconds in zip(speeds, wanted, strict=True))
        return int(min(self._most_bytes, max(least, nbytes)))

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        """Makes the view in this epoch, with its rows."""
        return self.view.create(epoch, rows)

    def take(self, rows: EpochRows) -> ViewVersion:
        """Merges a piece of history into the view."""
        return self.view.apply(rows)

    def computed(self, rows: EpochRows) -> Computed:
        """Computes a piece of history beside the epochs; its merge follows between two of them."""
        assert isinstance(self.view, ComputesBeside), "it is asked before"
        return self.view.computed(rows)

    def on_created(self, epoch: int, version: ViewVersion) -> None:
        """The view gets new rows from this epoch on; the rows of earlier epochs are its history."""
        # Set here and not earlier: an epoch that no record names is not kept.
        self.pinned_epoch = epoch - 1
        self.on_version(version)

    def on_piece(self, piece: HistoryPiece, version: ViewVersion, seconds: PieceSeconds, groups: int = 0) -> None:
        """Notes that a piece is in the view.

        Args:
            version: of the view with the piece.
            seconds: duration of the piece.
            groups: the number of groups that it touches; 0 if it is not known.
        """
        assert self._history is not None, "the piece is of it"
        self._progress, self._fraction = piece.progress, self._history.fraction
        self.on_version(version)
        # Of a group with several rows in the piece a larger one has more: its merge takes hardly longer.
        between = 0.0 if 0 < groups * _ROWS_A_GROUP <= piece.num_rows else seconds.between
        self._bytes_a_s = (piece.nbytes / max(seconds.beside, 1e-3), piece.nbytes / max(between, 1e-3))
        # The next rows may take longer: a filter may have left none of these.
        self._most_bytes = min(_MOST_BYTES, max(_LEAST_BYTES, _GROWTH * piece.nbytes))

    def on_version(self, version: ViewVersion) -> None:
        """Notes a new version of the view."""
        self.version = version

    def recorded(self) -> ViewVersion:
        """The version that an epoch records while the backfill is incomplete."""
        assert self.version is not None, "it is created first"
        missing = () if self.is_blocked else self.missing
        progress = {
            "history": self._progress,
            "complete": self.is_complete,
            "missing": missing,
            "fraction": round(self.fraction, 4),
            **self._further_notes(),
        }
        return replace(
            self.version,
            name=next_name(self.plan.name),
            pinned_epoch=self.pinned_epoch,
            progress=json.dumps(progress),
        )

    def _further_notes(self) -> dict[str, Any]:
        return {}

    def finished(self) -> ViewVersion:
        """The version that epochs record once the backfill is complete."""
        assert self.version is not None and self.is_complete
        return replace(self.version, name=self.plan.name, pinned_epoch=None, progress=None)

    def close(self) -> None:
        """Stops reading the history."""
        if self._history is not None:
            self._history.close()


class ExtendedBackfill(Backfill):
    """A backfill that begins with the groups of the view that it replaces; its history gives only what these lack.

    The epoch that creates it takes these groups over, as they are before the rows of the epoch come: the measures in
    them have the rows of the history already.  That epoch and each later one records the measures that lack them, so
    that nothing is compared again after a crash, when the replaced view is stopped.

    Args:
        definition, plan, version: as of `Backfill`.
        view: the maintenance of the view.
        before: the groups of the view that it replaces; None if it has begun.
    """

    def __init__(
        self,
        definition: ViewDefinition,
        plan: ViewPlan,
        view: GroupedView,
        version: ViewVersion | None = None,
        before: TakenGroups | None = None,
    ) -> None:
        super().__init__(definition, plan, view, version)
        self._grouped, self._before = view, before
        if version is not None:
            view.lacks = missing_measures(version)

    @property
    def needs_history(self) -> bool:
        return self._before is None or not self._before.have_all

    @property
    def is_beside(self) -> bool:
        return False

    @property
    def _history_plan(self) -> ViewPlan:
        return replace(self.plan, columns=self._grouped.earlier_columns)

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        assert self._before is not None, "it has not begun"
        self._grouped.take_over(epoch, self._before.plan, self._before.version)
        self.is_complete = not self._grouped.lacks
        return self._grouped.apply(rows)

    def take(self, rows: EpochRows) -> ViewVersion:
        return self._grouped.complete(rows)

    def _further_notes(self) -> dict[str, Any]:
        return noted_lacks(self._grouped.lacks)


def noted_lacks(lacks: Sequence[int]) -> dict[str, list[int]]:
    """The note of a recorded backfill, from which `missing_measures` reads."""
    return {"lacks": [*lacks]}


def missing_measures(version: ViewVersion) -> list[int]:
    """The measures of a recorded backfill that have no rows of its history yet; empty if all wait for them alike."""
    lacks: list[int] = version.noted.get("lacks", [])
    return lacks
