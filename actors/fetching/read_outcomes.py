"""Outcomes of reads, as the shell tells them to the fetch executor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from actors.fetching.file_progress import Ending
from actors.files import FileVersion
from actors.rows import Rows


@dataclass(frozen=True)
class _Outcome:
    """The file that was read, and the cost of this read."""

    file: FileVersion
    requests: int = field(kw_only=True)
    bytes_read: int = field(kw_only=True)


@dataclass(frozen=True)
class PieceRead(_Outcome):
    """Rows of a file; with `last` it has no further ones."""

    rows: Rows
    last: bool = field(kw_only=True)


@dataclass(frozen=True)
class FileEnded(_Outcome):
    """A file ends without its last rows, or before its schema was inferred.  The rows before stay."""

    ending: Ending


@dataclass(frozen=True)
class StoreUnavailable(_Outcome):
    """The store did not answer."""

    error: Exception


@dataclass(frozen=True)
class SourceRefused(_Outcome):
    """The store refuses the whole source, and not the file alone."""


@dataclass(frozen=True)
class ColumnsFound(_Outcome):
    """The next records have columns that the source lacks."""

    columns: pa.Schema


ReadOutcome: TypeAlias = PieceRead | FileEnded | StoreUnavailable | SourceRefused | ColumnsFound
