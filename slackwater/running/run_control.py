"""The control thread of a run: one attempt after the other, until one stops gracefully or no other may follow."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import structlog

from actors.hosting.ray_session import connect_ray, disconnect_ray, ray_address
from actors.protocol.run_state import RunState
from actors.recovery.attempt_plan import AttemptPlan, RunTotals
from actors.recovery.recovery_policy import RecoveryPolicy
from actors.sources.discovery import Notifications
from actors.sources.pipeline_definition import PipelineDefinition
from slackwater.extensions.by_class import by_class
from slackwater.extensions.companion import Companion
from slackwater.extensions.run_views import RunViews
from slackwater.extensions.table_target import LAST_EPOCH_S, Follower, TablePublication, published_views
from slackwater.places.declared_place import DeclaredPlace
from slackwater.running.attempt import Attempt
from slackwater.running.command_loop import POLL_S, CommandLoop
from slackwater.running.commanded_run import CommandedRun
from slackwater.running.companion_loop import CompanionLoop
from slackwater.running.corrections import Corrections
from slackwater.running.declared_views import DeclaredViews
from slackwater.running.flow_meter import FlowMeter
from slackwater.running.loop_thread import LoopThread
from slackwater.running.progress import RunProgress
from slackwater.running.requests import RunRequests
from slackwater.running.shipped_code import runtime_environment
from slackwater.running.source_objects import SourceObjects
from slackwater.running.spark_application import SparkApplication
from slackwater.settings import Settings
from slackwater.status.first_commit import first_commit_step
from slackwater.status.observability.run_observer import RunObserver
from slackwater.status.run_status import AfterCommitStatus, MaintainedStatus, PublicationStatus, RunStatus
from slackwater.status.startup_steps import StartupSteps
from spark_bridge.engine.application.java import prepare_java
from spark_bridge.plans.view_definition import ViewDefinition
from state.clock import Clock
from state.errors import RunFailedError, SlackwaterError
from state.lance.lance_root import LanceRoot
from state.ownership.command_inbox import CommandInbox
from state.ownership.owner import Ownership
from state.tables.records import Head

_SHOWN_PHASES = ("running", "paused", "stopping")
# Ray and Spark are started by fork and exec: nothing of Lance runs in between.
warnings.filterwarnings("ignore", message="lance is not fork-safe")
_log = structlog.get_logger(actor="run")


@dataclass(frozen=True)
class _Mark:
    """A moment of a run, as a mark of one attempt; every later attempt begins with a listing after it."""

    attempt: int
    number: int


_SINCE_START = _Mark(1, 1)


class RunControl:
    """Starts Ray and Spark if needed, runs attempts, recovers between them, and ends the processes that it has started.

    The public attributes lag by a moment; `news` and the `observer` are notified of every change.

    Args:
        settings: of Spark, Ray and the recovery.
        ownership: of the root, acquired; released at the end.
        replaces: the head before this run.
        places: the places of the run without its published tables.
        needs: the declared views and published tables, which keep files from deletion.
        clock: gives times and durations.
    """

    def __init__(
        self,
        *,
        definition: PipelineDefinition,
        views: Sequence[ViewDefinition],
        settings: Settings,
        ownership: Ownership,
        replaces: Head,
        places: Sequence[DeclaredPlace],
        needs: RunViews,
        clock: Clock,
    ) -> None:
        self._definition = definition
        self.places = tuple(places)
        self._ownership, self._replaces, self._clock = ownership, replaces, clock
        self._policy = RecoveryPolicy(settings.recovery)
        self._started_s = clock.monotonic()
        self._seconds: float | None = None
        self._attempt: Attempt | None = None
        self._begun: Attempt | None = None
        self._number = 0
        self._maintained = MaintainedStatus()
        self._changed_views: frozenset[str] = frozenset()
        self.news = threading.Condition()
        self.state = RunState(version=0, phase="starting", term=0, epoch=0)
        queues = {
            source.name: source.discovery.queue_url
            for source in definition.sources
            if isinstance(source.discovery, Notifications)
        }
        self.progress = RunProgress((source.name for source in definition.sources), clock, queues)
        self.meter = FlowMeter(definition.barrier, definition.fetch, clock)
        self.recovering = ""
        self.recoveries = 0
        self.publishing_limit_s = LAST_EPOCH_S
        self.failure: Exception | None = None
        self.is_over = False
        self.observer: RunObserver | None = None
        self._companions: tuple[CompanionLoop, ...] = ()
        self._followers: Mapping[type[TablePublication], Follower] = {}
        sources = [source.name for source in definition.sources]
        self.requests = RunRequests(LanceRoot(definition.root, clock), sources, self.news)
        self.declared = DeclaredViews(views, sources, self.requests, needs)
        files = SourceObjects(definition.root, definition.sources)
        self.corrections = Corrections(
            LanceRoot(definition.root, clock), definition.sources, self.requests, files, self.declared.needs
        )
        prepare_java()
        self.startup = StartupSteps(clock, self._notify)
        self._is_starting = True
        self._spark = SparkApplication(settings.spark, f"slackwater-{ownership.run_id}", self.startup)
        self._owns_ray = self._start_ray(settings)
        inbox = CommandInbox(definition.root, clock)
        self.commanded = CommandedRun(self.requests, self.corrections, self.declared, lambda: self.failure)
        self._commands = LoopThread("commands", CommandLoop(inbox, ownership, self.commanded).turn, POLL_S)
        self._thread = threading.Thread(target=self._control, name="run", daemon=True)
        self._thread.start()

    @property
    def seconds(self) -> float:
        """Seconds since the start, at most to the end."""
        return self._seconds if self._seconds is not None else self._clock.monotonic() - self._started_s

    @property
    def has_caught_up(self) -> bool:
        """Everything that a listing after the start has found is committed."""
        return self._is_reached(_SINCE_START)

    @property
    def spark_is_ready(self) -> bool:
        """The start of Spark is over, with success or failure."""
        return self._spark.start_is_over

    @property
    def maintained(self) -> MaintainedStatus:
        """The work of the materializer; between two attempts the views and backfills at the end of the last attempt."""
        with self.news:
            return self._maintained if self._attempt is None else self._attempt.maintained

    @property
    def published(self) -> tuple[PublicationStatus, ...]:
        """The state of each publication; none without a declared one."""
        return tuple(status for follower in self._followers.values() for status in follower.statuses)

    @property
    def publishing(self) -> tuple[TablePublication, ...]:
        return tuple(publication for follower in self._followers.values() for publication in follower.all)

    def publish(self, publications: Sequence[TablePublication]) -> None:
        """Has further tables follow views, from now on."""
        self.declared.needs.publish(published_views(publications))
        for kind, of_kind in by_class(publications).items():
            if (follower := self._followers.get(kind)) is not None:
                follower.add(of_kind)
                continue
            follower = kind.follow(of_kind, self._definition.root, self._clock, self.places)
            self._followers = {**self._followers, kind: follower}
            follower.notify(self.state)

    def accompany(self, companions: Iterable[Companion], status: Callable[[], RunStatus]) -> None:
        """Shows the run to its companions, from now on.

        Args:
            companions: they end with the run, in this order.
            status: returns the status of the run.
        """
        self._companions = tuple(CompanionLoop(each, status, lambda: self.failure) for each in companions)

    @property
    def after_commit(self) -> tuple[AfterCommitStatus, ...]:
        """The actions on files after the commit; empty without a source that declares one."""
        return tuple(status for companion in self._companions for status in companion.statuses)

    def abandon(self) -> bool:
        """Gives the root back if Spark has no session and no epoch is committed.  Returns whether it did.

        The process ends then: nothing else of the run is ended.
        """
        if self.state.epochs or (self._spark.session.done() and self.state.phase != "starting"):
            return False
        self._ownership.release("stopped")
        return True

    def join(self) -> None:
        """Returns when the run is over."""
        self._thread.join()

    def wait(self, timeout_s: float | None, *, since_start: bool = False) -> bool:
        """Waits until the run is over or, with `since_start`, `has_caught_up`.  Returns whether that came in time."""
        return self._wait(lambda: since_start and self.has_caught_up, timeout_s)

    def catch_up(self, timeout_s: float | None) -> bool:
        """Waits until all that is found by a listing after this call is committed, or the run is over.

        Returns:
            True if that came in time.
        """
        began_s = self._clock.monotonic()
        mark = self._new_mark(timeout_s)
        if timeout_s is not None:
            timeout_s = max(0.0, timeout_s - (self._clock.monotonic() - began_s))
        return self._wait(lambda: mark is not None and self._is_reached(mark), timeout_s)

    def _wait(self, is_reached: Callable[[], bool], timeout_s: float | None) -> bool:
        with self.news:
            return self.news.wait_for(lambda: self.is_over or self.failure is not None or is_reached(), timeout_s)

    def _new_mark(self, timeout_s: float | None) -> _Mark | None:
        """Marks this moment; None if the coordinator did not answer in time."""
        with self.news:
            attempt, number = self._begun, self._number
        if attempt is not None:
            try:
                mark = attempt.mark(timeout_s)
                return None if mark is None else _Mark(number, mark)
            except RunFailedError:
                # It has died: the control thread sees it soon.
                pass
        return _Mark(number + 1, _SINCE_START.number)

    def _is_reached(self, mark: _Mark) -> bool:
        if self._number == mark.attempt:
            return self.state.reached_mark >= mark.number
        return self._number > mark.attempt and self.state.reached_mark >= _SINCE_START.number

    def _control(self) -> None:
        """Runs attempts until one stops gracefully or no other may follow."""
        plan = AttemptPlan(
            self._ownership.run_id,
            replaces_term=self._replaces.term,
            replaces=frozenset({self._replaces.run, *self._ownership.replaced}),
            began_at=self._clock.now(),
        )
        try:
            while (failure := self._try(plan)) is not None:
                plan = self._plan_after(plan, failure)
        except Exception as error:
            self._fail(error)
        finally:
            self._clean_up()

    def _start_ray(self, settings: Settings) -> bool:
        """Starts Ray, while the JVM of Spark starts, too.  Returns whether this run must end Ray.

        In the caller's thread: there Ray turns SIGTERM into a graceful end.
        """
        self._spark.start()
        ray, spark = settings.ray, settings.spark
        try:
            with self.startup.step("Ray"):
                is_ours = connect_ray(
                    address=ray.address,
                    num_cpus=ray.num_cpus or spark.num_executors * spark.executor_cores + 1,
                    namespace=ray.namespace,
                    runtime_env=runtime_environment(
                        ray.runtime_env, joins_cluster=ray_address(ray.address) is not None
                    ),
                    fast_start=ray.fast_start,
                )
        except KeyboardInterrupt:
            self._spark.give_up()
            raise
        except BaseException:
            self._spark.end()
            raise
        self._spark.ray_is_up()
        return is_ours

    def _notify(self) -> None:
        with self.news:
            self.news.notify_all()

    def _try(self, plan: AttemptPlan) -> Exception | None:
        """Runs one attempt to its end.  Returns its failure; None if it stopped gracefully."""
        attempt = Attempt(
            definition=replace(self._definition, views=self.declared.reads),
            plan=plan,
            views=tuple(self.declared.definitions.values()),
            dropped=self.declared.dropped,
            retried=self.declared.retried,
            release=self.declared.release_asked,
            spark=self._spark,
            clock=self._clock,
            on_analysed=self.declared.needs.analysed,
        )
        with self.news:
            self._begun, self._number = attempt, plan.number
        try:
            with self.startup.step("coordinator and actors"):
                recovered = attempt.start()
            self.progress.begin(recovered, self.state)
            self._publish(attempt.state)
            self._ownership.update(term=recovered.term, phase="running")
            with self.news:
                self._attempt, self.recovering = attempt, ""
            self.requests.begin(attempt)
            attempt.follow(self._publish)
            return None
        except Exception as error:
            return error
        finally:
            with self.news:
                self._attempt = self._begun = None
                seen = attempt.maintained
                self._maintained = MaintainedStatus(views=seen.views, backfills=seen.backfills)
                self._changed_views = attempt.changed_views
                self.news.notify_all()
            self.requests.end()
            attempt.end()

    def _plan_after(self, plan: AttemptPlan, error: Exception) -> AttemptPlan:
        """The plan of the next attempt, after its pause.  Raises the error if no other attempt may follow."""
        state = self.state
        self._policy.forgive(self.requests.take_retried())
        following = self._policy.on_failure(error, state, self._clock.monotonic(), self._changed_views)
        if following is None or self.requests.stopping:
            raise error
        lost = self._spark.replace_if_lost()
        reason = f"{error}; {'a new Spark application starts; ' if lost else ''}continuing from epoch {state.epoch}"
        _log.warning(
            "recovering", epoch=state.epoch, attempt=plan.number + 1, pause_s=following.pause_s, error=str(error)
        )
        self._ownership.update(phase="recovering", last_error=str(error))
        with self.news:
            self.recovering, self.recoveries = reason, self.recoveries + 1
            # An attempt that ends before its first state accuses no file of this one.
            self.state = replace(state, reached_mark=0, files_at_once=following.files_at_once, suspects={})
        self._observe(at_once=True)
        with self.news:
            self.news.wait_for(lambda: self.requests.stopping, following.pause_s)
        return replace(
            plan,
            number=plan.number + 1,
            held_root=plan.held_root or state.term > 0,
            so_far=RunTotals(state.epoch, state.epochs, state.totals),
            files_at_once=following.files_at_once,
            poisoned=following.poisoned,
            suspended=following.suspended,
            alone_s=following.alone_s,
            spent={**plan.spent, **{each.source: each.spent for each in state.lists}},
            num_fetchers=state.num_fetchers or None,
            fetcher_bounds=self.requests.fetcher_bounds,
            flow=self.requests.flow,
        )

    def _clean_up(self) -> None:
        """Ends Spark and Ray, and releases the root; only then is the run over."""
        self.startup.move_to("")
        self.requests.end(for_good=True)
        self._commands.begin_end()
        followers, companions = tuple(self._followers.values()), self._companions
        for follower in followers:
            follower.begin_end()
        self._observe(at_once=True)
        for companion in companions:
            if companion.ends_first:
                companion.end()
        steps: list[tuple[str, Callable[[], None]]] = [("Spark", self._spark.end)]
        if self._owns_ray:
            steps.append(("Ray", disconnect_ray))
        steps += [("publications", partial(follower.join, self.publishing_limit_s)) for follower in followers]
        steps += [("companion", companion.end) for companion in companions if not companion.ends_first]
        try:
            for step, end in steps:
                try:
                    end()
                except Exception as error:
                    # A dead part cannot be ended; the next parts must be.
                    _log.debug("could not be ended", epoch=self.state.epoch, step=step, error=str(error))
        finally:
            self._commands.join()
            if self.failure is not None:
                self._ownership.update(last_error=str(self.failure))
            self._ownership.release("stopped" if self.failure is None else "failed")
            with self.news:
                self._seconds = self._clock.monotonic() - self._started_s
                self.is_over = True
                self.news.notify_all()

    def _observe(self, *, at_once: bool = False) -> None:
        if self.observer is not None:
            self.observer.observe(self.state, at_once=at_once)

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, SlackwaterError):
            error = RunFailedError(
                f"{type(error).__name__}: {error}; start the run again, it continues where it stopped"
            )
        _log.debug("run failed", epoch=self.state.epoch, error=str(error))
        with self.news:
            self.failure = error
            self.news.notify_all()

    def _publish(self, state: RunState) -> None:
        self._ownership.check()
        before = self.state
        self.meter.observe(state, self.progress.counts(state))
        is_next_step = False
        if self._is_starting:
            step = first_commit_step(state)
            self._is_starting = step is not None
            is_next_step = self.startup.move_to(step or "")
        with self.news:
            self.state = state
            self.news.notify_all()
        for follower in self._followers.values():
            follower.notify(state)
        self._observe()
        if state.phase != before.phase and state.phase in _SHOWN_PHASES:
            self._ownership.update(phase=state.phase)
        if (state.num_fetchers, state.scaling) != (before.num_fetchers, before.scaling):
            self._ownership.update(fetchers=state.num_fetchers, scaling=state.scaling)
        if state.lists != before.lists:
            self._ownership.update(sources=self.progress.discovery(state))
        if is_next_step and state.phase in _SHOWN_PHASES:
            # `why`, `status` and the page show the step at once, and not with the next renewal.
            self._ownership.update(phase=state.phase)
        if state.epochs > before.epochs:
            rows, files = state.totals.rows - before.totals.rows, state.totals.files - before.totals.files
            _log.info(
                "epochs committed", epoch=state.epoch, epochs=state.epochs - before.epochs, files=files, rows=rows
            )
