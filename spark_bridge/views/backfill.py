"""A backfill: a view that gets the rows ingested before its declaration, piece by piece."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.hand_over.history import History, HistoryPiece, OpenHistory
from state.tables.records import ViewVersion
from state.tables.stored_rows import next_name

if TYPE_CHECKING:
    from spark_bridge.views.view import View

_FIRST_BYTES_A_S = 4 << 20
# Each piece has fixed costs, so tiny pieces do not pay.  A piece may have as many groups as rows, all in this process.
_LEAST_BYTES, _MOST_BYTES = 256 << 10, 256 << 20
_GROWTH = 8


class Backfill:
    """The state of one backfill, and the size of its pieces.

    From the epoch that creates its dataset, the view gets new rows like any other.  The rows ingested up to
    `pinned_epoch` are its history.  They come in pieces between the epochs: partials merge in any order.  An epoch
    records the version after a piece together with the position in the history, so that a crash repeats no row.

    Args:
        definition: of the view.
        plan: of the view.
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
        self._bytes_a_s: float = _FIRST_BYTES_A_S
        self._most_bytes = _MOST_BYTES

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
        if self.is_complete:
            return 1.0
        return 0.0 if self._history is None else self._history.fraction

    @property
    def is_due(self) -> bool:
        """Whether a piece of history can be taken."""
        return self.version is not None and not self.is_complete and not self.is_blocked

    def next_piece(self, open_history: OpenHistory, seconds: float) -> HistoryPiece | None:
        """The next rows; None if no rows are available now, and None at the end of the history.

        Args:
            open_history: see `OpenHistory`.
            seconds: the wanted duration of the piece.
        """
        if self._history is None:
            self._history = open_history(self.plan, self.pinned_epoch, self._progress)
            if self._history is None:
                return None
        piece = self._history.take(int(min(self._most_bytes, max(_LEAST_BYTES, self._bytes_a_s * seconds))))
        if self.is_blocked:
            # The recorded position must stay before a file that may come back.
            return None
        self.is_complete = piece is None
        return piece

    def on_created(self, epoch: int, version: ViewVersion) -> None:
        """The view gets new rows from this epoch on; the rows of earlier epochs are its history."""
        # Set here and not earlier: an epoch that no record names is not kept.
        self.pinned_epoch = epoch - 1
        self.on_version(version)

    def on_piece(self, piece: HistoryPiece, version: ViewVersion, seconds: float) -> None:
        """Notes that a piece is in the view.

        Args:
            piece: the piece.
            version: of the view with the piece.
            seconds: duration of the piece.
        """
        self._progress = piece.progress
        self.on_version(version)
        self._bytes_a_s = piece.nbytes / max(seconds, 1e-3)
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
        }
        return replace(
            self.version,
            name=next_name(self.plan.name),
            pinned_epoch=self.pinned_epoch,
            progress=json.dumps(progress),
        )

    def finished(self) -> ViewVersion:
        """The version that epochs record once the backfill is complete."""
        assert self.version is not None and self.is_complete
        return replace(self.version, name=self.plan.name, pinned_epoch=None, progress=None)

    def close(self) -> None:
        """Stops reading the history."""
        if self._history is not None:
            self._history.close()
