"""The world of a shell in the simulator: each call, timer and answer is one event of the schedule.

A coroutine runs until it awaits something that is not there yet; then its next step is an event of its actor.  So each
`await` is a place where other actors act first, where time passes, and where the actor dies: a dead actor's events do
not happen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from actors.shells.runtime import Actor, ActorDiedError, Event, Log, Timer
from state.clock import Clock
from state.errors import ProtocolError, SlackwaterError
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.interruptions import Killed
from tests.simulation.world.schedule import Life

if TYPE_CHECKING:
    from tests.simulation.simulated_world import World

_AT_ONCE = 0.5
_REPORTS_LATE = 0.25
# Moments of a story: what an actor has just called, and has not continued after.
_MOMENTS = {"collect": "collects", "receive": "hands over"}
_Shell = TypeVar("_Shell")
_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


class SimulatedActor(Life, Actor[_Shell]):
    """An actor that hosts a shell, which its maker sets.

    Args:
        name: the actor's name.
        within: its attempt.
        world: everything else.
    """

    shell: _Shell

    def __init__(self, name: str, within: Life, world: World) -> None:
        super().__init__(name, within)
        self.runtime = SimulatedRuntime(self, world)
        self.unanswered: list[_Waiting[Any]] = []
        self._node_lost = False

    def end(self) -> None:
        """Those that wait for an answer of the actor hear that it is dead."""
        super().end()
        unanswered, self.unanswered = self.unanswered, []
        for each in unanswered:
            each.fail(self.death())

    def end_with_node(self) -> None:
        """Ends it because its node is gone."""
        self._node_lost = True
        self.end()

    def death(self) -> ActorDiedError:
        """The error of a call to the dead actor."""
        return ActorDiedError("killed", node_lost=self._node_lost)


class SimulatedRuntime:
    """See `Runtime`.

    Args:
        life: the actor, or another life that runs coroutines.
        world: everything else.
    """

    report_every_s = 0.0
    # Between actors that live nothing is lost, however late it comes.
    lost_after_s = float("inf")

    def __init__(self, life: Life, world: World) -> None:
        self._life, self._world, self._schedule = life, world, world.schedule
        self.clock: Clock = world.clock
        self.staged_from_bytes = world.staged_from_bytes
        self.log: Log = _Silence()
        self.on_lost: Callable[[Exception], None] = self.on_failure  # nothing is
        self._now_s, self._at_once = -1.0, 0

    def notify(
        self,
        actor: Actor[_Shell],
        method: Callable[Concatenate[_Shell, _Arguments], Coroutine[Any, Any, object]],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> None:
        self._check_alive()
        assert isinstance(actor, SimulatedActor) and not named
        if method.__name__ == "progress" and self._world.random.random() >= _REPORTS_LATE:
            self.notify_now(actor, method, *arguments)
        else:
            self._schedule.soon(actor, actor.runtime.act, getattr(actor.shell, method.__name__), *arguments)
        if method.__name__ == "collect":
            self._on_moment(method.__name__)

    def notify_now(
        self, actor: Actor[Any], method: Callable[..., Coroutine[Any, Any, object]], *arguments: Any
    ) -> None:
        """The same for a call that comes at once."""
        assert isinstance(actor, SimulatedActor)
        if actor.alive:
            actor.runtime.act(getattr(actor.shell, method.__name__), *arguments)

    def answer_now(
        self,
        actor: Actor[_Shell],
        method: Callable[Concatenate[_Shell, _Arguments], Coroutine[Any, Any, _Answer]],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Answer:
        """The answer of a method that awaits nothing."""
        assert isinstance(actor, SimulatedActor) and not named
        if not actor.alive:
            raise actor.death()
        try:
            getattr(actor.shell, method.__name__)(*arguments).send(None)
        except StopIteration as end:
            answer: _Answer = end.value
            return answer
        raise AssertionError(f"{method.__name__} awaits something")

    def call(
        self,
        actor: Actor[_Shell],
        method: Callable[Concatenate[_Shell, _Arguments], Coroutine[Any, Any, _Answer]],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> Awaitable[_Answer]:
        self._check_alive()
        assert isinstance(actor, SimulatedActor) and not named
        answer: _Waiting[_Answer] = _Waiting(self._life, self._world)
        work = getattr(actor.shell, method.__name__)
        self._schedule.soon(self._life, self.act, _arrive, actor, answer, work, *arguments)
        if method.__name__ == "receive":
            self._on_moment(method.__name__)
        return answer

    def later(self, delay_s: float, action: Callable[[], None]) -> Timer:
        if delay_s == float("inf"):
            return _NEVER
        if delay_s > 0.0:
            return self._schedule.at(self.clock.monotonic() + delay_s, self._life, _run, action)
        now_s = self.clock.monotonic()
        self._at_once = self._at_once + 1 if now_s == self._now_s else 0
        self._now_s = now_s
        if self._at_once > _MOST_AT_ONCE:
            # The rest of a wait is below the resolution of the clock, and ends only if the time goes on.
            self._world.clock.skip(_MOMENT_S)
        self._schedule.soon(self._life, _run, action)
        return _NEVER

    def beside(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        self._schedule.soon(self._life, self.act, work, *arguments)

    def act(self, work: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> None:
        """Runs a coroutine, now, to its first await of something that is not there."""
        _Task(self._life, work(*arguments)).step()

    async def in_thread(self, work: Callable[[], _Answer], threads: str | None = None) -> _Answer:
        answer: _Waiting[_Answer] = _Waiting(self._life, self._world)
        self._schedule.soon(self._life, self._work, work, answer)
        return await answer

    async def sleep_until(self, monotonic_s: float) -> None:
        """Returns at a time."""
        answer: _Waiting[None] = _Waiting(self._life, self._world)
        self._schedule.at(monotonic_s, self._life, answer.succeed, None)
        await answer

    def event(self) -> Event:
        return _Flag(self._life, self._world)

    async def wait(self, event: Event, timeout_s: float) -> None:
        """There is always an event to wait for, and a time that passes would be one."""
        await event.wait()

    def on_failure(self, error: Exception) -> None:
        judge(error, self._life.name)

    def _work(self, work: Callable[[], _Answer], answer: _Waiting[_Answer]) -> None:
        """A call that blocks happens in one event, and its answer may come in a later one."""
        try:
            result = work()
        except Killed:
            return
        except Exception as error:
            answer.fail(error, at_once=self._is_at_once())
        else:
            answer.succeed(result, at_once=self._is_at_once())

    def _is_at_once(self) -> bool:
        return self._world.random.random() < _AT_ONCE

    def _on_moment(self, method: str) -> None:
        self._world.interruptions.planned(f"{self._life.name} {_MOMENTS[method]}")
        self._check_alive()

    def _check_alive(self) -> None:
        """An actor that has died in the middle of something does nothing more."""
        if not self._life.alive:
            raise Killed


class _Waiting(Generic[_Answer]):
    """An answer that one coroutine waits for."""

    def __init__(self, life: Life, world: World) -> None:
        self._life, self._schedule = life, world.schedule
        self._task: _Task | None = None
        self._is_there = False
        self._value: _Answer | None = None
        self._error: Exception | None = None

    def succeed(self, value: _Answer, *, at_once: bool = False) -> None:
        """The answer is there; the coroutine continues in an event, or in this one."""
        self._value = value
        self._arrive(at_once)

    def fail(self, error: Exception, *, at_once: bool = False) -> None:
        """The answer is an error."""
        self._error = error
        self._arrive(at_once)

    def __await__(self) -> Generator[_Waiting[_Answer], None, _Answer]:
        if not self._is_there:
            yield self
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def wake(self, task: _Task) -> None:
        """A task waits for it from now on."""
        self._task = task

    def _arrive(self, at_once: bool) -> None:
        self._is_there = True
        if self._task is not None and at_once and self._life.alive:
            self._task.step()
        elif self._task is not None:
            self._schedule.soon(self._life, _run, self._task.step)


class _Task:
    """A coroutine under way."""

    def __init__(self, life: Life, coroutine: Coroutine[_Waiting[Any], None, Any]) -> None:
        self._life, self._coroutine = life, coroutine

    def step(self) -> None:
        """Runs it to its next await of something that is not there."""
        try:
            self._coroutine.send(None).wake(self)
        except (StopIteration, Killed):
            pass


class _Flag:
    """See `Event`."""

    def __init__(self, life: Life, world: World) -> None:
        self._life, self._world = life, world
        self._is_up = False
        self._waiting: list[_Waiting[None]] = []

    def set(self) -> None:
        self._is_up = True
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.succeed(None)

    def clear(self) -> None:
        self._is_up = False

    def is_set(self) -> bool:
        return self._is_up

    async def wait(self) -> object:
        if not self._is_up:
            answer: _Waiting[None] = _Waiting(self._life, self._world)
            self._waiting.append(answer)
            await answer
        return True


class _Never:
    """A timer that needs no end."""

    def cancel(self) -> None:
        pass


class _Silence:
    """A log that keeps nothing."""

    def bind(self, **_: object) -> _Silence:
        return self

    def debug(self, event: str, **_: object) -> None:
        pass

    info = warning = error = debug


_MOMENT_S, _MOST_AT_ONCE = 1e-9, 1_000
_NEVER = _Never()


def judge(error: Exception, name: str) -> None:
    """Raises PromiseBroken for an error that shows a bug."""
    if isinstance(error, ProtocolError) or not isinstance(error, SlackwaterError):
        raise PromiseBroken("no bug", f"{name}: {type(error).__name__}: {error}") from error


async def _arrive(
    actor: SimulatedActor[Any],
    answer: _Waiting[_Answer],
    work: Callable[..., Coroutine[Any, Any, _Answer]],
    *arguments: Any,
) -> None:
    """A call comes to its actor, which begins with it at once."""
    if actor.alive:
        actor.unanswered.append(answer)
        actor.runtime.act(_answered, actor, answer, work, *arguments)
    else:
        answer.fail(actor.death())


async def _answered(
    actor: SimulatedActor[Any],
    answer: _Waiting[_Answer],
    work: Callable[..., Coroutine[Any, Any, _Answer]],
    *arguments: Any,
) -> None:
    try:
        value = await work(*arguments)
    except Exception as error:
        actor.unanswered.remove(answer)
        answer.fail(error)
    else:
        actor.unanswered.remove(answer)
        answer.succeed(value)


def _run(action: Callable[[], None]) -> None:
    try:
        action()
    except Killed:
        pass
