"""Expressions: builds Spark's expressions over the columns of a row."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

from spark_bridge.engine.catalyst.scala import Scala
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees, attribute_id


class Expressions:
    """Builds expressions.

    Attributes:
        classes: Spark's classes of expressions, whose constructors depend on the version of Spark.
    """

    def __init__(self, scala: Scala, trees: Trees) -> None:
        self._scala, self._trees, self._jvm = scala, trees, scala.jvm
        self.classes: Any = self._jvm.org.apache.spark.sql.catalyst.expressions
        self._types = self._jvm.org.apache.spark.sql.types
        self._no_metadata = self._types.Metadata.empty()

    def alias(self, expression: Expression, name: str) -> Expression:
        """The expression under a name and a fresh id."""
        fresh = self.classes.NamedExpression.newExprId()
        return self.classes.Alias(expression, name, fresh, self._scala.seq([]), self._scala.none(), self._scala.seq([]))

    def alias_as(self, expression: Expression, named: Expression) -> Expression:
        """The expression under the name and id of another expression."""
        return self.classes.Alias(
            expression, named.name(), named.exprId(), self._scala.seq([]), self._scala.none(), self._scala.seq([])
        )

    def without_metadata(self, attribute: Expression) -> Expression:
        """An attribute without what Spark notes of it."""
        return attribute.withMetadata(self._no_metadata)

    def when(self, condition: Expression, yes: Expression, no: Expression) -> Expression:
        return self.classes.If(condition, yes, no)

    def number(self, value: int) -> Expression:
        """A constant."""
        return self.classes.Literal(value, self._types.DataTypes.IntegerType)

    def null(self, data_type: Any) -> Expression:
        """Null, of one of Spark's types."""
        return self.classes.Literal(None, data_type)

    def normalised(self, expression: Expression) -> Expression:
        """The expression with -0.0 as 0.0 and one NaN for all NaNs, as in Spark's grouping."""
        return self._scala.singleton("catalyst.optimizer.NormalizeFloatingNumbers").normalize(expression)

    def hash_of(self, expressions: Iterable[Expression]) -> Expression:
        """A hash of values as 64 bits: equal for values that Spark's grouping takes for equal.  Maps have none."""
        return self.classes.XxHash64(self._scala.seq(map(self.normalised, expressions)))

    def java_object(self, value: Any) -> Expression:
        """A constant that is a Java object."""
        return self.classes.Literal(value, self._types.ObjectType(value.getClass()))

    def call(
        self, target: Expression, method: str, arguments: Iterable[Expression], data_type: Any | None = None
    ) -> Expression:
        """A call of a method of a Java object; it returns a value of a Spark type, or without one a Java object."""
        if data_type is None:
            data_type = self._types.ObjectType(self._jvm.java.lang.Class.forName("java.lang.Object"))
        propagate_null = returns_null = is_deterministic = True
        return self.classes.objects.Invoke(
            target,
            method,
            data_type,
            self._scala.seq(arguments),
            self._scala.seq([]),
            propagate_null,
            returns_null,
            is_deterministic,
        )

    def ascending(self, expression: Expression) -> Expression:
        """The expression as a key of an order, with nulls first."""
        direction = self._scala.singleton("catalyst.expressions.Ascending")
        return self.classes.SortOrder(expression, direction, direction.defaultNullOrdering(), self._scala.seq([]))

    def is_orderable(self, expression: Expression) -> bool:
        """True if the values of an expression have an order; maps do not."""
        # There is also `isOrderable(dataType)`; a StructType is a Seq too, and py4j would call either one.
        return bool(
            self._scala.singleton("catalyst.expressions.RowOrdering").isOrderable(self._scala.seq([expression]))
        )

    def decimal_difference(self, one: Expression, other: Expression) -> Expression:
        """The difference of two decimals of one type, in that type; null if it overflows."""
        data_type = one.dataType()
        negated = self.classes.UnaryMinus(other, False)
        difference = self.classes.DecimalAddNoOverflowCheck(one, negated, data_type)
        return self.classes.CheckOverflow(difference, data_type, True)

    def cast(self, expression: Expression, data_type: Any) -> Expression:
        """The expression, cast to another Spark type in UTC."""
        return self.classes.Cast(expression, data_type, self._scala.option("UTC"), self.legacy_mode)

    @property
    def timestamp_type(self) -> Any:
        """Spark's type of an instant: microseconds since 1970."""
        return self._types.DataTypes.TimestampType

    @property
    def double_type(self) -> Any:
        """Spark's type of a double."""
        return self._types.DataTypes.DoubleType

    @property
    def long_type(self) -> Any:
        """Spark's type of a 64-bit integer."""
        return self._types.DataTypes.LongType

    def _lambda_variable(self, name: str, data_type: Any) -> tuple[Expression, Any]:
        """A variable of a lambda function, and its value, an AtomicReference."""
        number = self._scala.singleton("catalyst.expressions.NamedExpression").newExprId()
        value = self._jvm.java.util.concurrent.atomic.AtomicReference()
        return self.classes.NamedLambdaVariable(name, data_type, False, number, value), value

    def variable(self, name: str, data_type: Any) -> tuple[Expression, Any]:
        """An expression that is never null, and its value, an AtomicReference, which the optimizer does not see.

        A job uses the value set before its start.
        """
        variable, value = self._lambda_variable(name, data_type)
        # Alone, the variable would refer to an attribute; the function has it as an argument.
        return self.classes.LambdaFunction(variable, self._scala.seq([variable]), False), value

    def copied(self, binary: Expression) -> Expression:
        """The same bytes in memory of their own."""
        return self.classes.Concat(self._scala.seq([binary]))

    def subquery(self, plan: Plan) -> Expression:
        """A subquery of one value, without correlation."""
        fresh, nothing = self.classes.NamedExpression.newExprId(), self._scala.seq([])
        return self.classes.ScalarSubquery(plan, nothing, fresh, nothing, self._scala.none(), self._scala.none())

    def all_of(self, conditions: Iterable[Expression]) -> Expression:
        """The conjunction of conditions, of which there is one at least."""
        return reduce(self.classes.And, conditions)

    def array_of(self, rows: Plan) -> Expression:
        """The rows of a LocalRelation as a constant array of structs."""
        return self._constant_array(rows.data(), rows.schema(), has_nulls=False)

    def constants(self, values: Any, data_type: Any) -> list[Expression]:
        """Spark's own values (a Seq) of a type, each as a constant; null among them."""
        array = self._constant_array(values, data_type, has_nulls=True)
        return [self.classes.GetArrayItem(array, self.number(at), False) for at in range(values.size())]

    def _constant_array(self, values: Any, data_type: Any, *, has_nulls: bool) -> Expression:
        array = self._jvm.org.apache.spark.sql.catalyst.util.GenericArrayData(values)
        return self.classes.Literal(array, self._types.ArrayType(data_type, has_nulls))

    def fulfilling(self, rows: Expression, attributes: Any, condition: Expression) -> Expression:
        """The structs of an array whose fields, in place of these attributes (a Seq), fulfil a condition."""
        classes, kind = self.classes, rows.dataType().elementType()
        each, _ = self._lambda_variable("row", kind)
        fields = {
            attribute_id(attribute): classes.GetStructField(each, position, self._scala.option(None))
            for position, attribute in enumerate(self._trees.items(attributes))
        }
        fulfils = classes.LambdaFunction(self._trees.substitute(condition, fields), self._scala.seq([each]), False)
        return classes.ArrayFilter(rows, fulfils)

    @property
    def legacy_mode(self) -> Any:
        return self._scala.singleton("catalyst.expressions.EvalMode").LEGACY()
