"""Columns that a file has by its path."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from actors.file_errors import UnreadableFile
from actors.schemas.path_columns import path_fields, path_scalars, path_values


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("a.parquet", {}),
        ("x=1.parquet", {}),
        ("dt=2026-01-01/a.parquet", {"dt": "2026-01-01"}),
        ("raw/dt=2026-01-01/plain/hour=5/a.parquet", {"dt": "2026-01-01", "hour": "5"}),
        ("city=S%C3%A3o%20Paulo%2F1/the%20key=a%3Db/a.csv", {"city": "São Paulo/1", "the key": "a=b"}),
        ("e=a=b/n=/a.csv", {"e": "a=b", "n": ""}),
        ("d=__HIVE_DEFAULT_PARTITION__/a.csv", {"d": None}),
        ("=1/a.csv", {}),
        ("d=1/d=2/a.csv", {"d": "2"}),
        ("d=1/D=2/a.csv", {"d": "2"}),
    ],
)
def test_directories_of_key_and_value_are_columns(path: str, values: dict[str, Any]) -> None:
    assert path_values(path) == values


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "-20", "007"], pa.int64()),
        (["1", "x"], pa.string()),
        (["9" * 19], pa.string()),
        (["2026-01-01", "2026-12-31"], pa.date32()),
        (["2026-01-01", "2026-13-01"], pa.string()),
        (["2026-01-01", "5"], pa.string()),
        (["__HIVE_DEFAULT_PARTITION__", "5"], pa.int64()),
        (["__HIVE_DEFAULT_PARTITION__"], pa.string()),
        (["٣"], pa.string()),
    ],
)
def test_the_values_of_a_sample_suggest_a_type(texts: list[str], kind: pa.DataType) -> None:
    assert path_fields([f"k={text}/f" for text in texts]) == [pa.field("k", kind)]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("007", pa.int64(), 7),
        ("2026-01-01", pa.date32(), date(2026, 1, 1)),
        ("2026-01-01 05%3A00%3A00", pa.timestamp("us", "UTC"), datetime(2026, 1, 1, 5, tzinfo=UTC)),
        ("1.5", pa.decimal128(10, 2), Decimal("1.50")),
        ("true", pa.bool_(), True),
        ("x", pa.binary(), b"x"),
        ("__HIVE_DEFAULT_PARTITION__", pa.int64(), None),
    ],
    ids=str,
)
def test_a_declared_type_is_followed(text: str, kind: pa.DataType, value: object) -> None:
    scalars = path_scalars(f"k={text}/other=1/f", pa.schema([("k", kind), ("absent", pa.string())]))
    assert {name: each.as_py() for name, each in scalars.items()} == {"k": value}
    assert scalars["k"].type == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [("x", pa.int64()), ("", pa.int64()), ("2026-13-01", pa.date32()), ("soon", pa.timestamp("us", "UTC"))],
    ids=str,
)
def test_a_value_that_does_not_fit_names_the_segment(text: str, kind: pa.DataType) -> None:
    with pytest.raises(UnreadableFile, match=f"its path has k={text}, but column k of the source is "):
        path_scalars(f"k={text}/f", pa.schema([("k", kind)]))


def test_keys_match_in_any_case_and_have_usable_names() -> None:
    assert path_fields(["Dt=1/a.b=x/f", "dT=2/f"]) == [pa.field("Dt", pa.int64()), pa.field("a_b", pa.string())]
    schema = pa.schema([("DT", pa.int64()), ("a_b", pa.string())])
    scalars = path_scalars("dt=1/a.b=x/f", schema)
    assert {name: each.as_py() for name, each in scalars.items()} == {"DT": 1, "a_b": "x"}
    assert path_scalars("dt=1/f", schema, "exact") == {}
