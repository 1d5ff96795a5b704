"""The world of a shell on Ray: calls of other Ray actors, and one asyncio event loop for each actor."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import ray
import structlog

from actors.hosting.actor_death import death_of
from actors.shells.runtime import Actor, Event, Log, Timer
from actors.telemetry.logging import configure_default
from actors.telemetry.text import first_line
from state.clock import Clock, SystemClock
from state.errors import RunFailedError

REPORT_EVERY_S = 0.01
_GAP_LIMIT_S = 60.0
_Shell = TypeVar("_Shell")
_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


class RayRuntime:
    """See `Runtime`.

    Args:
        name: the actor's name in its log.
        threads: pool of threads → its size.
    """

    report_every_s = REPORT_EVERY_S
    lost_after_s = _GAP_LIMIT_S
    staged_from_bytes = 4 << 20

    def __init__(self, name: str, threads: Mapping[str, int] | None = None) -> None:
        configure_default()
        self.clock: Clock = SystemClock()
        self.log: Log = structlog.get_logger().bind(actor=name)
        self._threads: dict[str | None, ThreadPoolExecutor] = {
            pool: ThreadPoolExecutor(size, thread_name_prefix=pool) for pool, size in (threads or {}).items()
        }
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls: set[asyncio.Task[None]] = set()
        self.on_lost: Callable[[Exception], None] = self.on_failure

    @property
    def is_busy(self) -> bool:
        """True while any work runs in the background."""
        return bool(self._tasks)

    def notify(
        self,
        actor: Actor[_Shell],
        method: Callable[Concatenate[_Shell, _Arguments], Coroutine[Any, Any, object]],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> None:
        # Without an answer, a call whose arguments cannot be read would be lost without a word.
        answer = getattr(actor, method.__name__).remote(*arguments, **named)
        task = asyncio.get_running_loop().create_task(self._see(method.__name__, answer))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    def call(
        self,
        actor: Actor[_Shell],
        method: Callable[Concatenate[_Shell, _Arguments], Coroutine[Any, Any, _Answer]],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> Awaitable[_Answer]:
        return _RayAnswer(getattr(actor, method.__name__).remote(*arguments, **named))

    def later(self, delay_s: float, action: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay_s, action)

    def beside(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        task = asyncio.get_running_loop().create_task(work(*arguments))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def in_thread(self, work: Callable[[], _Answer], threads: str | None = None) -> _Answer:
        return await asyncio.get_running_loop().run_in_executor(self._threads.get(threads), work)

    def event(self) -> Event:
        return asyncio.Event()

    async def wait(self, event: Event, timeout_s: float) -> None:
        try:
            await asyncio.wait_for(event.wait(), timeout_s)
        except TimeoutError:
            pass

    def on_failure(self, error: Exception) -> None:
        """`join` and `watch` notify of it."""

    async def _see(self, method: str, answer: Awaitable[object]) -> None:
        """Waits for the end of a call whose caller does not wait."""
        try:
            await answer
        except ray.exceptions.RayActorError:
            return  # the watchers of the actor report its death
        except Exception as error:
            self.on_lost(RunFailedError(f"a call of {method} was lost: {first_line(getattr(error, 'cause', error))}"))


class _RayAnswer(Generic[_Answer]):
    """The answer of a Ray actor, with the errors of a `Runtime`."""

    def __init__(self, reference: Any) -> None:
        self._reference = reference

    def __await__(self) -> Generator[Any, None, _Answer]:
        try:
            answer: _Answer = yield from self._reference.__await__()
            return answer
        except ray.exceptions.RayActorError as error:
            raise death_of(error) from error
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
