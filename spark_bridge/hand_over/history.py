"""What was ingested before a view was declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from actors.protocol.blocks import Block
from spark_bridge.analysis.view_plan import ViewPlan

_SLICE_BYTES = 128 << 10


@dataclass(frozen=True)
class HistoryPiece:
    """Some of the rows.

    Args:
        tables: source → rows, with the columns that the view uses.
        progress: where reading goes on behind them, as JSON.
    """

    tables: Mapping[str, Sequence[pa.Table]]
    progress: str


class History(Protocol):
    """All rows that were ingested up to one epoch, in a fixed order, from some place on."""

    @property
    def fraction(self) -> float:
        """How much has been taken, from 0 to 1."""

    @property
    def missing(self) -> Sequence[str]:
        """The URLs of the files that could not be read again so far."""

    def take(self, nbytes: int) -> HistoryPiece | None:
        """The next rows, about `nbytes` of them as Arrow; None when there are no more.

        Raises:
            StorageError: the rows cannot be read at the moment.
        """

    def close(self) -> None:
        """Reads nothing more."""


PutBlock = Callable[[str, pa.Table], Block]
"""(source, rows) -> a block of them; whoever asks holds it as long as Spark computes."""
OpenHistory = Callable[[ViewPlan, int, "str | None"], "History | None"]
"""(plan, epoch, progress) -> the history of a view up to an epoch; None while that epoch is not committed."""


def slice_rows(nbytes: int, num_rows: int) -> int:
    """How many rows of a large table go into a piece at the least: a piece may have to be small."""
    return max(1, _SLICE_BYTES * num_rows // max(1, nbytes))


def gathered(pieces: Iterator[tuple[str, pa.Table]], nbytes: int) -> dict[str, list[pa.Table]]:
    """Source → its next rows, of all sources about `nbytes`; nothing when there are none any more."""
    tables: dict[str, list[pa.Table]] = {}
    taken = 0
    for source, table in pieces:
        if table.num_rows:
            tables.setdefault(source, []).append(table)
            taken += table.nbytes
        if taken >= nbytes:
            break
    return tables


def no_history(plan: ViewPlan, epoch: int, progress: str | None) -> History | None:
    """For those who have no ledger: backfills wait."""
    return None


def block_of_table(source: str, table: pa.Table) -> Block:
    """A block that holds its rows itself."""
    return Block("history", source, table, table.num_rows, table.nbytes, tuple(table.column_names))
