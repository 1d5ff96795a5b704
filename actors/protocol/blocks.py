"""Blocks of rows, and corrections of earlier ones, on their way to the materializer by reference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from actors.protocol.messages import Message


@dataclass(frozen=True)
class StoredBlock:
    """The rows of a block, staged for the dataset of their source.

    Args:
        path: path of the dataset, relative to the root.
        schema: schema of the staged rows: the lineage, and all columns that the source had.
        fragments: Lance fragments as JSON.
    """

    path: str
    schema: pa.Schema
    fragments: tuple[str, ...]

    @property
    def rows(self) -> int:
        return sum(json.loads(each)["physical_rows"] for each in self.fragments)


@dataclass(frozen=True)
class Block(Message):
    """Rows of one source as one object: Arrow IPC stream bytes.

    Args:
        origin: the edge whose credit the bytes have taken.
        ref: reference to the object; it is held until Spark has read it.
        nbytes: size of the object in bytes.
        columns: columns of the source that the rows have, in its order.
        stored: the same rows as they were staged; None if the source is not materialized.
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
    """Takes all rows of an object out of the views, and puts those of one version in their place.

    Args:
        version: the version; None if no rows come.
        stored: its rows, as they were staged.
    """

    source: str
    path: str
    version: bytes | None = None
    stored: tuple[StoredBlock, ...] = ()


@dataclass(frozen=True)
class BadRecords(Message):
    """The records of an epoch that one fetch actor could not read; it comes before the barrier, if there are any.

    Args:
        counts: source → number.
    """

    counts: Mapping[str, int]
