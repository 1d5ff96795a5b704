"""Epochs: signed 64-bit integers, milliseconds since 1970 << 16 | sequence, strictly growing.

The encoding is RisingWave's (`src/common/src/util/epoch.rs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from state.clock import Clock

_SEQUENCE_BITS = 16


@dataclass(frozen=True)
class EpochPair:
    """What came before a barrier belongs to `prev`; what comes after belongs to `curr`."""

    prev: int
    curr: int


def next_epoch(clock: Clock, last: int) -> int:
    """An epoch greater than `last`, whatever the clock does.  The only place that makes one."""
    milliseconds = int(clock.now().timestamp() * 1000)
    return max(milliseconds << _SEQUENCE_BITS, last + 1)


def epoch_time(epoch: int) -> datetime:
    """The wall time, in UTC and to the millisecond, that an epoch was made at."""
    return datetime.fromtimestamp((epoch >> _SEQUENCE_BITS) / 1000, UTC)
