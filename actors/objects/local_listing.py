"""Listing of a directory, in pages like those of a bucket.

No link is followed: a link could lead out of the source, or to a directory that is listed already.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from actors.file_errors import UnreadableFile
from actors.objects.listing_page import LISTED, ListingPage, SkippedName
from actors.objects.local_file import LINK_REFUSED, directory_of, open_below
from state.objects.local_identity import LocalFile, file_at
from state.removal.names import CLAIMED_FILES, PART_FILES

MOST_LEVELS = 64
"""The most directories between a source and a file."""
# Text with a control character is no line of a log; names like `x#1` belong to files that obstore is writing.
_UNREADABLE = re.compile(r"[\x00-\x1f\x7f]|#\d+$")
_TOO_DEEP = f"it is more than {MOST_LEVELS} directories below the source; move it up, or declare a source further down"
_BAD_NAME = "its name has characters that cannot be read; rename it"


def list_directory(root: Path, page_size: int) -> Iterator[ListingPage]:
    """Pages of all files below a directory, in the order of the bytes of their paths.

    Args:
        root: the directory; paths are relative to it.
        page_size: the most names of a page, which counts as one request.

    Raises:
        OSError: a directory cannot be read.
    """
    rows: list[tuple[str, str, int, int]] = []
    skipped: list[SkippedName] = []
    pages = 0
    for each in _files_below(root):
        if isinstance(each, SkippedName):
            skipped.append(each)
        else:
            rows.append(each)
        if len(rows) + len(skipped) == page_size:
            yield _page(rows, skipped)
            rows, skipped, pages = [], [], pages + 1
    if rows or skipped or not pages:
        yield _page(rows, skipped)


def find_file(root: Path, path: str) -> ListingPage | None:
    """A page with one file, as a listing shows it; None if the file does not exist, or is reached by a link.

    Args:
        root: the directory; the path is relative to it.
        path: the path, with `/` between its parts.

    Raises:
        OSError: a directory of the path cannot be read.
    """
    try:
        with directory_of(root, path) as (directory, name):
            found = file_at(directory, name)
    except (FileNotFoundError, NotADirectoryError, UnreadableFile):
        return None
    return _page([_row(path, found)], []) if found.is_regular else None


def is_reserved(name: str) -> bool:
    """True for a file that Slackwater is writing or deleting: no source reads it, even by a pattern of hidden names."""
    return name.startswith(".slackwater-") and (CLAIMED_FILES.covers(name) or PART_FILES.covers(name))


def _row(path: str, found: LocalFile) -> tuple[str, str, int, int]:
    return path, found.etag, found.size, found.modified_us


def _page(rows: list[tuple[str, str, int, int]], skipped: list[SkippedName]) -> ListingPage:
    columns = [[row[at] for row in rows] for at in range(len(LISTED))]
    return ListingPage(pa.table(columns, schema=LISTED), 1, tuple(skipped))


def _files_below(root: Path) -> Iterator[tuple[str, str, int, int] | SkippedName]:
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield from _walk(directory, "", 0)
    finally:
        os.close(directory)


def _walk(directory: int, prefix: str, level: int) -> Iterator[tuple[str, str, int, int] | SkippedName]:
    """The row of each file below an open directory.

    Args:
        directory: the descriptor of the directory.
        prefix: its path with a final slash; empty for the source itself.
        level: the number of directories between it and the source.
    """
    with os.scandir(directory) as entries:
        ordered = sorted(entries, key=_place)
    for entry in ordered:
        if is_reserved(entry.name):
            continue
        try:
            if _is_unreadable(entry):
                yield SkippedName(ascii(prefix + entry.name)[1:-1], _BAD_NAME)
            elif entry.is_file(follow_symlinks=False):
                yield _row(prefix + entry.name, file_at(directory, entry.name))
            elif entry.is_symlink():
                yield SkippedName(prefix + entry.name, LINK_REFUSED)
            elif entry.is_dir(follow_symlinks=False):
                if level == MOST_LEVELS:
                    yield SkippedName(prefix + entry.name, _TOO_DEEP)
                else:
                    yield from _below(directory, entry.name, f"{prefix}{entry.name}/", level + 1)
        except (FileNotFoundError, NotADirectoryError, UnreadableFile):
            continue  # it has gone since, or is another thing now


def _below(directory: int, name: str, prefix: str, level: int) -> Iterator[tuple[str, str, int, int] | SkippedName]:
    below = open_below(directory, name)
    try:
        yield from _walk(below, prefix, level)
    finally:
        os.close(below)


def _place(entry: os.DirEntry[str]) -> str:
    """The key of a name in the order of whole paths: a directory sorts with the slash after it."""
    return f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name


def _is_unreadable(entry: os.DirEntry[str]) -> bool:
    try:
        entry.name.encode()
    except UnicodeEncodeError:
        return True  # not UTF-8
    return _UNREADABLE.search(entry.name) is not None
