"""A view that was declared late, on its way to what it would be if it had been there from the start."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from spark_bridge.analysis.view_definition import ALLOW, ViewDefinition
from spark_bridge.analysis.view_plan import ViewPlan
from spark_bridge.hand_over.history import History, HistoryPiece, OpenHistory
from state.tables.records import ViewVersion
from state.tables.stored_rows import next_name

if TYPE_CHECKING:
    from spark_bridge.views.view import View

_FIRST_BYTES = 1 << 20
# What a piece costs at the least does not become less with fewer rows.
_LEAST_BYTES, _MOST_BYTES = 256 << 10, 64 << 20


class Backfill:
    """What is known of one backfill, and how much of its history it takes at a time.

    From the epoch on in which its dataset is made the view gets new rows like any other.  What was ingested before, up
    to `pinned_epoch`, comes in pieces between the epochs: partials merge in any order.  The version after each piece
    and the place that the history has come to are recorded together, so that a crash repeats no row.

    Args:
        definition: as declared.
        plan: analysed.
        view: its maintenance.
        version: as recorded, when another attempt has begun it.
    """

    def __init__(
        self, definition: ViewDefinition, plan: ViewPlan, view: View, version: ViewVersion | None = None
    ) -> None:
        self.definition, self.plan, self.view = definition, plan, view
        self.pinned_epoch = 0 if version is None or version.pinned_epoch is None else version.pinned_epoch
        self.version = version
        recorded = json.loads(version.progress) if version is not None and version.progress else {}
        self.is_complete = bool(recorded.get("complete"))
        self._missing: tuple[str, ...] = tuple(recorded.get("missing", ()))
        self._progress: str | None = recorded.get("history")
        self._history: History | None = None
        self._bytes = _FIRST_BYTES

    @property
    def missing(self) -> tuple[str, ...]:
        """The files that could not be read again."""
        return tuple(dict.fromkeys([*self._missing, *(self._history.missing if self._history else ())]))

    @property
    def is_blocked(self) -> bool:
        """Whether it waits for somebody to bring missing files back."""
        return bool(self.missing) and self.definition.on_missing != ALLOW

    @property
    def fraction(self) -> float:
        """How much of the history it has, from 0 to 1."""
        if self.is_complete:
            return 1.0
        return 0.0 if self._history is None else self._history.fraction

    @property
    def is_due(self) -> bool:
        """Whether a piece of history can be taken."""
        return self.version is not None and not self.is_complete and not self.is_blocked

    def next_piece(self, open_history: OpenHistory) -> HistoryPiece | None:
        """The next rows; None if there are none at the moment, or no more at all."""
        if self._history is None:
            self._history = open_history(self.plan, self.pinned_epoch, self._progress)
            if self._history is None:
                return None
        piece = self._history.take(self._bytes)
        if self.is_blocked:
            # What is recorded must not be behind a file that may come back.
            return None
        self.is_complete = piece is None
        return piece

    def on_created(self, epoch: int, version: ViewVersion) -> None:
        """The view gets new rows from this epoch on: what was ingested before it is history."""
        # No sooner: an epoch that no record names yet is not kept.
        self.pinned_epoch = epoch - 1
        self.on_version(version)

    def on_piece(self, piece: HistoryPiece, version: ViewVersion, seconds: float, limit_s: float) -> None:
        """A piece is in the view, which took so long; the next one is as large as fits into `limit_s`."""
        self._progress = piece.progress
        self.on_version(version)
        factor = min(8.0, max(0.25, limit_s / max(seconds, 1e-3)))
        self._bytes = int(min(_MOST_BYTES, max(_LEAST_BYTES, self._bytes * factor)))

    def on_version(self, version: ViewVersion) -> None:
        """The view was written."""
        self.version = version

    def recorded(self) -> ViewVersion:
        """The version as an epoch records it while the view catches up."""
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
        """The version as an epoch records it from its completion on."""
        assert self.version is not None and self.is_complete
        return replace(self.version, name=self.plan.name, pinned_epoch=None, progress=None)

    def close(self) -> None:
        """Reads nothing more."""
        if self._history is not None:
            self._history.close()
