"""The names of the datasets of views and of stored rows."""

from __future__ import annotations

import re

import pyarrow as pa

from state.tables.fingerprint import path_fingerprint

_NEXT = ".next"


def next_name(view: str) -> str:
    """The name of what a view will be when it has caught up."""
    return view + _NEXT


def base_name(name: str) -> str:
    """The name of the view that something with this name is, or will be."""
    return name.removesuffix(_NEXT)


def is_view(name: str) -> bool:
    """Whether this is the name of a view that users see."""
    return "." not in name


PATH_COLUMN, VERSION_COLUMN, ROW_COLUMN = "__sw_path", "__sw_version", "__sw_row"

LINEAGE = pa.schema([(PATH_COLUMN, pa.string()), (VERSION_COLUMN, pa.int64()), (ROW_COLUMN, pa.int64())])
"""Relative path and version of the file, and the position of the record in it, counted from 0.

They come before the columns of the source: those are added to at their end, and so no column ever changes its place.
"""

FILE_FIELD = pa.field("__sw_file", pa.int64())
"""Which file a row of an append view is from: it travels with the rows of materialized sources."""

_SUFFIX = ".rows"
_PATH = re.compile(r"/[^/]+\.rows-\d+\.lance$")


def stored_rows_name(source: str) -> str:
    """Under which name an epoch record has the version of a source's rows; no view can be called so."""
    return source + _SUFFIX


def is_stored_rows(name: str) -> bool:
    """Whether a name in an epoch record is that of a source's rows, and not of a view."""
    return name.endswith(_SUFFIX)


def source_of_rows(name: str) -> str:
    """The source whose rows have this name in an epoch record."""
    return name.removesuffix(_SUFFIX)


def stored_rows_path(source: str, epoch: int) -> str:
    """Where the rows of a source are, below the root, if the attempt that began with this epoch has created them."""
    return f"views/{stored_rows_name(source)}-{epoch}.lance"


def is_stored_rows_path(path: str) -> bool:
    """Whether a dataset is one of rows."""
    return _PATH.search(path) is not None


def file_number(source: str, path: str) -> int:
    """A file as `__sw_file` has it."""
    return int.from_bytes(path_fingerprint(source, path)[:8], "big", signed=True)


def version_number(version: bytes) -> int:
    """The fingerprint of a file version as `__sw_version` has it."""
    return int.from_bytes(version, "big", signed=True)
