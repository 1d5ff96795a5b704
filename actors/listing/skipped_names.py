"""Names that listings skip: each is told once, and is kept in the quarantine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from actors.objects.listing_page import SkippedName
from actors.sources.path_filter import PathFilter

_MOST_NAMES = 1_000


class SkippedNames:
    """Decides which skipped names are news.

    Args:
        path_filter: the paths that the source takes.
    """

    def __init__(self, path_filter: PathFilter) -> None:
        self._filter = path_filter
        self._reported: set[str] = set()

    def news(self, names: Iterable[SkippedName]) -> list[SkippedName]:
        """The names that were not told before, and that may have kept files from the source.

        The last one speaks for all that follow: more are not told.
        """
        news = []
        for name in names:
            if len(self._reported) == _MOST_NAMES:
                break
            if name.path in self._reported or not self._concerns_source(name.path):
                continue
            self._reported.add(name.path)
            is_last = len(self._reported) == _MOST_NAMES
            news.append(replace(name, reason=f"{name.reason} (further names are skipped untold)") if is_last else name)
        return news

    def _concerns_source(self, path: str) -> bool:
        return self._filter.accepts(path) or self._filter.may_accept_below(path)
