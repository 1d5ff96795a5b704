"""Each operator is in the registry, and has a room, a plan and rows of its own."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

from spark_bridge import operators
from spark_bridge.operators.operator import Operator
from spark_bridge.operators.registry import OPERATORS, Operators


def test_every_operator_of_a_room_is_in_the_registry() -> None:
    for module in walk_packages(operators.__path__, f"{operators.__name__}."):
        import_module(module.name)
    rooms = [each.__module__.split(".")[2] for each in OPERATORS]
    assert {*Operator.__subclasses__()} == {*OPERATORS} and len({*rooms}) == len(OPERATORS)


def test_operators_share_neither_plans_nor_texts() -> None:
    plans = [each.plan_type for each in OPERATORS]
    rows = [*Operators().inner_rows]
    assert len({*plans}) == len(plans)
    assert len({each.text for each in rows}) == len({each.whose for each in rows}) == len(rows)
