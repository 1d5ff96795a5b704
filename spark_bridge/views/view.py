"""One view as the materializer keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from spark_bridge.hand_over.epoch_rows import EpochRows
from spark_bridge.views.corrections import CorrectedRows
from state.tables.records import ViewVersion


@dataclass(frozen=True)
class ShownView:
    """One view.

    Args:
        view_class: how it is maintained.
        rows: how many it has; None until it was written to, or computed, since the attempt began.
        behind_s: how much older than the latest rows those are that it shows: only a view that is recomputed as a
            whole lags.
    """

    name: str
    view_class: str
    rows: int | None
    behind_s: float


class View(Protocol):
    """One view's datasets; one epoch after the other."""

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        """Makes the view in this epoch, with its rows."""

    def open(self, version: ViewVersion) -> None:
        """Goes on from a recorded version."""

    def apply(self, rows: EpochRows) -> ViewVersion:
        """Brings the view up to date with an epoch's rows."""

    def correct(self, rows: CorrectedRows) -> ViewVersion:
        """Brings the view up to date with files whose rows were replaced or taken out."""

    @property
    def num_rows(self) -> int:
        """How many rows the view has."""

    def tidy(self) -> bool:
        """Does one bounded task that keeps the view's datasets fast; whether one was due."""
