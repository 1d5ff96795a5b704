"""Calls on Ray: one that cannot be carried out is never lost without a word."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import ray

from actors.hosting.ray_runtime import RayRuntime
from actors.hosting.run_client import RunClient
from actors.protocol.reports import CollectReport
from actors.shells.runtime import Actor
from state.errors import RunFailedError
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]


class Unreadable:
    """An argument that its receiver cannot read, as when its memory is short or its object is gone."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _no_room, ()


def _no_room() -> None:
    raise MemoryError("no room for a report")


class Peer:
    """An actor that counts its calls."""

    def __init__(self) -> None:
        self.heard = 0

    async def hear(self, _: object) -> None:
        self.heard += 1

    release = collect = hear

    async def count(self) -> int:
        return self.heard


@pytest.fixture
def peer() -> Actor[Any]:
    made: Actor[Any] = ray.remote(Peer).options(num_cpus=0).remote()
    ray.get(made.count.remote())  # type: ignore[attr-defined]
    return made


class Told:
    """A runtime on an event loop of its own, and its losses."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.runtime = RayRuntime("sender")
        self.runtime.on_lost = lambda error: self.lost.append(str(error))

    def notify(self, actor: Actor[Any], argument: object) -> None:
        async def notify() -> None:
            self.runtime.notify(actor, Peer.hear, argument)

        asyncio.run_coroutine_threadsafe(notify(), self._loop).result()

    def has_settled(self) -> bool:
        return not self.runtime._calls

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)


def is_dead(peer: Actor[Any]) -> bool:
    try:
        ray.get(peer.count.remote())  # type: ignore[attr-defined]
    except ray.exceptions.RayActorError:
        return True
    return False


def test_a_told_call_whose_arguments_cannot_be_read_is_told_to_the_sender(peer: Actor[Any]) -> None:
    told = Told()
    told.notify(peer, 1)
    told.notify(peer, Unreadable())
    eventually(lambda: bool(told.lost), 30, "the loss was not told")
    assert ray.get(peer.count.remote()) == 1  # type: ignore[attr-defined]
    [lost] = told.lost
    assert lost.startswith("a call of hear was lost: ") and "no room for a report" in lost
    told.close()


def test_the_death_of_an_actor_is_no_loss(peer: Actor[Any]) -> None:
    told = Told()
    ray.kill(peer)
    told.notify(peer, 1)
    eventually(told.has_settled, 30, "the call has not ended")
    assert told.lost == []
    told.close()


def test_a_report_of_the_materializer_that_is_lost_fails_the_attempt(peer: Actor[Any]) -> None:
    client = RunClient.__new__(RunClient)
    client._coordinator = client._merger = peer
    client.collect(CollectReport("materializer", 1))
    assert ray.get(peer.count.remote()) == 2  # type: ignore[attr-defined]
    unreadable: Any = CollectReport("materializer", 2, views={"v": Unreadable()})  # type: ignore[dict-item]
    with pytest.raises(Exception, match="no room for a report"):
        client.collect(unreadable)
    ray.kill(peer)
    eventually(lambda: is_dead(peer), 30, "the actor still answers")  # `kill` does not wait for it
    with pytest.raises(RunFailedError, match="died"):
        client.collect(CollectReport("materializer", 3))
