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
