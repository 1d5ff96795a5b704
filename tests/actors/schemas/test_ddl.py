"""DDL text says the same to us as to Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import _parse_datatype_string

from actors.schemas.ddl import format_schema, parse_schema
from spark_bridge.engine.catalyst.arrow_frames import arrow_schema
from state.errors import SchemaError

TEXTS = [
    "id bigint, at timestamp",
    "a boolean, b tinyint, c smallint, d int, e bigint, f float, g double, h string, i binary, j date",
    "BYTE byte, short SHORT, i Integer, l LONG, r real",
    "p decimal, q decimal(5), r DECIMAL(38,18), s numeric(3,3), t dec(9,0)",
    "a timestamp, b timestamp_ltz, c timestamp_ntz",
    "a array<int>, m map<string,array<double>>, s struct<x: int, y: struct<z:array<map<int,string>>>>",
    "a: int, `we ird` string, `tick``ed` int, n int NOT NULL, c int COMMENT 'what, it is'",
]


@pytest.mark.more_after(1)
@pytest.mark.parametrize("text", TEXTS)
def test_schema_is_what_spark_reads(local_spark: SparkSession, text: str) -> None:
    assert local_spark.version, "Spark's own parser is in its JVM"
    assert parse_schema(text) == arrow_schema(_parse_datatype_string(text))


@pytest.mark.parametrize("text", TEXTS)
def test_schema_survives_as_text(text: str) -> None:
    schema = parse_schema(text)
    assert parse_schema(format_schema(schema)) == schema


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty"),
        ("id", "column 'id': expected a type, found the end"),
        ("id bigint,", "expected the name of a column"),
        ("id bigint x", "column 'id': expected ','"),
        ("id bogus", "column 'id': 'bogus' is not a known type; use one of bigint"),
        ("a int, s struct<b: what>", "column 's.b': 'what' is not a known type"),
        ("a array<int", "column 'a': expected '>'"),
        ("a decimal(40,2)", "column 'a': decimal(40,2) does not exist"),
        ("a decimal(2,3)", "column 'a': decimal(2,3) does not exist"),
        ("a int; b int", "column 'a': cannot read ';"),
        ("a int, a string", "column 'a' appears twice"),
        ("a int not", "expected 'null' after 'not'"),
    ],
)
def test_wrong_text_is_refused_with_the_column(text: str, part: str) -> None:
    with pytest.raises(SchemaError) as refused:
        parse_schema(text)
    assert part in str(refused.value)


def test_type_that_cannot_be_carried_is_refused_by_column() -> None:
    with pytest.raises(SchemaError, match=r"column 's\.u' has the type uint64"):
        format_schema(pa.schema([("s", pa.struct([("u", pa.uint64())]))]))
