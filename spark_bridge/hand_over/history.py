"""The history of a backfill: the rows ingested before the view was declared, in pieces."""

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
    """The next rows of a history.

    Args:
        tables: source → rows, with the columns that the view uses.
        progress: the position after these rows, as JSON.
    """

    tables: Mapping[str, Sequence[pa.Table]]
    progress: str


class History(Protocol):
    """All rows ingested up to one epoch, in a fixed order, from a position on."""

    @property
    def fraction(self) -> float:
        """The share of the rows already taken, from 0 to 1."""

    @property
    def missing(self) -> Sequence[str]:
        """URLs of the files that could not be read again so far."""

    def take(self, nbytes: int) -> HistoryPiece | None:
        """The next rows, about `nbytes` as Arrow; None at the end.

        Raises:
            StorageError: the rows cannot be read now.
        """

    def close(self) -> None:
        """Stops reading."""


PutBlock = Callable[[str, pa.Table], Block]
"""(source, rows) -> a block with them; the caller holds it until Spark has computed."""
OpenHistory = Callable[[ViewPlan, int, "str | None"], "History | None"]
"""(plan, epoch, progress) -> the history of a view up to an epoch; None until that epoch is committed."""


def slice_rows(nbytes: int, num_rows: int) -> int:
    """The number of rows in a slice of a large table: small, so that a piece can be small."""
    return max(1, _SLICE_BYTES * num_rows // max(1, nbytes))


def gathered(pieces: Iterator[tuple[str, pa.Table]], nbytes: int) -> dict[str, list[pa.Table]]:
    """Source → its next rows, about `nbytes` for all sources together; empty at the end."""
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
    """An `OpenHistory` without a ledger: backfills wait."""
    return None


def block_of_table(source: str, table: pa.Table) -> Block:
    """A block that holds its rows itself."""
    return Block("history", source, table, table.num_rows, table.nbytes, tuple(table.column_names))
