"""The datasets of a model view that shows a group when its window closes."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa

from actors.schemas.metadata_columns import PATH, ROW
from spark_bridge.ingest.epoch_rows import EpochRows, LateRows
from spark_bridge.ingest.followed_watermarks import closed_until
from state.tables.records import ViewVersion
from tests.simulation.model_views.model_datasets import Fails, ModelDatasets
from tests.simulation.model_views.model_view import ModelView, window_end_us
from tests.simulation.world.file_rows import Span, event_time_us
from tests.simulation.world.simulated_root import SimulatedRoot


class ModelClosingView(ModelDatasets):
    """See `spark_bridge.operators.group.closing_view.ClosingView`.  Arguments as for `ModelDatasets`."""

    def __init__(self, model: ModelView, root: SimulatedRoot, fails: Fails) -> None:
        self._closed: int | None = None
        self._num_late = 0
        self._late: list[LateRows] = []
        [self._source] = model.sources
        super().__init__(model, root, fails)

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        return self._close(super().create(epoch, rows), rows.watermarks)

    def open(self, version: ViewVersion) -> None:
        super().open(version)
        self._closed = closed_until(version)
        self._num_late = version.noted.get("late", 0)

    def apply(self, rows: EpochRows) -> ViewVersion:
        spans = [Span(span.file, row, row + 1) for span in self._spans(rows) for row in range(span.start, span.end)]
        closed = self._closed
        late = [] if closed is None else [span for span in spans if window_end_us(span.file, span.start) <= closed]
        if late and closed is not None:
            self._late.append(LateRows(self._model.name, self._source, closed, places_of(late)))
            self._num_late += len(late)
        on_time = [span for span in spans if span not in late]
        assert self._version is not None, "it is created or opened first"
        version = self._merge(on_time) if on_time else self._version
        return self._close(version, rows.watermarks)

    def take_late(self) -> list[LateRows]:
        """The late rows since the last call."""
        late, self._late = self._late, []
        return late

    def _merge(self, spans: list[Span]) -> ViewVersion:
        assert self._version is not None and self._version.state_path is not None
        path = self._version.state_path
        groups = self._model.after(self._root.view_rows(path, self._last[path]), spans)
        self._last[path] = self._root.commit_view(path, self._last[path], groups)
        return self._version.at(self._last)

    def _close(self, version: ViewVersion, watermarks: Mapping[str, int]) -> ViewVersion:
        """Moves the groups whose windows the watermark has passed to the rows: first they come there."""
        path, state_path = version.path, version.state_path
        watermark = watermarks.get(self._source)
        assert state_path is not None, "open groups are stored apart"
        if watermark is not None and (self._closed is None or watermark > self._closed):
            self._closed = watermark
            groups = self._root.view_rows(state_path, self._last[state_path])
            closing = {end: group for end, group in groups.items() if end <= watermark}
            if closing:
                shown = {**self._root.view_rows(path, self._last[path]), **closing}
                self._last[path] = self._root.commit_view(path, self._last[path], shown)
                left = {end: group for end, group in groups.items() if end > watermark}
                self._last[state_path] = self._root.commit_view(state_path, self._last[state_path], left)
        progress = json.dumps({"closed": self._closed, "late": self._num_late})
        paths = path, self._last[path], state_path, self._last[state_path]
        return self._at(ViewVersion(self._model.name, *paths, progress=progress))


def places_of(spans: list[Span]) -> pa.Table:
    """The places of rows, one of each span, with their event times."""
    return pa.table(
        {
            PATH: [span.file[1] for span in spans],
            ROW: [span.start for span in spans],
            "version": [span.file[2].hex() for span in spans],
            "x": pa.array([event_time_us(span.file, span.start) for span in spans], pa.timestamp("us")),
        }
    )
