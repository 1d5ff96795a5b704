"""Sends each file to the fetch actor that owns the vnode of its path; broadcasts barriers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from actors.exchange.barrier_aligner import BarrierAligner
from actors.files import ChangedFile, FileVersion, ForgottenFile, GoneFile, RetriedFile
from actors.protocol.barrier import Barrier, Forget, Reread, Retry, Update
from actors.protocol.instructions import End, FlowInstruction, Send, pass_on
from actors.protocol.messages import (
    ChangedFiles,
    ForgottenFiles,
    GoneFiles,
    Message,
    NewFiles,
    RereadFiles,
    RetriedFiles,
)
from actors.protocol.reports import CollectReport
from actors.protocol.vnode_mapping import VnodeMapping
from state.errors import ProtocolError

_File = TypeVar("_File", FileVersion, ChangedFile, GoneFile, RetriedFile, ForgottenFile)


class DispatchExecutor:
    """The step between list and fetch.  It has no state.

    Args:
        actor: this actor's name in reports.
        edges: names of the edges from the list actors.
        mapping: who owns which vnode, until a barrier changes it.
    """

    def __init__(self, *, actor: str, edges: Sequence[str], mapping: VnodeMapping) -> None:
        self._actor, self._mapping = actor, mapping
        self._aligner = BarrierAligner(edges)

    def on_message(self, edge: str, message: Message) -> list[FlowInstruction]:
        """Routes a message, or holds it until the barriers of all edges are there."""
        return [step for passed in self._aligner.on_message(edge, message) for step in self._route(passed)]

    def _route(self, message: Message) -> list[FlowInstruction]:
        if isinstance(message, Barrier):
            receivers = self._mapping.owners
            if isinstance(message.mutation, Update):
                # Fetch actors that begin here get it as their first.
                self._mapping = message.mutation.after
                receivers = tuple(dict.fromkeys([*receivers, *self._mapping.owners]))
            instructions = pass_on(message, CollectReport(self._actor, message.epoch.prev), receivers)
            if isinstance(message.mutation, Retry):
                instructions += self._scatter(message.mutation.files, RetriedFiles)
            elif isinstance(message.mutation, Forget):
                instructions += self._scatter(message.mutation.files, ForgottenFiles)
            elif isinstance(message.mutation, Reread):
                instructions += self._scatter(message.mutation.files, RereadFiles)
            return [*instructions, End()] if message.is_stop else instructions
        if isinstance(message, NewFiles):
            return self._scatter(message.files, partial(NewFiles, sample=message.sample))
        if isinstance(message, ChangedFiles):
            return self._scatter(message.files, ChangedFiles)
        if isinstance(message, GoneFiles):
            return self._scatter(message.files, GoneFiles)
        raise ProtocolError(f"{self._actor}: {type(message).__name__} does not pass here")

    def _scatter(
        self, files: Sequence[_File], message: Callable[[tuple[_File, ...]], Message]
    ) -> list[FlowInstruction]:
        shares: dict[str, list[_File]] = {}
        for file in files:
            shares.setdefault(self._mapping.owner_of(file.source, file.path), []).append(file)
        return [Send(message(tuple(share)), to=(owner,)) for owner, share in shares.items()]
