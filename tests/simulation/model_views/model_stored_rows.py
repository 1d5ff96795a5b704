"""The stored rows of one materialized source, on the simulated root."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import cast

from actors.protocol.blocks import StoredBlock
from state.tables.records import ViewVersion
from tests.simulation.model_views.model_view import ModelView
from tests.simulation.world.file_rows import Span
from tests.simulation.world.simulated_root import SimulatedRoot


class ModelStoredRows:
    """See `spark_bridge.datasets.stored_rows.StoredRows`.

    Args:
        model: the rows of the source.
        root: by the materializer's way.
        version: the recorded version to continue from; None before the first rows.
    """

    def __init__(self, model: ModelView, root: SimulatedRoot, version: ViewVersion | None) -> None:
        self._model, self._root, self.version = model, root, version
        self._last = 0 if version is None else version.version

    def rows(self) -> Sequence[Span]:
        """The visible rows."""
        version = self.version
        return () if version is None else cast(Sequence[Span], self._root.view_rows(version.path, version.version))

    def apply(self, blocks: Sequence[StoredBlock]) -> ViewVersion:
        """Makes staged rows visible; the first ones create the dataset."""
        return self._write(self.rows(), blocks)

    def correct(self, paths: Collection[str], blocks: Sequence[StoredBlock], epoch: int) -> ViewVersion | None:
        """Replaces the rows of files; None if the source never had rows."""
        if self.version is None and not blocks:
            return None
        corrected = self._write([span for span in self.rows() if span.file[1] not in paths], blocks)
        self.version = replace(corrected, progress=str(epoch))
        return self.version

    def tidy(self, audit: object = None) -> bool:
        """Makes a version with the same rows, which no epoch records."""
        if self.version is not None:
            self._last = self._root.commit_view(self.version.path, self._last, self.rows())
        return self.version is not None

    def _write(self, kept: Sequence[Span], blocks: Sequence[StoredBlock]) -> ViewVersion:
        path = blocks[0].path if self.version is None else self.version.path
        staged = [self._root.staged_rows(each.path, name) for each in blocks for name in each.fragments]
        spans = [span for each in staged for span in each or ()]
        self._last = self._root.commit_view(path, self._last, self._model.after(kept, spans))
        progress = None if self.version is None else self.version.progress
        self.version = ViewVersion(self._model.name, path, self._last, progress=progress)
        return self.version
