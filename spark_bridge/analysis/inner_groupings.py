"""The groupings below the top of a query: each becomes a hidden view, and the query reads its stored groups.

    Aggregate                      Aggregate
      Filter                         Filter
        Aggregate      ──→             Project        the columns under the names that the query uses
          rows                           a leaf       the groups of the inner view
                       and         Project            the columns under names of their own
                                     Aggregate
                                       rows

The left side is the query; the right side is what is left of it, and below that the hidden view.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, count

from spark_bridge.analysis.identity import identity_text
from spark_bridge.catalyst.catalyst import Catalyst, Plan, attribute_id, simple_name
from state.tables.stored_rows import inner_name

_NO_NAME = re.compile(r"(?:#\d+L?|\W)+")
"""The parts of Spark's names that are no words: signs, and the number of a column, which differs between sessions."""


@dataclass(frozen=True)
class InnerGrouping:
    """A grouping that was cut out of a query.

    Args:
        name: recorded name of its view.
        plan: analysed, with unique names of columns; a deeper grouping is a leaf in it.
    """

    name: str
    plan: Plan


class GroupingCut:
    """Cuts the groupings below the top of a query out of it; equal ones become one view.

    Attributes:
        groupings: those that were cut out, each after those that it reads.
        leaves: id of a leaf's first attribute → the source, the parent or the hidden view of the leaf.

    Args:
        catalyst: of the session.
        view: the name of the view.
        leaves: those of the query.
    """

    def __init__(self, catalyst: Catalyst, view: str, leaves: Mapping[int, str]) -> None:
        self._catalyst, self._view = catalyst, view
        self._known: dict[str, InnerGrouping] = {}
        self.groupings: list[InnerGrouping] = []
        self.leaves = dict(leaves)

    def of(self, plan: Plan) -> Plan:
        """The query over the groups of its inner views.  Its own grouping stays, under projections and filters.

        Args:
            plan: analysed, with empty leaves.
        """
        match simple_name(plan):
            case "Project" | "Filter":
                return self._catalyst.with_children(plan, [self.of(plan.child())])
            case "Aggregate":
                return self._catalyst.with_children(plan, [self._cut(plan.child())])
            case _:
                return self._cut(plan)

    def _cut(self, plan: Plan) -> Plan:
        catalyst = self._catalyst
        children = catalyst.items(plan.children())
        if not children:
            return plan
        plan = catalyst.with_children(plan, [self._cut(child) for child in children])
        if simple_name(plan) != "Aggregate":
            return plan
        columns = catalyst.items(plan.output())
        inner = catalyst.project(
            map(catalyst.alias, columns, _unique_names(str(each.name()) for each in columns)), plan
        )
        identity = identity_text(catalyst, inner, self.leaves, "", [])
        grouping = self._known.get(identity)
        if grouping is None:
            grouping = InnerGrouping(inner_name(self._view, 1 + len(self.groupings)), inner)
            self._known[identity] = grouping
            self.groupings.append(grouping)
        leaf = catalyst.local_relation(grouping.plan.output()).newInstance()
        self.leaves[attribute_id(leaf.output().apply(0))] = grouping.name
        return catalyst.project(map(catalyst.alias_as, catalyst.items(leaf.output()), columns), leaf)


def _unique_names(names: Iterable[str]) -> list[str]:
    """Names of letters, digits and underscores, each once, whether upper or lower case."""
    unique: dict[str, str] = {}
    for name in (_NO_NAME.sub("_", each).strip("_") or "column" for each in names):
        candidates = chain([name], (f"{name}_{number}" for number in count(2)))
        free = next(each for each in candidates if each.lower() not in unique)
        unique[free.lower()] = free
    return list(unique.values())
