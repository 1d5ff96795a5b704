"""Views over a source with a key, and Spark's own answers over the last rows, which Python picks out of the files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from actors.sources.row_key import Key
from spark_bridge.plans.view_definition import ViewDefinition
from tests.spark_bridge.view_graph import ViewGraph

ORIGIN = [pa.field("_path", pa.string()), pa.field("_row", pa.int64())]
"""The columns that a source with a key has besides."""


class KeyedGraph(ViewGraph):
    """See `ViewGraph`.

    Args:
        key: of the first source.
        is_deleted: the condition of the key, in Python.
    """

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        definitions: Sequence[ViewDefinition],
        schemas: Mapping[str, pa.Schema],
        key: Key,
        is_deleted: Callable[[Mapping[str, Any]], bool],
    ) -> None:
        self._source, self._key, self._is_deleted = next(iter(schemas)), key, is_deleted
        super().__init__(spark, root, definitions, [*schemas], schemas, {self._source: key})

    def seen(self) -> Mapping[str, pa.Table]:
        last: dict[Any, Any] = {}
        rows = self.rows[self._source]
        order = (*self._key.order_by, *(field.name for field in ORIGIN))
        for row in rows.to_pylist():
            key = tuple(row[name] for name in self._key.columns)
            last[key] = max(last.get(key, row), row, key=lambda each: [each[name] for name in order])
        current = [row for row in last.values() if not self._is_deleted(row)]
        return {**self.rows, self._source: pa.Table.from_pylist(current, rows.schema)}


def with_origin(rows: pa.Table, path: str) -> pa.Table:
    """The rows of a file, with its path and their places."""
    columns = [pa.repeat(path, rows.num_rows), pa.array(range(rows.num_rows), pa.int64())]
    for field, column in zip(ORIGIN, columns, strict=True):
        rows = rows.append_column(field, column)
    return rows
