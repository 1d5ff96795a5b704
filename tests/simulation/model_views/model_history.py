"""The history of a model backfill, span by span."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from spark_bridge.ingest.history import HistoryPiece
from tests.simulation.world.file_rows import Span


class ModelHistory:
    """See `spark_bridge.ingest.history.History`.  The progress is the number of spans that are taken.

    Args:
        spans: all rows, in a fixed order.
        progress: the position to continue from; None for the start.
        is_stored: whether the sources store their rows, so that pieces are computed concurrently with the epochs.
    """

    missing: Sequence[str] = ()

    def __init__(self, spans: Sequence[Span], progress: str | None, *, is_stored: bool) -> None:
        self.is_stored = is_stored
        self._spans = spans
        self._taken = 0 if progress is None else int(json.loads(progress))

    @property
    def fraction(self) -> float:
        return self._taken / len(self._spans) if self._spans else 1.0

    def take(self, nbytes: int) -> HistoryPiece | None:
        if self._taken >= len(self._spans):
            return None
        span = self._spans[self._taken]
        self._taken += 1
        rows: Any = {span.file[0]: [span]}
        return HistoryPiece(rows, 1, json.dumps(self._taken))

    def close(self) -> None:
        pass
