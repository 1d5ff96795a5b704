"""The barrier between two epochs, and the mutations that it carries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Literal

from actors.files import FileKey, FileVersion, ForgottenFile, RetriedFile, Vanished
from actors.protocol.messages import Message
from actors.protocol.vnode_mapping import VnodeMapping
from state.epoch import EpochPair
from state.errors import UsageError
from state.ownership.command import ArgumentLine, Command, CommandLine, argument


class Mutation:
    """A change that takes effect exactly at a barrier, at all actors; an executor also passes on those it ignores."""


class BarrierKind(Enum):
    """`INITIAL` opens an attempt and seals nothing; `CHECKPOINT` seals an epoch that is then committed."""

    INITIAL = "initial"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class Stop(Mutation):
    """Every actor ends when it has passed the barrier on."""


class FlowCommand(Mutation, Command):
    """A mutation that is a command too: the run remembers it, and begins every later attempt with it."""

    @property
    def outcome(self) -> str:
        """The state of the flow behind the barrier, for the answer to the command."""
        raise NotImplementedError


@dataclass(frozen=True)
class Pause(FlowCommand, kind="pause"):
    """Sources send nothing more; barriers continue."""

    line = CommandLine("Steer a run", "Pause a running pipeline.  It lists and reads nothing until `resume`.")
    outcome = "paused"


@dataclass(frozen=True)
class Resume(FlowCommand, kind="resume"):
    """Sources send again after a `Pause`."""

    line = CommandLine("Steer a run", "Resume a paused pipeline.")
    outcome = "resumed"


def _limit(help: str, option: str) -> float | None:
    limit: float | None = argument(ArgumentLine(help, option=option), default=None)
    return limit


@dataclass(frozen=True)
class Throttle(FlowCommand, kind="throttle"):
    """Upper limits for all fetch actors together: they open, read and emit no more each second.

    Args:
        files_per_second, bytes_per_second, rows_per_second: above zero; None for the limit of the settings.

    Raises:
        UsageError: a limit is not above zero.
    """

    line = CommandLine(
        "Steer a run", "Limit the reading rate of a running pipeline.  New limits replace all earlier limits."
    )
    files_per_second: float | None = _limit("open at most this number of files each second", "--files-per-second")
    bytes_per_second: float | None = _limit("read at most this number of bytes each second", "--bytes-per-second")
    rows_per_second: float | None = _limit("emit at most this number of rows each second", "--rows-per-second")

    @classmethod
    def of_line(
        cls, off: Annotated[Literal["off"] | None, ArgumentLine("remove all limits")] = None, **limits: float | None
    ) -> Throttle:
        if (off is None) == (cls(**limits) == cls()):
            raise UsageError(
                "give one or more of --files-per-second, --bytes-per-second and --rows-per-second, or `off`"
            )
        return cls(**limits)

    def __post_init__(self) -> None:
        for name, rate in vars(self).items():
            if rate is not None and not (math.isfinite(rate) and rate > 0):
                raise UsageError(f"throttle: {name}={rate}: give a number above zero")

    @property
    def outcome(self) -> str:
        limits = [f"{rate:,g} {name.split('_')[0]}" for name, rate in vars(self).items() if rate is not None]
        return f"at most {' and '.join(limits)} a second" if limits else "not throttled"


@dataclass(frozen=True)
class Retry(Mutation):
    """Puts quarantined versions back into the queue."""

    files: tuple[RetriedFile, ...]


@dataclass(frozen=True)
class Forget(Mutation):
    """Takes the rows of objects out of the views."""

    files: tuple[ForgottenFile, ...]


@dataclass(frozen=True)
class AllowRemovals(Mutation):
    """Lets the missing files of sources leave the views whose removal is paused."""

    sources: frozenset[str]


@dataclass(frozen=True)
class Reread(Mutation):
    """Reads versions again, in place of all rows that the views hold of their objects."""

    files: tuple[FileVersion, ...]


@dataclass(frozen=True)
class Update(Mutation):
    """Moves vnodes from one owner to another.

    Args:
        before, after: the owners of the vnodes.
        paused, throttle: the requests in force, for fetch actors that begin here.
    """

    before: VnodeMapping
    after: VnodeMapping
    paused: bool = False
    throttle: Throttle = Throttle()


@dataclass(frozen=True)
class Barrier(Message):
    """The border between two epochs.

    Args:
        epoch: the epoch that it ends, and the one that it begins.
        list_budget: source → number of new files that its list actor may send until the next barrier.
        backlog: files that are listed and not finished.
        vanished: versions that count as new files if they are listed again.
        admitted: the versions that may be read until the next barrier; None for all.
        watermarks: source → its watermark in the epoch that the barrier ends, in microseconds since 1970.
    """

    epoch: EpochPair
    kind: BarrierKind = BarrierKind.CHECKPOINT
    mutation: Mutation | None = None
    list_budget: Mapping[str, int] = field(default_factory=dict)
    backlog: int = 0
    vanished: tuple[Vanished, ...] = ()
    admitted: frozenset[FileKey] | None = None
    watermarks: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_stop(self) -> bool:
        return isinstance(self.mutation, Stop)
