"""Pieces of about the size that was asked for, from rows as they were decoded."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from actors.file_errors import UnreadableFile
from actors.rows import Rows


def pieces(parts: Iterator[Rows], piece_bytes: int, columns: Collection[str] | None = None) -> Iterator[Rows]:
    """Yields the rows in pieces: small parts together, and large ones cut.

    Args:
        parts: the rows as they were decoded.
        piece_bytes: the wanted size of a piece with all columns of the parts, in bytes.
        columns: the columns in the pieces; None for all.

    Raises:
        UnreadableFile: as the parts do, behind the earlier rows.
    """
    together: list[Rows] = []
    nbytes = 0
    try:
        for part in parts:
            together.append(part if columns is None else _only(part, columns))
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


def _only(rows: Rows, columns: Collection[str]) -> Rows:
    """The rows with some of their columns, in the same order."""
    return replace(rows, table=rows.table.select([name for name in rows.table.column_names if name in columns]))
