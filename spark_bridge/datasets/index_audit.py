"""Audit of the indexes of views' datasets: after each tidying, random keys by the index and by a scan.

A wrong index would make an epoch read other rows than the view has, without an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import lance
import structlog

from state.clock import Clock, SystemClock
from state.lance.index_check import IndexDifference, index_difference, indexed_columns
from state.location import Location
from state.removal.datasets import drop_index

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_log = structlog.get_logger(actor="run")


_PATH = re.compile(r".*/(.+?)-\d+(?:-\w+)?\.lance")


class IndexAudit:
    """Checks indexes, and rebuilds wrong ones.  For one thread.

    Args:
        random: chooses the keys.
        clock: measures the duration of the checks.
    """

    def __init__(self, random: Random, clock: Clock | None = None) -> None:
        self._random, self._clock = random, clock or SystemClock()
        self._rebuilt: Counter[str] = Counter()
        self.checks = 0
        self.seconds = 0.0

    @property
    def rebuilt(self) -> Mapping[str, int]:
        """View, or rows of a source, → the number of wrong indexes, which were rebuilt or dropped."""
        return dict(self._rebuilt)

    def check(self, location: Location, dataset: lance.LanceDataset, columns: Sequence[str]) -> set[str]:
        """Checks the indexes of some columns; a wrong one is rebuilt and checked again, and then dropped.

        Args:
            dataset: the handle of its writer, which follows the commits that rebuild and drop.
            columns: the columns that may have an index.

        Returns:
            The columns whose index was wrong twice, and was dropped: look-ups by them scan.

        Raises:
            OSError, ValueError, RuntimeError: as Lance.
        """
        begun_s = self._clock.monotonic()
        names, dropped = indexed_columns(dataset), set[str]()
        for column in columns:
            if column not in names:
                continue
            self.checks += 1
            difference = index_difference(location, dataset, column, self._random)
            if difference is None:
                continue
            self._report(location, difference, "the index is rebuilt")
            dataset.create_scalar_index(column, "BTREE", name=names[column], replace=True)
            again = index_difference(location, dataset, column, self._random)
            if again is not None:
                self._report(location, again, "the index is dropped, and look-ups scan all rows")
                drop_index(dataset, names[column])
                dropped.add(column)
        self.seconds += self._clock.monotonic() - begun_s
        return dropped

    def _report(self, location: Location, difference: IndexDifference, action: str) -> None:
        self._rebuilt[_view_of(location)] += 1
        _log.error(
            "an index differs from the rows: epochs before may have read other rows; run `slackwater verify`",
            dataset=str(location),
            column=difference.column,
            missing=difference.missing,
            wrong=difference.wrong,
            action=action,
        )


def _view_of(location: Location) -> str:
    """The view, or the rows of a source, that a dataset belongs to."""
    named = _PATH.fullmatch(location.url)
    return named[1] if named else location.url
