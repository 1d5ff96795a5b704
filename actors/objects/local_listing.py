"""Listing of a directory, in pages like those of a bucket.

It shows the files and etags that obstore would show, but does not fail at a name that obstore does not take, or at a
link into a circle.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG

import pyarrow as pa

from actors.objects.listing_page import LISTED, ListingPage

# obstore takes no control characters, and keeps names like `x#1` for files that it is writing.
_UNREADABLE = re.compile(r"[\x00-\x1f\x7f]|#\d+$")


def list_directory(root: Path, page_size: int) -> Iterator[ListingPage]:
    """Pages of all files below a directory, in the order of the bytes of their paths; links are followed.

    Args:
        root: the directory; paths are relative to it.
        page_size: the most files of a page, which counts as one request.

    Raises:
        OSError: a directory cannot be read.
    """
    rows: list[tuple[str, str, int, int]] = []
    unreadable: list[str] = []
    pages = 0
    for path, found in _walk(root, "", ()):
        if found is None:
            unreadable.append(path)
            continue
        rows.append(_row(path, found))
        if len(rows) == page_size:
            yield _page(rows, unreadable)
            rows, unreadable, pages = [], [], pages + 1
    if rows or unreadable or not pages:
        yield _page(rows, unreadable)


def find_file(root: Path, path: str) -> ListingPage | None:
    """A page with one file, as a listing shows it; None if the file does not exist.

    Args:
        root: the directory; the path is relative to it.
        path: the path, with `/` between its parts.

    Raises:
        OSError: a directory of the path cannot be read.
    """
    try:
        found = os.stat(root / path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return _page([_row(path, found)], []) if S_ISREG(found.st_mode) else None


def _row(path: str, found: os.stat_result) -> tuple[str, str, int, int]:
    modified_us = found.st_mtime_ns // 1_000
    return path, f'"{found.st_ino:x}-{modified_us:x}-{found.st_size:x}"', found.st_size, modified_us


def _page(rows: list[tuple[str, str, int, int]], unreadable: list[str]) -> ListingPage:
    columns = [[row[at] for row in rows] for at in range(len(LISTED))]
    return ListingPage(pa.table(columns, schema=LISTED), 1, tuple(unreadable))


def _walk(
    directory: Path | str, prefix: str, above: tuple[tuple[int, int], ...]
) -> Iterator[tuple[str, os.stat_result | None]]:
    """Each path with the status of its file; None, and the name escaped, for a name that cannot be read."""
    here = os.stat(directory)
    identity = here.st_dev, here.st_ino
    if identity in above:
        return  # a link to a directory that it is in
    with os.scandir(directory) as entries:
        ordered = sorted(entries, key=_place)
    for entry in ordered:
        if _is_unreadable(entry):
            yield ascii(prefix + entry.name)[1:-1], None
            continue
        try:
            if entry.is_dir():
                yield from _walk(entry.path, f"{prefix}{entry.name}/", (*above, identity))
            elif entry.is_file():
                yield prefix + entry.name, entry.stat()
        except FileNotFoundError:
            continue  # it has gone since


def _place(entry: os.DirEntry[str]) -> str:
    """Where a name stands in the order of whole paths: of a directory the slash after it counts, too."""
    return f"{entry.name}/" if entry.is_dir() else entry.name


def _is_unreadable(entry: os.DirEntry[str]) -> bool:
    try:
        entry.name.encode()
    except UnicodeEncodeError:
        return True  # not UTF-8
    return _UNREADABLE.search(entry.name) is not None
