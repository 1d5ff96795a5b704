"""The materializer: `slackwater.running.materializer_loop` and `spark_bridge.materializer`, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from actors.protocol.barrier import BarrierKind
from actors.protocol.blocks import Block, Correction
from actors.protocol.reports import CollectReport, EpochBlocks
from actors.protocol.run_state import Recovered
from actors.shells.coordinator_shell import CoordinatorShell
from actors.shells.exchange_shells import MergerShell
from actors.shells.runtime import Actor, ActorDiedError
from actors.sources.pipeline_definition import MATERIALIZER
from slackwater.testing.simulation.hosting.simulated_runtime import SimulatedRuntime, judge
from slackwater.testing.simulation.promises.model_view import ModelBackfill, ModelView, history_of
from slackwater.testing.simulation.world.file_rows import Span
from slackwater.testing.simulation.world.interruptions import Killed
from slackwater.testing.simulation.world.schedule import Life
from slackwater.testing.simulation.world.simulated_root import SimulatedRoot
from state.errors import RunFailedError, SlackwaterError
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import next_name

if TYPE_CHECKING:
    from slackwater.testing.simulation.hosting.attempt import SimulatedAttempt


class SimulatedMaterializer(Life):
    """Brings the model views up to date, one after the other in any order, and reports the epoch.

    Args:
        attempt: the attempt that it is part of.
        recovered: the state where the attempt begins.
    """

    def __init__(self, attempt: SimulatedAttempt, recovered: Recovered) -> None:
        super().__init__(MATERIALIZER, attempt)
        self._attempt, self._world = attempt, attempt.world
        self._runtime = SimulatedRuntime(self, self._world)
        self._merger: Actor[MergerShell] = recovered.merger
        self.over = False
        self._is_taking = False
        self._root = SimulatedRoot(self._world.disk, self._world.clock, self._world.access(self))
        self._versions = {name: each for name, each in recovered.views.items() if each.pinned_epoch is None}
        self._begun = {name: each for name, each in recovered.views.items() if each.pinned_epoch is not None}
        self._recovered = recovered
        self._known = set(recovered.catalog_views)
        self._late: ModelBackfill | None = None
        self._plans: tuple[ModelView, ...] = ()
        self._declared: frozenset[str] | None = None
        self._epoch: EpochBlocks | None = None
        self._spans: Mapping[str, tuple[Span, ...]] = {}
        self._due: list[ModelView] = []
        self._corrected: list[ModelView] = []
        self._is_correcting = False
        self._is_catching_up = False
        self._created: list[CatalogView] = []
        self._dropped: list[str] = []
        self._looks = False

    def look_soon(self) -> None:
        """Looks for work at some moment: there may be an epoch, a schema, or Spark."""
        if not self._looks:
            self._looks = True
            self.soon(self._look)

    def soon(self, action: Callable[..., None], *arguments: Any) -> None:
        """Something happens at some moment."""
        self._world.schedule.soon(self, self.act, action, *arguments)

    def act(self, action: Callable[..., None], *arguments: Any) -> None:
        """Does it now; an error ends the materializer, and one that shows a bug ends the simulation."""
        try:
            action(*arguments)
        except Killed:
            pass
        except SlackwaterError as error:
            judge(error, self.name)
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Ends the materializer: a view could not be written, or Spark has died.  The process hears of it."""
        if self.alive:
            self.end()
            self._attempt.on_failure(error)

    def _look(self) -> None:
        self._looks = False
        if self.over or self._due or self._is_correcting or self._is_catching_up:
            return
        if self._attempt.process.spark_is_up or not self._attempt.schemas:
            self._declare()
        if self._epoch is None:
            self._take_soon()
            self._catch_up()
            return
        self._materialize(self._epoch)

    def _take_soon(self) -> None:
        if not self._is_taking:
            self._is_taking = True
            self._runtime.beside(self._take)

    async def _take(self) -> None:
        try:
            self._epoch = await self._runtime.call(self._merger, MergerShell.take)
        except ActorDiedError:
            self.fail(RunFailedError("the actor merger died"))
            return
        self._is_taking = False
        self.look_soon()

    def _declare(self) -> None:
        schemas = self._attempt.schemas
        if schemas == self._declared:
            return
        views = [view for view in self._attempt.process.views if view.sources <= schemas]
        late = next((view for view in views if self._is_late(view)), None)
        if late is not None and self._late is None:
            self._late = ModelBackfill(late, self._begun.get(next_name(late.name)))
        self._plans = tuple(view for view in views if self._late is None or view is not self._late.view)
        self._declared = schemas
        self._tell_declared(any(view.name not in self._known for view in self._plans) or self._late is not None)

    def _is_late(self, view: ModelView) -> bool:
        """True for a view with rows that were ingested before it was declared."""
        is_begun = next_name(view.name) in self._begun
        return view.name not in self._versions and (is_begun or bool(view.sources & self._recovered.ingested))

    def _tell_declared(self, has_news: bool) -> None:
        # A call that is waited for: it keeps its order.
        self._runtime.tell_now(
            self._attempt.coordinator,
            CoordinatorShell.views_declared,
            self._declared,
            has_news,
            {},
            self._late is not None,
        )

    def _catch_up(self) -> None:
        """Brings the backfill a piece further while no epoch waits."""
        late = self._late
        if late is None or late.version is None or late.is_complete or self._attempt.state.epoch < late.pinned_epoch:
            return
        self._is_catching_up = True
        if late.needs_history:
            late.open(self._history(late))
        spans = late.next_spans()
        if spans:
            late.on_piece(spans, self._write(late.view, late.version, spans))
        self._is_catching_up = False
        self._tell_declared(True)
        self.look_soon()

    def _history(self, late: ModelBackfill) -> list[Span]:
        store = self._root.open(read_only=True)
        version = max(each.state_version for each in store.epochs() if each.epoch <= late.pinned_epoch)
        ledger, queue = (store.rows(table, version) for table in ("ledger", "queue"))
        return history_of(ledger, queue, self._world.bucket.contents, late.view.sources)

    def _materialize(self, epoch: EpochBlocks) -> None:
        is_empty = not epoch.blocks and not epoch.corrections
        if epoch.barrier.kind is BarrierKind.INITIAL or (not self._plans and is_empty):
            self._tell(epoch, CollectReport(MATERIALIZER, epoch.epoch))
            return
        read = {*epoch.blocks, *(each.source for each in epoch.corrections if each.stored)}
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
        late = self._late
        if late is not None and (late.version is None or late.view.sources & self._spans.keys()):
            self._due.append(late.view)
            self.soon(self._bring_late, late, epoch)
        if not self._due:
            self._correct(epoch)

    def _take_rows(self, epoch: EpochBlocks) -> None:
        """Raises RunFailedError when the rows of an epoch are gone with their actor, or kill Spark."""
        for block in (block for blocks in epoch.blocks.values() for block in blocks):
            if not self._attempt.actors.by_name[block.origin].alive:
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

    def _bring_late(self, late: ModelBackfill, epoch: EpochBlocks) -> None:
        """`_bring_up_to_date` for the backfill."""
        spans = [span for source, each in self._spans.items() if source in late.view.sources for span in each]
        if late.version is None:
            late.on_created(epoch.epoch, self._create(late.view, epoch.epoch, spans))
            self._created.append(replace(self._created.pop(), name=next_name(late.view.name)))
        else:
            late.version = self._write(late.view, late.version, spans)
        self._due.remove(late.view)
        if not self._due:
            self._correct(epoch)

    def _store_rows(self, view: ModelView, blocks: Sequence[Block], epoch: EpochBlocks) -> None:
        """Makes staged rows visible."""
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
        """Replaces stored rows of corrected files; then the views are computed from all stored rows."""
        self._is_correcting = True
        corrected = {each.source for each in epoch.corrections}
        if self._late is not None and not corrected.isdisjoint(self._late.view.sources):
            self._begin_anew(self._late)
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

    def _begin_anew(self, late: ModelBackfill) -> None:
        """Begins the backfill again: its history has changed."""
        name = next_name(late.view.name)
        self._created = [each for each in self._created if each.name != name]
        self._dropped.append(name)
        self._late = ModelBackfill(late.view)
        self._tell_declared(True)

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
        late = self._late
        is_shown = late is not None and late.is_complete
        if late is not None and is_shown:
            self._show(late, epoch.epoch)
        created, self._created = tuple(self._created), []
        dropped, self._dropped = tuple(self._dropped), []
        self._known |= {view.name for view in created}
        self._spans = {}
        views = dict(self._versions)
        if self._late is not None and self._late.version is not None:
            views[next_name(self._late.view.name)] = self._late.recorded()
        self._tell(epoch, CollectReport(MATERIALIZER, epoch.epoch, views=views, created=created, dropped=dropped))
        if is_shown and not self.over:
            self._tell_declared(False)

    def _show(self, late: ModelBackfill, epoch: int) -> None:
        """The view is complete: from this epoch on it is one like all others."""
        view, self._late = late.view, None
        self._versions[view.name] = late.shown()
        self._plans = (*self._plans, view)
        self._created.append(CatalogView(view.name, "append", view.name, view.name, (*view.sources,), (), epoch))
        self._dropped.append(next_name(view.name))

    def _tell(self, epoch: EpochBlocks, report: CollectReport) -> None:
        self._epoch = None
        self._runtime.tell(self._merger, MergerShell.release, epoch.epoch)
        self._runtime.tell(self._attempt.coordinator, CoordinatorShell.collect, report)
        if epoch.barrier.is_stop:
            self.over = True
        else:
            self.look_soon()
