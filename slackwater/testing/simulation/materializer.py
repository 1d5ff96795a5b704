"""The materializer: `slackwater.materializer_loop` and `spark_bridge.materializer`, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from actors.messages import BarrierKind, Block, Correction
from actors.recovery import RecoveredState
from actors.reports import CollectReport, EpochBlocks
from actors.topology import MATERIALIZER
from slackwater.testing.simulation.file_rows import Span
from slackwater.testing.simulation.host import Host
from slackwater.testing.simulation.model_view import ModelView
from slackwater.testing.simulation.simulated_root import SimulatedRoot
from state.errors import RunFailedError
from state.records import CatalogView, ViewVersion

if TYPE_CHECKING:
    from slackwater.testing.simulation.attempt import SimulatedAttempt


class SimulatedMaterializer(Host):
    """Brings the model views up to date, one after the other in any order, and reports the epoch.

    Args:
        attempt: that it is part of.
        recovered: where the attempt begins.
    """

    def __init__(self, attempt: SimulatedAttempt, recovered: RecoveredState) -> None:
        super().__init__(attempt, MATERIALIZER, ())
        self._root = SimulatedRoot(self._world.disk, self._world.clock, self._world.access(self))
        self._versions: dict[str, ViewVersion] = dict(recovered.views)
        self._known = set(recovered.catalog.views)
        self._plans: tuple[ModelView, ...] = ()
        self._declared: frozenset[str] | None = None
        self._epoch: EpochBlocks | None = None
        self._spans: Mapping[str, tuple[Span, ...]] = {}
        self._due: list[ModelView] = []
        self._corrected: list[ModelView] = []
        self._is_correcting = False
        self._created: list[CatalogView] = []
        self._looks = False

    def look_soon(self) -> None:
        """There may be something to do: an epoch, a schema, or Spark is up."""
        if not self._looks:
            self._looks = True
            self.soon(self._look)

    def fail(self, error: Exception) -> None:
        """A view could not be written, or Spark has died: the process hears of it."""
        if self.alive:
            self.end()
            self._attempt.on_failure(error)

    def _look(self) -> None:
        self._looks = False
        merger = self._attempt.merger
        if self.over or self._due or self._is_correcting:
            return
        if self._attempt.process.spark_is_up or not self._attempt.schemas:
            self._declare()
        if self._epoch is None:
            if not merger.alive:
                self.fail(RunFailedError("the actor merger died"))
                return
            if not merger.epochs:
                return
            self._epoch = merger.epochs.pop(0)
        self._materialize(self._epoch)

    def _declare(self) -> None:
        schemas = self._attempt.schemas
        if schemas == self._declared:
            return
        self._plans = tuple(view for view in self._world.views if view.sources <= schemas)
        new = any(view.name not in self._known for view in self._plans)
        self._declared = schemas
        coordinator = self._attempt.coordinator
        # A call that is waited for: it keeps its order.
        coordinator.tell_now(coordinator.views_declared, schemas, new)

    def _materialize(self, epoch: EpochBlocks) -> None:
        is_empty = not epoch.blocks and not epoch.corrections
        if epoch.barrier.kind is BarrierKind.INITIAL or (not self._plans and is_empty):
            self._tell(epoch, CollectReport(MATERIALIZER, epoch.epoch))
            return
        read = {*epoch.blocks, *(each.source for each in epoch.corrections)}
        if not self._attempt.process.spark_is_up or not read <= self._attempt.schemas:
            return
        self._declare()
        self._take_rows(epoch)
        self._due = [
            view for view in self._plans if view.name not in self._versions or view.sources & self._spans.keys()
        ]
        for view in self._due:
            self.soon(self._bring_up_to_date, view, epoch)
        for source, blocks in epoch.blocks.items():
            if source in self._world.stored_rows:
                view = self._world.stored_rows[source]
                self._due.append(view)
                self.soon(self._store_rows, view, blocks, epoch)
        if not self._due:
            self._correct(epoch)

    def _take_rows(self, epoch: EpochBlocks) -> None:
        """Raises RunFailedError when the rows of an epoch are gone with their actor, or kill Spark."""
        for block in (block for blocks in epoch.blocks.values() for block in blocks):
            if not self._attempt.fetchers[block.origin].alive:
                raise RunFailedError(f"Spark failed over the rows of an epoch: the blocks of {block.origin} are lost")
            if any(self._world.bucket.contents[span.file].kills == "spark" for span in block.ref.spans):
                raise RunFailedError("Spark failed over the rows of an epoch: out of memory")
        self._spans = {
            source: tuple(span for block in blocks for span in block.ref.spans)
            for source, blocks in epoch.blocks.items()
        }

    def _bring_up_to_date(self, view: ModelView, epoch: EpochBlocks) -> None:
        """Computes a view, and writes it: its partials first, if they are apart."""
        spans = [span for source, each in self._spans.items() if source in view.sources for span in each]
        version = self._versions.get(view.name)
        if version is None:
            version = self._create(view, epoch.epoch, spans)
        elif spans:
            version = self._write(view, version, spans)
        self._written(view, version, epoch)

    def _store_rows(self, view: ModelView, blocks: Sequence[Block], epoch: EpochBlocks) -> None:
        """Makes what was staged visible."""
        stored = [block.stored for block in blocks if block.stored is not None]
        staged = [self._root.staged_rows(each.path, name) for each in stored for name in each.fragments]
        rows = [span for spans in staged for span in spans or ()]
        version = self._versions.get(view.name)
        if version is None:
            path = stored[0].path
            number = self._root.commit_view(path, 0, view.after(None, rows))
        else:
            path = version.path
            kept = self._root.view_rows(path, version.version)
            number = self._root.commit_view(path, version.version, view.after(kept, rows))
        self._written(view, ViewVersion(view.name, path, number), epoch)

    def _written(self, view: ModelView, version: ViewVersion, epoch: EpochBlocks) -> None:
        self._versions[view.name] = version
        self._due.remove(view)
        if not self._due:
            self._correct(epoch)

    def _correct(self, epoch: EpochBlocks) -> None:
        """Puts files in place of what is stored of them; then the views are computed from what is stored."""
        self._is_correcting = True
        corrected = {each.source for each in epoch.corrections}
        for source in sorted(corrected):
            last = {each.path: each for each in epoch.corrections if each.source == source}
            self._replace_rows(self._world.stored_rows[source], source, last)
        self._corrected = [
            view for view in self._plans if view.name in self._versions and not corrected.isdisjoint(view.sources)
        ]
        for view in self._corrected:
            self.soon(self._compute_again, view, epoch)
        if not self._corrected:
            self._report_views(epoch)

    def _replace_rows(self, view: ModelView, source: str, corrections: Mapping[str, Correction]) -> None:
        staged = [
            span
            for each in corrections.values()
            for block in each.stored
            for name in block.fragments
            for span in self._root.staged_rows(block.path, name) or ()
        ]
        version = self._versions.get(view.name)
        if version is not None:
            kept = [
                span for span in self._root.view_rows(version.path, version.version) if span.file[1] not in corrections
            ]
            number = self._root.commit_view(version.path, version.version, view.after(kept, staged))
            self._versions[view.name] = ViewVersion(view.name, version.path, number)
        elif staged:
            path = next(block.path for each in corrections.values() for block in each.stored)
            number = self._root.commit_view(path, 0, view.after(None, staged))
            self._versions[view.name] = ViewVersion(view.name, path, number)

    def _compute_again(self, view: ModelView, epoch: EpochBlocks) -> None:
        stored = [self._versions.get(self._world.stored_rows[source].name) for source in sorted(view.sources)]
        rows = [span for each in stored if each is not None for span in self._root.view_rows(each.path, each.version)]
        self._versions[view.name] = self._write(view, self._versions[view.name], rows, anew=True)
        self._corrected.remove(view)
        if not self._corrected:
            self._report_views(epoch)

    def _create(self, view: ModelView, epoch: int, spans: list[Span]) -> ViewVersion:
        kept = view.after(None, spans)
        path, state_path = f"views/{view.name}-{epoch}.lance", f"view_state/{view.name}-{epoch}.lance"
        version = self._root.commit_view(path, 0, view.result(kept))
        self._created.append(
            CatalogView(view.name, "append", view.name, view.name, tuple(sorted(view.sources)), (), epoch)
        )
        if not view.has_state:
            return ViewVersion(view.name, path, version)
        return ViewVersion(view.name, path, version, state_path, self._root.commit_view(state_path, 0, kept))

    def _write(self, view: ModelView, version: ViewVersion, spans: list[Span], *, anew: bool = False) -> ViewVersion:
        if version.state_path is None or version.state_version is None:
            kept = view.after(None if anew else self._root.view_rows(version.path, version.version), spans)
            number = self._root.commit_view(version.path, version.version, kept)
            return ViewVersion(view.name, version.path, number)
        before = None if anew else self._root.view_rows(version.state_path, version.state_version)
        kept = view.after(before, spans)
        state_number = self._root.commit_view(version.state_path, version.state_version, kept)
        number = self._root.commit_view(version.path, version.version, view.result(kept))
        return ViewVersion(view.name, version.path, number, version.state_path, state_number)

    def _report_views(self, epoch: EpochBlocks) -> None:
        self._is_correcting = False
        created, self._created = tuple(self._created), []
        self._known |= {view.name for view in created}
        self._spans = {}
        report = CollectReport(MATERIALIZER, epoch.epoch, views=dict(self._versions), created=created)
        self._tell(epoch, report)

    def _tell(self, epoch: EpochBlocks, report: CollectReport) -> None:
        self._epoch = None
        merger, coordinator = self._attempt.merger, self._attempt.coordinator
        merger.tell(merger.release, epoch.epoch)
        coordinator.tell(coordinator.collect, report)
        self._world.interruptions.planned(f"{self.name} collects")
        if epoch.barrier.is_stop:
            self.over = True
        else:
            self.look_soon()
