"""The stateful operators below the top of a query: their inputs or outputs become internal views.

    Aggregate                      Aggregate
      Filter                         Filter
        Aggregate      ──→             Project        the columns under the names that the query uses
          rows                           a leaf       the groups of the inner view
                       and         Project            the columns under names of their own
                                     Aggregate
                                       rows

    an operator                    a leaf             its rows, which nobody stores: see the `cut` of each operator
      rows             ──→
                       and         Project            the columns of the rows
                                     rows

    Union                          Union
      rows of a        ──→           a leaf           rows of sources, if groups or joined rows stand beside them
      a leaf           and           a leaf
                                   rows of a

The left side is the query; the right side is what is left of it, and below that the internal views.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Plan, attribute_id, simple_name
from spark_bridge.operators.cut import Cut, InnerRows, InnerView
from spark_bridge.operators.registry import Operators
from spark_bridge.plans.operators import ExpressionCheck

GROUPS = InnerRows("the groups within", "an aggregation whose groups")
PARTS = InnerRows("the rows of sources beside others", "a union whose rows")


class InnerCut(Cut):
    """Cuts a whole query, operator by operator.

    Args:
        view: the name of the view.
        leaves: those of the query.
        sources: the names of the leaves that are sources.
        check: refuses operators with expressions that cannot be maintained.
        single_leaves: ids of the first attributes of leaves that have one row at most.
        event_times: source → the column with its event time, if the bounds of joins are asked for.
    """

    def __init__(
        self,
        catalyst: Catalyst,
        view: str,
        leaves: Mapping[int, str],
        sources: Collection[str],
        check: ExpressionCheck,
        single_leaves: frozenset[int],
        event_times: Mapping[str, str],
    ) -> None:
        super().__init__(catalyst, view, leaves, check, single_leaves, event_times)
        self._sources, self._operators = sources, Operators()

    def of(self, plan: Plan) -> Plan:
        """See `Cut.of`.

        Args:
            plan: analysed, with empty leaves.

        Raises:
            NotIncrementalError: an operator cannot be maintained.
        """
        if (leaf := self._operators.cut(self, plan)) is not None:
            return leaf
        match simple_name(plan):
            case "Project" | "Filter":
                return self.catalyst.trees.with_children(plan, [self.of(plan.child())])
            case "Aggregate":
                return self.catalyst.trees.with_children(plan, [self.below(plan.child())])
            case _:
                return self._over_children(plan)

    def below(self, plan: Plan) -> Plan:
        """See `Cut.below`.  Arguments and errors as of `of`."""
        leaf = self._operators.cut(self, plan) if plan.children().size() else None
        return self._over_children(plan) if leaf is None else leaf

    def _over_children(self, plan: Plan) -> Plan:
        children = self.catalyst.trees.items(plan.children())
        if not children:
            return plan
        plan = self.catalyst.trees.with_children(plan, [self.below(child) for child in children])
        match simple_name(plan):
            case "Aggregate":
                return self._read(self.inner(plan, [], GROUPS), plan)
            case "Union":
                return self._union(plan)
            case _:
                return plan

    def _union(self, plan: Plan) -> Plan:
        """A union of sources and other rows, which can leave: the rows of sources become an internal view."""
        parts = self.catalyst.trees.items(plan.children())
        of_sources = [all(map(self._is_source, self.catalyst.trees.leaves(part))) for part in parts]
        if all(of_sources) or not any(of_sources):
            return plan
        read = [
            self._read(self.inner(part, [], PARTS), part) if of_source else part
            for part, of_source in zip(parts, of_sources, strict=True)
        ]
        return self.catalyst.trees.with_children(plan, read)

    def _is_source(self, leaf: Plan) -> bool:
        return self.leaves[attribute_id(leaf.output().apply(0))] in self._sources

    def _read(self, inner: InnerView, plan: Plan) -> Plan:
        """A part by the stored rows of its internal view."""
        leaf = self.catalyst.rows.local_relation(inner.plan.output()).newInstance()
        self.leaves[attribute_id(leaf.output().apply(0))] = inner.name
        return self.under_columns(plan, leaf)


def inner_text(views: Collection[InnerView]) -> str:
    """The part of a reason that names the internal views."""
    texts = list[str]()
    for rows in dict.fromkeys([GROUPS, *Operators().inner_rows, PARTS]):
        if names := [each.name for each in views if each.rows == rows]:
            texts.append(f"{' and '.join(names)} {'have' if len(names) > 1 else 'has'} {rows.text}")
    return "; below that, " + ", and ".join(texts) if texts else ""
