"""Instructions of an executor to its shell.  Executors decide; shells perform, in the order of the list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from actors.protocol.barrier import Barrier
from actors.protocol.messages import Message
from actors.protocol.reports import CollectReport


class Instruction:
    """One action that an executor asks of its shell; each step declares its own beside its executor."""


@dataclass(frozen=True)
class Send(Instruction):
    """Sends a message to the receivers named in `to`, or to all if it is None."""

    message: Message
    to: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Collect(Instruction):
    """Reports to the coordinator that this actor has sealed an epoch."""

    report: CollectReport


@dataclass(frozen=True)
class End(Instruction):
    """Ends the actor: a `Stop` has passed, or it owns no vnode any more."""


@dataclass(frozen=True)
class WakeAt(Instruction):
    """Calls the executor again at a time of the monotonic clock; the latest `WakeAt` replaces an earlier one."""

    monotonic_s: float


@dataclass(frozen=True)
class Fail(Instruction):
    """Fails the attempt."""

    error: Exception


FlowInstruction: TypeAlias = Send | Collect | WakeAt | End | Fail
"""The instructions that every actor of the flow performs."""


def pass_on(barrier: Barrier, report: CollectReport, to: tuple[str, ...] | None = None) -> list[FlowInstruction]:
    """Seal, report, pass on: what every executor does with a barrier, in this order."""
    return [Collect(report), Send(barrier, to)]


@dataclass(frozen=True)
class ProposeSchema(Instruction):
    """Proposes the schema of a file to the coordinator, for a source without one.

    Args:
        path: path of the file, relative to the source.
        schema: None if the file is empty or cannot be read.
        sample: number of files of the source that were sent ahead so far, as far as the actor knows.
    """

    source: str
    path: str
    schema: pa.Schema | None
    sample: int = 0


@dataclass(frozen=True)
class ProposeColumns(Instruction):
    """Proposes columns of a file that its source lacks to the coordinator; the answer is a `DecideSchema`."""

    source: str
    columns: pa.Schema
