"""Comparison of the declared views with the views of the catalog."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.errors import DefinitionChangedError
from state.tables.records import CatalogView
from state.tables.stored_rows import base_name, declared_name, is_internal_view, is_view, next_name


class Start(Enum):
    """The way in which a declared view starts, compared with the stored view of its name."""

    WAITS = "waits for the schema of a source"
    NEW = "begins with the first rows of its sources"
    CONTINUES = "continues with the rows that it has"
    BACKFILLS = "lacks ingested rows: added later, left out for a while, or replaces another definition"
    OF_GROUPS = "begins with the groups of the definition that it replaces, and backfills the measures that they lack"
    STALE = "has failed, and is stale until it is retried or replaced"
    FAILS = "its analysis fails, although its text is the recorded text"


@dataclass(frozen=True)
class Declaration:
    """The declared views, with their internal views, by the way in which each of them starts.

    Args:
        plans: name → plan of each declared view whose sources have schemas.
        starts: name → start, of each declared view and of each internal view.
        abandoned: recorded names of backfills and internal views that are not declared any more.
        incomplete: views that lack the rows of missing files.
        broken: name → reason of each view that has no plan, since its analysis fails.
        resumable: name → the last epoch whose rows the stored view has, of the views that lack the rows of later epochs
            alone.
    """

    plans: Mapping[str, ViewPlan]
    starts: Mapping[str, Start]
    abandoned: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)
    resumable: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        definitions: Mapping[str, ViewDefinition],
        plans: Mapping[str, ViewPlan],
        known: Mapping[str, CatalogView],
        ingested: Collection[str],
        ending: Collection[str] = (),
        stored_groups: Collection[str] = (),
        broken: Mapping[str, str] = MappingProxyType({}),
    ) -> Declaration:
        """Compares declared and known views.

        Args:
            definitions: name → definition of each declared view.
            plans: name → plan of each analysed view, the parents first.
            known: the views of the catalog.
            ingested: the sources that have ingested rows.
            ending: the recorded names that the next epoch ends: an internal view of such a name does not continue.
            stored_groups: the views that are made of stored groups, if the views that they read continue.
            broken: name → reason of each view of the catalog whose analysis fails.

        Raises:
            DefinitionChangedError: the catalog has another view of the name, and it must not be replaced.
        """
        known = {name: view for name, view in known.items() if is_view(name) or name not in ending}
        comparison = _Comparison(definitions, plans, known, {*ingested})
        starts = comparison.starts()
        starts |= comparison.of_groups(starts, stored_groups)
        backfills = {name for name, start in starts.items() if start in (Start.BACKFILLS, Start.OF_GROUPS)}
        unplanned = {name: _unplanned(known.get(name), name in broken) for name in definitions if name not in plans}
        waiting = {name for name, start in unplanned.items() if start is Start.WAITS}
        unplanned |= {name: Start.WAITS for name in filter(is_internal_view, known) if declared_name(name) in waiting}
        return cls(
            plans=plans,
            starts=starts | unplanned,
            abandoned=tuple(
                name
                for name in known
                if not is_view(name) and not _is_wanted(known[name], definitions, plans, backfills)
            ),
            incomplete=tuple(name for name in plans if name in known and known[name].missing),
            broken=dict(broken),
            resumable=comparison.resumable(starts),
        )

    def names(self, *starts: Start) -> list[str]:
        """The views that start in one of these ways; parents precede their readers."""
        return [name for name, start in self.starts.items() if start in starts]

    @property
    def lacks_plans(self) -> bool:
        """Whether a declared view has no plan: it may use further columns of the sources."""
        return not self.plans.keys() >= self.starts.keys()

    @property
    def fresh(self) -> set[str]:
        """The views that have no dataset of their own yet, or lack ingested rows."""
        return {*self.names(Start.NEW, Start.BACKFILLS, Start.OF_GROUPS)}


def undeclared(definitions: Collection[str], known: Iterable[str]) -> list[str]:
    """The views of the catalog that are not declared: their rows stay as they are.

    Args:
        definitions: the names of the declared views.
        known: the recorded names of the catalog.
    """
    return [name for name in known if is_view(name) and name not in definitions]


@dataclass(frozen=True)
class _Comparison:
    """Declared and stored views; arguments as of `Declaration.of`."""

    definitions: Mapping[str, ViewDefinition]
    plans: Mapping[str, ViewPlan]
    known: Mapping[str, CatalogView]
    ingested: Set[str]

    def starts(self) -> dict[str, Start]:
        """Name → start of each analysed view, without regard to stored groups."""
        replaced, cascading = self._replaced()
        failed = {name for name, plan in self.plans.items() if _has_failed(plan, self.known.get(name))}
        starts = dict[str, Start]()
        for name, plan in self.plans.items():
            known = self.known.get(name)
            # An internal view is what its view is: that view is asked.
            may_replace = not is_view(name) or self.definitions[name].replace or name in cascading
            if declared_name(name) in failed:
                starts[name] = Start.STALE
            elif known is None and self.ingested.isdisjoint(plan.sources):
                starts[name] = Start.NEW
            else:
                continues = _continues(plan, may_replace, known, replaced)
                starts[name] = Start.CONTINUES if continues else Start.BACKFILLS
        return starts

    def _replaced(self) -> tuple[set[str], set[str]]:
        """The views that are others than those of their names in the catalog, and those replaced by `cascade`."""
        replaced, cascading = set[str](), set[str]()
        for name, plan in self.plans.items():
            known = self.known.get(name)
            if known is None:
                continue
            # The identity of an internal view has the names of its parents, and not their definitions.
            reads_others = not is_view(name) and not replaced.isdisjoint(plan.parents)
            if known.identity != plan.identity or reads_others:
                replaced.add(name)
                if self.definitions[declared_name(name)].cascade or not cascading.isdisjoint(plan.views):
                    cascading.add(name)
        return replaced, cascading

    def resumable(self, starts: Mapping[str, Start]) -> dict[str, int]:
        """Name → last epoch of the rows of each stopped view that lacks the rows of later epochs alone."""
        return {
            name: known.stopped_epoch
            for name, start in starts.items()
            if start is Start.BACKFILLS
            and is_view(name)
            and next_name(name) not in self.known
            and (known := self.known.get(name)) is not None
            and known.stopped_epoch
            and known.identity == self.plans[name].identity
            and not known.missing
            and _can_resume(self.plans[name])
        }

    def of_groups(self, starts: Mapping[str, Start], stored_groups: Collection[str]) -> dict[str, Start]:
        """Name → start of the views that are made of stored groups."""
        # A rebuilt view gives its followers no changes, but other rows.
        rebuilt = {name for name, start in starts.items() if start is not Start.CONTINUES}
        return {
            name: Start.OF_GROUPS
            for name in stored_groups
            if starts.get(name) is Start.BACKFILLS
            and next_name(name) not in self.known
            and rebuilt.isdisjoint(self.plans[name].parents)
        }


def _can_resume(plan: ViewPlan) -> bool:
    """True if the rows of the view depend on rows of sources alone, and not on the epochs that add these rows."""
    follows_time = plan.closing is not None or plan.expiry is not None or plan.timestamps.are_used
    return plan.view_class in ("append", "aggregate") and not plan.parents and not follows_time


def _unplanned(known: CatalogView | None, is_broken: bool) -> Start:
    """The start of a view without a plan."""
    if not is_broken:
        return Start.WAITS
    return Start.FAILS if known is None or known.error is None else Start.STALE


def _has_failed(plan: ViewPlan, known: CatalogView | None) -> bool:
    return known is not None and known.error is not None and known.identity == plan.identity


def _continues(plan: ViewPlan, may_replace: bool, known: CatalogView | None, replaced: Collection[str]) -> bool:
    """Whether the stored view is the declared one, with all of its rows.

    Args:
        may_replace: whether it may replace another one.
        known: the view of this name in the catalog; None without one.
        replaced: the declared views that are others than those of their names in the catalog.
    """
    if known is None:
        return False
    if known.identity == plan.identity:
        return known.stopped_epoch is None and plan.name not in replaced
    if may_replace:
        return False
    old, wanted = " ".join(known.definition.split()), " ".join(plan.definition.split())
    if old == wanted and (parents := [name for name in plan.views if name in replaced]):
        raise DefinitionChangedError(
            f"view {plan.name!r} reads {parents[0]!r}, which is replaced; declare {plan.name!r} with replace=True too, "
            f"or {parents[0]!r} with replace=True, cascade=True"
        )
    change = f"is stored as: {old}; it is declared as: {wanted}"
    if old == wanted and known.view_class != plan.view_class:
        change = f"is stored as a view of the class {known.view_class}, and would be one of the class {plan.view_class}"
    elif old == wanted:
        change = "is stored with other types of its columns, or with other Python functions, than it is declared with"
    raise DefinitionChangedError(
        f"view {plan.name!r} {change}; declare it as it was, under another name, or with replace=True, which rebuilds "
        "it from all rows, and keeps the stored view until then"
    )


def _is_wanted(
    begun: CatalogView, definitions: Mapping[str, ViewDefinition], plans: Mapping[str, ViewPlan], backfills: Set[str]
) -> bool:
    """Whether a recorded backfill or internal view is one of a declared view."""
    name, declared = base_name(begun.name), declared_name(begun.name)
    if declared in definitions and declared not in plans:
        return True  # its source has no schema yet; the decision waits for that
    if name == begun.name:
        return name in plans  # an internal view
    return name in backfills and plans[name].identity == begun.identity
