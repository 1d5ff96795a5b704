"""The column of a leaf that a column of a plan shows unchanged."""

from __future__ import annotations

from collections.abc import Mapping

from spark_bridge.engine.catalyst.trees import Plan, Trees, attribute_id, is_attribute, simple_name


def column_origin(trees: Trees, plan: Plan, number: int, leaves: Mapping[int, str]) -> tuple[str, str] | None:
    """The leaf and its column that an attribute has unchanged; None if it is computed.

    Args:
        plan: with the attribute in its output.
        number: the id of the attribute.
        leaves: id of a leaf's first attribute → the name of the leaf.
    """
    children = trees.items(plan.children())
    if not children:
        output = trees.items(plan.output())
        name = next((str(each.name()) for each in output if attribute_id(each) == number), None)
        return None if name is None else (leaves[attribute_id(output[0])], name)
    if len(children) != 1:
        return None
    if simple_name(plan) == "Project":
        named = next((each for each in trees.items(plan.projectList()) if attribute_id(each) == number), None)
        value = named.child() if named is not None and simple_name(named) == "Alias" else named
        if value is None or not is_attribute(value):
            return None
        number = attribute_id(value)
    return column_origin(trees, children[0], number, leaves)
