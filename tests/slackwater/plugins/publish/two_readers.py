"""The comparison of a published table with its view, by two readers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.types as kinds
import pytest

from tests.slackwater.plugins.publish.every_type import SCHEMA, bag_of
from tests.slackwater.plugins.publish.growing_view import GrowingView
from tests.slackwater.plugins.publish.published import contents
from tests.slackwater.plugins.publish.second_reader import second_contents

FORMATS = pytest.mark.parametrize("format", ["delta", "iceberg", "parquet"])


def require_equal_twice(view: GrowingView, directory: Path, format: str, schema: pa.Schema = SCHEMA) -> int:
    """Checks the table against the view, by two readers; returns the epoch that it names."""
    epoch, rows = contents(directory, format)
    second_epoch, second = second_contents(directory, format)
    wanted = view.store.snapshot(epoch).view("v").to_arrow()
    assert second_epoch == epoch
    assert bag_of(second, schema) == bag_of(wanted, schema)
    if format == "iceberg":  # its scan has an empty list where a list of structs is null
        schema = pa.schema([field for field in schema if not _has_listed_struct(field.type)])
    assert bag_of(rows, schema) == bag_of(wanted, schema)
    return epoch


def _has_listed_struct(kind: pa.DataType, *, is_listed: bool = False) -> bool:
    if kinds.is_struct(kind):
        return is_listed or any(_has_listed_struct(each.type) for each in kind)
    if kinds.is_map(kind):
        return _has_listed_struct(kind.item_type, is_listed=True)
    return kinds.is_list(kind) and _has_listed_struct(kind.value_type, is_listed=True)
