"""The declared views of an attempt, compared with the catalog, and the commands that change them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from slackwater.commands.retry import has_late_rows, has_not_failed
from spark_bridge.plans.view_definition import ViewDefinition, parts_of
from spark_bridge.plans.view_plan import ViewPlan
from state.errors import CommandRefusedError, SlackwaterError, ViewError, ViewNotFoundError
from state.tables.records import CatalogView
from state.tables.stored_rows import declared_name, is_view

if TYPE_CHECKING:
    from spark_bridge.ingest.epoch_rows import EpochViews
    from spark_bridge.maintenance.declaration import Declaration


class DeclaresViews(Protocol):
    """The materializer, as `AttemptViews` uses it."""

    def declare(
        self,
        definitions: Sequence[ViewDefinition],
        schemas: Mapping[str, pa.Schema | None],
        known: Mapping[str, CatalogView],
        dropped: Collection[str],
    ) -> Declaration: ...

    @property
    def failing(self) -> frozenset[str]: ...


class AttemptViews:
    """The declared views, the views of the catalog, and the views that the user has dropped or retried.

    A command that raises an error changes nothing.

    Attributes:
        definitions: name → definition of each declared view.
        known: recorded name → view of the catalog; a retried view has no error.
        plans: name → plan of each declared view whose sources have schemas, from the last declaration.
        lacks_plans: whether a declared view has no plan.

    Args:
        catalog: the views of the catalog when the attempt begins.
        materializer: starts the materializer, once, and returns it.
        schemas: returns the present schema of every source; None before it is decided.
        on_declared: is called after each declaration.
        dropped: views that were dropped before, each with the last epoch at that moment: those that the catalog still
            has end with the next epoch after a declaration.
        retried: views that were retried before, and views to be rebuilt, by `CatalogView.version_name`; commands and
            failures change the set.
    """

    def __init__(
        self,
        definitions: Sequence[ViewDefinition],
        catalog: Mapping[str, CatalogView],
        materializer: Callable[[], DeclaresViews],
        schemas: Callable[[], Mapping[str, pa.Schema | None]],
        on_declared: Callable[[], None],
        *,
        dropped: Mapping[str, int],
        retried: set[str],
    ) -> None:
        self._materializer, self._schemas, self._on_declared = materializer, schemas, on_declared
        self._recorded, self._retried = catalog, retried
        self.definitions: Mapping[str, ViewDefinition] = {definition.name: definition for definition in definitions}
        self.known: Mapping[str, CatalogView] = {
            name: replace(view, error=None) if name in retried else view for name, view in catalog.items()
        }
        self._rebuilt = {
            view.name for view in catalog.values() if view.stopped_epoch is None and view.version_name in retried
        }
        self._dropped = tuple(name for name, epoch in dropped.items() if self._is_there_since(name, epoch))
        self.plans: Mapping[str, ViewPlan] = {}
        self.lacks_plans = True

    def declare(self) -> None:
        """Compares the declared views with the catalog.  Errors as of `Materializer.declare`."""
        self._replace(self.definitions)

    def add(self, definition: ViewDefinition) -> bool:
        """Adds a view, or replaces one.  Returns whether it is another view than before.

        Raises:
            ViewError: the name is declared, and the view may not replace it; others as of `Materializer.declare`.
            CommandRefusedError: another view reads a part of the view that ends.
        """
        parts = {each.name: each for each in definition.parts}
        if all(each == self.definitions.get(name) for name, each in parts.items()):
            return False
        for name in parts:
            if name in self.definitions and not definition.replace:
                raise ViewError(f"view {name} is already declared: give the new view another name, or replace=True")
        ended = [each for name in parts for each in parts_of(name, self.definitions) if each not in parts]
        self._require_unread(ended)
        self._replace({name: each for name, each in self.definitions.items() if name not in ended} | parts, ended)
        return True

    def drop(self, name: str) -> bool:
        """Ends a view with the next epoch.

        Raises:
            ViewNotFoundError: there is no such view.
            CommandRefusedError: another view reads it.
        """
        if name not in self.definitions and name not in self.known:
            raise self._not_found(name, "drop")
        parts = parts_of(name, self.definitions)
        self._require_unread(parts)
        self._replace({key: each for key, each in self.definitions.items() if key not in parts}, parts)
        return True

    def retry(self, name: str) -> bool:
        """Rebuilds a failed view, or a view that can have late rows; and the views that read it.

        Raises:
            ViewNotFoundError: there is no such declared view.
            CommandRefusedError: the view has not failed, fails in the next epoch, reads a failed view, or cannot be
                analysed.
        """
        if name not in self.definitions:
            raise self._not_found(name, "retry")
        view = self.known.get(name)
        if name in self._materializer().failing:
            raise CommandRefusedError(f"view {name!r} fails in the next epoch: retry it when `status` shows its error")
        if view is not None and view.error is None and has_late_rows(view):
            self._rebuild(name)
        elif view is None or view.error is None:
            raise CommandRefusedError(has_not_failed(name))
        else:
            self._forgive(view)
        return True

    def on_epoch(self, done: EpochViews) -> tuple[CatalogView, ...]:
        """Takes the views of an epoch over.  Returns the views that the catalog has to record."""
        recorded = self._recorded
        self._recorded = self.known = done.catalog(self.known)
        self._rebuilt.difference_update(done.stopped)
        self._retried.difference_update(name for name, stopped in done.stopped.items() if stopped.error)
        return tuple(view for name, view in self.known.items() if view != recorded.get(name))

    @property
    def rebuilt(self) -> list[str]:
        """The stored views that are rebuilt, and no epoch has recorded that yet; see `CatalogView.version_name`."""
        return [self.known[name].version_name for name in self._rebuilt if name in self.known]

    def readers(self, *names: str) -> tuple[str, ...]:
        """The declared views that read some views, directly or through others, the parents first."""
        reached = set(names)
        for each, plan in self.plans.items():
            if not reached.isdisjoint(plan.views):
                reached.add(each)
        return tuple(each for each in self.plans if each in reached and each not in names)

    def _replace(self, definitions: Mapping[str, ViewDefinition], dropped: Sequence[str] = ()) -> Mapping[str, str]:
        """Declares other views.

        Args:
            dropped: the views that end with the next epoch.  A view of such a name that is added from now on is
                another view.

        Returns:
            The reason of each view that cannot be analysed.
        """
        ended = {*self._dropped, *dropped}
        known = {name: view for name, view in self.known.items() if declared_name(name) not in ended}
        stopped = {name: replace(known[name], stopped_epoch=0) for name in self._rebuilt if name in known}
        declaration = self._materializer().declare(
            [*definitions.values()], self._schemas(), {**known, **stopped}, ended
        )
        self.known, self._dropped = known, ()
        self.definitions, self.lacks_plans = definitions, declaration.lacks_plans
        self.plans = {name: plan for name, plan in declaration.plans.items() if is_view(name)}
        self._on_declared()
        return declaration.broken

    def _require_unread(self, names: Sequence[str]) -> None:
        if readers := self.readers(*names):
            raise CommandRefusedError(
                f"view {' and '.join(names)} is read by {', '.join(readers)}; drop them first, or all together, with "
                "cascade=True"
            )

    def _forgive(self, view: CatalogView) -> None:
        """Rebuilds a failed view, and the failed views that read it."""
        name = view.name
        if failed := [each for each in view.views if each in self.known and self.known[each].error is not None]:
            raise CommandRefusedError(f"view {name} reads {failed[0]}, which has failed; retry that one")
        names = (name, *self.readers(name))
        before = {each: known for each in names if (known := self.known.get(each)) is not None and known.error}
        self.known = {**self.known, **{each: replace(known, error=None) for each, known in before.items()}}
        try:
            broken = self._replace(self.definitions)
        except SlackwaterError:
            self.known = {**self.known, **before}
            raise
        if name in broken:
            self.known = {**self.known, **before}
            self.declare()
            raise CommandRefusedError(f"view {name} cannot be built: {broken[name]}; correct it first")
        self._retried.update(before)

    def _rebuild(self, name: str) -> None:
        """Builds a view, and the views that read it, from all rows; their rows are shown until then."""
        before, names = self._rebuilt, (name, *self.readers(name))
        wanted = {
            view.name
            for view in self.known.values()
            if declared_name(view.name) in names and view.stopped_epoch is None
        }
        self._rebuilt = before | wanted
        try:
            self.declare()
        except SlackwaterError:
            self._rebuilt = before
            raise
        self._retried.update(self.known[each].version_name for each in wanted)

    def _not_found(self, name: str, wanted: str) -> ViewNotFoundError:
        names = ", ".join(sorted({*self.definitions, *filter(is_view, self.known)})) or "none"
        return ViewNotFoundError(f"there is no view {name!r} to {wanted}; the views are: {names}")

    def _is_there_since(self, name: str, epoch: int) -> bool:
        """True if the catalog has the view that was dropped at an epoch, and not a view that was added after it."""
        view = self.known.get(name)
        return view is not None and (name not in self.definitions or view.created_epoch <= epoch)
