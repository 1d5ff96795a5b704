"""A pipeline that runs in the background of this process."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any

import pyarrow as pa
import structlog

from actors.messages import Mutation, Pause, Resume, Stop
from actors.pipeline_definition import PipelineDefinition
from actors.recovery import is_fenced
from actors.run_client import RunClient, connect_ray, disconnect_ray
from actors.run_state import RunState
from slackwater.materializer_loop import MaterializerLoop
from slackwater.run_status import RunReport, RunStatus, SourceStatus, source_statuses
from slackwater.settings import Settings
from spark_bridge.session import prepare_java, running_session, start_session, stop_session, warm_up
from spark_bridge.view_definition import ViewDefinition
from state.clock import Clock
from state.errors import CommitRefusedError, FencedError, RunFailedError, SettingsError, SlackwaterError
from state.owner import Ownership

__all__ = ["Run", "RunReport", "RunStatus", "SourceStatus"]

CAUGHT_UP = "caught_up"
# Ray and Spark are started by fork and exec: nothing of Lance runs in between.
warnings.filterwarnings("ignore", message="lance is not fork-safe")
_log = structlog.get_logger()


class Run:
    """One run of a pipeline, made by `Pipeline.start`.  As a context manager it ends with a graceful `stop`.

    It starts Ray and Spark if this process has none yet, and ends what it started.
    """

    def __init__(
        self,
        *,
        definition: PipelineDefinition,
        views: Sequence[ViewDefinition],
        settings: Settings,
        ownership: Ownership,
        clock: Clock,
    ) -> None:
        self._definition, self._views, self._settings = definition, views, settings
        self._ownership, self._clock = ownership, clock
        self._started_s = clock.monotonic()
        self._seconds: float | None = None
        self._news = threading.Condition()
        self._state = RunState(version=0, phase="starting", epoch=0)
        self._failure: Exception | None = None
        self._over = False
        self._client: RunClient | None = None
        self._loop: MaterializerLoop | None = None
        self._requests: list[Mutation] = []
        self._mark = 1
        self._mark_was_reached = False
        self._spark: Future[Any] = Future()
        self._borrowed_spark = running_session()
        prepare_java()
        spark = settings.spark
        self._owns_ray = connect_ray(
            address=settings.ray.address,
            num_cpus=settings.ray.num_cpus or spark.num_executors * spark.executor_cores + 1,
            namespace=settings.ray.namespace,
        )
        threading.Thread(target=self._start_spark, name="spark-start", daemon=True).start()
        self._thread = threading.Thread(target=self._control, name="run", daemon=True)
        self._thread.start()

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
        with self._news:
            state, loop = self._state, self._loop
        return RunStatus(
            phase="failed" if self._failure is not None else state.phase,
            epoch=state.epoch,
            epochs=state.epochs,
            sources={source.name: SourceStatus() for source in self._definition.sources} | source_statuses(state),
            views={} if loop is None else dict(loop.view_classes),
            spark="ready" if self._spark.done() else "starting",
            message=self._message(state),
            caught_up=state.reached_mark >= self._mark,
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
        if until == CAUGHT_UP and self._mark_was_reached and self._client is not None and not self._over:
            self._mark, self._mark_was_reached = self._client.mark(), False
        with self._news:
            reached = self._news.wait_for(lambda: self._is_over(until), timeout_s)
            self._mark_was_reached = reached and until == CAUGHT_UP
        if self._failure is not None:
            raise self._failure
        return reached

    def _is_over(self, until: str | None) -> bool:
        caught_up = until == CAUGHT_UP and self._state.reached_mark >= self._mark
        return self._over or self._failure is not None or caught_up

    def pause(self) -> None:
        """From the next barrier on nothing is listed or read; what was read is committed."""
        self._request(Pause())

    def resume(self) -> None:
        """Takes a `pause` back."""
        self._request(Resume())

    def stop(self) -> RunReport:
        """Ends the run after a last epoch; half-read files go on at their row in the next run.

        Raises:
            SlackwaterError: what ended the run before it could stop.
        """
        self._request(Stop())
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self.report()

    def report(self) -> RunReport:
        """What the run did so far."""
        with self._news:
            state = self._state
        sources = source_statuses(state)
        return RunReport(
            epochs=state.epochs,
            files=state.totals.files,
            rows=state.totals.rows,
            bytes=state.totals.bytes,
            requests=sum(source.requests for source in sources.values()),
            seconds=self._seconds if self._seconds is not None else self._clock.monotonic() - self._started_s,
            quarantined=sum(source.quarantined for source in sources.values()),
            notes=tuple(self._notes(state, sources)),
        )

    # -- the threads -----------------------------------------------------------------------------------------------

    def _start_spark(self) -> None:
        """Beside the first listing and fetching: a session takes longer to start than many buckets to read."""
        try:
            spark = self._borrowed_spark
            if spark is None:
                spark = start_session(self._settings.spark, f"slackwater-{self._ownership.run_id}")
                warm_up(spark)
            self._spark.set_result(spark)
        except Exception as error:
            self._spark.set_exception(error)

    def _control(self) -> None:
        try:
            self._follow()
        except Exception as error:
            self._fail(error)
        finally:
            self._clean_up()

    def _follow(self) -> None:
        """Starts the flow and follows it to its end."""
        client = RunClient(self._definition, f"slackwater-{self._ownership.run_id}")
        self._client = client
        recovered = client.start()
        self._ownership.update(term=recovered.term, phase="running")
        self._publish(client.watch(-1))
        loop = MaterializerLoop(
            client=client,
            root=self._definition.root,
            definitions=self._views,
            spark=self._spark,
            recovered=recovered,
            schemas=self._schemas,
        )
        with self._news:
            self._loop = loop
            requests, self._requests = self._requests, []
        for mutation in requests:
            client.request(mutation)
        while self._state.phase != "stopped":
            self._publish(client.watch(self._state.version))
            failure = self._state.failure or loop.failure
            refused = isinstance(failure, CommitRefusedError)
            if self._ownership.lost or (refused and is_fenced(self._definition.root, recovered.term, self._clock)):
                raise FencedError(
                    f"{self._definition.root} was taken over by another process; this run has stopped for good"
                )
            if failure is not None:
                raise failure
        client.join()

    def _clean_up(self) -> None:
        """Ends whatever was started, in the reverse order; the run is over only then."""
        steps: list[Callable[[], None]] = []
        if self._loop is not None:
            steps.append(self._loop.end)
        if self._client is not None:
            steps.append(self._client.close)
        steps.append(self._end_spark)
        if self._owns_ray:
            steps.append(disconnect_ray)
        try:
            for step in steps:
                try:
                    step()
                except Exception as error:
                    # What is dead already cannot be ended; what comes after must be.
                    _log.debug("could not be ended", step=step.__name__, error=str(error))
        finally:
            if self._failure is not None:
                self._ownership.update(last_error=str(self._failure))
            self._ownership.release()
            with self._news:
                self._seconds = self._clock.monotonic() - self._started_s
                self._over = True
                self._news.notify_all()

    def _end_spark(self) -> None:
        if self._spark.exception() is None and self._borrowed_spark is None:
            stop_session()

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, SlackwaterError):
            error = RunFailedError(f"{type(error).__name__}: {error}; start the run again, it goes on where it stopped")
        _log.debug("run failed", error=str(error))
        with self._news:
            self._failure = error
            self._news.notify_all()

    def _publish(self, state: RunState) -> None:
        before = self._state
        with self._news:
            self._state = state
            self._news.notify_all()
        if sum(each.listings for each in state.lists) > sum(each.listings for each in before.lists):
            self._ownership.update(last_listing=self._clock.now())
        if state.epochs > before.epochs:
            rows, files = state.totals.rows - before.totals.rows, state.totals.files - before.totals.files
            _log.info("committed", epoch=state.epoch, rows=rows, files=files, epochs=state.epochs - before.epochs)

    def _request(self, mutation: Mutation) -> None:
        with self._news:
            if self._over or self._failure is not None:
                return
            if self._loop is None:
                self._requests.append(mutation)
                return
        try:
            assert self._client is not None
            self._client.request(mutation)
        except RunFailedError:
            pass  # the control thread meets the same failure and keeps it for `wait` and `stop`

    def _stop_quietly(self) -> None:
        """Another error is already on its way to the user."""
        self._request(Stop())
        self._thread.join()

    def _schemas(self) -> Mapping[str, pa.Schema | None]:
        """Every source's schema, None while it is not decided."""
        with self._news:
            decided = self._state.schemas
        return {source.name: decided.get(source.name) for source in self._definition.sources}

    def _message(self, state: RunState) -> str:
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
            f"source {name}: {source.quarantined} files are quarantined; see slackwater files ROOT --status quarantined"
            for name, source in sources.items()
            if source.quarantined
        ]
        return notes
