"""A long life of views: whether an epoch stays as fast as the first ones, and how much is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Protocol
from unittest.mock import patch

import pyarrow as pa
from lance.fragment import write_fragments

from benchmarks.directory_size import directory_size
from benchmarks.result import TIMES, Number, Row, Table, Target
from state.location import Location

AGEING, TIDIED, WRITTEN = Target(1.2, TIMES), Target(0.3, "s"), Target(4, TIMES)
COMPARED = 100
"""Epochs at the beginning and at the end of a life."""


class Followed(Protocol):
    """Views that epochs change.

    Attributes:
        root: the directory of the views.
        seconds: of each epoch so far.
        tidied_s: of the tidying after each epoch, in seconds.
    """

    root: Location
    seconds: list[float]
    tidied_s: list[float]

    def turn(self) -> None:
        """Runs an epoch."""


@contextmanager
def staged_bytes() -> Iterator[list[int]]:
    """The Arrow bytes of each table that is written into a view, within the block."""
    written = list[int]()

    def counted(rows: pa.Table, *args: Any, **options: Any) -> Any:
        written.append(rows.nbytes)
        return write_fragments(rows, *args, **options)

    with patch("spark_bridge.datasets.dataset_writer.write_fragments", counted):
        yield written


def measure_life(views: Followed, epochs: int, what: str) -> Table:
    """Many epochs.  Nothing is vacuumed, so that what lies there in the end is what was written.

    Args:
        views: those that live on.
        epochs: their number.
        what: the views, for the caption.
    """
    first, before = len(views.seconds), directory_size(Path(views.root.path))
    views.tidied_s.clear()
    with staged_bytes() as new:
        for _ in range(epochs):
            views.turn()
    seconds, written = views.seconds[first:], directory_size(Path(views.root.path)) - before
    compared = min(COMPARED, epochs // 2)
    ends = median(seconds[:compared]), median(seconds[-compared:])
    rows = (
        Row(f"an epoch, p50 of the last {compared}, of the first", (Number(ends[1], "s"),), ends[1] / ends[0], AGEING),
        Row("the longest tidying between two epochs", (Number(max(views.tidied_s), "s"),), target=TIDIED),
        Row("written, of the new rows of the views", (Number(written >> 20, "MiB"),), written / sum(new), WRITTEN),
    )
    return Table(("",), rows, "ratio", f"A life of {epochs:,} epochs {what}")
