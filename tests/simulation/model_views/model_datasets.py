"""The datasets of one model view, on the simulated root."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from actors.files import PathKey
from spark_bridge.changes.change_set import ChangeLog
from spark_bridge.changes.view import Computed
from spark_bridge.ingest.epoch_rows import EpochRows, LateRows
from spark_bridge.plans.view_plan import ViewPlan
from state.errors import ViewFailedError
from state.tables.records import ViewVersion
from state.tables.stored_rows import declared_name
from tests.simulation.model_views.model_derived_view import group_changes
from tests.simulation.model_views.model_view import ModelView
from tests.simulation.world.file_rows import Span
from tests.simulation.world.simulated_root import SimulatedRoot

Fails: TypeAlias = Callable[[str, Span], bool]
"""(view, rows) -> whether the view's own expression fails over one of the rows."""


@dataclass(frozen=True)
class CorrectedSpans:
    """The rows that a view needs to follow corrections, see `spark_bridge.changes.corrections.CorrectedRows`.

    Args:
        files: the corrected files.
        stored: gives the stored rows of a source, with the corrections.
    """

    files: frozenset[PathKey]
    stored: Callable[[str], Sequence[Span]]

    def all(self, sources: Collection[str]) -> dict[str, Sequence[Span]]:
        """Source → all of its rows."""
        return {source: self.stored(source) for source in sources}

    def new(self, sources: Collection[str]) -> dict[str, Sequence[Span]]:
        """Source → the new rows of its corrected files."""
        return {
            source: [span for span in self.stored(source) if span.file[:2] in self.files]
            for source in sources
            if any(source == each for each, _ in self.files)
        }


def computed(model: ModelView, fails: Fails, rows: Mapping[str, Iterable[Span]]) -> list[Span]:
    """The rows that a view is computed from.

    Args:
        model: the view.
        fails: whether it fails over some rows.
        rows: source → its rows.

    Raises:
        ViewFailedError: it fails over one of them.
    """
    spans = [span for source in sorted(rows) for span in rows[source]]
    failing = next((span for span in spans if fails(declared_name(model.name), span)), None)
    if failing is not None:
        raise ViewFailedError(model.name, "over some rows", f"[DIVIDE_BY_ZERO] in {failing.file[1]}")
    return spans


class ModelDatasets:
    """See `spark_bridge.changes.view.View`.

    Args:
        model: the view.
        root: by the materializer's way.
        fails: whether the view's own expression fails over some rows.
    """

    num_rows = 0
    computes_beside = True
    lacks: Sequence[int] = ()

    def __init__(self, model: ModelView, root: SimulatedRoot, fails: Fails) -> None:
        self.changes = ChangeLog()
        self._model, self._root, self._fails = model, root, fails
        self._version: ViewVersion | None = None
        self._last: dict[str, int] = {}

    def create(self, epoch: int, rows: EpochRows) -> ViewVersion:
        return self._create(epoch, self._model.after(None, self._spans(rows)))

    def _create(self, epoch: int, kept: object) -> ViewVersion:
        name = self._model.name
        path, state_path = f"views/{name}-{epoch}.lance", f"view_state/{name}-{epoch}.lance"
        version = self._root.commit_view(path, 0, self._model.result(kept))
        state = (state_path, self._root.commit_view(state_path, 0, kept)) if self._model.has_state else (None, None)
        return self._at(ViewVersion(name, path, version, *state))

    def open(self, version: ViewVersion) -> None:
        self._at(version)

    def take_over(self, epoch: int, before: ViewPlan, version: ViewVersion) -> ViewVersion:
        """See `spark_bridge.changes.view.GroupedView`: begins with all rows or groups of `version`."""
        path = version.state_path or version.path
        return self._create(epoch, self._root.view_rows(path, version.datasets[path]))

    def apply(self, rows: EpochRows) -> ViewVersion:
        return self.computed(rows).merge()

    def computed(self, rows: EpochRows) -> Computed:
        """See `spark_bridge.changes.view.ComputesBeside`."""
        return Computed(partial(self._write, [*self._spans(rows)], is_rebuilt=False))

    def correct(self, rows: Any) -> ViewVersion:
        """Computes the view again.

        Args:
            rows: see `CorrectedSpans`.
        """
        return self._write(computed(self._model, self._fails, rows.all(self._model.sources)), is_rebuilt=True)

    def take_late(self) -> list[LateRows]:
        """The late rows since the last call."""
        return []

    def tidy(self, audit: object = None) -> bool:
        """Makes a version with the same rows, which no epoch records; the next rows are written after it."""
        for path, version in sorted(self._last.items()):
            self._last[path] = self._root.commit_view(path, version, self._root.view_rows(path, version))
        return bool(self._last)

    def _spans(self, rows: EpochRows) -> Iterable[Span]:
        frames: Any = rows.frames
        return computed(self._model, self._fails, {each: frames.get(each, ()) for each in self._model.sources})

    def _write(self, spans: Iterable[Span], *, is_rebuilt: bool) -> ViewVersion:
        """Writes the next version: the partials first, if they are apart."""
        before = self._version
        assert before is not None, "it is created or opened first"
        path, version = before.path, self._last[before.path]
        if before.state_path is None:
            kept = self._model.after(None if is_rebuilt else self._root.view_rows(path, version), spans)
            return self._at(ViewVersion(self._model.name, path, self._root.commit_view(path, version, kept)))
        state_path, state_version = before.state_path, self._last[before.state_path]
        kept = self._model.after(None if is_rebuilt else self._root.view_rows(state_path, state_version), spans)
        state_version = self._root.commit_view(state_path, state_version, kept)
        shown, result = self._root.view_rows(path, version), self._model.result(kept)
        version = self._root.commit_view(path, version, result)
        if self.changes.is_kept:
            self.changes.note(group_changes(shown, result))  # type: ignore[arg-type]
        return self._at(ViewVersion(self._model.name, path, version, state_path, state_version))

    def _at(self, version: ViewVersion) -> ViewVersion:
        self._version, self._last = version, {**version.datasets}
        return version
