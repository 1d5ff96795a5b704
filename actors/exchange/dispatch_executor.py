"""The dispatch step without Ray: sends each file to the fetch actor that owns its vnode, and each barrier to all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from actors.exchange.barrier_aligner import BarrierAligner
from actors.files import ChangedFile, DeletedFile, FileVersion, ForgottenFile, RetriedFile
from actors.protocol.barrier import Barrier, Forget, Reread, Retry, Update
from actors.protocol.instructions import End, FlowInstruction, Send, pass_on
from actors.protocol.messages import (
    ChangedFiles,
    DeletedFiles,
    ForgottenFiles,
    Message,
    NewFiles,
    RereadFiles,
    RetriedFiles,
)
from actors.protocol.reports import CollectReport
from actors.protocol.vnode_mapping import VnodeMapping
from state.errors import ProtocolError

_File = TypeVar("_File", FileVersion, ChangedFile, DeletedFile, RetriedFile, ForgottenFile)


class DispatchExecutor:
    """The step between list and fetch.  It has no state to seal.

    Args:
        actor: this actor's name in reports.
        edges: names of the edges from the list actors.
        mapping: owners of the vnodes, until a barrier changes them.
    """

    def __init__(self, *, actor: str, edges: Sequence[str], mapping: VnodeMapping) -> None:
        self._actor, self._mapping = actor, mapping
        self._aligner = BarrierAligner(edges)

    def on_message(self, edge: str, message: Message) -> list[FlowInstruction]:
        """Routes a message, or holds it until the barriers of all edges are here."""
        return [step for passed in self._aligner.on_message(edge, message) for step in self._route(passed)]

    def _route(self, message: Message) -> list[FlowInstruction]:
        match message:
            case Barrier():
                return self._on_barrier(message)
            case NewFiles():
                return self._scatter(message.files, partial(NewFiles, sample=message.sample))
            case ChangedFiles():
                return self._scatter(message.files, ChangedFiles)
            case DeletedFiles():
                return self._scatter(message.files, DeletedFiles)
            case _:
                raise ProtocolError(f"{self._actor}: the dispatch step takes no {type(message).__name__}")

    def _on_barrier(self, barrier: Barrier) -> list[FlowInstruction]:
        """Sends a barrier to all owners, and behind it to each its share of the files that the mutation names."""
        receivers = self._mapping.owners
        if isinstance(barrier.mutation, Update):
            # For fetch actors that begin here it is the first message.
            self._mapping = barrier.mutation.after
            receivers = tuple(dict.fromkeys([*receivers, *self._mapping.owners]))
        instructions = pass_on(barrier, CollectReport(self._actor, barrier.epoch.prev), receivers)
        match barrier.mutation:
            case Retry(files):
                instructions += self._scatter(files, RetriedFiles)
            case Forget(forgotten):
                instructions += self._scatter(forgotten, ForgottenFiles)
            case Reread(versions):
                instructions += self._scatter(versions, RereadFiles)
        return [*instructions, End()] if barrier.is_stop else instructions

    def _scatter(
        self, files: Sequence[_File], message: Callable[[tuple[_File, ...]], Message]
    ) -> list[FlowInstruction]:
        """One message for each owner, with its share of the files, in their order."""
        shares: dict[str, list[_File]] = {}
        for file in files:
            shares.setdefault(self._mapping.owner_of(file.source, file.path), []).append(file)
        return [Send(message(tuple(share)), to=(owner,)) for owner, share in shares.items()]
