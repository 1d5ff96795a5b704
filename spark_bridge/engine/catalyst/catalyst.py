"""Catalyst from Python: builds and inspects Spark's plans and expressions over py4j.

A call costs about 0.05 ms, so a plan is inspected and rebuilt once, by the analysis of a view; an epoch only replaces
its leaves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, reduce
from typing import Any

import pyarrow as pa
from py4j.java_gateway import JavaClass
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import DataType, StructField, StructType, _parse_datatype_json_string

from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, frame_of_table, spark_schema
from spark_bridge.engine.catalyst.elements import Element, Elements
from spark_bridge.engine.catalyst.java_classes import java_names

# Java objects have no Python types; these aliases give signatures a meaning.
Plan = Any
PhysicalPlan = Any
Expression = Any


class Catalyst:
    """The part of Catalyst that view maintenance needs, for one session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._jvm = java_names(spark)
        self._session: Any = spark._jsparkSession
        self._elements = Elements(spark)
        self._to_seq = self._jvm.PythonUtils.toSeq
        self._no_elements, self._option = self._to_seq([]), self._jvm.scala.Option
        self._no_value = self._option.empty()
        self._pattern_set = self._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        self._patterns: dict[str, Any] = {}
        self._classes: dict[str, Any] = {}
        self._singletons: dict[str, Any] = {}
        self._has_class: dict[str, Any] = {}
        catalyst = self._jvm.org.apache.spark.sql.catalyst
        self._plans = catalyst.plans.logical
        self.expressions: Any = catalyst.expressions
        self.execution: Any = self._jvm.org.apache.spark.sql.execution
        self._types = self._jvm.org.apache.spark.sql.types
        self._no_metadata = self._types.Metadata.empty()
        self._local_relation, self._repartition = self._plans.LocalRelation, self._plans.Repartition
        self._set_active = self._jvm.org.apache.spark.sql.SparkSession.setActiveSession
        self._prepare = self.execution.QueryExecution.prepareExecutedPlan
        self._state: Any = self._session.sessionState()
        self._without_commands: Any = self.execution.CommandExecutionMode.SKIP()
        self._others: dict[int, Catalyst] = {}

    def of_session_with(self, shuffle_partitions: int) -> Catalyst:
        """That of another session, whose shuffles have so many partitions; the same one each time."""
        if shuffle_partitions not in self._others:
            session = self.spark.newSession()
            session.conf.set("spark.sql.shuffle.partitions", str(shuffle_partitions))
            self._others[shuffle_partitions] = Catalyst(session)
        return self._others[shuffle_partitions]

    # Scala's collections

    def seq(self, elements: Iterable[Any]) -> Any:
        """A Scala Seq."""
        listed = list(elements)
        return self._to_seq(listed) if listed else self._no_elements

    def none(self) -> Any:
        """Scala's None."""
        return self._no_value

    def option(self, value: Any | None) -> Any:
        """Scala's Option of a value."""
        return self._option.apply(value)

    def singleton(self, class_name: str) -> Any:
        """A Scala object, named relative to `org.apache.spark.sql`."""
        if class_name not in self._singletons:
            self._singletons[class_name] = self._class(f"{class_name}$").getField("MODULE$").get(None)
        return self._singletons[class_name]

    def items(self, seq: Any) -> list[Any]:
        """The elements of a Scala Seq."""
        return self._elements.of(seq)

    def is_instance(self, java_object: Any, class_name: str) -> bool:
        """Whether a Java object is of a class, named relative to `org.apache.spark.sql`."""
        return bool(self._class(class_name).isInstance(java_object))

    def has_part(self, tree: Plan | Expression, class_name: str) -> bool:
        """Whether a plan has an operator of a class, or an expression a part: the tree is searched in one call."""
        if class_name not in self._has_class:
            is_instance = self._method(
                self._jvm.java.lang.Class.forName("java.lang.Class"),
                "isInstance",
                self._jvm.java.lang.Boolean.TYPE,
                self._jvm.java.lang.Class.forName("java.lang.Object"),
            )
            self._has_class[class_name] = self._function(is_instance.bindTo(self._class(class_name)))
        return bool(tree.exists(self._has_class[class_name]))

    def may_have(self, tree: Plan | Expression, pattern: str) -> bool:
        """Whether a tree may have a part with one of Spark's patterns, as LITERAL.

        An operator has the patterns of its expressions and of their subqueries.
        """
        if pattern not in self._patterns:
            self._patterns[pattern] = getattr(self._pattern_set, pattern)()
        return bool(tree.containsPattern(self._patterns[pattern]))

    def _class(self, class_name: str) -> Any:
        if class_name not in self._classes:
            self._classes[class_name] = self._jvm.java.lang.Class.forName(f"org.apache.spark.sql.{class_name}")
        return self._classes[class_name]

    # Expressions

    def column(self, expression: Expression) -> Column:
        """The expression as a Column, for pyspark's functions."""
        return Column(self._jvm.org.apache.spark.sql.Column(expression))

    @staticmethod
    def expression(column: Column) -> Expression:
        return column._jc.expr()

    def alias(self, expression: Expression, name: str) -> Expression:
        """The expression under a name and a fresh id."""
        fresh = self.expressions.NamedExpression.newExprId()
        return self.expressions.Alias(expression, name, fresh, self.seq([]), self.none(), self.seq([]))

    def alias_as(self, expression: Expression, named: Expression) -> Expression:
        """The expression under the name and id of another one."""
        return self.expressions.Alias(expression, named.name(), named.exprId(), self.seq([]), self.none(), self.seq([]))

    def without_metadata(self, attribute: Expression) -> Expression:
        """An attribute without what Spark notes of it."""
        return attribute.withMetadata(self._no_metadata)

    def attributes(self, schema: pa.Schema) -> list[Expression]:
        """Fresh attributes for the fields of an Arrow schema."""
        struct = self._session.parseDataType(spark_schema(schema).json())
        return self.items(self._jvm.org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(struct))

    def data_type(self, expression: Expression) -> DataType:
        """The type of an expression, as pyspark's class."""
        return _parse_datatype_json_string(expression.dataType().json())

    def arrow_type(self, expression: Expression) -> pa.DataType:
        """The type of an expression, as Arrow's."""
        return arrow_schema(StructType([StructField("value", self.data_type(expression))])).field(0).type

    def when(self, condition: Expression, yes: Expression, no: Expression) -> Expression:
        return self.expressions.If(condition, yes, no)

    def number(self, value: int) -> Expression:
        """A constant."""
        return self.expressions.Literal(value, self._types.DataTypes.IntegerType)

    def null(self, data_type: Any) -> Expression:
        """Null, of one of Spark's types."""
        return self.expressions.Literal(None, data_type)

    def normalised(self, expression: Expression) -> Expression:
        """The expression with -0.0 as 0.0 and one NaN for all NaNs, as in Spark's grouping."""
        return self.singleton("catalyst.optimizer.NormalizeFloatingNumbers").normalize(expression)

    def hash_of(self, expressions: Iterable[Expression]) -> Expression:
        """A hash of values as 64 bits: equal for values that Spark's grouping takes for equal.  Maps have none."""
        return self.expressions.XxHash64(self.seq(map(self.normalised, expressions)))

    def java_object(self, value: Any) -> Expression:
        """A constant that is a Java object."""
        return self.expressions.Literal(value, self._types.ObjectType(value.getClass()))

    def call(
        self, target: Expression, method: str, arguments: Iterable[Expression], data_type: Any | None = None
    ) -> Expression:
        """A call of a method of a Java object; it returns a value of a Spark type, or without one a Java object."""
        if data_type is None:
            data_type = self._types.ObjectType(self._jvm.java.lang.Class.forName("java.lang.Object"))
        propagate_null = returns_null = is_deterministic = True
        return self.expressions.objects.Invoke(
            target, method, data_type, self.seq(arguments), self.seq([]), propagate_null, returns_null, is_deterministic
        )

    def ascending(self, expression: Expression) -> Expression:
        """The expression as a key of an order, with nulls first."""
        direction = self.singleton("catalyst.expressions.Ascending")
        return self.expressions.SortOrder(expression, direction, direction.defaultNullOrdering(), self.seq([]))

    def is_orderable(self, expression: Expression) -> bool:
        """Whether the values of an expression have an order; maps have none."""
        # There is also `isOrderable(dataType)`; a StructType is a Seq too, and py4j would call either one.
        return bool(self.singleton("catalyst.expressions.RowOrdering").isOrderable(self.seq([expression])))

    def over(
        self, function: Expression, spec: Expression, order: Iterable[Expression], frame: Expression
    ) -> Expression:
        """A function over the partitions of a window's specification, with this order and frame."""
        expressions = self.expressions
        ordered = expressions.WindowSpecDefinition(spec.partitionSpec(), self.seq(order), frame)
        return expressions.WindowExpression(function, ordered)

    def count_of_rows(self) -> Expression:
        """The call `count(1)`."""
        return self.count(self.number(1))

    def count(self, value: Expression, condition: Expression | None = None, *, is_distinct: bool = False) -> Expression:
        """The call `count(value) FILTER (WHERE condition)`, or `count(DISTINCT value)`."""
        function = self.expressions.aggregate.Count(self.seq([value]))
        return function.toAggregateExpression(is_distinct, self.option(condition))

    def exact_sum(self, integer: Expression, condition: Expression | None = None) -> Expression:
        """The call `sum(CAST(integer AS decimal(20, 0))) FILTER (WHERE condition)`, which does not overflow."""
        digits = self._types.DecimalType(20, 0)
        function = self.expressions.aggregate.Sum(self.cast(integer, digits), self._legacy)
        return function.toAggregateExpression(False, self.option(condition))

    def decimal_difference(self, one: Expression, other: Expression) -> Expression:
        """The difference of two decimals of one type, in that type; null if it overflows."""
        data_type = one.dataType()
        negated = self.expressions.UnaryMinus(other, False)
        difference = self.expressions.DecimalAddNoOverflowCheck(one, negated, data_type)
        return self.expressions.CheckOverflow(difference, data_type, True)

    @property
    def _legacy(self) -> Any:
        return self.singleton("catalyst.expressions.EvalMode").LEGACY()

    def cast(self, expression: Expression, data_type: Any) -> Expression:
        """The expression, cast to another Spark type in UTC."""
        return self.expressions.Cast(expression, data_type, self.option("UTC"), self._legacy)

    @property
    def timestamp_type(self) -> Any:
        """Spark's type of an instant: microseconds since 1970."""
        return self._types.DataTypes.TimestampType

    def shared_number(self) -> Any:
        """An array with one number for a plan; a job uses the number set before its start."""
        return self._jvm.java.util.concurrent.atomic.AtomicLongArray(1)

    def copied(self, binary: Expression) -> Expression:
        """The same bytes in memory of their own."""
        return self.expressions.Concat(self.seq([binary]))

    def rewrite(self, expression: Expression, replace: Callable[[Expression], Expression | None]) -> Expression:
        """The expression with parts replaced, from the top: each part for which `replace` gives an expression."""
        replaced = replace(expression)
        if replaced is not None:
            return replaced
        children = self.items(expression.children())
        if not children:
            return expression
        return expression.withNewChildren(self.seq([self.rewrite(child, replace) for child in children]))

    def substitute(self, expression: Expression, attributes: Mapping[int, Expression]) -> Expression:
        """The expression with the attributes of these ids replaced."""
        return self.rewrite(expression, lambda part: attributes.get(attribute_id(part)) if is_attribute(part) else None)

    def subquery(self, plan: Plan) -> Expression:
        """A subquery of one value, without correlation."""
        fresh, nothing = self.expressions.NamedExpression.newExprId(), self.seq([])
        return self.expressions.ScalarSubquery(plan, nothing, fresh, nothing, self.none(), self.none())

    def all_of(self, conditions: Iterable[Expression]) -> Expression:
        """The conjunction of conditions, of which there is one at least."""
        return reduce(self.expressions.And, conditions)

    def conjuncts(self, condition: Expression) -> list[Expression]:
        """The conditions of which one is the conjunction."""
        if simple_name(condition) != "And":
            return [condition]
        return [*self.conjuncts(condition.left()), *self.conjuncts(condition.right())]

    # Plans

    def with_expressions(self, plan: Plan, rewrite: Callable[[Expression], Expression]) -> Plan | None:
        """The operator with its expressions rewritten; None for one that cannot be made again."""

        def all_rewritten(expressions: Any) -> list[Expression]:
            return [rewrite(each) for each in self.items(expressions)]

        match simple_name(plan):
            case "Project":
                return self.project(all_rewritten(plan.projectList()), plan.child())
            case "Filter":
                return self.filter(rewrite(plan.condition()), plan.child())
            case "Aggregate":
                grouping = all_rewritten(plan.groupingExpressions())
                return self.aggregate(grouping, all_rewritten(plan.aggregateExpressions()), plan.child())
            case "Join":
                return self.join(plan, rewrite(plan.condition().get()))
            case "Generate":
                return self.generate(plan, rewrite(plan.generator()), plan.child())
            case "Window":
                return self.window(plan, all_rewritten(plan.windowExpressions()), plan.child())
            case _:
                return None

    def project(self, expressions: Iterable[Expression], child: Plan) -> Plan:
        return self._plans.Project(self.seq(expressions), child)

    def filter(self, condition: Expression, child: Plan) -> Plan:
        return self._plans.Filter(condition, child)

    def semi_join(self, rows: Plan, others: Plan, pairs: Iterable[tuple[Expression, Expression]]) -> Plan:
        """The rows that have a partner in others: in each pair, both expressions are equal or null."""
        equal = [self.expressions.EqualNullSafe(one, other) for one, other in pairs]
        condition = reduce(self.expressions.And, equal)
        return self.join_of(self.singleton("catalyst.plans.LeftSemi"), rows, others, condition)

    def join_of(self, kind: Any, left: Plan, right: Plan, condition: Expression | None) -> Plan:
        """A Join of a type of Spark's."""
        no_hint = self.singleton("catalyst.plans.logical.JoinHint").NONE()
        return self._plans.Join(left, right, kind, self.option(condition), no_hint)

    def without_duplicates(self, plan: Plan) -> Plan:
        """The aggregation that equals a Distinct, or a Deduplicate over all columns."""
        output = plan.child().output()
        return self._plans.Aggregate(output, output, plan.child())

    def generate(self, like: Plan, generator: Expression, child: Plan) -> Plan:
        """A Generate over another child, otherwise as `like`."""
        return self._plans.Generate(
            generator, like.unrequiredChildIndex(), like.outer(), like.qualifier(), like.generatorOutput(), child
        )

    def inline(self, rows: Expression, output: Any, child: Plan, *, outer: bool) -> Plan:
        """A Generate that puts each struct of an array beside its row; with `outer`, nulls for an empty array.

        Args:
            rows: the array, over the rows of the child.
            output: the attributes of the structs' fields (a Seq).
        """
        generator = self.expressions.Inline(rows)
        return self._plans.Generate(generator, self.seq([]), outer, self.option(None), output, child)

    def array_of(self, rows: Plan) -> Expression:
        """The rows of a LocalRelation as a constant array of structs."""
        return self._constant_array(rows.data(), rows.schema(), has_nulls=False)

    def constants(self, values: Any, data_type: Any) -> list[Expression]:
        """Spark's own values (a Seq) of a type, each as a constant; null among them."""
        array = self._constant_array(values, data_type, has_nulls=True)
        return [self.expressions.GetArrayItem(array, self.number(at), False) for at in range(values.size())]

    def _constant_array(self, values: Any, data_type: Any, *, has_nulls: bool) -> Expression:
        array = self._jvm.org.apache.spark.sql.catalyst.util.GenericArrayData(values)
        return self.expressions.Literal(array, self._types.ArrayType(data_type, has_nulls))

    def fulfilling(self, rows: Expression, attributes: Any, condition: Expression) -> Expression:
        """The structs of an array whose fields, in place of these attributes (a Seq), fulfil a condition."""
        expressions, kind = self.expressions, rows.dataType().elementType()
        number = self.singleton("catalyst.expressions.NamedExpression").newExprId()
        value = self._jvm.java.util.concurrent.atomic.AtomicReference()
        each = expressions.NamedLambdaVariable("row", kind, False, number, value)
        fields = {
            attribute_id(attribute): expressions.GetStructField(each, position, self.option(None))
            for position, attribute in enumerate(self.items(attributes))
        }
        fulfils = expressions.LambdaFunction(self.substitute(condition, fields), self.seq([each]), False)
        return expressions.ArrayFilter(rows, fulfils)

    def expand(self, projections: Iterable[Iterable[Expression]], output: Any, child: Plan) -> Plan:
        """Each row of a child once for each projection, under the given attributes (a Seq)."""
        return self._plans.Expand(self.seq([self.seq(each) for each in projections]), output, child)

    def join(self, like: Plan, condition: Expression) -> Plan:
        """A Join on another condition, otherwise as `like`."""
        return self._plans.Join(like.left(), like.right(), like.joinType(), self.option(condition), like.hint())

    def sort(self, order: Iterable[Expression], child: Plan, *, of_partitions: bool = False) -> Plan:
        """All rows in an order, or those of each partition."""
        return self._plans.Sort(self.seq(order), not of_partitions, child)

    def partitioned(self, keys: Iterable[Expression], child: Plan) -> Plan:
        """The child's rows, those with equal keys in one partition."""
        by_default = self.none()
        return self._plans.RepartitionByExpression(self.seq(keys), child, by_default, by_default)

    def window(
        self,
        like: Plan,
        expressions: Iterable[Expression],
        child: Plan,
        order: Iterable[Expression] | None = None,
        partitions: Iterable[Expression] | None = None,
    ) -> Plan:
        """A Window of these expressions over the partitions of `like`, in its order, or over others, or in another."""
        ordered = like.orderSpec() if order is None else self.seq(order)
        keys = like.partitionSpec() if partitions is None else self.seq(partitions)
        return self._plans.Window(self.seq(expressions), keys, ordered, child)

    def aggregate(self, grouping: Iterable[Expression], expressions: Iterable[Expression], child: Plan) -> Plan:
        return self._plans.Aggregate(self.seq(grouping), self.seq(expressions), child)

    def one_partition(self, child: Plan) -> Plan:
        """The child's rows in one partition, without a shuffle."""
        return self._repartition(1, False, child)

    def local_relation(self, output: Any, data: Any = None) -> Plan:
        """Rows of the driver, under the given attributes (a Seq); no rows without `data`."""
        return self._local_relation(output, self.seq([]) if data is None else data, False)

    def leaf(self, output: Any, frame: DataFrame) -> Plan:
        """The frame's rows as a leaf under other attributes (a Seq) of the same names and types.

        An attribute that the frame lacks is null; the columns of the frame are in the order of the attributes.
        """
        attributes, names = self.items(output), set(frame.columns)
        present = [each for each in attributes if each.name() in names]
        rows = self._leaf(self.seq(present), frame)
        if len(present) == len(attributes):
            return rows
        values = [
            each if each.name() in names else self.alias_as(self.null(each.dataType()), each) for each in attributes
        ]
        return self.project(values, rows)

    def unreadable_rows(self, output: Any) -> Plan:
        """A leaf with the given attributes (a Seq) that can be analysed; a query that reads it fails in the driver.

        The message of its error holds `UNREADABLE`.
        """
        context = self._jvm.org.apache.spark.api.java.JavaSparkContext(self._session.sparkContext())
        # Spark finds the mistake when it asks for the partitions, before any job.
        mismatched = context.emptyRDD().zip(context.parallelize(self._jvm.java.util.ArrayList(), 1)).rdd()
        unknown = self._jvm.org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning(0)
        return self._logical_rdd(output, mismatched, unknown)

    def unknown_rows(self, output: Any, frame: DataFrame) -> Plan:
        """The frame's rows under other attributes (a Seq), as a leaf whose rows the optimizer does not see."""
        execution = frame._jdf.queryExecution()
        return self._logical_rdd(output, execution.toRdd(), execution.executedPlan().outputPartitioning())

    def compiled(self, expressions: Any, rows: Any) -> Any:
        """A Scala function from an internal row to an internal row, whose memory the next call uses again.

        Args:
            expressions: a Seq of expressions over the rows.
            rows: the attributes of the rows (a Seq).
        """
        return self.expressions.UnsafeProjection.create(expressions, rows)

    def compiled_condition(self, condition: Expression, rows: Any) -> Any:
        """Spark's predicate of an internal row.  Arguments as for `compiled`."""
        return self.singleton("catalyst.expressions.Predicate").create(condition, rows)

    def rows_to_come(self, output: Any) -> PhysicalPlan:
        """A physical leaf with the given attributes (a Seq): one partition without rows, in place of which others come.

        Its RDD reads the partition that it is asked for.
        """
        context = self._jvm.org.apache.spark.api.java.JavaSparkContext(self._session.sparkContext())
        rdd = context.parallelize(self._jvm.java.util.ArrayList(), 1).rdd()
        single = self.singleton("catalyst.plans.physical.SinglePartition")
        return self.execution.RDDScanExec(output, rdd, "rows to come", single, self._no_elements)

    def _method(self, java_class: Any, name: str, result: Any, *arguments: Any) -> Any:
        """A handle on a public method of a class."""
        invoke = self._jvm.java.lang.invoke
        method_type = invoke.MethodType.methodType(result, *arguments)
        return invoke.MethodHandles.publicLookup().findVirtual(java_class, name, method_type)

    def _function(self, method: Any) -> Any:
        """A method of one argument as a Scala function."""
        function = self._jvm.java.lang.Class.forName("scala.Function1")
        return self._jvm.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(function, method)

    def _leaf(self, output: Any, frame: DataFrame) -> Plan:
        rows = analysed(frame)
        if simple_name(rows) == "LocalRelation":
            return self.local_relation(output, rows.data())
        if simple_name(rows) == "LogicalRDD":
            return self._logical_rdd(output, rows.rdd(), rows.outputPartitioning())
        return self.unknown_rows(output, frame)

    def _logical_rdd(self, output: Any, rdd: Any, partitioning: Any) -> Plan:
        return self.execution.LogicalRDD(
            output, rdd, partitioning, self.seq([]), False, self._session, self.none(), self.none()
        )

    def with_children(self, plan: Plan, children: Iterable[Plan]) -> Plan:
        return plan.withNewChildren(self.seq(children))

    def over_leaf(self, plan: Plan | PhysicalPlan, leaf: Plan | PhysicalPlan) -> Plan | PhysicalPlan:
        """The plan over another leaf in place of its only one."""
        children = self.items(plan.children())
        return self.with_children(plan, [self.over_leaf(each, leaf) for each in children]) if children else leaf

    def over_unseen_rows(self, plan: Plan) -> Plan:
        """The plan over a leaf whose rows the optimizer does not see: one without rows would make the result empty."""
        [leaf] = self.leaves(plan)
        empty = frame_of_table(self.spark, self.arrow_schema(leaf).empty_table())
        return self.over_leaf(plan, self.unknown_rows(leaf.output(), empty))

    def inline_common_tables(self, plan: Plan) -> Plan:
        """The plan with every WITH expanded at its uses."""
        return self._jvm.org.apache.spark.sql.catalyst.optimizer.InlineCTE(True).apply(plan)

    def optimized(self, rule: str, plan: Plan) -> Plan:
        """The plan after one rule of Spark's optimizer."""
        return self.singleton(f"catalyst.optimizer.{rule}").apply(plan)

    def leaves(self, plan: Plan | PhysicalPlan) -> list[Plan]:
        """The operators without children, those of subqueries left out."""
        return self.items(plan.collectLeaves())

    def equal_keys(self, join: Plan) -> tuple[list[Expression], list[Expression]] | None:
        """The expressions of the left and of the right side whose equality a join asks for; None without them.

        A null has no partner.  An equality that holds for nulls too comes as expressions that are never null.
        """
        found = self.singleton("catalyst.planning.ExtractEquiJoinKeys").unapply(join)
        return (self.items(found.get()._2()), self.items(found.get()._3())) if found.isDefined() else None

    def prune_columns(self, plan: Plan) -> Plan:
        """The plan with unused columns projected away as early as possible."""
        return self._jvm.org.apache.spark.sql.catalyst.optimizer.ColumnPruning.apply(plan)

    def parse(self, query: str) -> Plan:
        """The plan of a query, with the ANSI mode and the time zone of the session."""
        self._set_active(self._session)
        return self._session.sessionState().sqlParser().parsePlan(query)

    def analyse(self, plan: Plan) -> Plan:
        """The analysed plan.  Commands are not executed."""
        execution = self._execution(plan)
        execution.assertAnalyzed()
        return execution.analyzed()

    def _execution(self, plan: Plan) -> Any:
        return self._state.executePlan(plan, self._without_commands)

    def struct_type(self, plan: Plan) -> StructType:
        """The columns of a plan's result."""
        return StructType.fromJson(json.loads(plan.schema().json()))

    def arrow_schema(self, plan: Plan) -> pa.Schema:
        """The columns of a plan's result, as an Arrow schema."""
        return arrow_schema(self.struct_type(plan))

    def shuffled(self, keys: Any, partitions: int, rows: PhysicalPlan) -> PhysicalPlan:
        """The rows in so many partitions, those with equal keys (a Seq) in one."""
        partitioning = self._jvm.org.apache.spark.sql.catalyst.plans.physical.HashPartitioning(keys, partitions)
        origin = self.singleton("execution.exchange.ENSURE_REQUIREMENTS")
        return self.execution.exchange.ShuffleExchangeExec(partitioning, rows, origin, self.none())

    def physical_plan(self, plan: Plan) -> PhysicalPlan:
        """The physical plan of an analysed plan, before Spark prepares it for execution."""
        self._set_active(self._session)
        return self._execution(plan).sparkPlan()

    def prepared(self, plan: PhysicalPlan) -> PhysicalPlan:
        """A physical plan, prepared by Spark for execution."""
        return self._prepare(self._session, plan)

    def rows_of_physical(self, plan: PhysicalPlan) -> Any:
        """Runs a physical plan as a job.  Returns an iterator of its rows, in the driver."""
        return self.prepared(plan).executeCollectIterator()._2()

    def frame(self, plan: Plan) -> DataFrame:
        """A DataFrame that runs an analysed plan."""
        return DataFrame(self._jvm.org.apache.spark.sql.Dataset.ofRows(self._session, plan), self.spark)


UNREADABLE = "Can't zip RDDs with unequal numbers of partitions: List(0, 1)"
"""Part of the message of the error of a query that reads `Catalyst.unreadable_rows`."""


def analysed(frame: DataFrame) -> Plan:
    """The analysed plan of a DataFrame."""
    return frame._jdf.queryExecution().analyzed()


def parts_of(catalyst: Catalyst, plan: Plan, is_end: Callable[[Plan], bool] = lambda part: False) -> Iterator[Plan]:
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
        plans += reversed([*catalyst.items(part.children()), *catalyst.items(part.subqueries())])


def attribute_id(named: Expression) -> int:
    """The id of a named expression within a plan."""
    if isinstance(named, Element) and named.plan_id >= 0:
        return named.plan_id
    return int(named.exprId().id())


def is_attribute(expression: Expression) -> bool:
    """Whether an expression is a plain reference to a column."""
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
