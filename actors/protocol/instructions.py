"""What an executor asks of its shell.  Executors decide; shells do, in the order of the list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from actors.protocol.barrier import Barrier
from actors.protocol.messages import Message
from actors.protocol.reports import CollectReport
from state.errors import SchemaError


class Instruction:
    """One thing that an executor asks of its shell; each step declares its own beside its executor."""


@dataclass(frozen=True)
class Send(Instruction):
    """Sends a message to some receivers, by name, or to all (`to` is None)."""

    message: Message
    to: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Collect(Instruction):
    """Reports to the coordinator that this actor has sealed an epoch."""

    report: CollectReport


@dataclass(frozen=True)
class End(Instruction):
    """The actor's work is over: a `Stop` has passed, or it owns no vnode any more."""


@dataclass(frozen=True)
class WakeAt(Instruction):
    """Calls the executor again at a time of the monotonic clock."""

    monotonic_s: float


@dataclass(frozen=True)
class Fail(Instruction):
    """The run cannot go on."""

    error: Exception


FlowInstruction: TypeAlias = Send | Collect | WakeAt | End | Fail
"""The instructions that every actor of the flow performs."""


def pass_on(barrier: Barrier, report: CollectReport, to: tuple[str, ...] | None = None) -> list[FlowInstruction]:
    """Seal, report, pass on: what every executor does with a barrier, in this order."""
    return [Collect(report), Send(barrier, to)]


@dataclass(frozen=True)
class ProposeSchema(Instruction):
    """Tells the coordinator what a file of a source without schema looks like.

    Attributes:
        schema: None if the file is empty or cannot be read; an error if it has a column that no source can have.
        sample: how many files of the source were sent ahead so far, as far as is known.
    """

    source: str
    path: str
    schema: pa.Schema | SchemaError | None
    sample: int = 0


@dataclass(frozen=True)
class ProposeColumns(Instruction):
    """Tells the coordinator what columns a file has that its source lacks; the answer is a `DecideSchema`."""

    source: str
    columns: pa.Schema
