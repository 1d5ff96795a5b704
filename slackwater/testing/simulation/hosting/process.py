"""The process that runs a pipeline: one attempt after the other; the same as `slackwater.running.run.Run`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from actors.coordination.caught_up import FIRST_MARK
from actors.files import FileVersion, PathKey
from actors.protocol.barrier import AllowRemovals, Mutation, Pause, Resume, Stop
from actors.protocol.run_state import RunState
from actors.recovery.attempt_plan import AttemptPlan, RunTotals
from actors.recovery.recovery_policy import RecoveryPolicy
from actors.shells.coordinator_shell import CoordinatorShell
from slackwater.testing.simulation.hosting.attempt import SimulatedAttempt
from slackwater.testing.simulation.hosting.simulated_runtime import judge
from slackwater.testing.simulation.world.schedule import Life

if TYPE_CHECKING:
    from slackwater.testing.simulation.simulated_world import World

_SPARK_START_S = 5.0
_NEXT_ATTEMPT = 1 << 62


class SimulatedProcess(Life):
    """One run of the pipeline.

    Args:
        world: everything around it.
        name: name of the run; each run has its own.
    """

    def __init__(self, world: World, name: str) -> None:
        super().__init__(name)
        self.world = world
        self.views = world.views if world.backfill is None or not world.processes else (*world.views, world.backfill)
        self._policy = RecoveryPolicy(world.recovery)
        committed = world.disk.versions.get(world.disk.latest)
        self._plan = AttemptPlan(
            name,
            replaces_term=0 if committed is None else committed.head.term,
            replaces=frozenset(process.name for process in world.processes),
            began_at=world.clock.now(),
        )
        self._state = RunState(version=0, phase="starting", term=0, epoch=0)
        self._paused = self._is_pausing = False
        self.is_stopping = False
        self._mark = FIRST_MARK
        self._marked, self._gaps = world.bucket.present(), len(world.bucket.gaps)
        self.attempt: SimulatedAttempt | None = None
        self.spark_is_up = False
        self.failure: Exception | None = None
        self.stopped = False
        world.schedule.at(world.clock.monotonic() + world.random.random() * _SPARK_START_S, self, self._spark_started)
        world.schedule.soon(self, self._try)

    # -- requests of the user ----------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Nothing is listed or read from the next barrier on."""
        self._paused = True
        self._request(Pause())

    def resume(self) -> None:
        """Resumes after a `pause`."""
        self._paused = False
        self._request(Resume())

    def rescale(self, num_fetchers: int) -> None:
        """Sets the number of fetch actors, from some barrier on."""
        bounds = num_fetchers, num_fetchers
        self._plan = replace(self._plan, fetcher_bounds=bounds)
        attempt = self.attempt
        if attempt is not None and attempt.is_running:
            attempt.runtime.tell_now(attempt.coordinator, CoordinatorShell.rescale, *bounds)

    def allow_removals(self) -> None:
        """Lets the files go whose removal is paused."""
        self.world.promises.on_removals_allowed()
        self._request(AllowRemovals(frozenset(source.name for source in self.world.definition.sources)))

    @property
    def paused_removals(self) -> frozenset[tuple[str, int]]:
        """The sources whose removals are paused, each with the number of its listings."""
        return frozenset((each.source, each.listings) for each in self._state.lists if each.paused_removals)

    def stop(self) -> None:
        """Ends the run after a last epoch."""
        self.is_stopping = True
        self._request(Stop())
        if self._is_pausing:
            self._try()

    def new_mark(self) -> None:
        """Makes a new mark for `caught_up`: a listing that begins after this call."""
        self._marked, self._gaps = self.world.bucket.present(), len(self.world.bucket.gaps)
        attempt = self.attempt
        if attempt is None:
            self._mark = FIRST_MARK
        elif attempt.alive and attempt.coordinator.alive:
            self._mark = attempt.runtime.answer_now(attempt.coordinator, CoordinatorShell.mark)
        else:
            self._mark = _NEXT_ATTEMPT

    @property
    def caught_up(self) -> bool:
        """True when every object of the mark is finished and committed."""
        return self._state.reached_mark >= self._mark

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
        if self.is_stopping:
            self._request(Stop())
        elif self._paused:
            self._request(Pause())

    def on_state(self, attempt: SimulatedAttempt) -> None:
        """The attempt is further."""
        self._publish(attempt.state)

    def on_stopped(self, attempt: SimulatedAttempt) -> None:
        """The attempt is over, and every tag is moved."""
        self.stopped = True
        assert attempt.materializer is not None, "it has stopped gracefully"
        self.world.promises.on_stopped(self.name, attempt.state, attempt.materializer.written_views)
        self.end()

    def on_failure(self, attempt: SimulatedAttempt, error: Exception) -> None:
        """The attempt has failed: the next one begins, at some time, or the run is over."""
        if not attempt.alive:
            return
        judge(error, attempt.name)
        if attempt.is_running:
            self._publish(attempt.state)
        attempt.end()
        self.attempt = None
        state = self._state
        following = self._policy.on_failure(error, state, self.world.clock.monotonic())
        if following is None or self.is_stopping:
            self.failure = error
            self.end()
            return
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
            spent={**self._plan.spent, **{each.source: each.spent for each in state.lists}},
        )
        self._is_pausing = True
        self.world.schedule.at(self.world.clock.monotonic() + following.pause_s, self, self._try)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _try(self) -> None:
        if self.attempt is not None:
            return
        self._is_pausing = False
        attempt = self.attempt = SimulatedAttempt(self, self._plan)
        attempt.start()

    def _publish(self, state: RunState) -> None:
        self._state = state
        self.world.promises.on_state(self.name, state)

    def _request(self, mutation: Mutation) -> None:
        attempt = self.attempt
        if attempt is not None and attempt.is_running:
            attempt.runtime.tell_now(attempt.coordinator, CoordinatorShell.request, mutation)

    def _spark_started(self) -> None:
        self.spark_is_up = True
        if self.attempt is not None and self.attempt.materializer is not None:
            self.attempt.materializer.turn_soon()
