"""The requests to a run, by its own process or by commands; they outlive the attempts that carry them out."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Protocol, TypeVar

from actors.files import PathKey, RetriedFile
from actors.protocol.barrier import AllowRemovals, FlowCommand, Mutation, Pause, Resume, Retry, Stop, Throttle
from actors.protocol.run_state import RunState
from actors.recovery.attempt_plan import AttemptPlan
from slackwater.commands.retry import quarantined_files
from spark_bridge.plans.view_definition import ViewDefinition
from state.errors import CommandRefusedError, NotFoundError, RunFailedError
from state.store.root import Root
from state.store.store import StateStore
from state.upkeep.vacuum import Vacuumed

Result = TypeVar("Result")

_RETRIED_AT_ONCE = 10_000
"""Files in one mutation: a barrier carries them to every actor."""
_NEVER = sys.maxsize


class OwnerClient(Protocol):
    """Work on the root by the coordinator, which owns it; see `actors.hosting.run_client.RunClient`."""

    def change(self, action: Callable[[StateStore], Result]) -> Result: ...

    def vacuum(self) -> Vacuumed: ...


class RunningAttempt(Protocol):
    """An attempt that runs, as requests use it; see `slackwater.running.attempt.Attempt`."""

    @property
    def plan(self) -> AttemptPlan: ...

    @property
    def state(self) -> RunState: ...

    @property
    def client(self) -> OwnerClient: ...

    def request(self, mutation: Mutation) -> int: ...

    def rescale(self, fewest: int, most: int) -> int: ...

    def add_view(self, definition: ViewDefinition) -> Future[None]: ...

    def drop_view(self, name: str) -> Future[None]: ...

    def retry_view(self, name: str) -> Future[None]: ...

    def release(self) -> Future[None]: ...

    def readers(self, *names: str) -> tuple[str, ...]: ...


class RunRequests:
    """The requests of one run.

    A pause, a throttle and a number of fetch actors are remembered: every attempt begins with them.

    Args:
        root: the root with the ledger.
        sources: the names of the declared sources.
        news: is notified of every change of the run.
    """

    def __init__(self, root: Root, sources: Iterable[str], news: threading.Condition) -> None:
        self._root, self._sources, self._news = root, tuple(sources), news
        self._asking, self._retrying = threading.RLock(), threading.Lock()
        self._attempt: RunningAttempt | None = None
        self._number = 0
        self._paused = False
        self._throttle = Throttle()
        self._fetcher_bounds: tuple[int, int] | None = None
        self._retried: set[PathKey] = set()
        self.stopping = False
        self.is_over = False

    # -- for the run ----------------------------------------------------------------------------------------------

    def begin(self, attempt: RunningAttempt) -> None:
        """An attempt runs: it gets the requests that are remembered."""
        with self._asking:
            with self._news:
                self._attempt, self._number = attempt, 0
                self._news.notify_all()
            if self.stopping:
                self._request(Stop())
                return
            if self._fetcher_bounds is not None:
                self._rescale(attempt, self._fetcher_bounds)
            begun = attempt.plan.flow
            if self._throttle != next((each for each in begun if isinstance(each, Throttle)), Throttle()):
                self._request(self._throttle)
            if self._paused != (Pause() in begun):
                self._request(Pause() if self._paused else Resume())

    def end(self, *, for_good: bool = False) -> None:
        """The attempt is over; with `for_good` no other follows."""
        with self._news:
            self._attempt = None
            self.is_over = self.is_over or for_good
            self._news.notify_all()

    def take_retried(self) -> set[PathKey]:
        """The paths that were retried since the last call; the recovery forgets their earlier failures."""
        with self._news:
            retried, self._retried = self._retried, set()
            return retried

    # -- for the user --------------------------------------------------------------------------------------------

    def change_flow(self, command: FlowCommand) -> None:
        """Pauses, resumes or throttles, with the next barrier and for every later attempt."""
        with self._asking:
            if isinstance(command, Throttle):
                self._throttle = command
            else:
                self._paused = isinstance(command, Pause)
            self._request(command)

    @property
    def flow(self) -> tuple[FlowCommand, ...]:
        """The pause and the throttle for the plan of the next attempt; its `begin` gets the later changes."""
        pauses = (Pause(),) if self._paused else ()
        return pauses if self._throttle == Throttle() else (*pauses, self._throttle)

    @property
    def fetcher_bounds(self) -> tuple[int, int] | None:
        """The requested bounds of the number of fetch actors; None before a request."""
        return self._fetcher_bounds

    def rescale(self, fewest: int, most: int) -> None:
        """Changes the number of fetch actors, see `Run.rescale`."""
        bounds = fewest, most
        with self._asking:
            self._fetcher_bounds = bounds
        while True:
            attempt = self.running_attempt()
            with self._asking:
                number = self._rescale(attempt, bounds)
            if self._await(attempt, lambda: attempt.state.rescalings_over >= number):  # noqa: B023
                return
            # The next attempt begins with the last request.
            with self._asking:
                if self._fetcher_bounds != bounds:
                    return

    def stop(self) -> None:
        with self._asking:
            self.stopping = True
            self._request(Stop())

    def settle(self) -> bool:
        """Waits until earlier requests are in force.  Returns False if the next attempt begins with them instead."""
        with self._asking, self._news:
            attempt, number = self._attempt, self._number
        return attempt is not None and self._await_request(attempt, number)

    def retry(self, source: str | None = None, file: str | None = None) -> int:
        """Puts quarantined files back into the queue, see `Run.retry`."""
        self._require_source(source)
        with self._retrying:
            wanted = {_try_of(each) for each in self._quarantined(source, file)}
            total = len(wanted)
            while wanted:
                # Read in every attempt: the one before may have committed files, and died before its report.
                attempt = self.running_attempt()
                files = [each for each in self._quarantined(source) if _try_of(each) in wanted][:_RETRIED_AT_ONCE]
                if not files:
                    break
                with self._news:
                    self._retried |= {(each.file.source, each.file.path) for each in files}
                if self.carry_out(attempt, Retry(tuple(files))):
                    wanted.difference_update(map(_try_of, files))
            return total

    def allow_removals(self, source: str | None = None) -> int:
        """Permits the removal of missing files, see `Run.allow_removals`."""
        self._require_source(source)
        attempt = self.running_attempt()
        paused = {
            each.source: each.paused_removals
            for each in attempt.state.lists
            if each.paused_removals and source in (None, each.source)
        }
        if paused and not self.carry_out(attempt, AllowRemovals(frozenset(paused))):
            raise CommandRefusedError(
                "the run recovers from a failure, and lists its files again; ask again when `status` shows the paused "
                "removals"
            )
        return sum(paused.values())

    def wait_over(self, timeout_s: float | None = None) -> bool:
        """Waits until the run is over, at most `timeout_s` seconds.  Returns whether it is over."""
        with self._news:
            return self._news.wait_for(lambda: self.is_over, timeout_s)

    def running_attempt(self) -> RunningAttempt:
        """Waits for an attempt that runs, and returns it.

        Raises:
            CommandRefusedError: the run ends.
        """
        with self._news:
            self._news.wait_for(lambda: self._attempt is not None or self.is_over or self.stopping)
            if self._attempt is None or self.stopping:
                raise CommandRefusedError("the run is stopping: ask again when it has stopped, or in the next run")
            return self._attempt

    def wait_end_of(self, attempt: RunningAttempt) -> None:
        """Returns when an attempt is over."""
        with self._news:
            self._news.wait_for(lambda: self._attempt is not attempt or self.is_over)

    def carry_out(self, attempt: RunningAttempt, mutation: Mutation) -> bool:
        """Carries out a mutation; returns when that is committed, or False if the attempt ended before."""
        with self._asking:
            with self._news:
                if self._attempt is not attempt:
                    return False
            number = self._request(mutation)
        return self._await_request(attempt, number)

    def await_commit(self, is_in: Callable[[int], bool]) -> None:
        """Waits until what every attempt goes on with is committed.

        Args:
            is_in: whether it is in this committed epoch of the attempt that runs, or in one before.

        Raises:
            CommandRefusedError: the run ends.
        """
        while True:
            attempt = self.running_attempt()
            if self._await(attempt, lambda: is_in(attempt.state.epoch)):  # noqa: B023
                return

    # -- inside ----------------------------------------------------------------------------------------------------

    def _require_source(self, source: str | None) -> None:
        if source is not None and source not in self._sources:
            raise NotFoundError(
                f"the running pipeline has no source {source!r}; its sources are: {', '.join(self._sources)}"
            )

    def _quarantined(self, source: str | None, file: str | None = None) -> list[RetriedFile]:
        files = quarantined_files(self._root.open(read_only=True), source, file)
        return [each for each in files if each.file.source in self._sources]

    def _request(self, mutation: Mutation) -> int:
        """Puts a mutation on the next barrier of the attempt that runs, if one does.  Returns the request's number."""
        with self._news:
            attempt = self._attempt
            self._news.notify_all()
        if attempt is None:
            return _NEVER
        try:
            number = attempt.request(mutation)
        except RunFailedError:
            number = _NEVER  # the run sees the same failure, and its next attempt begins with the remembered requests
        with self._news:
            self._number = number
        return number

    def _rescale(self, attempt: RunningAttempt, bounds: tuple[int, int]) -> int:
        try:
            return attempt.rescale(*bounds)
        except RunFailedError:
            return _NEVER

    def _await_request(self, attempt: RunningAttempt, number: int) -> bool:
        return self._await(attempt, lambda: attempt.state.requests_over >= number)

    def _await(self, attempt: RunningAttempt, is_carried_out: Callable[[], bool]) -> bool:
        """Waits until a request is carried out, or the attempt is over.  Returns whether the request is carried out."""
        with self._news:
            self._news.wait_for(lambda: is_carried_out() or self._attempt is not attempt)
            return is_carried_out()


def _try_of(retried: RetriedFile) -> tuple[str, str, bytes, int]:
    """The key of one try of one version: the next try has another key."""
    file = retried.file
    return file.source, file.path, file.version, retried.attempts
