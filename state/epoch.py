"""Epochs: signed 64-bit integers, milliseconds since 1970 << 16 | sequence, strictly growing.

The encoding is RisingWave's (`src/common/src/util/epoch.rs`).  The last ten bits of the sequence are the term modulo
1,024: an epoch that an earlier term made and did not commit never comes again, though datasets are named after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from state.clock import Clock

_SEQUENCE_BITS = 16
TERMS = 1 << 10
"""The number of terms in a row that never make the same epoch."""


@dataclass(frozen=True)
class EpochPair:
    """The two epochs of a barrier: `prev` is the one that it closes, `curr` the one that it opens."""

    prev: int
    curr: int


def next_epoch(clock: Clock, last: int, term: int = 0) -> int:
    """A new epoch: the current time, but always greater than `last`.  No other function makes an epoch.

    It is at most a millisecond ahead of a clock that is not set back, with up to 64 epochs in a millisecond.

    Args:
        clock: gives the current time.
        last: the epoch before it.
        term: the term that makes it.
    """
    milliseconds = int(clock.now().timestamp() * 1000)
    least = max(milliseconds << _SEQUENCE_BITS, last + 1)
    return least + (term - least) % TERMS


def first_epoch_at(time: datetime) -> int:
    """The smallest epoch that is made at a time."""
    return int(time.timestamp() * 1000) << _SEQUENCE_BITS


def epoch_time(epoch: int) -> datetime:
    """The wall time at which an epoch was made, in UTC, to the millisecond."""
    return datetime.fromtimestamp((epoch >> _SEQUENCE_BITS) / 1000, UTC)


def epoch_time_us(epoch: int) -> int:
    """That time in microseconds since 1970."""
    return (epoch >> _SEQUENCE_BITS) * 1000
