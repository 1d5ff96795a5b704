"""A pipeline that runs in the background of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, overload

from typing_extensions import Unpack

from actors.protocol.barrier import Pause, Resume, Throttle
from actors.protocol.run_state import RunState
from actors.sources.pipeline_definition import PipelineDefinition
from slackwater.running.run_control import RunControl
from slackwater.status.run_status import RunReport, RunStatus, SourceStatus
from slackwater.status.text import counted
from spark_bridge.analysis.view_definition import ViewDefinition, ViewOptions
from state.errors import SettingsError
from state.vnode import fetcher_bounds

__all__ = ["Run", "RunReport", "RunStatus", "SourceStatus"]

CAUGHT_UP = "caught_up"


class Run:
    """One run of a pipeline, made by `Pipeline.start`.  As a context manager it ends with a graceful `stop`."""

    def __init__(self, definition: PipelineDefinition, control: RunControl) -> None:
        self._definition, self._control = definition, control
        self._mark_was_reached = False

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
        """How far the run is, as of a moment ago."""
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
            views=self._control.views,
            backfills=self._control.backfills,
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
        )

    def wait(self, until: str | None = None, timeout_s: float | None = None) -> bool:
        """Waits until the run is over, or has caught up.

        Args:
            until: `"caught_up"`: every object of a listing that began after the start is done, quarantined or
                vanished, and committed; once that was so, the next call means a listing that begins after it.
                None: only the end of the run.
            timeout_s: seconds to wait at most; None for ever.

        Returns:
            Whether what was waited for has come.

        Raises:
            SlackwaterError: what ended the run.
        """
        if until not in (None, CAUGHT_UP):
            raise SettingsError(f"until={until!r}: it is None or {CAUGHT_UP!r}")
        if until == CAUGHT_UP and self._mark_was_reached and not self._control.is_over:
            self._control.renew_mark()
        with self._control.news:
            reached = self._control.news.wait_for(lambda: self._is_over(until), timeout_s)
            self._mark_was_reached = reached and until == CAUGHT_UP
        if self._control.failure is not None:
            raise self._control.failure
        return reached

    def _is_over(self, until: str | None) -> bool:
        caught_up = until == CAUGHT_UP and self._control.has_caught_up
        return self._control.is_over or self._control.failure is not None or caught_up

    def pause(self) -> None:
        """From the next barrier on nothing is listed or read; what was read is committed."""
        self._control.requests.change_flow(Pause())

    def resume(self) -> None:
        """Takes a `pause` back."""
        self._control.requests.change_flow(Resume())

    def throttle(
        self,
        *,
        files_per_second: float | None = None,
        bytes_per_second: float | None = None,
        rows_per_second: float | None = None,
    ) -> None:
        """From the next barrier on no more is opened, read and emitted each second; None for what the settings say.

        Raises:
            UsageError: a limit is not above zero.
        """
        self._control.requests.change_flow(Throttle(files_per_second, bytes_per_second, rows_per_second))

    def rescale(self, *, fetchers: int | tuple[int, int]) -> None:
        """Takes the run to another number of fetch actors, without stopping it.

        Returns when they share the work and the epoch of the barrier that made it so is over.  It stays so when the
        run recovers from a failure; the next start begins with its settings.

        Args:
            fetchers: 1 to 256; or the fewest and the most, between which the run chooses by how much there is to do.

        Raises:
            UsageError: there is no such number.
            CommandRefusedError: the run ends.
        """
        self._control.requests.rescale(*fetcher_bounds(fetchers))

    def retry(self, source: str | None = None, file: str | None = None) -> int:
        """Reads quarantined files again, each behind the rows that were read.

        Returns when that is committed: they are in the queue.

        Args:
            source: only this source's.
            file: only those that this names: a whole URL, or a glob over the paths below a source.

        Returns:
            How many files.

        Raises:
            NotFoundError: there is no such source, or no such quarantined file.
            CommandRefusedError: the run ends.
        """
        return self._control.requests.retry(source, file)

    def reingest(self, file: str, source: str | None = None) -> int:
        """Reads files of materialized sources once more, as they are now.

        Their rows come in place of all that the views hold of them, in one epoch, when all of a file is read.  Returns
        when they are in the queue, and that is committed.

        Args:
            file: which: a whole URL, an absolute path, or a glob over the paths below a source.
            source: only this source's.

        Returns:
            How many files.

        Raises:
            NotFoundError: there is no such source, no such file was ever listed, or one is gone.
            CommandRefusedError: their source is not materialized, a view cannot follow, or the run ends.
        """
        return self._control.corrections.reingest(file, source)

    def forget(self, file: str, source: str | None = None) -> int:
        """Takes files of materialized sources out of everything, in one epoch; returns when that is committed.

        They are not read again by themselves, unless they change.  Arguments and errors as `reingest`.
        """
        return self._control.corrections.forget(file, source)

    @overload
    def add_view(self, name_or_function: str, query: str, /, **options: Unpack[ViewOptions]) -> None: ...

    @overload
    def add_view(self, name_or_function: Callable[..., Any], /, **options: Unpack[ViewOptions]) -> None: ...

    def add_view(
        self,
        name_or_function: str | Callable[..., Any],
        query: str | None = None,
        /,
        **options: Unpack[ViewOptions],
    ) -> None:
        """Adds a view to the pipeline while it runs; arguments as `Pipeline.view`.

        Returns when it is analysed.  From the next epoch on it gets new rows; what was ingested before comes in pieces
        between the epochs, and when all of it is there the view is shown, complete.  `status().backfills` tells how
        far it is, and `wait(until="caught_up")` waits for it.  The next run keeps it only if it declares it too.

        Raises:
            ViewError: it cannot be built, or there is a view of the name.
            NotIncrementalError: it cannot be maintained epoch by epoch.
            DefinitionChangedError: the root has another view of the name; `replace=True` takes its place.
            CommandRefusedError: the run ends.
        """
        view = ViewDefinition.of(name_or_function, query, **options)
        self._control.add_view(view, view.may_read(source.name for source in self._definition.sources))

    def drop_view(self, name: str) -> None:
        """Ends a view with the next epoch; its files go when no retained epoch names them.

        Raises:
            ViewNotFoundError: there is no such view.
            CommandRefusedError: the run ends.
        """
        self._control.drop_view(name)

    def stop(self) -> RunReport:
        """Ends the run after a last epoch; half-read files go on at their row in the next run.

        Raises:
            SlackwaterError: what ended the run before it could stop.
        """
        self._stop_quietly()
        if self._control.failure is not None:
            raise self._control.failure
        return self.report()

    def report(self) -> RunReport:
        """What the run did so far."""
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
            quarantined=sum(source.quarantined for source in sources.values()),
            recoveries=self._control.recoveries,
            notes=tuple(self._notes(state, sources)),
        )

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
        notes = [
            f"source {source.name}: no file has shown a schema yet, so views over it do not exist yet"
            for source in self._definition.sources
            if source.name not in state.schemas
        ]
        notes += [
            f"source {name}: its files wait, since a view reads it with a source that has no schema yet; declare that"
            for name in sorted(state.closed)
        ]
        notes += [
            f"view {name} is not shown: {counted(len(late.missing), 'file')} that it needs gone or changed, first "
            f'{late.missing[0]}; bring them back and start again, or declare it with on_missing="allow"'
            for name, late in self._control.backfills.items()
            if late.missing
        ]
        notes += [
            f"source {name}: {counted(source.quarantined, 'file')} quarantined; see slackwater files ROOT "
            "--status quarantined"
            for name, source in sources.items()
            if source.quarantined
        ]
        notes += [
            f"source {name}: {counted(source.rows_bad, 'bad record')} quarantined; see slackwater quarantine ROOT"
            for name, source in sources.items()
            if source.rows_bad
        ]
        notes += [
            f"source {name}: {counted(source.messages.poison, 'poison message')} of its queue quarantined; see "
            "slackwater quarantine ROOT"
            for name, source in sources.items()
            if source.messages is not None and source.messages.poison
        ]
        return notes
