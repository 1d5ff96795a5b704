"""Comparison of the declared views with the views of the catalog."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from spark_bridge.plans.planned_view import StoredGroups
from spark_bridge.plans.view_definition import ViewDefinition
from spark_bridge.plans.view_plan import ViewPlan
from state.errors import DefinitionChangedError
from state.tables.records import CatalogView
from state.tables.stored_rows import base_name, declared_name, is_view, next_name


@dataclass(frozen=True)
class Declaration:
    """The names of the views, hidden ones among them, by the action that each needs.

    Args:
        plans: name → plan of each declared view whose sources have schemas.
        new: views that begin with the first rows of their sources.
        backfills: views that lack ingested rows: they are declared after their sources were read, were left out for a
            while, or replace another definition.
        frozen: views of the catalog that are not declared.
        failed: views that have failed, and stand until they are retried or replaced.
        waiting: declared views that read a source whose schema is not known yet.
        abandoned: recorded names of backfills and hidden views that are not declared any more.
        incomplete: views that lack the rows of missing files.
        regrouped: views that replace another definition, and take over its groups; those over views may lack measures.
        extended: backfills that begin with the groups of the definition that they replace, and lack some measures.
        broken: name → reason of each view of the catalog whose analysis fails, although its text is the recorded one;
            it has no plan.
    """

    plans: Mapping[str, ViewPlan]
    new: tuple[str, ...]
    backfills: tuple[str, ...]
    frozen: tuple[str, ...]
    failed: tuple[str, ...]
    waiting: tuple[str, ...]
    abandoned: tuple[str, ...]
    incomplete: tuple[str, ...] = ()
    regrouped: tuple[str, ...] = ()
    extended: tuple[str, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        definitions: Mapping[str, ViewDefinition],
        plans: Mapping[str, ViewPlan],
        known: Mapping[str, CatalogView],
        ingested: Collection[str],
        ending: Collection[str] = (),
        stored_groups: Mapping[str, StoredGroups] = MappingProxyType({}),
    ) -> Declaration:
        """Compares declared and known views.

        Args:
            definitions: name → definition of each declared view.
            plans: name → plan of each analysed one; a view comes after those that it reads.
            known: the views of the catalog.
            ingested: the sources that have ingested rows.
            ending: the recorded names that the next epoch ends: a hidden view of such a name does not continue.
            stored_groups: name → groups that a declared view is made of, if the views that it reads go on.

        Raises:
            DefinitionChangedError: the catalog has another view of the name, and it must not be replaced.
        """
        known = {name: view for name, view in known.items() if is_view(name) or name not in ending}
        replaced, cascading = set[str](), set[str]()
        for name, plan in plans.items():
            # The identity of a hidden view names the views that it reads, and does not tell what they are.
            reads_others = not is_view(name) and not replaced.isdisjoint(plan.parents)
            if name in known and (known[name].identity != plan.identity or reads_others):
                replaced.add(name)
                if definitions[declared_name(name)].cascade or not cascading.isdisjoint(plan.views):
                    cascading.add(name)

        def may_replace(name: str) -> bool:
            # A hidden view is what its view is: that one is asked.
            return not is_view(name) or definitions[name].replace or name in cascading

        broken = {name for name, plan in plans.items() if _has_failed(plan, known.get(name))}
        failed = [name for name in plans if declared_name(name) in broken]
        new = [
            name
            for name, plan in plans.items()
            if name not in (*known, *failed) and not {*ingested}.intersection(plan.sources)
        ]
        backfills = [
            name
            for name, plan in plans.items()
            if name not in (*new, *failed) and not _continues(plan, may_replace(name), known.get(name), replaced)
        ]
        regrouped, extended = list[str](), list[str]()
        for name in backfills:
            groups = stored_groups.get(name)
            # A view that is built anew gives its followers no changes, but other rows.
            is_kept = groups is not None and not {*new, *backfills, *failed}.intersection(plans[name].parents)
            if groups is not None and is_kept and next_name(name) not in known:
                (regrouped if groups.has_all or plans[name].parents else extended).append(name)
        backfills = [name for name in backfills if name not in regrouped]
        return cls(
            plans=plans,
            new=tuple(new),
            backfills=tuple(backfills),
            frozen=tuple(name for name in known if is_view(name) and name not in definitions),
            failed=tuple(failed),
            waiting=tuple(name for name in definitions if name not in plans),
            abandoned=tuple(
                name
                for name in known
                if not is_view(name) and not _is_wanted(known[name], definitions, plans, backfills)
            ),
            incomplete=tuple(name for name in plans if name in known and known[name].missing),
            regrouped=tuple(regrouped),
            extended=tuple(extended),
        )


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
        return known.frozen_epoch is None and plan.name not in replaced
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
        f"view {plan.name!r} {change}; declare it as it was, under another name, or with replace=True, which builds it "
        "anew beside the stored one"
    )


def _is_wanted(
    begun: CatalogView, definitions: Mapping[str, ViewDefinition], plans: Mapping[str, ViewPlan], backfills: list[str]
) -> bool:
    """Whether a recorded backfill or hidden view is one of a declared view."""
    name, declared = base_name(begun.name), declared_name(begun.name)
    if declared in definitions and declared not in plans:
        return True  # its source has no schema yet; the decision waits for that
    if name == begun.name:
        return name in plans  # a hidden view
    return name in backfills and plans[name].identity == begun.identity
