"""The analysis of a full view: its sources, and the refusal of results that are not deterministic."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from spark_bridge.engine.catalyst.catalyst import Catalyst
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, attribute_id, parts_of, simple_name
from spark_bridge.operators.limit.limit_form import drops_nothing
from spark_bridge.plans.operators import PLACES_ROWS, ExpressionCheck, refuse, takes_row_of_order, window_arguments
from spark_bridge.plans.total_order import LIMITS, TotalOrder, is_ordered
from spark_bridge.query.spark_analysis import LEAVES
from state.errors import NotIncrementalError

_ROWS_OF_ITS_OWN = frozenset({"LocalRelation", "OneRowRelation", "Range"})
_OF_ANY_ROW = frozenset({"First", "Last", "AnyValue", "Mode"})
# All that a SELECT consists of, and no operator that runs a program, calls Python, or writes.
_OF_A_QUERY = (
    _ROWS_OF_ITS_OWN
    | frozenset({"Project", "Filter", "Generate", "Union", "Expand", "Aggregate", "Distinct", "Join", "LateralJoin"})
    | frozenset({"Window", "Sort", "GlobalLimit", "LocalLimit", "Offset", "Intersect", "Except"})
    | frozenset({"SubqueryAlias", "View", "ResolvedHint"})
    | PLACES_ROWS
)


def named_leaves(
    trees: Trees, plan: Plan, sources: Collection[str], parents: Collection[str]
) -> Iterator[tuple[str, Plan]]:
    """Yields each use of a source or a parent in an analysed plan, also in subqueries: its name and its leaf.

    Args:
        plan: analysed, over temporary views of the sources and of the views that it reads.
        sources: the names of the sources.
        parents: the names of the views whose stored rows are read.
    """
    names = {*sources, *parents}
    for part in parts_of(trees, plan, lambda part: _is_view_of(part, parents)):
        if _is_view_of(part, names):
            yield str(part.desc().identifier().table()), part.child()


def views_read(trees: Trees, plan: Plan, views: Collection[str]) -> Iterator[str]:
    """Yields the name of a view at each use in an analysed plan, without the views that those views read."""
    for part in _own_parts(trees, plan, views):
        if _is_view_of(part, views):
            yield str(part.desc().identifier().table())


def require_recomputable(
    catalyst: Catalyst, view: str, plan: Plan, sources: Collection[str], views: Collection[str], *, is_query: bool
) -> None:
    """Refuses a plan that is not deterministic over the same rows, or reads other data than sources and views.

    Args:
        view: the name of the view.
        plan: analysed.
        sources: the names of the sources.
        views: the names of the views that it may read; each is analysed for itself.
        is_query: whether it is that of SQL text, which must be one SELECT in all its parts; a function is code.

    Raises:
        NotIncrementalError: naming the operator or the function.
    """
    check = ExpressionCheck(view, catalyst, allow_subqueries=True)
    of_sources = {attribute_id(leaf.output().apply(0)) for _, leaf in named_leaves(catalyst.trees, plan, sources, ())}
    for part in _own_parts(catalyst.trees, plan, views):
        kind = simple_name(part)
        if kind == "Sample":
            raise refuse(view, "Sample", "a sample is not deterministic; filter by a hash of a column instead")
        if kind == "Deduplicate" and part.keys().size() < part.child().output().size():
            raise refuse(
                view,
                "dropDuplicates over some columns",
                "rows have no order, so that any of them would stay; group by the columns, and take the others by "
                "min_by or max_by of one that orders the rows",
            )
        if kind in LIMITS and not is_ordered(part) and not drops_nothing(catalyst.plans, part):
            raise refuse(view, f"{part.nodeName()} without an order", "sort the rows first, by ORDER BY")
        if not catalyst.trees.items(part.children()):
            is_source = kind in LEAVES and attribute_id(part.output().apply(0)) in of_sources
            if not is_source and kind not in _ROWS_OF_ITS_OWN:
                raise refuse(view, str(part.nodeName()), "a view reads sources and views only; declare it as a source")
        if is_query and kind not in _OF_A_QUERY:
            raise refuse(view, str(part.nodeName()), "a view is one SELECT, which runs no program and writes nothing")
        for expression in catalyst.trees.items(part.expressions()):
            require_order(catalyst.trees, view, expression)
        check.check(part)
    TotalOrder(catalyst, view).of(plan)


def _own_parts(trees: Trees, plan: Plan, views: Collection[str]) -> Iterator[Plan]:
    """Yields every operator of a plan and of its subqueries, without those of the views that it reads."""
    return parts_of(trees, plan, lambda part: _is_view_of(part, views))


def _is_view_of(plan: Plan, names: Collection[str]) -> bool:
    return simple_name(plan) == "View" and plan.isTempView() and str(plan.desc().identifier().table()) in names


def require_order(trees: Trees, view: str, expression: Expression) -> None:
    """Refuses a function that takes any of the rows.

    Raises:
        NotIncrementalError: naming the function.
    """
    if takes_row_of_order(expression):
        for part in (*window_arguments(trees, expression), expression.windowSpec()):
            require_order(trees, view, part)
        return
    if simple_name(expression) in _OF_ANY_ROW:
        raise refuse(
            view,
            f"the aggregate function {expression.prettyName()}",
            "rows have no order; take min_by or max_by of a column that orders them",
        )
    for child in trees.items(expression.children()):
        require_order(trees, view, child)


def full_refusal(refusal: NotIncrementalError, apart: Sequence[str] = ()) -> NotIncrementalError:
    """The refusal of a view that could be recomputed, with all that allows it.

    Args:
        refusal: why it is not maintained by changes.
        apart: the sources whose rows are not stored.
    """
    stored = f", and {' and '.join(apart)} declared with materialize=True" if apart else ""
    return NotIncrementalError(f'{refusal}; or let it be recomputed as a whole, with on_full="allow"{stored}')
