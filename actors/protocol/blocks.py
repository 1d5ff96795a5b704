"""Blocks of rows on their way to the materializer, by reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from actors.protocol.messages import (
    Message,
)


@dataclass(frozen=True)
class StoredBlock:
    """The rows of a block as they were staged for the dataset of their source.

    Args:
        path: of the dataset, relative to the root.
        schema: of what was staged: the lineage, and all columns that the source had.
        fragments: Lance's, as JSON.
    """

    path: str
    schema: pa.Schema
    fragments: tuple[str, ...]


@dataclass(frozen=True)
class Block(Message):
    """Rows of one source as one object: Arrow IPC stream bytes.

    `ref` is held until Spark has read it; `origin` is the edge whose credit the bytes have taken; `columns` are those
    of the source that the rows have, in its order; `stored` is None if the source is not materialized.
    """

    origin: str
    source: str
    ref: Any
    rows: int
    nbytes: int
    columns: tuple[str, ...] = ()
    stored: StoredBlock | None = None


@dataclass(frozen=True)
class Correction(Message):
    """The rows that the views hold of an object go, and those of one version of it come in their place.

    Args:
        version: that one; None if no rows come.
        stored: its rows, as they were staged.
    """

    source: str
    path: str
    version: bytes | None = None
    stored: tuple[StoredBlock, ...] = ()
