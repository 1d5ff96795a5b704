"""Types and schemas: of Spark's plans and expressions, as pyspark's and Arrow's classes, and back."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructField, StructType, _parse_datatype_json_string

from spark_bridge.engine.catalyst.arrow_frames import arrow_schema, spark_schema
from spark_bridge.engine.catalyst.scala import Scala
from spark_bridge.engine.catalyst.trees import Expression, Plan, Trees


class Schemas:
    """Converts types and schemas."""

    def __init__(self, spark: SparkSession, scala: Scala, trees: Trees) -> None:
        self._session: Any = spark._jsparkSession
        self._jvm, self._trees = scala.jvm, trees

    def attributes(self, schema: pa.Schema) -> list[Expression]:
        """Fresh attributes for the fields of an Arrow schema."""
        struct = self._session.parseDataType(spark_schema(schema).json())
        return self._trees.items(self._jvm.org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(struct))

    def data_type(self, expression: Expression) -> DataType:
        """The type of an expression, as pyspark's class."""
        return _parse_datatype_json_string(expression.dataType().json())

    def arrow_type(self, expression: Expression) -> pa.DataType:
        """The type of an expression, as Arrow's."""
        return arrow_schema(StructType([StructField("value", self.data_type(expression))])).field(0).type

    def struct_type(self, plan: Plan) -> StructType:
        """The columns of a plan's result."""
        return StructType.fromJson(json.loads(plan.schema().json()))

    def arrow_schema(self, plan: Plan) -> pa.Schema:
        """The columns of a plan's result, as an Arrow schema."""
        return self.arrow_schema_of(plan.schema())

    @staticmethod
    def arrow_schema_of(struct: Any) -> pa.Schema:
        """The columns of a StructType, a Java object, as an Arrow schema."""
        return arrow_schema(StructType.fromJson(json.loads(struct.json())))
