"""Pieces of about the size that was asked for, from rows as they were decoded."""

from __future__ import annotations

from collections.abc import Iterator

from actors.file_errors import UnreadableFile
from actors.rows import Rows


def pieces(parts: Iterator[Rows], piece_bytes: int) -> Iterator[Rows]:
    """Yields the rows in pieces: small parts together, and large ones cut.

    Raises:
        UnreadableFile: as the parts do, behind the earlier rows.
    """
    together: list[Rows] = []
    nbytes = 0
    try:
        for part in parts:
            together.append(part)
            nbytes += part.nbytes
            if nbytes >= piece_bytes:
                yield from Rows.joined(together).cut(piece_bytes)
                together, nbytes = [], 0
    except UnreadableFile:
        if together:
            yield from Rows.joined(together).cut(piece_bytes)
        raise
    if together:
        yield from Rows.joined(together).cut(piece_bytes)
