"""Calls that wait: each has a thread of its own, and exactly one thread runs at any time.

A thread gives control back where it waits, and gets it again in an event of the schedule.  So chance orders it like all
else, and the operating system decides nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

from tests.simulation.world.interruptions import Killed
from tests.simulation.world.schedule import Life, Schedule
from tests.simulation.world.simulated_clock import SimulatedClock


class SimulatedThreads:
    """The threads of a simulation.

    Args:
        schedule: gets an event for each part of a call.
        clock: of the schedule.
    """

    def __init__(self, schedule: Schedule, clock: SimulatedClock) -> None:
        self._schedule, self._clock = schedule, clock
        self._threads: list[SimulatedThread] = []
        self.running: SimulatedThread | None = None

    def start(self, life: Life, work: Callable[[], None], on_end: Callable[[], None] = lambda: None) -> SimulatedThread:
        """Lets a call begin at some moment.

        Args:
            life: the life that calls; with its end the call does nothing more.
            work: the call.
            on_end: called when it has returned.
        """
        thread = SimulatedThread(self, life, work, on_end)
        self._threads.append(thread)
        self._schedule.soon(life, thread.resume)
        return thread

    def wait_until(self, is_true: Callable[[], bool], timeout_s: float | None = None) -> None:
        """Waits, in a call, at most for some seconds; `wake` lets it look again."""
        thread = self.running
        assert thread is not None, "only a call of `start` waits"
        if timeout_s is None:
            thread.wait_until(is_true)
            return
        end_s = self._clock.monotonic() + timeout_s
        timer = self._schedule.at(end_s, thread.life, thread.resume)
        thread.wait_until(lambda: is_true() or self._clock.monotonic() >= end_s)
        timer.cancel()

    def wake(self, life: Life) -> None:
        """Lets the calls of a life look again, at some moment."""
        for thread in self._threads:
            if thread.life is life and thread.is_waiting:
                self._schedule.soon(life, thread.resume)

    def end(self) -> None:
        """Ends all calls that have not returned."""
        for thread in self._threads:
            thread.kill()
        self._threads.clear()


class SimulatedThread:
    """One call; see `SimulatedThreads.start`."""

    def __init__(
        self, threads: SimulatedThreads, life: Life, work: Callable[[], None], on_end: Callable[[], None]
    ) -> None:
        self.life = life
        self.is_waiting = True
        self._threads, self._work, self._on_end = threads, work, on_end
        self._thread: threading.Thread | None = None
        self._may_run, self._has_paused = threading.Semaphore(0), threading.Semaphore(0)
        self.is_over = self._is_killed = False
        self._error: BaseException | None = None
        self._is_joined = False

    def join(self) -> None:
        """Waits, in another call of the same life, for the end of this one."""
        self._is_joined = True
        self._threads.wait_until(lambda: self.is_over)

    def resume(self) -> None:
        """Runs the call until it waits or ends; an error of it is raised here."""
        if not self.is_waiting:
            return
        self.is_waiting = False
        before, self._threads.running = self._threads.running, self
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        else:
            self._may_run.release()
        self._has_paused.acquire()
        self._threads.running = before
        if self._error is not None:
            raise self._error
        if self.is_over and self.life.alive:
            self._on_end()
        if self.is_over and self._is_joined:
            self._threads.wake(self.life)

    def wait_until(self, is_true: Callable[[], bool]) -> None:
        """Gives control back until something is true.

        Raises:
            Killed: the simulation ends.
        """
        while not is_true():
            if not self._is_killed:
                self.is_waiting = True
                self._has_paused.release()
                self._may_run.acquire()
            if self._is_killed:
                raise Killed

    def kill(self) -> None:
        """Ends the call where it waits."""
        if self._thread is not None and not self.is_over:
            self._is_killed = True
            self._may_run.release()
            self._thread.join()

    def _run(self) -> None:
        try:
            self._work()
        except Killed:
            pass
        except BaseException as error:
            self._error = error
        finally:
            self.is_over = True
            self._has_paused.release()


class PatientClock:
    """The clock of a call: while it sleeps, all others act.

    Args:
        clock: of the world.
        threads: the calls.
    """

    def __init__(self, clock: SimulatedClock, threads: SimulatedThreads) -> None:
        self._clock, self._threads = clock, threads

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def uptime(self) -> float:
        return self._clock.uptime()

    def sleep(self, seconds: float) -> None:
        self._threads.wait_until(lambda: False, seconds)


class SimulatedEvent:
    """A flag that calls of one life wait for; see `threading.Event`.

    Args:
        threads: the calls.
        life: the life.
    """

    def __init__(self, threads: SimulatedThreads, life: Life) -> None:
        self._threads, self._life = threads, life
        self._is_set = False

    def set(self) -> None:
        self._is_set = True
        self._threads.wake(self._life)

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float) -> bool:
        self._threads.wait_until(lambda: self._is_set, timeout)
        return self._is_set


class SimulatedNews(threading.Condition):
    """The news of a process: its calls wait for them, and one thread runs at a time, so that nothing is locked.

    Args:
        threads: the calls.
        process: the process.
        on_news: called with all news.
    """

    def __init__(self, threads: SimulatedThreads, process: Life, on_news: Callable[[], None]) -> None:
        super().__init__(_Open())  # type: ignore[arg-type]
        self._threads, self._process, self._on_news = threads, process, on_news

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:  # type: ignore[override]
        assert timeout is None, "calls wait as long as it takes"
        self._threads.wait_until(predicate)
        return True

    def notify_all(self) -> None:
        self._on_news()
        self._threads.wake(self._process)


class _Open:
    """A lock that is always free."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass

    def __enter__(self) -> bool:
        return True

    def __exit__(self, *_: object) -> None:
        pass
