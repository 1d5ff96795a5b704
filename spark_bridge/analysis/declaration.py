"""What the declared views are against those that the catalog has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from spark_bridge.analysis.view_definition import ViewDefinition
from spark_bridge.analysis.view_plan import ViewPlan
from state.errors import DefinitionChangedError
from state.tables.records import CatalogView
from state.tables.stored_rows import base_name, is_view, next_name


@dataclass(frozen=True)
class Declaration:
    """What is to be done with each view.

    Args:
        plans: the declared views that can be maintained, by name.
        new: those of them that begin with the first rows of their sources.
        late: those that lack rows: of them the sources were read before, or they were not declared for a while, or
            they take the place of another definition.
        frozen: views of the catalog that are not declared.
        waiting: declared views that read a source whose schema is not known yet.
        abandoned: what had begun to catch up and is not wanted any more, by its name in the catalog.
    """

    plans: Mapping[str, ViewPlan]
    new: tuple[str, ...]
    late: tuple[str, ...]
    frozen: tuple[str, ...]
    waiting: tuple[str, ...]
    abandoned: tuple[str, ...]

    @classmethod
    def of(
        cls,
        definitions: Mapping[str, ViewDefinition],
        plans: Mapping[str, ViewPlan],
        known: Mapping[str, CatalogView],
        ingested: Collection[str],
    ) -> Declaration:
        """Compares.

        Args:
            definitions: all declared views.
            plans: those that are analysed.
            known: the views of the catalog.
            ingested: the sources of which rows were ingested.

        Raises:
            DefinitionChangedError: the catalog has another view of the name, which is not to be replaced.
        """
        new = [name for name, plan in plans.items() if name not in known and not {*ingested}.intersection(plan.sources)]
        late = [
            name
            for name, plan in plans.items()
            if name not in new and not _goes_on(plan, definitions[name], known.get(name))
        ]
        return cls(
            plans=plans,
            new=tuple(new),
            late=tuple(late),
            frozen=tuple(name for name in known if is_view(name) and name not in definitions),
            waiting=tuple(name for name in definitions if name not in plans),
            abandoned=tuple(
                name for name in known if not is_view(name) and not _is_wanted(known[name], definitions, plans, late)
            ),
        )


def _goes_on(plan: ViewPlan, definition: ViewDefinition, known: CatalogView | None) -> bool:
    """Whether the stored view is the declared one, with all of its rows."""
    if known is None:
        return False
    if known.identity == plan.identity:
        return known.frozen_epoch is None
    if definition.replace:
        return False
    old, wanted = " ".join(known.definition.split()), " ".join(plan.definition.split())
    change = f"is stored as: {old}; it is declared as: {wanted}"
    if old == wanted:
        change = "is stored with other types of its columns, or with other Python functions, than it is declared with"
    raise DefinitionChangedError(
        f"view {plan.name!r} {change}; declare it as it was, under another name, or with replace=True, which builds it "
        "anew beside the stored one"
    )


def _is_wanted(
    begun: CatalogView, definitions: Mapping[str, ViewDefinition], plans: Mapping[str, ViewPlan], late: list[str]
) -> bool:
    """Whether what had begun to catch up is what a declared view is to be."""
    name = base_name(begun.name)
    if name in definitions and name not in plans:
        return True  # its source has no schema yet: that will tell
    return name in late and plans[name].identity == begun.identity and begun.name == next_name(name)
