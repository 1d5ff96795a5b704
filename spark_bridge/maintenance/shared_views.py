"""Internal views of several views with the same rows: one of them is maintained, and the others have its datasets.

    a view        its internal view        the rows, maintained under the name of one
    orders_by_x   orders_by_x.1  ───┐
    orders_by_y   orders_by_y.1  ───┴──→ orders_by_x.1

Each keeps a name of its own in the records of the epochs, so that a view may leave or fail without the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from spark_bridge.plans.view_plan import ViewPlan


class SharedViews:
    """Chooses the one that is maintained: the representative.

    A representative is maintained after its own view was dropped, until the next declaration chooses another view.
    """

    def __init__(self) -> None:
        self._representatives: dict[str, str] = {}
        self._contents: dict[str, str] = {}
        self._before: dict[str, str] = {}

    def declare(
        self, plans: Mapping[str, ViewPlan], apart: Collection[str], fresh: Collection[str], begun: Collection[str]
    ) -> None:
        """Chooses the representatives: first the views with all rows, then the views whose backfill has begun.

        Args:
            plans: name → plan, of all views.
            apart: views that share no rows, because they may lack some.
            fresh: views that lack rows.
            begun: views of `fresh` that have a dataset.
        """
        same: dict[str, list[str]] = {}
        for name, plan in plans.items():
            if plan.content is not None and name not in apart:
                same.setdefault(plan.content, []).append(name)
        before, self._contents, self._before, self._representatives = self._contents, {}, {}, {}
        for content, names in same.items():
            kept = before.get(content, "")
            representative = min(names, key=lambda name: (name in fresh, name not in begun, name != kept))
            self._contents[content] = representative
            if kept and representative not in fresh:
                self._before[representative] = kept
            if len(names) > 1:
                self._representatives.update(dict.fromkeys(names, representative))

    def representative(self, name: str) -> str:
        """The view that is maintained for a view: itself, or the one with the same rows."""
        return self._representatives.get(name, name)

    def before(self, representative: str) -> str:
        """The name under which the rows of a view were maintained before the last declaration."""
        return self._before.get(representative, representative)

    def names(self, representative: str) -> list[str]:
        """The views that have the datasets of a view which is maintained."""
        if representative not in self._representatives.values():
            return [representative]
        return [name for name, each in self._representatives.items() if each == representative]

    def followers(self) -> Iterator[tuple[str, str]]:
        """Yields each view that shares the rows of another view, and its representative."""
        return ((name, other) for name, other in self._representatives.items() if name != other)

    def leave(self, name: str) -> str | None:
        """Lets a view go.  Returns the view that nobody needs any longer, if there is one."""
        representative = self._representatives.pop(name, name)
        return None if representative in self._representatives.values() else representative

    def without_own_name(self) -> set[str]:
        """The representatives whose own views have left."""
        return {*self._representatives.values()} - self._representatives.keys()
