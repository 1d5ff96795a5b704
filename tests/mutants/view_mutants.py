"""Deliberate faults in the rules of views: rows that leave, rows that tie, and views over views."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_SUBTRACTION = "spark_bridge/aggregation/subtraction_plan.py"
_SUBTRACTED = "tests/spark_bridge/views/test_subtraction.py"
_FOLLOWED = "tests/spark_bridge/views/test_derived_views.py"

VIEW_MUTANTS = (
    Mutant(
        "rows that leave are counted once more",
        _SUBTRACTION,
        (("return [stored[0] - gone[0]]", "return [stored[0] + gone[0]]"),),
        shown_by=_SUBTRACTED,
    ),
    Mutant(
        "a group does not end with its last row",
        _SUBTRACTION,
        (("pc.greater(left.column(self._rows_column), 0)", "pc.greater(left.column(self._rows_column), -1)"),),
        shown_by=_SUBTRACTED,
    ),
    Mutant(
        "a sum of no values is zero",
        _SUBTRACTION,
        (("F.when(count == 0, initial[0])", "F.when(count < 0, initial[0])"),),
        shown_by=_SUBTRACTED,
    ),
    Mutant(
        "a sum that has overflowed is subtracted",
        _SUBTRACTION,
        (("self._lost.append((count > 0) & left.isNull())", "self._lost.append((count < 0) & left.isNull())"),),
        shown_by=_SUBTRACTED,
    ),
    Mutant(
        "an average of integers is subtracted as doubles",
        _SUBTRACTION,
        (('left = self._left(self._position(companions[0]))[0].cast("double")', "left = stored[0] - gone[0]"),),
        shown_by=_SUBTRACTED,
    ),
    Mutant(
        "groups without old rows are not merged",
        "spark_bridge/aggregation/aggregate_plan.py",
        (("stored.filter(is_left_alone)", "stored.filter(is_left_alone).slice(0, 0)"),),
        shown_by=_SUBTRACTED,
    ),
    Mutant(
        "tied rows have the order in which they come",
        "spark_bridge/analysis/total_order.py",
        (("order += self._ties(order, catalyst.items(plan.child().output()))", "order += []"),),
        shown_by="tests/spark_bridge/analysis/test_total_order.py",
    ),
    Mutant(
        "a view over a view runs beside its parent",
        "spark_bridge/views/derived_views.py",
        (("depth[name] = 1 + max(", "depth[name] = 1 + 0 * max("),),
        shown_by=_FOLLOWED,
    ),
    Mutant(
        "rows leave a view twice in an epoch with a correction",
        "spark_bridge/views/changes.py",
        (("_without(later.gone, self.keys)", "later.gone"),),
        shown_by=_FOLLOWED,
    ),
    Mutant(
        "the rows before and after a change are exchanged",
        "spark_bridge/views/aggregate_view.py",
        (
            (
                "ChangeSet(keys.combine_chunks(), before, merged.result.select(before.schema.names))",
                "ChangeSet(keys.combine_chunks(), merged.result.select(before.schema.names), before)",
            ),
        ),
        shown_by=_FOLLOWED,
    ),
    Mutant(
        "a row stays when its row of the parent leaves",
        "spark_bridge/views/derived_rows.py",
        (("self._table.exchange(origins, new)", "self._table.exchange(origins.slice(0, 0), new)"),),
        shown_by=_FOLLOWED,
    ),
    Mutant(
        "changes beside the computation of a view over views are lost",
        "spark_bridge/views/derived_views.py",
        (("            unshown.keep(parents)\n", ""),),
        shown_by=_FOLLOWED,
    ),
    Mutant(
        "a view goes on when its parent has failed",
        "spark_bridge/views/recorded_views.py",
        (("self._failures.keys() & {*planned.plan.parents}", "self._failures.keys() & set[str]()"),),
        shown_by=_FOLLOWED,
    ),
    Mutant(
        "views over views do not follow",
        "spark_bridge/views/recorded_views.py",
        (("self._follow(epoch, changes(), follow)", "self._follow(epoch, {}, follow)"),),
    ),
)
