"""Tests of shells in the process of another actor."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest
import ray

from actors.hosting import hosted_shells
from actors.hosting.hosted_shells import HostedShell, call, host_shell
from actors.hosting.ray_runtime import RayRuntime
from actors.shells.shell import Shell
from state.errors import ProtocolError
from tests.waiting import eventually


class Counter(Shell[Any]):
    def __init__(self, name: str = "counter") -> None:
        super().__init__(name, RayRuntime(name))
        self.sum = 0

    async def add(self, number: int) -> int:
        self.sum += number
        return self.sum

    async def refuse(self) -> None:
        raise ProtocolError("no")


class Host:
    """A Ray actor with a shell in its process."""

    async def hosted(self) -> HostedShell:
        return host_shell(ray.get_runtime_context().current_actor, ray.get_runtime_context().get_actor_id(), Counter())

    async def call_hosted(self, key: tuple[str, str], method: str, *arguments: Any, **named: Any) -> Any:
        return await call(key, method, *arguments, **named)


def test_a_call_in_the_process_of_the_shell_is_a_task_that_starts_later() -> None:
    async def use() -> list[int]:
        counter = Counter()
        hosted = host_shell(None, "a", counter)
        answers = [hosted.add.remote(1), hosted.add.remote(2)]
        assert counter.sum == 0
        return list(await asyncio.gather(*answers))

    assert asyncio.run(use()) == [1, 3]


def test_an_error_of_the_shell_reaches_its_caller_as_it_was_raised() -> None:
    async def use() -> None:
        await RayRuntime("caller").call(host_shell(None, "a", Counter()), Counter.refuse)

    with pytest.raises(ProtocolError, match="no"):
        asyncio.run(use())


def test_an_error_of_a_call_without_an_answer_is_reported() -> None:
    async def use() -> list[Exception]:
        runtime, lost = RayRuntime("caller"), list[Exception]()
        runtime.on_lost = lost.append
        runtime.notify(host_shell(None, "a", Counter()), Counter.refuse)
        while not lost:
            await asyncio.sleep(0)
        return lost

    assert "no" in str(asyncio.run(use())[0])


def test_shells_of_two_attempts_in_one_process_are_apart() -> None:
    first, second = Counter(), Counter()
    host_shell(None, "a", first)
    hosted = host_shell(None, "b", second)

    async def use() -> int:
        answer: int = await hosted.add.remote(5)
        return answer

    assert (asyncio.run(use()), first.sum, second.sum) == (5, 0, 5)


@pytest.mark.ray
@pytest.mark.usefixtures("session")
def test_another_process_calls_the_shell_through_its_host() -> None:
    host = ray.remote(num_cpus=0)(Host).remote()
    hosted = ray.get(host.hosted.remote())
    assert hosted_shells._shells.get(hosted._key) is None
    assert ray.get(hosted.add.remote(3)) == 3
    assert ray.get(hosted.add.remote(number=4)) == 7
    with pytest.raises(ProtocolError):
        ray.get(hosted.refuse.remote())
    ray.kill(host)

    def is_dead() -> bool:
        try:
            ray.get(hosted.add.remote(1))
        except ray.exceptions.RayActorError:
            return True
        return False

    eventually(is_dead)
    assert pickle.loads(pickle.dumps(HostedShell(None, "a", "b")))._key == ("a", "b")
