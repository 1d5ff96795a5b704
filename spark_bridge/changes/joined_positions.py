"""The rows of a join as positions in the rows of its sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

JoinKind = Literal["inner", "left", "semi", "anti", "existence", "full"]
"""The rows of a join: pairs, also with nulls in place of a partner, or rows of the left side.

`existence` has every row of the left side, and whether it has a partner as a column.  A right join is a left one with
its sides exchanged.
"""

Positions = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Positions of rows of the left side, and of the rows of the right side that they meet."""

_NOWHERE = -1


@dataclass(frozen=True)
class JoinedPositions:
    """Where the values of each row of a join are.

    Args:
        left: positions in the left side; null for a row without one.
        right: positions in the right side; null for a row without one.
        exists: whether the row of the left side has a partner; None if that is no column.
    """

    left: pa.Array
    right: pa.Array
    exists: pa.Array | None = None

    @classmethod
    def of(cls, kind: JoinKind, partners: Positions, left: int, right: int) -> JoinedPositions:
        """The rows of a join that are more, or fewer, than the pairs of partners.

        Args:
            kind: of the join, any but `inner`.
            partners: the rows that are partners.
            left: the number of rows of the left side.
            right: that of the right side.
        """
        has_partner = np.zeros(left, np.bool_)
        has_partner[partners[0]] = True
        if kind in ("semi", "anti", "existence"):
            at = np.arange(left) if kind == "existence" else np.flatnonzero(has_partner == (kind == "semi"))
            exists = pa.array(has_partner) if kind == "existence" else None
            return cls(_array(at), _array(np.full(len(at), _NOWHERE)), exists)
        alone = np.flatnonzero(~has_partner)
        others = np.setdiff1d(np.arange(right), partners[1]) if kind == "full" else alone[:0]
        return cls(
            _array(np.concatenate([partners[0], alone, np.full(len(others), _NOWHERE)])),
            _array(np.concatenate([partners[1], np.full(len(alone), _NOWHERE), others])),
        )


def meeting(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Positions:
    """The positions of equal values; a null meets nothing."""
    left_at, right_at = (np.flatnonzero(each.is_valid().to_numpy()) for each in (left, right))
    ours, theirs = (each.drop_null().to_numpy() for each in (left, right))
    order = np.argsort(theirs, kind="stable")
    theirs = theirs[order]
    first, end = np.searchsorted(theirs, ours, "left"), np.searchsorted(theirs, ours, "right")
    numbers = end - first
    starts = np.cumsum(numbers) - numbers
    within = np.arange(int(numbers.sum())) - np.repeat(starts, numbers)
    return np.repeat(left_at, numbers), right_at[order[np.repeat(first, numbers) + within]]


def _array(positions: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(positions, pa.int64(), mask=positions == _NOWHERE)
