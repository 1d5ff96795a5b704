"""Deliberate faults in the rules of views: rows that leave, and rows that tie."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_SUBTRACTION = "spark_bridge/aggregation/subtraction_plan.py"
_SUBTRACTED = "tests/spark_bridge/views/test_subtraction.py"

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
)
