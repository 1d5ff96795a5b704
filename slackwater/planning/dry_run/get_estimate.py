"""How many GETs reading some files takes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from actors.files import FileVersion
from actors.formats.options import Parquet
from actors.settings import RequestSettings
from actors.sources.source import SourceDefinition


class GetEstimate:
    """Counts files by size.  Small ones are one GET each, large text is read in blocks.

    A large Parquet file takes its footer and ranges that only its own footer tells: the first one is measured, and
    the others are taken to be like it, by size.

    Args:
        source: whose files they are.
        settings: sizes of requests.
    """

    def __init__(self, source: SourceDefinition, settings: RequestSettings) -> None:
        self._is_parquet = isinstance(source.format, Parquet)
        self._settings = settings
        self._gets = self._large_files = self._large_bytes = 0
        self._measured: tuple[int, int] | None = None
        self.first_large: FileVersion | None = None

    def add(self, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
        """Counts files of these sizes; returns which of them are large ones whose footers tell."""
        large = sizes > self._settings.whole_object_bytes
        self._gets += int(np.count_nonzero(~large & (sizes > 0)))
        if self._is_parquet:
            self._large_files += int(np.count_nonzero(large))
            self._large_bytes += int(sizes[large].sum())
            return np.flatnonzero(large)
        # A last block is never a short one.
        self._gets += int(np.maximum(1, sizes[large] // self._settings.block_bytes).sum())
        return np.empty(0, np.intp)

    def measure(self, size: int, gets: int) -> None:
        """A large Parquet file of this size takes so many GETs, with all columns."""
        self._measured = size, gets

    @property
    def gets(self) -> int:
        """How many GETs it takes, about."""
        if not self._large_files:
            return self._gets
        size, gets = self._measured or (self._settings.max_span_bytes, 2)
        ranges = self._large_bytes * (gets - 1) / size
        return self._gets + self._large_files + max(self._large_files, round(ranges))
