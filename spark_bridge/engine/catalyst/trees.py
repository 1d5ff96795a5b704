"""Trees of Spark: reads and rebuilds plans and expressions of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession

from spark_bridge.engine.catalyst.elements import Element, Elements
from spark_bridge.engine.catalyst.scala import Scala

# Java objects have no Python types; these aliases give signatures a meaning.
Plan = Any
PhysicalPlan = Any
Expression = Any


class Trees:
    """Reads and rebuilds trees, logical plans, physical plans and expressions alike."""

    def __init__(self, spark: SparkSession, scala: Scala) -> None:
        self._scala, self._jvm = scala, scala.jvm
        self._elements = Elements(spark)
        self._pattern_set = self._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        self._patterns: dict[str, Any] = {}
        self._has_class: dict[str, Any] = {}

    def items(self, seq: Any) -> list[Any]:
        """The elements of a Scala Seq."""
        return self._elements.of(seq)

    def is_instance(self, java_object: Any, class_name: str) -> bool:
        """True if a Java object is of a class, named relative to `org.apache.spark.sql`."""
        return bool(self._scala.java_class(class_name).isInstance(java_object))

    def has_part(self, tree: Plan | Expression, class_name: str) -> bool:
        """True if a plan has an operator, or an expression has a part, of a class.

        One call searches the tree.
        """
        if class_name not in self._has_class:
            is_instance = self._method(
                self._jvm.java.lang.Class.forName("java.lang.Class"),
                "isInstance",
                self._jvm.java.lang.Boolean.TYPE,
                self._jvm.java.lang.Class.forName("java.lang.Object"),
            )
            self._has_class[class_name] = self._function(is_instance.bindTo(self._scala.java_class(class_name)))
        return bool(tree.exists(self._has_class[class_name]))

    def may_have(self, tree: Plan | Expression, pattern: str) -> bool:
        """True if a tree may have a part with one of Spark's patterns, such as LITERAL.

        An operator has the patterns of its expressions and of their subqueries.
        """
        if pattern not in self._patterns:
            self._patterns[pattern] = getattr(self._pattern_set, pattern)()
        return bool(tree.containsPattern(self._patterns[pattern]))

    def with_children(self, plan: Plan, children: Iterable[Plan]) -> Plan:
        return plan.withNewChildren(self._scala.seq(children))

    def leaves(self, plan: Plan | PhysicalPlan) -> list[Plan]:
        """The operators without children, except the operators of subqueries."""
        return self.items(plan.collectLeaves())

    def rewrite(self, expression: Expression, replace: Callable[[Expression], Expression | None]) -> Expression:
        """The expression with parts replaced, from the top: each part for which `replace` gives an expression."""
        replaced = replace(expression)
        if replaced is not None:
            return replaced
        children = self.items(expression.children())
        if not children:
            return expression
        return expression.withNewChildren(self._scala.seq([self.rewrite(child, replace) for child in children]))

    def substitute(self, expression: Expression, attributes: Mapping[int, Expression]) -> Expression:
        """The expression with the attributes of these ids replaced."""
        return self.rewrite(expression, lambda part: attributes.get(attribute_id(part)) if is_attribute(part) else None)

    def conjuncts(self, condition: Expression) -> list[Expression]:
        """The conditions of which one is the conjunction."""
        if simple_name(condition) != "And":
            return [condition]
        return [*self.conjuncts(condition.left()), *self.conjuncts(condition.right())]

    def _method(self, java_class: Any, name: str, result: Any, *arguments: Any) -> Any:
        """A handle on a public method of a class."""
        invoke = self._jvm.java.lang.invoke
        method_type = invoke.MethodType.methodType(result, *arguments)
        return invoke.MethodHandles.publicLookup().findVirtual(java_class, name, method_type)

    def _function(self, method: Any) -> Any:
        """A method of one argument as a Scala function."""
        function = self._jvm.java.lang.Class.forName("scala.Function1")
        return self._jvm.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(function, method)


def parts_of(trees: Trees, plan: Plan, is_end: Callable[[Plan], bool] = lambda part: False) -> Iterator[Plan]:
    """Yields every operator of a plan and of its subqueries, top down, the first child first.

    Args:
        is_end: whether the operators below an operator are left out.
    """
    plans = [plan]
    while plans:
        part = plans.pop()
        yield part
        if is_end(part):
            continue
        plans += reversed([*trees.items(part.children()), *trees.items(part.subqueries())])


def attribute_id(named: Expression) -> int:
    """The id of a named expression within a plan."""
    if isinstance(named, Element) and named.plan_id >= 0:
        return named.plan_id
    return int(named.exprId().id())


def is_attribute(expression: Expression) -> bool:
    """True if an expression is a plain reference to a column."""
    return simple_name(expression) == "AttributeReference"


def simple_name(java_object: Any) -> str:
    """The class of a Java object, without its package."""
    if isinstance(java_object, Element):
        return java_object.class_name
    return str(_simple_name_of(java_object._gateway_client)(java_object))


def join_type(join: Plan) -> str:
    """Spark's name of the type of a join."""
    return simple_name(join.joinType()).removesuffix("$")


@lru_cache(maxsize=1)
def _simple_name_of(client: Any) -> Any:
    """A function from an object to the name of its class: one call in place of three."""
    return JavaClass("org.apache.commons.lang3.ClassUtils", client).getSimpleName
