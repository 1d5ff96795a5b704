"""The process that runs a pipeline: one attempt after the other; the same as `slackwater.running.run.Run`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from actors.coordination.caught_up import FIRST_MARK
from actors.files import FileVersion, PathKey
from actors.protocol.barrier import Pause, Resume
from actors.protocol.run_state import RunState
from actors.recovery.attempt_plan import AttemptPlan, RunTotals
from actors.recovery.recovery_policy import RecoveryPolicy
from actors.shells.coordinator_shell import CoordinatorShell
from slackwater.extensions.run_views import RunViews
from slackwater.running.command_loop import POLL_S, CommandLoop
from slackwater.running.commanded_run import CommandedRun
from slackwater.running.corrections import Corrections
from slackwater.running.declared_views import DeclaredViews
from slackwater.running.requests import RunRequests
from slackwater.status.run_status import RunReport, RunStatus, SourceStatus
from state.errors import BadInputError, FencedError, SlackwaterError
from state.tables.records import Head
from tests.simulation.hosting.attempt import SimulatedAttempt
from tests.simulation.hosting.simulated_runtime import SimulatedRuntime, judge
from tests.simulation.model_views.model_plans import definition_of
from tests.simulation.model_views.model_view import ModelView
from tests.simulation.world.command_inbox import InboxOfRun
from tests.simulation.world.ownerships import RunOwnership
from tests.simulation.world.schedule import Life
from tests.simulation.world.simulated_objects import SimulatedObjects
from tests.simulation.world.simulated_root import SimulatedRoot
from tests.simulation.world.simulated_threads import SimulatedNews

if TYPE_CHECKING:
    from tests.simulation.hosting.file_work import SimulatedFileWork
    from tests.simulation.hosting.publications import SimulatedPublications
    from tests.simulation.simulated_world import World

_SPARK_START_S = 5.0
_LOOKS_AFTER_S = 1.0
_NEXT_ATTEMPT = 1 << 62


class SimulatedProcess(Life):
    """One run of the pipeline.

    Args:
        world: everything around it.
        ownership: of the root.
        replaces: the head before this run.
    """

    def __init__(self, world: World, ownership: RunOwnership, replaces: Head) -> None:
        name = ownership.run_id
        super().__init__(name)
        self.world, self._ownership = world, ownership
        self.ahead_at_start_s = world.clock.ahead_s
        ownership.life.move_into(self)
        ownership.on_lost = self._on_lost
        root = SimulatedRoot(world.disk, world.clock, world.access(self))
        sources = [source.name for source in world.definition.sources]
        self._news = SimulatedNews(world.threads, self, self._on_news)
        self.requests = RunRequests(root, sources, self._news)
        views = world.views_to_declare()
        # What the user changes from now on is known to a later process.
        self.models = {**world.all_views}
        definitions = [definition_of(view, expects=world.has_gate) for view in views]
        needs = RunViews(definitions, sources, changed=SimulatedNews(world.threads, self, lambda: None))
        self.declared = DeclaredViews(definitions, sources, self.requests, needs)
        self._view_changes: list[Callable[[], None]] = []
        # As the user knows them: every call of theirs that has returned is in force.
        self.shown_views, self.ended_views = frozenset(self.declared.definitions), frozenset[str]()
        corrections = Corrections(
            root, world.definition.sources, self.requests, SimulatedObjects(world.bucket), self.declared.needs
        )
        commanded = CommandedRun(self.requests, corrections, self.declared, lambda: self.failure)
        log = SimulatedRuntime(self, world).log
        inbox = InboxOfRun(world.inbox, root.access, lambda: self.stopped)
        self._commands = CommandLoop(inbox, ownership, commanded, log)
        self.definition = world.definition
        self._policy = RecoveryPolicy(world.recovery)
        self._plan = AttemptPlan(
            name,
            replaces_term=replaces.term,
            replaces=frozenset({replaces.run, *ownership.replaced}),
            began_at=world.clock.now(),
        )
        self._state = RunState(version=0, phase="starting", term=0, epoch=0)
        self._is_pausing = self._is_polling = self._is_over = self._has_ended = False
        self._mark = FIRST_MARK
        self._note_mark()
        self.publications = _publications(self) if world.tables.by_view else None
        self.files = None if world.after is None else _file_work(self, ownership)
        self.attempt: SimulatedAttempt | None = None
        self.spark_is_up = False
        self.failure: Exception | None = None
        self.stopped = False
        world.schedule.at(world.clock.monotonic() + world.random.random() * _SPARK_START_S, self, self._spark_started)
        world.schedule.soon(self, self._try)

    # -- requests of the user ----------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Nothing is listed or read from the next barrier on."""
        self.requests.change_flow(Pause())

    def resume(self) -> None:
        """Resumes after a `pause`."""
        self.world.promises.on_resumed()
        self.requests.change_flow(Resume())

    @property
    def is_paused(self) -> bool:
        """True while every attempt begins with a pause."""
        return self.requests._paused

    def allow_removals(self) -> None:
        """Lets the files go whose removal is paused."""
        self.world.promises.on_removals_allowed()
        self._call(self.requests.allow_removals)

    def rescale(self, num_fetchers: int) -> None:
        """Sets the number of fetch actors, from some barrier on."""
        self._call(lambda: self.requests.rescale(num_fetchers, num_fetchers))

    def add_view(self, view: ModelView) -> None:
        """Declares a view, in this run, after the changes before."""

        def add() -> None:
            self.declared.add(definition_of(view, expects=self.world.has_gate))
            self.shown_views |= {view.name}
            self.ended_views -= {view.name}

        self._change_views(add)

    def drop_view(self, name: str) -> None:
        """Ends a view, in this run, after the changes before."""

        def drop() -> None:
            self.declared.drop(name)
            self.shown_views -= {name}
            self.ended_views |= {name}

        self._change_views(drop)

    def poll_commands(self) -> None:
        """Looks for commands at some moment, unless it does so already."""
        if not self._is_polling and not self._is_over:
            self._is_polling = True
            self.world.threads.start(self, self._take_commands, self._on_polled)

    @property
    def paused_removals(self) -> frozenset[tuple[str, int, int]]:
        """The sources whose removals are paused, each with the numbers of the attempt and of its listings."""
        number = self._plan.number
        return frozenset((each.source, number, each.listings) for each in self._state.lists if each.paused_removals)

    @property
    def expecting_views(self) -> frozenset[str]:
        """The declared views that expect something of their rows, as the user knows them."""
        return frozenset(
            name for name, each in self.declared.definitions.items() if each.expect and name in self.shown_views
        )

    def status(self) -> RunStatus:
        """The status of the run, as its companions see it."""
        publications = () if self.publications is None else self.publications.statuses
        sources = {each.source: SourceStatus(paused=each.paused) for each in self._state.lists}
        return RunStatus(self._state.phase, self._state.epoch, sources=sources, publications=publications)

    @property
    def declared_models(self) -> tuple[ModelView, ...]:
        """The declared views, as the user knows them."""
        return tuple(self.models[name] for name in self.shown_views)

    @property
    def has_lost_root(self) -> bool:
        """True when the run has heard that another one owns the root."""
        return self._ownership.lost

    def stop(self) -> None:
        """Ends the run after a last epoch."""
        self.requests.stop()

    @property
    def is_stopping(self) -> bool:
        """True when the run was asked to stop."""
        return self.requests.stopping

    def new_mark(self) -> None:
        """Makes a new mark for `caught_up`: a listing that begins after this call."""
        self._note_mark()
        attempt = self.attempt
        if attempt is None:
            self._mark = FIRST_MARK
        elif attempt.alive and attempt.coordinator.alive:
            self._mark = attempt.runtime.answer_now(attempt.coordinator, CoordinatorShell.mark)
        else:
            self._mark = _NEXT_ATTEMPT

    @property
    def caught_up(self) -> bool:
        """True when every object of the mark is finished and committed; a run that is over tells nothing more."""
        return not self._is_over and self._state.reached_mark >= self._mark

    @property
    def marked_objects(self) -> dict[PathKey, FileVersion]:
        """The objects of the mark that are still in the bucket and that a listing or an event has told.

        Those of a source that waits for another one's schema are left out.
        """
        present = self.world.bucket.still_present(self._marked)
        untold = self.world.bucket.untold()
        # With a queue, only the next listing shows what was there before the queue and what a listing has lacked.
        gaps = self.world.bucket.gaps[0 if self.world.queues else self._gaps :]
        untold |= {path for path in present if any(path[0] == name and gap.lacks(path[1]) for name, gap in gaps)}
        return {
            path: file for path, file in present.items() if path[0] not in self._state.closed and path not in untold
        }

    @property
    def closed(self) -> frozenset[str]:
        """The sources that wait for the schema of another one."""
        return self._state.closed

    # -- news of the attempt ---------------------------------------------------------------------------------------

    def on_started(self, attempt: SimulatedAttempt) -> None:
        """The attempt understands requests; it begins with the earlier ones of the user."""
        self._publish(attempt.state)
        self._ownership.update(term=attempt.state.term, phase="running")
        self.requests.begin(attempt)

    def on_state(self, attempt: SimulatedAttempt) -> None:
        """The attempt is further."""
        self._publish(attempt.state)

    def on_stopped(self, attempt: SimulatedAttempt) -> None:
        """The attempt is over, and every tag is moved."""
        self.stopped = True
        assert attempt.materializer is not None, "it has stopped gracefully"
        self.world.promises.on_stopped(self.name, attempt.state, attempt.materializer.written_views)
        attempt.close()
        self._end_run()

    def on_failure(self, attempt: SimulatedAttempt, error: Exception) -> None:
        """The attempt has failed: the next one begins, at some time, or the run is over."""
        if not attempt.alive:
            return
        judge(error, attempt.name)
        if attempt.is_running:
            try:
                self._publish(attempt.state)
            except FencedError as lost:
                error = lost
        self.requests.end()
        attempt.close()
        self.attempt = None
        state = self._state
        self._policy.forgive(self.requests.take_retried())
        following = self._policy.on_failure(error, state, self.world.clock.monotonic())
        if following is None or self.is_stopping:
            self.failure = error
            if isinstance(error, BadInputError):
                self.world.promises.on_bad_input(error)
            self._end_run()
            return
        self._ownership.update(phase="recovering", last_error=str(error))
        self._mark, self._state = (
            FIRST_MARK,
            replace(state, reached_mark=0, files_at_once=following.files_at_once, suspects={}),
        )
        self._plan = replace(
            self._plan,
            number=self._plan.number + 1,
            held_root=self._plan.held_root or state.term > 0,
            so_far=RunTotals(state.epoch, state.epochs, state.totals),
            files_at_once=following.files_at_once,
            poisoned=following.poisoned,
            num_fetchers=state.num_fetchers or None,
            fetcher_bounds=self.requests.fetcher_bounds,
            flow=self.requests.flow,
            spent={**self._plan.spent, **{each.source: each.spent for each in state.lists}},
        )
        self._is_pausing = True
        self.world.schedule.at(self.world.clock.monotonic() + following.pause_s, self, self._try)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _try(self) -> None:
        if self.attempt is not None or self._is_over:
            return
        self._is_pausing = False
        attempt = self.attempt = SimulatedAttempt(self, self._plan)
        attempt.start()

    def _publish(self, state: RunState) -> None:
        self._ownership.check()
        if self.files is not None and state.epoch != self._state.epoch:
            self.files.look_soon()
        self._state = state
        if self.publications is not None:
            self.publications.notify(state)
        self.world.promises.on_state(self.name, state)
        self._news.notify_all()

    def _note_mark(self) -> None:
        self.world.promises.on_mark()
        self._marked, self._gaps = self.world.bucket.present(), len(self.world.bucket.gaps)

    def _on_lost(self) -> None:
        """A run looks at its ownership with each state of its attempt, which comes at least once a second."""
        self.world.schedule.at(self.world.clock.monotonic() + _LOOKS_AFTER_S, self, self._check_ownership)

    def _check_ownership(self) -> None:
        if self.attempt is not None and self.attempt.is_running:
            try:
                self._ownership.check()
            except FencedError as error:
                self.on_failure(self.attempt, error)

    def _on_news(self) -> None:
        """A stop shortens the pause before the next attempt."""
        if self._is_pausing and self.requests.stopping:
            self.world.schedule.soon(self, self._try)

    def _change_views(self, change: Callable[[], None]) -> None:
        self._view_changes.append(change)
        if len(self._view_changes) == 1:
            self._call(self._view_changes[0], self._on_views_changed)

    def _on_views_changed(self) -> None:
        del self._view_changes[0]
        if self._view_changes:
            self._call(self._view_changes[0], self._on_views_changed)

    def _call(self, work: Callable[[], object], on_end: Callable[[], None] = lambda: None) -> None:
        """Does what the user asks, which may wait and be refused."""

        def call() -> None:
            try:
                work()
            except SlackwaterError as error:
                judge(error, self.name)

        self.world.threads.start(self, call, on_end)

    def _take_commands(self) -> None:
        self._commands.turn()

    def _on_polled(self) -> None:
        self._is_polling = False
        if self._has_ended:
            self._release()
        elif not self._is_over and self.world.inbox.unanswered:
            self.world.schedule.at(self.world.clock.monotonic() + POLL_S, self, self.poll_commands)

    def _end_run(self) -> None:
        """The run is over when the command is answered that it carries out."""
        self._is_over = True
        self.requests.end(for_good=True)
        if self.publications is None:
            self._end_files()
        else:
            self.publications.finish(self._publications_ended)

    def _publications_ended(self) -> None:
        assert self.publications is not None
        if self.failure is None and self.world.ownerships.checker.owner == self.name:
            self.world.promises.on_exit(self._report(), self.publications.last)
        self._end_files()

    def _report(self) -> RunReport:
        """The report of the run, with its publications."""
        totals, status = self._state.totals, self.status()
        return RunReport(
            epochs=self._state.epochs,
            files=totals.files,
            rows=totals.rows,
            bytes=totals.bytes,
            requests=totals.requests,
            seconds=0.0,
            quarantined=0,
            publications=status.publications,
        )

    def _end_files(self) -> None:
        if self.files is None:
            self._companions_ended()
        else:
            self.files.finish(self._companions_ended)

    def _companions_ended(self) -> None:
        self._has_ended = True
        if not self._is_polling:
            self._release()

    def _release(self) -> None:
        phase = "stopped" if self.failure is None else "failed"
        ownership, ownerships = self._ownership, self.world.ownerships
        ownerships.call(ownership.life, lambda: ownership.release(phase), self.end)

    def _spark_started(self) -> None:
        self.spark_is_up = True
        if self.attempt is not None and self.attempt.materializer is not None:
            self.attempt.materializer.turn_soon()


def _publications(process: SimulatedProcess) -> SimulatedPublications:
    # Late, as below.
    from tests.simulation.hosting.publications import SimulatedPublications

    return SimulatedPublications(process)


def _file_work(process: SimulatedProcess, ownership: RunOwnership) -> SimulatedFileWork:
    # Here and not above: Lance takes a second to import, and few stories need it.
    from tests.simulation.hosting.file_work import SimulatedFileWork

    return SimulatedFileWork(process, process.status, ownership.confirm)
