"""Partitions of a directory of files, in the layout of Hive: `day=2026-01-31/carrier=AA/`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as kinds

from state.equality.exact_rows import exact_rows
from state.errors import SchemaError

_NULL = "__HIVE_DEFAULT_PARTITION__"
_MOST_BYTES = 255
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
# The characters that Hive and Spark escape.
_ESCAPED = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")


class Partitions:
    """The columns that are in the names of directories, and not in the files.

    Args:
        schema: the columns of the view.

    Raises:
        SchemaError: the view lacks a column, or has no others; or a column has another type than text, whole numbers,
            dates and booleans.
    """

    def __init__(self, names: tuple[str, ...], schema: pa.Schema) -> None:
        self._names, self._schema = names, schema
        for name in names:
            if name not in schema.names:
                raise SchemaError(
                    f"partition_by={name!r}: the view has no such column; it has: {', '.join(schema.names)}"
                )
            if name.startswith(("_", ".")):
                raise SchemaError(
                    f"partition_by={name!r}: Spark and pyarrow skip directories whose names begin with {name[0]!r}; "
                    "rename the column in the view"
                )
            _require_type(f"partition_by={name!r}", schema.field(name).type)
        if len(names) == len(schema.names):
            raise SchemaError(f"partition_by={', '.join(names)!r}: these are all columns; leave one out")

    def split(self, table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """The directory, with its final slash, and the rows of each partition, without its columns."""
        if not table.num_rows:
            return
        table = table.combine_chunks()
        if not self._names:
            yield "", table
            return
        codes = np.zeros(table.num_rows, np.int64)
        for name in self._names:
            encoded = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
            codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        rows = table.take(pa.array(order))
        rest = rows.drop_columns(list(self._names))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
            yield self._directory(rows.slice(start, 1)), rest.slice(start, end - start)

    def whole(self, path: str, file: pq.ParquetFile, columns: list[str] | None = None) -> pa.Table:
        """The rows of a file, with the columns of its partition.

        Args:
            path: of the file, below the directory.
            columns: the columns to read; None for all of the view.
        """
        wanted = self._schema.names if columns is None else columns
        table = file.read(columns=[name for name in wanted if name not in self._names])
        values = {unquote(name): text for name, _, text in (part.partition("=") for part in path.split("/")[:-1])}
        arrays = []
        for name in wanted:
            if name not in self._names:
                arrays.append(table[name])
                continue
            text, kind = values[name], self._schema.field(name).type
            value = pa.scalar(None, kind) if text == _NULL else pa.scalar(unquote(text)).cast(kind)
            arrays.append(pa.chunked_array([pa.repeat(value, file.metadata.num_rows)]))
        schema = pa.schema([self._schema.field(name) for name in wanted])
        return exact_rows(pa.Table.from_arrays(arrays, names=wanted), schema)

    def _directory(self, row: pa.Table) -> str:
        parts = []
        for name in self._names:
            value = row[name][0]
            text = _escaped(pc.cast(value, pa.string()).as_py()) if value.is_valid else _NULL
            parts.append(f"{_escaped(name)}={text}/")
        return "".join(parts)


def require_partition_types(place: object, names: Iterable[str], schema: pa.Schema) -> None:
    """Checks the columns of the partitions of a table.

    Raises:
        SchemaError: the values of a type do not come back from their texts.
    """
    for name in names:
        _require_type(f"{place} is partitioned by {name!r}", schema.field(name).type)


def require_partition_values(place: object, rows: pa.Table, names: Iterable[str], *, is_delta: bool) -> None:
    """Checks that every reader gets the values of the partitions back from their texts.

    Delta and Hive have no empty text: readers return null for it, and Spark refuses the directory.

    Args:
        place: the table, for the message.
        rows: with at least these columns.
        names: the columns of the partitions.
        is_delta: the table is of Delta, which has other names of directories.

    Raises:
        SchemaError: a reader would read a different value, or a value is too long for the name of a directory.
    """
    for name in names:
        for value in pc.unique(rows[name]).cast(pa.string()).to_pylist():
            if value is None:
                continue
            # Delta writes each byte beyond ASCII as three characters.
            escaped = quote if is_delta else _escaped
            directory = f"{escaped(name)}={escaped(value)}"
            if value in ("", _NULL):
                reason = "which readers take for null"
            elif len(directory.encode()) > _MOST_BYTES:
                reason = f"which is too long for the name of a directory ({_MOST_BYTES} bytes)"
            elif kinds.is_date32(rows.schema.field(name).type) and not _DATE.fullmatch(value):
                reason = "which is not between the years 1 and 9999"
            else:
                continue
            raise SchemaError(
                f"{place}: column {name!r} of the partitions has {value[:40]!r}, {reason}: nothing was published; "
                "replace the value in the view, or publish to a table without partitions"
            )


def _require_type(what: str, kind: pa.DataType) -> None:
    if not (kinds.is_string(kind) or kinds.is_integer(kind) or kinds.is_date32(kind) or kinds.is_boolean(kind)):
        raise SchemaError(f"{what}: the column is {kind}; partitions are of text, whole numbers, dates or booleans")


def _escaped(text: str) -> str:
    text = _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)
    return f"%5F{text[1:]}" if text == _NULL else text
