from __future__ import annotations

import pyarrow as pa
import pytest

from actors.schemas.safe_types import safe_schema
from state.errors import SchemaError


@pytest.mark.parametrize(
    ("kind", "safe"),
    [
        (pa.null(), pa.string()),
        (pa.bool_(), pa.bool_()),
        (pa.int8(), pa.int8()),
        (pa.uint8(), pa.int16()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.float16(), pa.float32()),
        (pa.float64(), pa.float64()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.binary_view(), pa.binary()),
        (pa.binary(16), pa.binary()),
        (pa.uuid(), pa.binary()),
        (pa.date64(), pa.date32()),
        (pa.timestamp("ns"), pa.timestamp("us")),
        (pa.timestamp("s", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        (pa.decimal32(5, 2), pa.decimal128(5, 2)),
        (pa.decimal256(38, 4), pa.decimal128(38, 4)),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.run_end_encoded(pa.int32(), pa.uint8()), pa.int16()),
        (pa.large_list(pa.uint8()), pa.list_(pa.int16())),
        (pa.list_(pa.large_string(), 3), pa.list_(pa.string())),
        (pa.map_(pa.large_string(), pa.uint64()), pa.map_(pa.string(), pa.decimal128(20, 0))),
        (
            pa.struct([pa.field("a", pa.timestamp("ns"), nullable=False)]),
            pa.struct([pa.field("a", pa.timestamp("us"))]),
        ),
    ],
    ids=str,
)
def test_every_type_has_a_safe_one_that_stays_itself(kind: pa.DataType, safe: pa.DataType) -> None:
    field = pa.field("c", kind, nullable=pa.types.is_null(kind), metadata={"k": "v"})
    schema = safe_schema(pa.schema([field], metadata={"k": "v"}))
    assert schema.equals(pa.schema([("c", safe)]), check_metadata=True)
    assert safe_schema(schema).equals(schema, check_metadata=True)


@pytest.mark.parametrize(
    "kind",
    [
        pa.time32("s"),
        pa.time64("us"),
        pa.duration("s"),
        pa.month_day_nano_interval(),
        pa.decimal256(50, 2),
        pa.decimal128(5, -2),
        pa.struct([]),
        pa.dense_union([pa.field("a", pa.int8())]),
    ],
    ids=str,
)
def test_what_has_no_form_in_spark_is_refused_by_the_name_of_the_column(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"^column c: .*leave.* the column out"):
        safe_schema(pa.schema([("a", pa.int8()), ("c", kind)]))
    with pytest.raises(SchemaError, match=r"^column s\.inner\.element: "):
        safe_schema(pa.schema([("s", pa.struct([("inner", pa.list_(kind))]))]))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (pa.schema([("a", pa.int8()), ("a", pa.int8())]), "column a appears twice"),
        (pa.schema([("__sw_count", pa.int8())]), "column __sw_count: .*reserved"),
        (pa.schema([]), "no columns"),
    ],
)
def test_names_that_cannot_be_used(schema: pa.Schema, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        safe_schema(schema)
