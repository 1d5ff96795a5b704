"""The history of a backfill: the rows ingested before the view was declared, in pieces.

A piece of stored rows only says where they are: Spark's tasks read them.  Rows of files come as tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pyarrow as pa

from actors.protocol.blocks import Block
from spark_bridge.plans.view_plan import ViewPlan
from state.location import Location

if TYPE_CHECKING:
    import lance


class FragmentRows(NamedTuple):
    """Consecutive rows of a fragment that are not deleted.

    Args:
        first: the number of rows before them.
    """

    number: int
    first: int
    rows: int


@dataclass(frozen=True)
class StoredSpan:
    """Consecutive stored rows of a source, which are not read yet.

    Args:
        source: the source, which names their files.
        dataset: at the version to read.
        columns: those to read, in this order; `__sw_file` may be the last.
        parts: the rows, in their order.
        nbytes: their size as Arrow, in bytes; an estimate.
    """

    source: str
    location: Location
    dataset: lance.LanceDataset
    columns: Sequence[str]
    parts: Sequence[FragmentRows]
    nbytes: int

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return sum(each.rows for each in self.parts)


@dataclass(frozen=True)
class HistoryPiece:
    """The next rows of a history.

    Args:
        rows: source → rows, with the columns that the view uses.
        nbytes: their size as Arrow, in bytes; an estimate for stored rows.
        progress: the position after these rows, as JSON.
    """

    rows: Mapping[str, StoredSpan | pa.Table]
    nbytes: int
    progress: str

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return sum(each.num_rows for each in self.rows.values())


class History(Protocol):
    """All rows ingested up to one epoch, in a fixed order, from a position on.

    Attributes:
        is_stored: whether its pieces are stored rows, which are not read yet.
    """

    is_stored: bool

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
OpenHistory = Callable[[ViewPlan, int, int, "str | None"], "History | None"]
"""(plan, since, epoch, progress) -> the rows ingested up to `epoch`, without the rows up to `since`; since 0, all rows.

None until that epoch is committed.  Raises `NotResumableError` if the store does not have the rows up to `since`."""


class NotResumableError(Exception):
    """A view cannot continue from its last epoch: the store keeps it no longer, or rows of that epoch have changed."""


def no_history(plan: ViewPlan, since: int, epoch: int, progress: str | None) -> History | None:
    """An `OpenHistory` without a ledger: backfills wait."""
    return None


def block_of_table(source: str, table: pa.Table) -> Block:
    """A block that holds its rows itself."""
    return Block("history", source, table, table.num_rows, table.nbytes, tuple(table.column_names))
