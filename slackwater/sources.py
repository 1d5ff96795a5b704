"""The values that `Pipeline.source` takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

import pyarrow as pa

from actors.schemas.conform import Timestamps
from actors.schemas.ddl import parse_schema
from actors.schemas.safe_types import safe_schema
from actors.settings import require_one_of
from actors.sources.discovery import Listing, Notifications
from actors.sources.event_time import EventTime
from actors.sources.row_key import Key
from actors.sources.source import FilePolicy, SchemaEvolution
from state.errors import SchemaError, SettingsError

__all__ = ["EventTime", "Key", "Listing", "Notifications", "Replace", "Schema"]


@dataclass(frozen=True)
class Schema:
    """The columns of a source, and the treatment of files that differ from them.

    Args:
        columns: a pyarrow schema or DDL text (`"id bigint, at timestamp"`); None takes the columns of the first files.
        evolution: the treatment of files with other columns.  A column is missing if the file as a whole lacks it.

            * `"strict"`: a missing column quarantines the file; an extra column is left out and reported.
            * `"lenient"`: a missing column is null in the rows of the file, an extra column is left out; both are
              reported.
            * `"add_columns"`: as `"lenient"`, but an extra column is added to the schema.
            * `"widen"`: as `"lenient"`, and numbers have the widest type of their kind.
            * None: `"strict"` if `columns` are declared and the format has a header or a schema (CSV, Parquet, Avro,
              ORC), else `"lenient"`.  A source of an earlier run keeps its value.
        timestamps: the treatment of a time with digits below microseconds, which Spark does not have: `"exact"` makes
            its record a bad one, `"truncate"` leaves the digits out.  The first declaration decides it.

    Raises:
        SettingsError: an argument is not valid.
        SchemaError: the columns cannot be read or cannot be carried to Spark.
    """

    columns: pa.Schema | str | None = None
    evolution: SchemaEvolution | None = field(default=None, kw_only=True)
    timestamps: Timestamps = field(default="exact", kw_only=True)

    def __post_init__(self) -> None:
        if self.evolution is not None:
            require_one_of("Schema(evolution)", self.evolution, get_args(SchemaEvolution))
        require_one_of("Schema(timestamps)", self.timestamps, get_args(Timestamps))
        if not isinstance(self.columns, (pa.Schema, str, type(None))):
            raise SchemaError(
                f'Schema(columns={self.columns!r}): give a text such as "id bigint, at timestamp", or a pyarrow schema'
            )
        # Reading it checks it.
        _ = self.arrow

    @property
    def arrow(self) -> pa.Schema | None:
        """The declared columns; None for the columns of the first files."""
        columns = parse_schema(self.columns) if isinstance(self.columns, str) else self.columns
        return None if columns is None else safe_schema(columns)


@dataclass(frozen=True, kw_only=True)
class Replace:
    """The reaction `"replace"` to changed and deleted files, with its limits for deleted files.

    The rows of a new version of a file replace the old rows in one epoch.  The rows of deleted files are retracted.
    If the files that disappear within ten minutes exceed both limits, the retraction pauses until the files are back
    or `Run.allow_removals` permits it.

    Args:
        max_removed_share: the share of the files of the source; 1 for no limit, 0 for a pause at each deleted file that
            `max_removed_files` does not cover.
        max_removed_files: the number of files that may disappear at any share, unless no file would be left.

    Raises:
        SettingsError: a limit is not valid.
    """

    max_removed_share: float = FilePolicy.max_removed_share
    max_removed_files: int = FilePolicy.max_removed_files

    def __post_init__(self) -> None:
        share, files = self.max_removed_share, self.max_removed_files
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
            raise SettingsError(f"Replace(max_removed_share={share!r}): give a share from 0 to 1, for example 0.2")
        if isinstance(files, bool) or not isinstance(files, int) or files < 0:
            raise SettingsError(f"Replace(max_removed_files={files!r}): give a whole number, 0 or more")
