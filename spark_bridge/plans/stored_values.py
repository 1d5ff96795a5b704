"""Values that can be stored, and those that can name a group or find an equal row."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import StructField, StructType

from actors.schemas.ddl import format_schema
from spark_bridge.engine.catalyst.arrow_frames import arrow_schema
from spark_bridge.engine.catalyst.schemas import Schemas
from spark_bridge.engine.catalyst.trees import Expression
from state.errors import SchemaError
from state.tables.group_key import is_group_type


def can_name_groups(schemas: Schemas, expression: Expression) -> bool:
    """Whether the values of an expression can be stored, and identified by a text."""
    return can_be_stored(schemas, expression) and is_group_type(schema_of(schemas, expression).field(0).type)


def can_be_stored(schemas: Schemas, expression: Expression) -> bool:
    """Whether the values of an expression can be stored."""
    try:
        format_schema(schema_of(schemas, expression))
    except (PySparkException, TypeError, SchemaError):
        return False
    return True


def schema_of(schemas: Schemas, expression: Expression) -> pa.Schema:
    """The schema of one column with the values of an expression, named `value`."""
    return arrow_schema(StructType([StructField("value", schemas.data_type(expression))]))
