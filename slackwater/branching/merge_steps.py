"""The steps of a merge, in their order, and the checks before them: over any store."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass, replace
from typing import Protocol

from slackwater.branching.same_files import require_same_files
from slackwater.commands.retry import has_late_rows
from state.clock import Clock
from state.epoch import next_epoch
from state.errors import UsageError, ViewNotFoundError
from state.store.store import StateStore
from state.tables.catalog import Catalog, delete_view, put_expectations, put_view
from state.tables.delta import Delta, DeltaBuilder
from state.tables.expectations import ViewExpectations, gate_of, published_after
from state.tables.records import CatalogView, EpochCounts, EpochRecord, EpochSeconds, ViewVersion
from state.tables.stored_rows import declared_name, is_stored_rows, is_view
from state.upkeep.quarantine import late_rows
from state.upkeep.tags import require_gate_tag

_PATH = re.compile(r"(\w+)/.+-\d+((?:-\w+)?\.lance)")
"""The folder of a dataset; the name of a view and the epoch that has created it; a word for its kind."""


@dataclass(frozen=True)
class Merged:
    """The result of a merge.

    Args:
        epoch: the epoch of the root that shows the views; its last one if there was nothing to take.
        views: the names of the views, in order.
        bytes: the size of the copied files.
    """

    epoch: int
    views: tuple[str, ...]
    bytes: int


class MergedDatasets(Protocol):
    """The datasets of a root and of its branch."""

    def copy(self, path: str, version: int, target: str) -> tuple[int, int]:
        """Makes a dataset of the root with the rows of one of the branch.

        Args:
            path: the path of that of the branch.
            version: its version.
            target: the path of the new one.

        Returns:
            The version of the new one, and the size of its rows in bytes.
        """

    def tag_committed(self, view: ViewVersion) -> None:
        """Shows plain readers of the root a version of a view."""


class MergeSteps:
    """One merge.

    Args:
        name: the name of the branch.
        store: the owner's handle on the store of the root.
        datasets: those of both.
        branch: the store of the branch.
        record: the epoch of the branch that is taken; the caller keeps it from expiring.
        first: the store of the branch as it began.
        clock: numbers the epoch.
    """

    def __init__(
        self,
        name: str,
        store: StateStore,
        datasets: MergedDatasets,
        branch: StateStore,
        record: EpochRecord,
        first: StateStore,
        clock: Clock,
    ) -> None:
        self._name, self._store, self._datasets, self._branch, self._record = name, store, datasets, branch, record
        self._first, self._began = Catalog.of(first.scan("catalog")), first.head.epoch
        self._here = Catalog.of(store.scan("catalog"))
        self._there = Catalog.of(branch.scan("catalog", state_version=record.state_version))
        self._epoch = next_epoch(clock, store.head.epoch, store.head.term)
        begun = {path for view in first.head.views.values() for path in view.datasets}
        # Datasets are named after views and epochs: since then, both may have made one of the same name.
        self._maintained = {
            path: version
            for name, view in store.head.views.items()
            if name in self._here.views and self._here.views[name].stopped_epoch is None
            for path, version in view.datasets.items()
            if path in begun
        }
        self._copied: dict[str, tuple[str, int]] = {}
        self._bytes = 0

    def take(self, wanted: Collection[str] | None) -> Merged:
        """Takes views, see `slackwater.branching.merge.merge`."""
        names = self._chosen(wanted)
        if not names:
            return Merged(self._store.head.epoch, (), 0)
        for name in names:
            self._require_complete(self._there.views[name])
        self._require_readers(names)
        self._require_windows(names)
        sources = {source for view in self._there.views.values() for source in view.sources if _is_of(view, names)}
        require_same_files(sources, (self._store, self._here, None), (self._branch, self._there, self._record))
        expected = self._expectations(names)
        after = gate_of({**self._here.expectations, **{each.view: each for each in expected}}.values())
        if after != "none":
            require_gate_tag("the root", self._here.gate, self._store.head.tags)
        views = {each: view for each, view in self._store.head.views.items() if declared_name(each) not in names}
        taken = {each: view for each, view in self._record.views.items() if declared_name(each) in names}
        views |= {each: self._copy(view) for each, view in taken.items()}
        self._store.commit(
            epoch=self._epoch,
            delta=Delta.merge([self._definitions(names, expected).build(), self._late_rows(names).build()]),
            views=views,
            counts=EpochCounts(),
            seconds=EpochSeconds(),
            published=published_after(self._here.gate, after, last=self._store.head.epoch, epoch=self._epoch),
        )
        for each in taken:
            self._datasets.tag_committed(views[each])
        return Merged(self._epoch, tuple(sorted(names)), self._bytes)

    def _chosen(self, wanted: Collection[str] | None) -> set[str]:
        """The views to take: the changed views of the branch whose rows differ, and the views that read them."""
        shown = {name for name in filter(is_view, self._there.views) if name in self._record.views}
        if unknown := sorted(set(wanted or ()) - shown):
            raise ViewNotFoundError(
                f"branch {self._name!r} has no view {unknown[0]!r}; its views are: {', '.join(sorted(shown)) or '-'}"
            )
        declared = {name for name in shown if not self._is_left(self._there.views[name])}
        changed = {name for name in declared if self._differs(self._first, name)}
        names = {name for name in (changed if wanted is None else wanted) if self._differs(self._here, name)}
        names = shown.intersection(self._there.with_readers(names))
        for view in self._there.views.values():
            read = set(view.views) - names if _is_of(view, names) else ()
            if missing := sorted(each for each in read if self._differs(self._here, each)):
                raise UsageError(
                    f"view {declared_name(view.name)!r} reads {missing[0]!r}, which the root does not have so: merge "
                    "it, too"
                )
        return names

    def _differs(self, other: Catalog, name: str) -> bool:
        """True for a view that another catalog lacks, has with another definition, or does not maintain any more."""
        here, there = other.views.get(name), self._there.views.get(name)
        if here is None or there is None or here.identity != there.identity:
            return True
        return here.stopped_epoch is not None and there.stopped_epoch is None

    def _is_left(self, view: CatalogView) -> bool:
        """True for a view that the branch does not declare any more."""
        return view.stopped_epoch is not None and view.error is None

    def _require_complete(self, view: CatalogView) -> None:
        """Refuses a view that does not have all rows of its epoch."""
        reason = None
        if view.error is not None:
            reason = f"has failed in the branch ({view.error}): correct it there first"
        elif self._is_left(view):
            reason = "is not maintained in the branch: declare it there, and run the branch"
        elif view.view_class == "full":
            reason = "is recomputed as a whole: a run of the root with its definition does that once"
        elif any(declared_name(each) == view.name for each, at in self._record.views.items() if at.pinned_epoch):
            reason = "is not complete in the branch: run the branch until it has caught up"
        if reason is not None:
            raise UsageError(f"view {view.name!r} {reason}; `--view` takes others without it")

    def _require_readers(self, names: Set[str]) -> None:
        """Refuses to replace a view under others that stay."""
        maintained = {declared_name(each.name) for each in self._here.views.values() if each.stopped_epoch is None}
        for name in sorted(maintained.intersection(self._here.readers(names)) - names):
            raise UsageError(
                f"view {name!r} of the root reads one that the branch replaces ({', '.join(sorted(names))}), and "
                f"the branch does not maintain it: declare {name!r} in the branch, too, or drop it in the root"
            )

    def _require_windows(self, names: Set[str]) -> None:
        """Refuses views over the windows of a view that stays, which the root may have closed in other epochs."""
        closing = [view.name for view in self._there.views.values() if has_late_rows(view)]
        of_windows = self._there.with_readers(closing)
        for view in self._there.views.values():
            read = sorted(of_windows.intersection(view.views) - names)
            if read and _is_of(view, names):
                raise UsageError(
                    f"view {declared_name(view.name)!r} reads {read[0]!r}, whose rows depend on the epochs of each "
                    "root: run the root with the new view, which a backfill computes; `--view` takes others without it"
                )

    def _copy(self, view: ViewVersion) -> ViewVersion:
        """A view at the datasets of the root."""
        places = {path: self._place(view.name, path, version) for path, version in view.datasets.items()}
        return replace(
            view.at({path: version for path, (_, version) in places.items()}),
            path=places[view.path][0],
            state_path=view.state_path and places[view.state_path][0],
            distinct_path=view.distinct_path and places[view.distinct_path][0],
        )

    def _place(self, name: str, path: str, version: int) -> tuple[str, int]:
        """The path and version at the root of a dataset of the branch; it is copied if the root does not maintain it.

        A dataset that the branch began with has one path in both, and one for each definition.  A copy has the name of
        the first view with it: the view that has created it may have another one by now.
        """
        if path in self._maintained:
            return path, self._maintained[path]
        if path not in self._copied:
            target = _PATH.sub(rf"\1/{name}-{self._epoch}\2", path)
            copied, nbytes = self._datasets.copy(path, version, target)
            self._copied[path] = target, copied
            self._bytes += nbytes
        return self._copied[path]

    def _expectations(self, names: Set[str]) -> list[ViewExpectations]:
        """Expectations of the views whose rows are copied from the branch."""
        expected = []
        for name in names:
            if self._record.views[name].path in self._maintained:
                continue  # the rows are those of the root
            here, there = self._here.expectations.get(name), self._there.expectations.get(name)
            if there is not None:
                expected.append(there.taken(self._epoch))
            elif here is not None:
                unknown = f"its rows are from branch {self._name!r}: the next epoch counts the violating rows"
                expected.append(here.taken(self._epoch, unknown))
        return expected

    def _late_rows(self, names: Set[str]) -> DeltaBuilder:
        """The rows that came to the branch, and were late for these views: no dataset of the views has them."""
        delta = DeltaBuilder()
        closing = {name for name in names if has_late_rows(self._there.views[name])}
        for source in sorted({source for name in closing for source in self._there.views[name].sources}):
            version = self._record.state_version
            for row in late_rows(self._branch, source, closing, self._began, state_version=version).to_pylist():
                fields = {name: row[name] for name in ("source", "path", "row", "raw", "reason")}
                delta.put("quarantine", row["key"], row["vnode"], **fields)
        return delta

    def _definitions(self, names: Set[str], expected: Sequence[ViewExpectations]) -> DeltaBuilder:
        """The changes of the catalog."""
        delta = DeltaBuilder()
        for each in self._here.views:
            if declared_name(each) in names:
                delete_view(delta, each)
        for each, view in self._there.views.items():
            if declared_name(each) in names and not is_stored_rows(each):
                put_view(delta, replace(view, created_epoch=self._epoch))
        for of_view in expected:
            put_expectations(delta, of_view)
        return delta


def _is_of(view: CatalogView, names: Set[str]) -> bool:
    """True for one of these views, and for an internal view of one."""
    return declared_name(view.name) in names
