"""The one dataset of a model view, on the simulated root: its place, its last version, and its rows."""

from __future__ import annotations

from typing import Any

from spark_bridge.ingest.epoch_rows import LateRows
from state.tables.records import ViewVersion
from tests.simulation.model_views.model_view import ModelView
from tests.simulation.world.simulated_root import SimulatedRoot


class ModelRows:
    """What such views have in common.

    Args:
        model: the view.
        root: by the materializer's way.
    """

    num_rows = 0

    def __init__(self, model: ModelView, root: SimulatedRoot) -> None:
        self._model, self._root = model, root
        self._path, self._last = "", 0

    def open(self, version: ViewVersion) -> None:
        self._path, self._last = version.path, version.version

    def tidy(self, audit: object = None) -> bool:
        return False

    def take_late(self) -> list[LateRows]:
        """The late rows since the last call."""
        return []

    def _create(self, epoch: int, rows: object) -> ViewVersion:
        self._path = f"views/{self._model.name}-{epoch}.lance"
        return self._commit(rows)

    def _commit(self, rows: object) -> ViewVersion:
        """Writes the next version."""
        self._last = self._root.commit_view(self._path, self._last, rows)
        return self._version()

    def _version(self) -> ViewVersion:
        return ViewVersion(self._model.name, self._path, self._last)

    @property
    def _rows(self) -> Any:
        return self._root.view_rows(self._path, self._last)
