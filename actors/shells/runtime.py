"""The world as a shell sees it: other actors, time, threads, and work in the background."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from state.clock import Clock
from state.errors import NodeLostError, RunFailedError

_Shell = TypeVar("_Shell")
_Hosted = TypeVar("_Hosted", covariant=True)
_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


class Actor(Generic[_Hosted]):
    """Reference to an actor that hosts a shell; each runtime has its own kind of it."""


class ActorDiedError(RunFailedError):
    """The actor that was called is dead.

    Args:
        cause: the reason in one line.
        node_lost: whether it died with its node, or its node does not answer.
    """

    def __init__(self, cause: str, *, node_lost: bool = False) -> None:
        super().__init__(cause)
        self.cause, self.node_lost = cause, node_lost

    def ending(self, event: str) -> RunFailedError:
        """The error that ends the attempt.

        Args:
            event: the event in words: `"the actor fetch-0 died"`.
        """
        if self.node_lost:
            return NodeLostError(f"{event}: its node is lost, or does not answer ({self.cause})")
        return RunFailedError(f"{event}: {self.cause}")


class Event(Protocol):
    """A flag to wait for."""

    def set(self) -> None:
        """Raises the flag; everything that waits for it continues."""
        ...

    def clear(self) -> None:
        """Lowers the flag."""
        ...

    def is_set(self) -> bool:
        """True while the flag is up."""
        ...

    async def wait(self) -> object:
        """Returns when the flag is up."""
        ...


class Timer(Protocol):
    """A call at a later time."""

    def cancel(self) -> None:
        """Drops the call."""
        ...


class Log(Protocol):
    """A structured log, as structlog has it."""

    def bind(self, **fields: object) -> Log:
        """The same log with further fields on each line."""
        ...

    def debug(self, event: str, **fields: object) -> object: ...

    def info(self, event: str, **fields: object) -> object: ...

    def warning(self, event: str, **fields: object) -> object: ...

    def error(self, event: str, **fields: object) -> object: ...


class Runtime(Protocol):
    """Everything that a shell asks of the world around it.

    Attributes:
        clock: wall and monotonic time.
        log: the actor's log.
        report_every_s: seconds between two progress reports of an actor, at least.
        lost_after_s: seconds after which a message counts as lost when later messages of its edge have come.
        on_lost: called for each `notify` that a living actor did not carry out; a shell sets it.
        staged_from_bytes: a larger delta of an epoch goes to the store itself.
    """

    clock: Clock
    log: Log
    report_every_s: float
    lost_after_s: float
    on_lost: Callable[[Exception], None]
    staged_from_bytes: int

    def notify(
        self,
        actor: Actor[_Shell],
        method: Callable[Concatenate[_Shell, _Arguments], Coroutine[Any, Any, object]],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> None:
        """Calls a method of another actor and does not wait.  Calls may arrive in any order."""
        ...

    def call(
        self,
        actor: Actor[_Shell],
        method: Callable[Concatenate[_Shell, _Arguments], Coroutine[Any, Any, _Answer]],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> Awaitable[_Answer]:
        """Calls a method of another actor at once; the answer may be awaited later.

        The answer raises the error of the method, or `ActorDiedError`.
        """
        ...

    def later(self, delay_s: float, action: Callable[[], None]) -> Timer:
        """Calls `action` after some seconds."""
        ...

    def beside(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Runs a coroutine concurrently with the handlers; it must not raise."""
        ...

    async def in_thread(self, work: Callable[[], _Answer], threads: str | None = None) -> _Answer:
        """The answer of a call that blocks.

        Args:
            threads: name of the pool; None for the one that everything shares.
        """
        ...

    def event(self) -> Event:
        """A new flag, down."""
        ...

    async def wait(self, event: Event, timeout_s: float) -> None:
        """Returns when the flag is up, or after some seconds."""
        ...

    def on_failure(self, error: Exception) -> None:
        """Hears of each error that ends an actor or an attempt."""
        ...
