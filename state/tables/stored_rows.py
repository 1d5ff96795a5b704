"""Names in an epoch record: views, backfills, and the stored rows of materialized sources; their lineage columns."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from state.tables.records import ViewVersion

_NEXT = ".next"


def next_name(view: str) -> str:
    """The name of the backfill that will replace a view."""
    return view + _NEXT


def base_name(name: str) -> str:
    """The name of the view that this view or backfill is, or will be."""
    return name.removesuffix(_NEXT)


def inner_name(view: str, number: int) -> str:
    """The name of the internal view that holds an aggregation within a query.

    Args:
        view: the name of the view with the query.
        number: of the aggregation, from 1.
    """
    return f"{view}.{number}"


def declared_name(name: str) -> str:
    """The name of the declared view that this view, backfill or internal view belongs to."""
    return name.partition(".")[0]


def is_view(name: str) -> bool:
    """True for the name of a view that users see."""
    return "." not in name


HIDDEN_PREFIX = "__sw_"
"""The prefix of the columns that Slackwater adds to the columns of a source or a view."""


def hidden(column: str) -> bool:
    """True for a column of Slackwater's own."""
    return column.startswith(HIDDEN_PREFIX)


PATH_COLUMN, VERSION_COLUMN, ROW_COLUMN = "__sw_path", "__sw_version", "__sw_row"

LINEAGE = pa.schema([(PATH_COLUMN, pa.string()), (VERSION_COLUMN, pa.int64()), (ROW_COLUMN, pa.int64())])
"""Relative path and version of the file, and the position of the record in it, counted from 0.

They precede the columns of the source: new columns are added at the end, so no column ever changes its place.
"""

FILE_FIELD = pa.field("__sw_file", pa.binary())
"""The file of a row of an append view, as `path_fingerprint`; it travels with the rows of materialized sources."""

FILE_HALVES = pa.schema([("__sw_file_high", pa.int64()), ("__sw_file_low", pa.int64())])
"""The same file on its way through a large job, see `state.tables.fingerprint.halves`; they are not stored."""

ORIGIN_FIELD = pa.field("__sw_origin", pa.string())
"""The row of a parent that a row of a view is made of: the name of the parent, `|`, and the key of the row."""

JOIN_FIELD = pa.field("__sw_join", pa.int64())
"""A hash of a row's values of the keys of a join, by which the other side finds it; null if a key is null, so that the
row has no partner."""

HASH_FIELD = pa.field("__sw_hash", pa.int64())
"""A hash of all values of a row that a join has made, by which it is found when it leaves."""

WEIGHT_FIELD = pa.field("__sw_weight", pa.int64())
"""Of a row that changes: 1 if it comes, and -1 if it leaves."""

_SUFFIX = ".rows"
_PATH = re.compile(r"/[^/]+\.rows-\d+\.lance$")


def stored_rows_name(source: str) -> str:
    """The name of a source's rows in an epoch record; it is not a valid name of a view."""
    return source + _SUFFIX


def is_stored_rows(name: str) -> bool:
    """True if a name in an epoch record names the rows of a source; False for a view."""
    return name.endswith(_SUFFIX)


def is_internal_view(name: str) -> bool:
    """True for the name of an internal view in an epoch record; false for its backfill."""
    return name == base_name(name) and not is_view(name) and not is_stored_rows(name)


def source_of_rows(name: str) -> str:
    """The source of the rows with this name in an epoch record."""
    return name.removesuffix(_SUFFIX)


def stored_versions(versions: Mapping[str, ViewVersion]) -> dict[str, ViewVersion]:
    """Source → the version of its stored rows, out of all recorded versions."""
    return {source_of_rows(name): each for name, each in versions.items() if is_stored_rows(name)}


def stored_rows_path(source: str, epoch: int) -> str:
    """The path below the root of a source's rows, created by the attempt that began with this epoch."""
    return f"views/{stored_rows_name(source)}-{epoch}.lance"


def is_stored_rows_path(path: str) -> bool:
    """True if a dataset holds the rows of a source."""
    return _PATH.search(path) is not None


def version_number(version: bytes) -> int:
    """The number of a file version in the column `__sw_version`, from its fingerprint."""
    return int.from_bytes(version, "big", signed=True)
