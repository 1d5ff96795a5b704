"""A shell: one guard for every handler and timer, and work in the background.

Everything of one actor runs on its one event loop, so a handler is interrupted only where it awaits; a call that takes
long runs in a thread and comes back as an event.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Generic, TypeVar

from actors.shells.runtime import Event, Runtime, Timer

_Step = TypeVar("_Step")


class Shell(Generic[_Step]):
    """Hosts one executor; `_Step` are the instructions of its step."""

    def __init__(self, name: str, runtime: Runtime) -> None:
        self.name, self._runtime, self._log = name, runtime, runtime.log
        self._failure: Exception | None = None
        self._wake: Timer | None = None
        runtime.on_lost = self.fail

    def perform(self, instruction: _Step) -> None:
        raise NotImplementedError

    def on_time(self) -> Iterable[_Step]:
        """The executor's answer to a `WakeAt` that came due."""
        return ()

    def after_instructions(self) -> None:
        """The executor has changed: wakes the callers that watch it."""

    def fail(self, error: Exception) -> None:
        """Ends the work of the shell with an error."""
        raise NotImplementedError

    def do(self, instructions: Iterable[_Step]) -> None:
        """Performs instructions in their order; nothing after a failure."""
        if self._failure is not None:
            return
        for instruction in instructions:
            self.perform(instruction)
        self.after_instructions()

    def now_s(self) -> float:
        """Seconds of the monotonic clock."""
        return self._runtime.clock.monotonic()

    def guard(self) -> _Guard:
        """The edge of the shell: an error inside fails the shell.  Messages and timers have no caller."""
        return _Guard(self)

    def beside(self, work: Callable[..., Coroutine[Any, Any, object]], *arguments: Any) -> Event:
        """Runs a coroutine in the guard, concurrently with the handlers.  Returns the flag of its end."""
        ended = self._runtime.event()
        self._runtime.beside(self._guarded, work, arguments, ended)
        return ended

    def wake_at(self, monotonic_s: float) -> None:
        """Asks the executor again at a time, instead of at the time before."""
        if self._wake is not None:
            self._wake.cancel()
        self._wake = self._runtime.later(max(0.0, monotonic_s - self.now_s()), self._on_wake)

    def _on_wake(self) -> None:
        self._wake = None
        with self.guard():
            self.do(self.on_time())

    async def _guarded(
        self, work: Callable[..., Coroutine[Any, Any, object]], arguments: tuple[Any, ...], ended: Event
    ) -> None:
        with self.guard():
            await work(*arguments)
        ended.set()


class _Guard:
    """Turns an error into a failure of the shell."""

    __slots__ = ("_shell",)

    def __init__(self, shell: Shell[Any]) -> None:
        self._shell = shell

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, Exception):
            self._shell.fail(error)
            return True
        return False
