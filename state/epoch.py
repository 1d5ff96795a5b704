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
    """The two epochs of a barrier: `prev` is the one that it closes, `curr` the one that it opens."""

    prev: int
    curr: int


def next_epoch(clock: Clock, last: int) -> int:
    """A new epoch: the current time, but always greater than `last`.  No other function makes an epoch."""
    milliseconds = int(clock.now().timestamp() * 1000)
    return max(milliseconds << _SEQUENCE_BITS, last + 1)


def epoch_time(epoch: int) -> datetime:
    """The wall time at which an epoch was made, in UTC, to the millisecond."""
    return datetime.fromtimestamp((epoch >> _SEQUENCE_BITS) / 1000, UTC)
