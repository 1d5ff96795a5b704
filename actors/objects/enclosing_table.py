"""The root or table that a location is in: found by the markers and logs of the directories above it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import obstore
from obstore.exceptions import BaseError

from state.errors import StorageError
from state.location import Location
from state.objects.object_client import object_client
from state.places.marker import MARKER, read_marker
from state.places.table_signs import sign_of

_LOGS = ("_delta_log", "metadata", "_versions", "state.lance/_versions", ".hoodie")
"""Directories of a root or table that have a sign, see `sign_of`."""

_MOST_NAMES = 1_000


def requests_above(location: Location) -> tuple[int, int]:
    """The LIST and GET requests of `enclosing_table`, if it finds nothing."""
    levels = 0 if location.is_local or location.is_web else location.below_host.count("/")
    return levels * len(_LOGS), levels


def enclosing_table(
    location: Location, run: Callable[[Callable[[str], str | None], Iterable[str]], Iterable[str | None]] = map
) -> str | None:
    """The root or table above a location, in words; None without one.

    On a disk it costs some calls of the system for each directory above, in a bucket six requests.  A directory that
    may not be read is taken for one without a table.

    Args:
        location: the location, which itself is not looked at: its listing shows its own signs.
        run: as `map`; calls a function with several arguments side by side.
    """
    if location.is_web:
        return None
    if location.is_local:
        parts = os.path.realpath(location.path).strip("/").split("/")
        above = Location("file:///")
    else:
        parts = [part for part in location.below_host.split("/") if part]
        above = location.host

    def found_in(path: str) -> str | None:
        return _found(above, path, within=parts[path.count("/") + 1 if path else 0])

    levels = ["/".join(parts[:depth]) for depth in range(len(parts))]
    return next((found for found in run(found_in, reversed(levels)) if found is not None), None)


def _found(host: Location, path: str, within: str) -> str | None:
    """The root or table in one directory.

    Args:
        host: the disk or bucket.
        path: the directory below it; empty for the top.
        within: the name of the next directory on the way to the source.  A source in a log of a table is meant so.
    """
    directory = _below(host, path)
    with suppress(StorageError):
        marker = read_marker(directory)
        if marker is not None:
            return f"{marker.words} ({directory}/{MARKER})"
    for log in _LOGS:
        if log.partition("/")[0] == within:
            continue
        sign = next(
            filter(None, (sign_of(f"{log}/{name}") for name in islice(_names(directory, log), _MOST_NAMES))), None
        )
        if sign is not None:
            return f"{sign.kind} ({directory}/{sign.path})"
    return None


def _below(host: Location, path: str) -> Location:
    if not path:
        return host
    return Location(f"file:///{path}") if host.is_local else host.child(path)


def _names(directory: Location, log: str) -> Iterator[str]:
    """Names in a directory of a table; none if it does not exist or may not be read."""
    if directory.is_local:
        with suppress(OSError), os.scandir(Path(directory.path, log)) as entries:
            yield from (entry.name for entry in entries)
        return
    with suppress(BaseError, OSError):
        stream: Any = obstore.list(object_client(directory), log, chunk_size=_MOST_NAMES)
        for meta in next(iter(stream), ()):
            yield str(meta["path"]).removeprefix(f"{log}/")
