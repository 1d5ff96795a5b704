"""The shell of a fetch step: blocks that are stored leave in their order, and nothing ends before they have."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray

from actors.exchange.edge import Inlet
from actors.fetching.file_progress import FileProgress
from actors.fetching.instructions import EmitBlock
from actors.fetching.read_buffers import Piece
from actors.fetching.version_set import VersionSet
from actors.formats.options import Parquet
from actors.hosting.fetch_actor import FetchActor
from actors.protocol.barrier import Barrier, Stop
from actors.protocol.blocks import Block
from actors.protocol.instructions import End, Send
from actors.protocol.messages import Envelope
from actors.settings import FetchSettings
from actors.shells.fetch_shell import FetchStart
from actors.shells.runtime import Actor
from actors.sources.source import SourceDefinition
from state.errors import StorageError
from state.lance.fragment_stager import staged_fragments
from state.location import Location
from tests.actors.flow import barrier, file, rows

PATH = "views/s.rows-1.lance"


class Receiver(Actor[Any]):
    """In place of an actor's handle: keeps what comes."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []
        self.receive = self.collect = self.progress = self

    def remote(self, *arguments: Any) -> Coroutine[None, None, None]:
        if isinstance(arguments[0], Envelope):
            self.envelopes.append(arguments[0])
        return _answer()


async def _answer() -> None:
    pass


def fetch_actor(root: Path, receiver: Receiver, sources: Sequence[SourceDefinition] = ()) -> FetchActor:
    actor = FetchActor(
        name="fetch-0",
        edges=["dispatcher"],
        coordinator=receiver,
        root=Location(str(root)),
        start=FetchStart(
            settings=FetchSettings(),
            num_fetchers=1,
            sources=sources,
            schemas={},
            poisoned={},
            stored={"s": PATH},
            without_rows=VersionSet(),
        ),
    )
    actor._outlets = {"merger": (receiver, actor.outlet())}
    return actor


def block(count: int) -> EmitBlock:
    read = rows(count)
    return EmitBlock("s", (Piece(FileProgress(file("a"), listed_epoch=1), read),), read.table.nbytes, epoch=1)


@pytest.fixture(autouse=True)
def object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that keeps nothing: these tests do not read blocks."""
    monkeypatch.setattr(ray, "put", lambda content: "reference")


def test_a_barrier_comes_behind_the_blocks_that_are_still_being_stored(tmp_path: Path) -> None:
    receiver = Receiver()

    async def run() -> None:
        actor = fetch_actor(tmp_path, receiver)
        actor.do([block(3), block(2), Send(barrier(1, Stop())), End()])
        assert [type(each.message) for each in receiver.envelopes] == [Barrier], "storing holds no message up"
        ending = asyncio.ensure_future(actor.join())
        await asyncio.sleep(0)
        assert not ending.done(), "it has not ended before they are stored"
        await ending

    asyncio.run(run())
    inlet = Inlet(["fetch-0"])
    messages = [message for each in receiver.envelopes for message in inlet.receive(each)]
    assert [type(each) for each in messages] == [Block, Block, Barrier]
    stored = [each.stored for each in messages if isinstance(each, Block)]
    assert all(each is not None and each.path == PATH for each in stored)
    assert [staged_fragments(each.fragments)[0].num_rows for each in stored if each is not None] == [3, 2]


def test_rows_that_cannot_be_stored_end_the_actor_though_it_was_to_stop(tmp_path: Path) -> None:
    (tmp_path / "views").write_text("no directory")

    async def run() -> None:
        actor = fetch_actor(tmp_path, Receiver())
        actor.do([block(3), Send(barrier(1, Stop())), End()])
        await actor.join()

    with pytest.raises(StorageError, match="views"):
        asyncio.run(run())


def test_only_what_the_views_use_goes_to_spark(tmp_path: Path) -> None:
    receiver = Receiver()

    async def run() -> None:
        actor = fetch_actor(tmp_path, receiver)
        await actor.read_columns({"s": ["y"]})
        actor.do([block(3), Send(barrier(1, Stop())), End()])
        await actor.join()

    asyncio.run(run())
    (found,) = (each.message for each in receiver.envelopes if isinstance(each.message, Block))
    assert found.columns == () and found.stored is not None
    assert found.stored.schema.names == ["__sw_path", "__sw_version", "__sw_row", "x"]


def test_a_file_that_is_being_read_is_opened_again_for_a_view_that_needs_more_of_it(tmp_path: Path) -> None:
    sources = [SourceDefinition(name=name, location=Location(str(tmp_path)), format=Parquet()) for name in "st"]

    async def run() -> None:
        actor = fetch_actor(tmp_path, Receiver(), sources)
        of_s, of_t = (replace(file("a"), source=name) for name in "st")
        actor._open = {each: actor._files[each.source].open(each) for each in (of_s, of_t)}
        for columns, is_open in ((["a", "b"], True), (["a"], True), (["a", "b"], False)):
            await actor.read_columns({"t": columns})
            assert (of_t in actor._open) == is_open
        assert of_s in actor._open, "another source's is left alone"

    asyncio.run(run())
