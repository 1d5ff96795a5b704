"""The handle of a pipeline that runs in the background of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Literal, overload

from typing_extensions import Unpack

from actors.protocol.barrier import Pause, Resume, Throttle
from actors.protocol.run_state import RunState
from actors.schemas.column_names import names_text
from actors.sources.pipeline_definition import PipelineDefinition
from actors.telemetry.counted import values_of
from slackwater.commands.operations import Operation, Result, RunMethods
from slackwater.extensions.table_target import (
    CATCH_UP_S,
    TablePublication,
    Targets,
    check_publications,
    declared,
    places_of,
    published_views,
    require_own_names,
)
from slackwater.places.overlap_table import require_apart
from slackwater.running.run_control import RunControl
from slackwater.status.run_status import MaintainedStatus, RunReport, RunStatus, SourceStatus, ViewStatus
from slackwater.status.text import counted, shell_root
from slackwater.tables.table_rows import table_rows
from spark_bridge.plans.view_definition import ViewDefinition, ViewOptions
from state.clock import SystemClock
from state.errors import SettingsError

__all__ = ["Run", "RunReport", "RunStatus", "SourceStatus"]

CAUGHT_UP: Literal["caught_up"] = "caught_up"


class Run(RunMethods):
    """One run of a pipeline, made by `Pipeline.start`.  As a context manager it ends with a graceful `stop`."""

    def __init__(self, definition: PipelineDefinition, control: RunControl) -> None:
        self._definition, self._control = definition, control

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.stop()
        else:
            self._stop_quietly()

    def status(self) -> RunStatus:
        """The status of the run, a moment ago."""
        with self._control.news:
            state, recovering, recoveries = self._control.state, self._control.recovering, self._control.recoveries
        phase = "recovering" if recovering and state.phase not in ("stopping", "stopped") else state.phase
        return RunStatus(
            phase="failed" if self._control.failure is not None else phase,
            epoch=state.epoch,
            epochs=state.epochs,
            sources={
                name: self._control.meter.measured(name, source)
                for name, source in self._control.progress.sources(state).items()
            },
            **values_of(MaintainedStatus, self._control.maintained),
            spark="ready" if self._control.spark_is_ready else "starting",
            message=recovering or self._message(state),
            caught_up=self._control.has_caught_up,
            recoveries=recoveries,
            fetchers=state.num_fetchers,
            scaling=state.scaling,
            in_flight=self._control.meter.in_flight(state),
            recent=state.recent,
            edges=self._control.meter.edges(state),
            seconds=self._control.seconds,
            startup=self._control.startup.all(),
            publications=self._control.published,
            after_commit=self._control.after_commit,
        )

    @property
    def _news(self) -> tuple[int, int, bool]:
        """A value that differs from an earlier one if the run has changed since."""
        control = self._control
        return control.state.version, control.recoveries, control.spark_is_ready

    def wait(self, until: Literal["caught_up"] | None = None, timeout_s: float | None = None) -> bool:
        """Waits until the run is over, or has caught up.

        Args:
            until: `"caught_up"`: every object of a listing that begins after this call is done, quarantined or
                vanished, and committed.  None: only the end of the run.
            timeout_s: the longest wait in seconds; None waits forever.

        Returns:
            True if the condition holds, False after the timeout.

        Raises:
            SlackwaterError: the error that ended the run.
        """
        if until not in (None, CAUGHT_UP):
            raise SettingsError(f"until={until!r}: give None or {CAUGHT_UP!r}")
        reached = self._control.wait(timeout_s) if until is None else self._control.catch_up(timeout_s)
        return self._or_failure(reached)

    def _wait_since_start(self, until: Literal["caught_up"] | None, timeout_s: float) -> bool:
        """The same for `Pipeline.run`, which waits piece by piece: a listing that began after the start is enough."""
        return self._or_failure(self._control.wait(timeout_s, since_start=until == CAUGHT_UP))

    def _or_failure(self, reached: bool) -> bool:
        if self._control.failure is not None:
            raise self._control.failure
        return reached

    def pause(self) -> None:
        """Pauses listing and reading from the next barrier on; rows that are read are committed."""
        self._control.requests.change_flow(Pause())

    def resume(self) -> None:
        """Resumes after a `pause`."""
        self._control.requests.change_flow(Resume())

    def throttle(
        self,
        *,
        files_per_second: float | None = None,
        bytes_per_second: float | None = None,
        rows_per_second: float | None = None,
    ) -> None:
        """Limits the fetch actors from the next barrier on; None for the limit of the settings.

        Raises:
            UsageError: a limit is not above zero.
        """
        self._control.requests.change_flow(Throttle(files_per_second, bytes_per_second, rows_per_second))

    def _carry_out(self, operation: Operation[Result]) -> Result:
        return operation.on_run(self._control.commanded)

    def replace_table(self, name: str, data: Any) -> None:
        """Replaces the rows of a static table that came with the pipeline: in all views, in one epoch.

        Returns when the new rows are in the queue, and that is committed.  The next runs keep them until the pipeline
        declares other rows than it does now.

        Args:
            name: of the table.
            data: as in `Pipeline.table`, with the columns of the table.

        Raises:
            SchemaError: it has other columns.
            SettingsError: it is no table, or too large.
            CommandRefusedError: there is no such table, a view cannot be corrected, or the run ends.
        """
        self._control.corrections.replace_table(name, table_rows(name, data))

    @overload
    def add_view(
        self, name_or_function: str, query: str, /, *, publish: Targets = (), **options: Unpack[ViewOptions]
    ) -> None: ...

    @overload
    def add_view(
        self, name_or_function: Callable[..., Any], /, *, publish: Targets = (), **options: Unpack[ViewOptions]
    ) -> None: ...

    def add_view(
        self,
        name_or_function: str | Callable[..., Any],
        query: str | None = None,
        /,
        *,
        publish: Targets = (),
        **options: Unpack[ViewOptions],
    ) -> None:
        """Adds a view to the pipeline while it runs; arguments as `Pipeline.view`, also `publish`.

        Returns when the view is analysed.  From the next epoch on, it gets new rows; a backfill adds the earlier rows
        in pieces between the epochs, and the view is shown when it is complete.  `status().backfills` has the
        progress, and `wait(until="caught_up")` waits for the view.  The next run keeps it only if it declares it too.

        Raises:
            ViewError: the view cannot be built, or its name is taken.
            NotIncrementalError: the view cannot be maintained epoch by epoch.
            DefinitionChangedError: the root has another view of this name; `replace=True` replaces it.
            CommandRefusedError: the run ends.
            SettingsError, UsageError, SchemaError, CommitRefusedError, StorageError: a table of `publish` is none, or
                cannot be written; see `publish`.
        """
        view = ViewDefinition.of(name_or_function, query, **options)
        publications = self._publications_of(view.name, publish)
        self._control.declared.add(view, published_views(publications))
        if publications:
            self._control.publish(publications)

    def _publications_of(self, view: str, publish: Targets) -> tuple[TablePublication, ...]:
        """The tables that are to follow a view from now on: they can be reached, and no other view has them."""
        root, known = self._definition.root, self._control.publishing
        publications = tuple(each for each in declared(view, publish, root) if each not in known)
        if publications:
            require_own_names((*known, *publications))
            added = places_of(publications)
            places = [*self._control.places, *places_of(known)]
            require_apart([*places, *added], new=added)
            check_publications(publications, root, SystemClock(), places)
        return publications

    def drop_view(self, name: str, *, cascade: bool = False) -> None:
        """Ends a view with the next epoch; its files are deleted when no retained epoch uses them.

        Args:
            name: of the view.
            cascade: whether the views that read it end with it.

        Raises:
            ViewNotFoundError: there is no such view.
            CommandRefusedError: other views read it, and `cascade` is not given; or the run ends.
        """
        self._control.declared.drop(name, cascade=cascade)

    def stop(self) -> RunReport:
        """Ends the run after a last epoch; the next run continues half-read files at their rows.

        Raises:
            SlackwaterError: the error that ended the run before it could stop.
        """
        self._stop_quietly()
        if self._control.failure is not None:
            raise self._control.failure
        return self.report()

    def report(self) -> RunReport:
        """The report of the run up to now."""
        with self._control.news:
            state = self._control.state
        sources = self._control.progress.sources(state)
        return RunReport(
            epochs=state.epochs,
            files=state.totals.files,
            rows=state.totals.rows,
            bytes=state.totals.bytes,
            requests=sum(source.requests for source in sources.values()),
            seconds=self._control.seconds,
            quarantined=sum(max(0, source.quarantined - source.before.quarantined) for source in sources.values()),
            recoveries=self._control.recoveries,
            notes=tuple(self._notes(state, sources)),
            publications=self._control.published,
            paused_sources={name: source.paused for name, source in sources.items() if source.paused},
        )

    def _complete_publications(self) -> None:
        """The end of the run waits longer for publications: its purpose is to bring everything up to date."""
        self._control.publishing_limit_s = CATCH_UP_S

    def _abandon(self) -> bool:
        """Gives the root back if the run is still starting, before its process ends.  Returns whether it did."""
        return self._control.abandon()

    def _stop_quietly(self) -> None:
        self._control.requests.stop()
        self._control.join()

    def _message(self, state: RunState) -> str:
        if starting := self._control.startup.waits_for():
            return starting
        waiting = [source.name for source in self._definition.sources if source.name not in state.schemas]
        if not waiting or state.phase != "running" or any(lister.sent for lister in state.lists):
            return ""
        return f"waiting for a first file in {', '.join(waiting)}"

    def _notes(self, state: RunState, sources: Mapping[str, SourceStatus]) -> list[str]:
        root = shell_root(self._definition.root)
        notes = [
            f"source {source.name}: no file has given it a schema yet, so its views do not exist yet"
            for source in self._definition.sources
            if source.name not in state.schemas
        ]
        notes += [
            f"source {name}: its files wait for the schema of another source of the same view; declare that schema"
            for name in sorted(state.closed)
        ]
        notes += [
            f"view {name} is not shown: {counted(len(backfill.missing), 'file')} that it needs deleted or changed, "
            f'first {backfill.missing[0]}; restore them and start again, or declare the view with on_missing="allow"'
            for name, backfill in self._control.maintained.backfills.items()
            if backfill.missing
        ]
        notes += [
            f"view {name} has failed, and {_standing(view)}: {view.error}; correct it or the row, and rebuild it: "
            f"slackwater retry {root} --view {name}"
            for name, view in self._control.maintained.views.items()
            if view.error is not None
        ]
        notes += [
            f"view {each.view}: {each.table} lacks {counted(each.behind_epochs, 'epoch')}"
            f"{'' if each.error is None else f' ({each.error})'}; the next run goes on"
            for each in self._control.published
            if each.behind_epochs
        ]
        notes += [
            f"source {each.source}, {each.action}: {each.error}; the next run tries it again"
            for each in self._control.after_commit
            if each.error is not None
        ]
        notes += [f"source {name} is paused: {source.paused}" for name, source in sources.items() if source.paused]
        notes += [
            f"source {name}: removals are paused, {counted(source.paused_removals, 'missing file')} stayed in the "
            f"views; restore the files, or let them go: slackwater allow-removals {root} in a run, or "
            "on_change=Replace(max_removed_share=...)"
            for name, source in sources.items()
            if source.paused_removals
        ]
        notes += [
            f"source {name}: files lack {names_text(source.filled_columns)}, null in their rows; slackwater status "
            f'{root} names the first of them, and Schema(evolution="strict") quarantines such files'
            for name, source in sources.items()
            if source.filled_columns
        ]
        notes += [
            f"source {name}: {counted(source.quarantined, 'file')} quarantined; see slackwater files {root} "
            "--status quarantined"
            for name, source in sources.items()
            if source.quarantined
        ]
        notes += [
            f"source {name}: {counted(source.rows_bad, 'bad record')} quarantined; see slackwater quarantine {root}"
            for name, source in sources.items()
            if source.rows_bad
        ]
        notes += [
            f"source {name}: {counted(source.messages.poison, 'poison message')} of its queue quarantined; see "
            f"slackwater quarantine {root}"
            for name, source in sources.items()
            if source.messages is not None and source.messages.poison
        ]
        return notes


def _standing(view: ViewStatus) -> str:
    return "has no rows" if view.stale_epoch is None else f"is stale since epoch {view.stale_epoch}"
