"""The rows of one source that were ingested before a view was declared."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from spark_bridge.ingest.history import HistoryPiece


class EarlierRows:
    """A history that gives its rows in small pieces.

    Args:
        source: the name of the source.
        rows: its rows, in the columns that the view uses.
        progress: the recorded progress, if some pieces were taken.
        step: the number of rows in a piece.
    """

    is_stored = False
    missing: Sequence[str] = ()
    fraction = 0.5

    def __init__(self, source: str, rows: pa.Table, progress: str | None, step: int = 7) -> None:
        self._source, self._rows, self._step = source, rows, step
        self._at = json.loads(progress) if progress else 0

    def take(self, nbytes: int) -> HistoryPiece | None:
        piece = self._rows.slice(self._at, self._step)
        self._at += piece.num_rows
        return HistoryPiece({self._source: piece}, piece.nbytes, json.dumps(self._at)) if piece.num_rows else None

    def close(self) -> None:
        pass
