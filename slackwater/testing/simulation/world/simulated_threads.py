"""Calls that wait: each has a thread of its own, and exactly one thread runs at any time.

A thread gives control back where it waits, and gets it again in an event of the schedule.  So chance orders it like all
else, and the operating system decides nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from slackwater.testing.simulation.world.interruptions import Killed
from slackwater.testing.simulation.world.schedule import Life, Schedule


class SimulatedThreads:
    """The threads of a simulation.

    Args:
        schedule: gets an event for each part of a call.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._threads: list[SimulatedThread] = []
        self.running: SimulatedThread | None = None

    def start(self, life: Life, work: Callable[[], None], on_end: Callable[[], None] = lambda: None) -> None:
        """Lets a call begin at some moment.

        Args:
            life: the life that calls; with its end the call does nothing more.
            work: the call.
            on_end: called when it has returned.
        """
        thread = SimulatedThread(self, life, work, on_end)
        self._threads.append(thread)
        self._schedule.soon(life, thread.resume)

    def wait_until(self, is_true: Callable[[], bool]) -> None:
        """Waits, in a call; `wake` lets it look again."""
        assert self.running is not None, "only a call of `start` waits"
        self.running.wait_until(is_true)

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
        self._is_killed = self._is_over = False
        self._error: BaseException | None = None

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
        if self._is_over and self.life.alive:
            self._on_end()

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
        if self._thread is not None and not self._is_over:
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
            self._is_over = True
            self._has_paused.release()


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
