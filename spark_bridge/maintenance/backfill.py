"""A backfill: a view that gets the rows from before its declaration."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from spark_bridge.changes.view import Computed, ComputesBeside
from spark_bridge.ingest.epoch_rows import EpochRows
from spark_bridge.ingest.history import History, HistoryPiece, OpenHistory
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.tables.records import ViewVersion
from state.tables.stored_rows import next_name

if TYPE_CHECKING:
    from spark_bridge.changes.view import View

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


class Beginning(NamedTuple):
    """The stored rows with which a view begins: the groups of the view that it replaces, or its own rows.

    Args:
        plan: of the view with these rows.
        version: the last version of that view.
        has_all: whether the rows have all measures of the view, and all rows that were ingested.
        since: the last epoch of the rows, if the view lacks the rows of later epochs; 0 if it lacks none.
    """

    plan: ViewPlan
    version: ViewVersion
    has_all: bool
    since: int = 0


@dataclass(frozen=True)
class BackfillProgress:
    """The progress of a backfill, as epochs record it.

    Args:
        history: the position in the history, as JSON; None at its start, and for rows that are computed at once.
        complete: whether the view has all earlier rows.
        missing: URLs of the files that could not be read again.
        fraction: the share of the earlier rows that the view has, from 0 to 1; None for rows that are computed at once.
        lacks: the numbers of the measures that have no earlier rows; empty if all measures wait for them alike.
        since: the last epoch whose rows a view had when it resumed; 0 for a view that began without rows.
    """

    history: str | None = None
    complete: bool = False
    missing: tuple[str, ...] = ()
    fraction: float | None = None
    lacks: tuple[int, ...] = ()
    since: int = 0

    @classmethod
    def of(cls, version: ViewVersion | None) -> BackfillProgress:
        """The recorded progress of a backfill; without a version, none was made."""
        noted: Any = {} if version is None else version.noted
        recorded = cls(**noted)
        return replace(recorded, missing=tuple(recorded.missing), lacks=tuple(recorded.lacks))

    def to_json(self) -> str:
        """The progress as a text for an epoch record."""
        return json.dumps(asdict(self))


class Backfill:
    """A view that lacks earlier rows: readers do not see it before it has them.

    Its source of these rows decides how the view gets them, see `HistoryBackfill` and `ParentsBackfill`.  It may begin
    with the groups of the view that it replaces: then only measures that these lack get earlier rows.  A stopped view
    begins with its own rows: it gets the rows of the epochs since then alone.

    Args:
        view: the maintenance of the view, not open.
        version: the recorded version, if an earlier attempt has begun the backfill.
        beginning: the rows with which the view begins, if it has not begun.
    """

    def __init__(
        self, plan: ViewPlan, view: Any, version: ViewVersion | None = None, beginning: Beginning | None = None
    ) -> None:
        self.plan, self.view, self.version, self.beginning = plan, view, version, beginning
        self.pinned_epoch = 0 if version is None or version.pinned_epoch is None else version.pinned_epoch
        self._recorded = BackfillProgress.of(version)
        self.lacks, self.since = self._recorded.lacks, self._recorded.since
        if version is not None:
            view.open(version)
        if self.lacks:
            view.lacks = self.lacks

    @property
    def progress(self) -> BackfillProgress:
        """Its progress, for the record of an epoch."""
        return BackfillProgress(lacks=self.lacks)

    @property
    def needs_rows(self) -> bool:
        """True if it reads earlier rows; otherwise the next epoch completes it."""
        return self.beginning is None or not self.beginning.has_all

    def take_over(self, epoch: int) -> ViewVersion:
        """Makes the view of the rows with which it begins, as they are before the rows of an epoch.

        Args:
            epoch: the epoch that creates the view.
        """
        assert self.beginning is not None, "it begins with stored rows"
        version: ViewVersion = self.view.take_over(epoch, self.beginning.plan, self.beginning.version)
        self.lacks, self.since = tuple(self.view.lacks), self.beginning.since
        self.beginning = None
        return version

    def recorded(self) -> ViewVersion:
        """The version that an epoch records while the backfill is incomplete."""
        assert self.version is not None, "it is created first"
        name, progress = next_name(self.plan.name), self.progress.to_json()
        return replace(self.version, name=name, pinned_epoch=self.pinned_epoch, progress=progress)


class HistoryBackfill(Backfill):
    """A backfill of a view over sources: their files, or their stored rows, are its history.

    From the epoch that creates its dataset, the view gets new rows like any other.  The rows ingested up to
    `pinned_epoch` are its history.  They come in pieces between the epochs: partials merge in any order.  An epoch
    records the version after a piece together with the position in the history, so that a crash repeats no row.

    Measures that the groups of a replaced view have get no rows of the history: these groups have them already.

    Args:
        plan, view, version, beginning: as of `Backfill`.
    """

    def __init__(
        self,
        definition: ViewDefinition,
        plan: ViewPlan,
        view: View,
        version: ViewVersion | None = None,
        beginning: Beginning | None = None,
    ) -> None:
        super().__init__(plan, view, version, beginning)
        self.definition = definition
        self.is_complete, self._missing = self._recorded.complete, self._recorded.missing
        self._progress = self._recorded.history
        self._history: History | None = None
        self._bytes_a_s: tuple[float, float] | None = None
        self._most_bytes = _MOST_BYTES
        self._fraction = 0.0

    @property
    def _history_plan(self) -> ViewPlan:
        """The plan, with the columns that are read of the history."""
        return replace(self.plan, columns=self.view.earlier_columns) if self.lacks else self.plan

    @property
    def missing(self) -> tuple[str, ...]:
        """URLs of the files that could not be read again."""
        return tuple(dict.fromkeys([*self._missing, *(self._history.missing if self._history else ())]))

    @property
    def is_blocked(self) -> bool:
        """Whether it waits for missing files."""
        return bool(self.missing) and self.definition.on_missing != "allow"

    @property
    def fraction(self) -> float:
        """The share of the history that it has, from 0 to 1."""
        return 1.0 if self.is_complete else self._fraction

    @property
    def is_beside(self) -> bool:
        """Whether its pieces are computed beside the epochs."""
        is_stored = self._history is not None and self._history.is_stored
        return is_stored and not self.lacks and isinstance(self.view, ComputesBeside) and self.view.computes_beside

    @property
    def is_due(self) -> bool:
        """Whether a piece of history can be taken."""
        return self.version is not None and not self.is_complete and not self.is_blocked

    def next_piece(self, open_history: OpenHistory, wanted: PieceSeconds) -> HistoryPiece | None:
        """The next rows; None if no rows are available now, and None at the end of the history.

        Args:
            open_history: see `OpenHistory`.
            wanted: the longest duration of the piece.

        Raises:
            NotResumableError: see `OpenHistory`.
        """
        if self._history is None:
            self._history = open_history(self._history_plan, self.since, self.pinned_epoch, self._progress)
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
        view: View = self.view
        if self.beginning is None:
            return view.create(epoch, rows)
        self.take_over(epoch)
        self.is_complete = not (self.lacks or self.since)
        return view.apply(rows)

    def take(self, rows: EpochRows) -> ViewVersion:
        """Merges a piece of history into the view."""
        version: ViewVersion = self.view.complete(rows) if self.lacks else self.view.apply(rows)
        return version

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

    @property
    def progress(self) -> BackfillProgress:
        """See `Backfill.progress`."""
        missing = () if self.is_blocked else self.missing
        fraction = round(self.fraction, 4)
        return BackfillProgress(self._progress, self.is_complete, missing, fraction, self.lacks, self.since)

    def finished(self) -> ViewVersion:
        """The version that epochs record once the backfill is complete."""
        assert self.version is not None and self.is_complete
        return replace(self.version, name=self.plan.name, pinned_epoch=None, progress=None)

    def close(self) -> None:
        """Stops reading the history."""
        if self._history is not None:
            self._history.close()
