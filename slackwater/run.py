"""A pipeline that runs in the background of this process."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType

import structlog

from actors.attempt_plan import AttemptPlan, RunTotals
from actors.messages import Throttle
from actors.pipeline_definition import PipelineDefinition
from actors.recovery_policy import RecoveryPolicy
from actors.run_client import connect_ray, disconnect_ray
from actors.run_state import RunState
from slackwater.attempt import Attempt
from slackwater.command_loop import CommandLoop
from slackwater.run_progress import RunProgress
from slackwater.run_requests import RunRequests
from slackwater.run_status import RunReport, RunStatus, SourceStatus
from slackwater.settings import Settings
from slackwater.spark_application import SparkApplication
from spark_bridge.session import prepare_java
from spark_bridge.view_definition import ViewDefinition
from state.clock import Clock
from state.command import ThrottleCommand
from state.command_inbox import CommandInbox
from state.errors import FencedError, RunFailedError, SettingsError, SlackwaterError
from state.lance_root import LanceRoot
from state.owner import Ownership

__all__ = ["Run", "RunReport", "RunStatus", "SourceStatus"]

CAUGHT_UP = "caught_up"
_NEXT_ATTEMPT = sys.maxsize
_SHOWN_PHASES = ("running", "paused", "stopping")
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
        replaces_term: int,
        clock: Clock,
    ) -> None:
        self._definition, self._views = definition, views
        self._ownership, self._replaces_term, self._clock = ownership, replaces_term, clock
        self._policy = RecoveryPolicy(settings.recovery)
        self._started_s = clock.monotonic()
        self._seconds: float | None = None
        self._news = threading.Condition()
        self._attempt: Attempt | None = None
        self._state = RunState(version=0, phase="starting", term=0, epoch=0)
        self._progress = RunProgress(source.name for source in definition.sources)
        self._recovering = ""
        self._recoveries = 0
        self._failure: Exception | None = None
        self._over = False
        sources = (source.name for source in definition.sources)
        self._requests = RunRequests(LanceRoot(definition.root, clock), sources, self._news)
        self._mark = 1
        self._mark_was_reached = False
        prepare_java()
        spark = settings.spark
        self._spark = SparkApplication(spark, f"slackwater-{ownership.run_id}")
        self._owns_ray = connect_ray(
            address=settings.ray.address,
            num_cpus=settings.ray.num_cpus or spark.num_executors * spark.executor_cores + 1,
            namespace=settings.ray.namespace,
        )
        self._spark.start()
        inbox = CommandInbox(definition.root, clock)
        self._commands = CommandLoop(inbox, ownership, self._requests, lambda: self._failure)
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
            state, attempt, recovering = self._state, self._attempt, self._recovering
        phase = "recovering" if recovering and state.phase not in ("stopping", "stopped") else state.phase
        return RunStatus(
            phase="failed" if self._failure is not None else phase,
            epoch=state.epoch,
            epochs=state.epochs,
            sources=self._progress.sources(state),
            views={} if attempt is None else attempt.view_classes,
            spark="ready" if self._spark.session.done() else "starting",
            message=recovering or self._message(state),
            caught_up=state.reached_mark >= self._mark,
            recoveries=self._recoveries,
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
        if until == CAUGHT_UP and self._mark_was_reached and not self._over:
            self._renew_mark()
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
        self._requests.pause()

    def resume(self) -> None:
        """Takes a `pause` back."""
        self._requests.resume()

    def throttle(self, *, files_per_second: float | None = None, bytes_per_second: float | None = None) -> None:
        """From the next barrier on no more is opened and read than this each second; None for no limit.

        Raises:
            UsageError: a limit is not above zero.
        """
        limits = ThrottleCommand(files_per_second=files_per_second, bytes_per_second=bytes_per_second)
        self._requests.throttle(Throttle(limits.files_per_second, limits.bytes_per_second))

    def retry(self, source: str | None = None, path: str | None = None) -> int:
        """Reads quarantined files again, each behind the rows that were read.

        Returns when that is committed: they are in the queue.

        Args:
            source: only this source's.
            path: only this one: its whole URL, or its path below a source.

        Returns:
            How many files.

        Raises:
            NotFoundError: there is no such source, or no such quarantined file.
            CommandRefusedError: the run ends.
        """
        return self._requests.retry(source, path)

    def stop(self) -> RunReport:
        """Ends the run after a last epoch; half-read files go on at their row in the next run.

        Raises:
            SlackwaterError: what ended the run before it could stop.
        """
        self._stop_quietly()
        if self._failure is not None:
            raise self._failure
        return self.report()

    def report(self) -> RunReport:
        """What the run did so far."""
        with self._news:
            state = self._state
        sources = self._progress.sources(state)
        return RunReport(
            epochs=state.epochs,
            files=state.totals.files,
            rows=state.totals.rows,
            bytes=state.totals.bytes,
            requests=sum(source.requests for source in sources.values()),
            seconds=self._seconds if self._seconds is not None else self._clock.monotonic() - self._started_s,
            quarantined=sum(source.quarantined for source in sources.values()),
            recoveries=self._recoveries,
            notes=tuple(self._notes(state, sources)),
        )

    # -- the control thread ----------------------------------------------------------------------------------------

    def _control(self) -> None:
        """One attempt after the other, until one stops gracefully or none is to follow."""
        plan = AttemptPlan(self._ownership.run_id, replaces_term=self._replaces_term)
        try:
            while (failure := self._try(plan)) is not None:
                plan = self._plan_after(plan, failure)
        except Exception as error:
            self._fail(error)
        finally:
            self._clean_up()

    def _try(self, plan: AttemptPlan) -> Exception | None:
        """Runs one attempt to its end.  Returns what it failed with; None if it stopped gracefully."""
        attempt = Attempt(definition=self._definition, plan=plan, views=self._views, spark=self._spark)
        try:
            recovered = attempt.start()
            self._progress.begin(recovered, self._state)
            self._publish(attempt.state)
            self._ownership.update(term=recovered.term, phase="running")
            with self._news:
                self._attempt, self._recovering = attempt, ""
                if self._mark == _NEXT_ATTEMPT:
                    self._mark = attempt.mark()
            self._requests.begin(attempt)
            attempt.follow(self._publish)
            return None
        except Exception as error:
            return error
        finally:
            with self._news:
                self._attempt = None
                self._news.notify_all()
            self._requests.end()
            attempt.end()

    def _plan_after(self, plan: AttemptPlan, error: Exception) -> AttemptPlan:
        """How the next attempt begins; waits until it may.  Raises the error if there is to be none."""
        state = self._state
        self._policy.forgive(self._requests.take_retried())
        following = self._policy.on_failure(error, state, self._clock.monotonic())
        if following is None or self._requests.stopping:
            raise error
        self._recoveries += 1
        lost = self._spark.replace_if_lost()
        reason = f"{error}; {'a new Spark application starts; ' if lost else ''}going on from epoch {state.epoch}"
        _log.warning("recovering", reason=str(error), attempt=plan.number + 1, pause_s=following.pause_s)
        self._ownership.update(phase="recovering", last_error=str(error))
        with self._news:
            self._recovering = reason
            # The listing that the next attempt begins with is younger than every mark so far.
            self._mark, self._state = 1, replace(state, reached_mark=0)
            self._news.wait_for(lambda: self._requests.stopping, following.pause_s)
        return replace(
            plan,
            number=plan.number + 1,
            held_root=plan.held_root or state.term > 0,
            so_far=RunTotals(state.epoch, state.epochs, state.totals),
            files_at_once=following.files_at_once,
            poisoned=following.poisoned,
        )

    def _clean_up(self) -> None:
        """Ends whatever was started, in the reverse order; the run is over only then."""
        self._requests.end(for_good=True)
        steps: list[Callable[[], None]] = [self._spark.end]
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
            self._commands.join()
            if self._failure is not None:
                self._ownership.update(last_error=str(self._failure))
            self._ownership.release()
            with self._news:
                self._seconds = self._clock.monotonic() - self._started_s
                self._over = True
                self._news.notify_all()

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, SlackwaterError):
            error = RunFailedError(f"{type(error).__name__}: {error}; start the run again, it goes on where it stopped")
        _log.debug("run failed", error=str(error))
        with self._news:
            self._failure = error
            self._news.notify_all()

    def _publish(self, state: RunState) -> None:
        if self._ownership.lost:
            raise FencedError(
                f"{self._definition.root} was taken over by another process; this run has stopped for good"
            )
        before = self._state
        with self._news:
            self._state = state
            self._news.notify_all()
        if state.phase != before.phase and state.phase in _SHOWN_PHASES:
            self._ownership.update(phase=state.phase)
        if sum(each.listings for each in state.lists) > sum(each.listings for each in before.lists):
            self._ownership.update(last_listing=self._clock.now())
        if state.epochs > before.epochs:
            rows, files = state.totals.rows - before.totals.rows, state.totals.files - before.totals.files
            _log.info("committed", epoch=state.epoch, rows=rows, files=files, epochs=state.epochs - before.epochs)

    # -- what the user asks for ------------------------------------------------------------------------------------

    def _renew_mark(self) -> None:
        """From here on `caught_up` means a listing that begins after this call."""
        while not self._over:
            with self._news:
                self._mark_was_reached = False
                if (attempt := self._attempt) is None:
                    self._mark = _NEXT_ATTEMPT
                    return
            try:
                mark = attempt.mark()
            except RunFailedError:
                mark = _NEXT_ATTEMPT
            with self._news:
                if self._attempt is attempt and mark != _NEXT_ATTEMPT:
                    self._mark = mark
                    return
                # It has died: the control thread is about to notice.
                self._news.wait_for(lambda: self._attempt is not attempt or self._over)

    def _stop_quietly(self) -> None:
        self._requests.stop()
        self._thread.join()

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
