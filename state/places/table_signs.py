"""Signs of tables and roots among the names of a listing: a marker, or the log of a table format.

The files of a table are not data to read one by one: some are deleted rows, old versions or metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from state.places.marker import MARKER

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_FILES = "Parquet files that a job writes from its new rows"
_VIEWS = "its views with `slackwater.open`"
_SIGNS = (
    (MARKER.encode(), rf"{re.escape(MARKER)}", "a root or a published table of Slackwater", _VIEWS),
    # A root that an earlier version wrote.
    (b"state.lance/_versions/", r"state\.lance/_versions/d?\d+\.manifest", "a root of Slackwater", _VIEWS),
    (b"_versions/", r"_versions/d?\d+\.manifest", "a Lance dataset", _FILES),
    (b"_delta_log/", r"_delta_log/(?:\d{20}\.[\w.-]*(?:json|parquet)|_last_checkpoint)", "a Delta table", _FILES),
    # `v3.metadata.json` of Hadoop's tables, `00003-<uuid>.metadata.json` of catalogs.
    (
        b".metadata.json",
        rf"metadata/(?:v\d+|\d{{5,}}-{_UUID})(?:\.gz)?\.metadata\.json(?:\.gz)?",
        "an Iceberg table",
        _FILES,
    ),
    (b".hoodie", r"\.hoodie(?:/.*|_partition_metadata)", "a Hudi table", _FILES),
)
"""Bytes that each sign has, for a search in all names at once; the form of its path, the kind of place, and what to
read instead."""

_NEEDLES = tuple(dict.fromkeys(needle for needle, *_ in _SIGNS))
_ANY = rf"(?s)(?:^|/)(?:{'|'.join(form for _, form, *_ in _SIGNS)})$"
_FORMS = tuple((re.compile(rf"(?s)(?:(?P<directory>.*)/)?{form}"), kind, instead) for _, form, kind, instead in _SIGNS)


@dataclass(frozen=True)
class TableSign:
    """An object that shows a table or a root.

    Args:
        directory: the directory of the table, relative to the listed location; empty for the location itself.
        kind: the kind of the directory, in words.
        instead: what to read instead of its files, in words.
    """

    directory: str
    path: str
    kind: str
    instead: str = _FILES


def sign_of(path: str) -> TableSign | None:
    """The sign that a path is; None for another path."""
    if not any(needle.decode() in path for needle in _NEEDLES):
        return None
    for form, kind, instead in _FORMS:
        if match := form.fullmatch(path):
            return TableSign(match["directory"] or "", path, kind, instead)
    return None


def table_signs(paths: pa.StringArray) -> Iterator[TableSign]:
    """The signs among paths, one of each directory.

    A page without a sign costs one search of its bytes for each kind; only another page is searched name by name.
    """
    _, ends, content = paths.buffers()
    if not len(paths) or content is None:
        return
    borders = np.frombuffer(ends, np.int32)[paths.offset : paths.offset + len(paths) + 1]
    text = memoryview(content)[borders[0] : borders[-1]].tobytes()
    if not any(needle in text for needle in _NEEDLES):
        return
    directories = set()
    for path in paths.filter(pc.match_substring_regex(paths, _ANY)).to_pylist():
        sign = sign_of(path)
        if sign is not None and sign.directory not in directories:
            directories.add(sign.directory)
            yield sign
