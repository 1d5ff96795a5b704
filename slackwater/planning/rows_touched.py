"""How many rows of a view an epoch touches, by what a root has seen so far."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from slackwater.reading.view import View
from spark_bridge.analysis.view_plan import APPEND, FULL, ViewPlan
from state.errors import NotFoundError, StoreNotFoundError
from state.lance.lance_root import LanceRoot
from state.tables.records import EpochRecord, ViewVersion
from state.tables.stored_rows import stored_rows_name

_EPOCHS = 100


class RowsTouched:
    """Estimates for one root.

    Args:
        root: it may have no store yet.
    """

    def __init__(self, root: LanceRoot) -> None:
        self._root = root
        self._records: Sequence[EpochRecord] = ()
        try:
            self._records = root.open(read_only=True).epochs()
        except StoreNotFoundError:
            pass

    def text(self, plan: ViewPlan) -> str:
        """What an epoch touches of a view, for people."""
        if plan.view_class == FULL:
            stored = [self._rows(stored_rows_name(source)) for source in plan.sources]
            if None in stored:
                return "all stored rows of its sources, when some are new; how many is known when they are stored"
            return f"all {sum(each or 0 for each in stored):,} stored rows of its sources, when some are new"
        with_rows = [record.counts.rows for record in self._records[-_EPOCHS:] if record.counts.rows]
        if not with_rows:
            return "unknown before the first epochs with rows"
        new = round(median(with_rows))
        seen = f"an epoch had {new:,} new rows, by the median of the last {len(with_rows)}"
        held = self._rows(plan.name)
        if plan.view_class == APPEND:
            return f"about {new:,} rows or what the query makes of them: {seen}"
        if held is None:
            return f"at most {new:,} groups: {seen}"
        return f"at most {min(new, held):,} of {held:,} groups: {seen}"

    def _rows(self, name: str) -> int | None:
        """How many rows a dataset has now; None if there is none."""
        version: ViewVersion | None = self._records[-1].views.get(name) if self._records else None
        if version is None:
            return None
        try:
            return View(self._root.location, version, ()).count_rows()
        except NotFoundError:
            return None
