from __future__ import annotations

import asyncio

import pytest

from actors.actor_shell import ActorShell
from actors.edge import Outlet
from actors.instructions import Instruction
from actors.messages import Message
from tests.actors.flow import files


class Failing(ActorShell):
    """Fails at its first message."""

    def __init__(self) -> None:
        super().__init__(name="failing", edges=["a"], coordinator=None)
        self.taken = 0

    def on_message(self, edge: str, message: Message) -> list[Instruction]:
        self.taken += 1
        raise ValueError("the disk is full")


def test_an_actor_that_failed_takes_no_further_message_and_says_why() -> None:
    async def story() -> int:
        shell, outlet = Failing(), Outlet("a")
        await shell.receive(outlet.send(files("x")))
        await shell.receive(outlet.send(files("y")))
        with pytest.raises(ValueError, match="the disk is full"):
            await shell.join()
        return shell.taken

    assert asyncio.run(story()) == 1


@pytest.mark.parametrize("fails", [False, True], ids=["all leaves", "something fails"])
def test_an_actor_that_has_stopped_is_over_when_whatever_it_sends_has_left(fails: bool) -> None:
    async def story() -> list[str]:
        shell = ActorShell(name="leaving", edges=[], coordinator=None)
        left: list[str] = []
        may_leave = asyncio.Event()

        async def leave(name: str) -> None:
            await may_leave.wait()
            if fails:
                raise ValueError("the disk is full")
            left.append(name)

        for name in ("a", "b"):
            shell.run_leaving(leave(name))
        shell.end()
        joined = asyncio.ensure_future(shell.join())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not joined.done(), "two are on their way"
        may_leave.set()
        if fails:
            with pytest.raises(ValueError, match="the disk is full"):
                await joined
        else:
            await joined
        return left

    assert asyncio.run(story()) == ([] if fails else ["a", "b"])
