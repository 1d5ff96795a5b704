"""Data files of an Iceberg table, written and read with Arrow alone.

PyIceberg 0.12 turns a null list or map of structs into an empty one, in its scan and also when it writes a file.  This
module writes and reads the files with pyarrow, by field id.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import (
    MetricModeTypes,
    MetricsMode,
    _determine_partitions,
    _get_parquet_writer_kwargs,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionKey
from pyiceberg.schema import Schema, sanitize_column_names
from pyiceberg.table import FileScanTask, TableProperties
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Properties, Record
from pyiceberg.types import DateType, StringType, TimestampType, TimestamptzType
from pyiceberg.utils.properties import property_as_int

from slackwater.plugins.publish.published_table import FILE_BYTES
from state.equality.exact_rows import exact_rows
from state.errors import CommitRefusedError, SchemaError

_FIELD_ID = b"PARQUET:field_id"
_COUNTS = MetricsMode(MetricModeTypes.COUNTS)
_OF_WIDE_RANGE = (DateType, TimestampType, TimestamptzType, StringType)
_MOST_ROWS_OF_A_GROUP = TableProperties.PARQUET_ROW_GROUP_LIMIT_DEFAULT


def written_files(
    metadata: TableMetadata, rows: pa.Table, io: FileIO, commit: UUID, numbers: Iterator[int]
) -> Iterator[DataFile]:
    """Writes rows to data files, at least one for each partition.

    Args:
        rows: the rows, with the columns of the table.
        commit: the name of the commit, and
        numbers: the numbers of its files, by which their names differ.

    Raises:
        SchemaError: a row does not fit the columns or the partitions of the table.
    """
    schema = schema_to_pyarrow(sanitize_column_names(metadata.schema()))
    for key, part in _partitions(metadata, rows.select([field.name for field in metadata.schema().fields])):
        for piece in _of_file_size(exact_rows(part.rename_columns(schema.names), schema)):
            yield _written(metadata, piece, io, key, f"00000-{next(numbers)}-{commit}.parquet")


def read_file(metadata: TableMetadata, io: FileIO, task: FileScanTask, columns: list[str]) -> pa.Table:
    """The rows of a data file, in the order of the file.

    Args:
        columns: the names of columns of the table.

    Raises:
        CommitRefusedError: another program has written the file in a way that is not supported here.
    """
    path = task.file.file_path
    if task.delete_files:
        raise CommitRefusedError(
            f"{path} has delete files of another program: nothing was written; compact the table, or publish to a "
            "new one"
        )
    if task.file.file_format != FileFormat.PARQUET:
        raise CommitRefusedError(f"{path} is not a Parquet file: nothing was written; publish to a new table")
    schema = metadata.schema()
    with io.new_input(path).open() as stream:
        file = pq.ParquetFile(stream)
        found = {_field_id(field): field for field in file.schema_arrow}
        wanted = [schema.find_field(name) for name in columns]
        fields = {name: found.get(field.field_id) for name, field in zip(columns, wanted, strict=True)}
        table = file.read([field.name for field in fields.values() if field is not None])
    arrays = []
    for name, field in zip(columns, wanted, strict=True):
        read, expected = fields[name], schema_to_pyarrow(Schema(field)).field(0)
        if read is None and field.required:
            raise CommitRefusedError(f"{path} lacks the column {name!r}: nothing was written; publish to a new table")
        if read is not None and _ids(read.type) != _ids(expected.type):
            raise CommitRefusedError(
                f"{path} has other fields in the column {name!r} than the table: nothing was written; "
                "publish to a new table"
            )
        arrays.append(pa.nulls(file.metadata.num_rows, expected.type) if read is None else table[read.name])
    return pa.Table.from_arrays(arrays, names=columns)


def _partitions(metadata: TableMetadata, rows: pa.Table) -> Iterator[tuple[PartitionKey | None, pa.Table]]:
    spec, schema = metadata.spec(), metadata.schema()
    if spec.is_unpartitioned():
        yield None, rows
        return
    parts = list(_determine_partitions(spec, schema, exact_rows(rows, schema_to_pyarrow(schema))))
    # PyIceberg looks up the rows of a partition by its value, and NaN is not equal to itself.
    if sum(part.arrow_table_partition.num_rows for part in parts) != rows.num_rows:
        raise SchemaError(
            "a value in a column of the partitions, such as NaN, has no partition: publish to a table without them"
        )
    for part in parts:
        yield part.partition_key, part.arrow_table_partition


def _of_file_size(rows: pa.Table) -> Iterator[pa.Table]:
    if not rows.num_rows:
        return
    most = max(1, rows.num_rows * FILE_BYTES // max(rows.nbytes, 1))
    for begin in range(0, rows.num_rows, most):
        yield rows.slice(begin, most)


def _written(metadata: TableMetadata, rows: pa.Table, io: FileIO, key: PartitionKey | None, name: str) -> DataFile:
    places = load_location_provider(table_location=metadata.location, table_properties=metadata.properties)
    output = io.new_output(places.new_data_location(data_file_name=name, partition_key=key))
    properties = metadata.properties
    most = property_as_int(properties, TableProperties.PARQUET_ROW_GROUP_LIMIT, _MOST_ROWS_OF_A_GROUP)
    with (
        output.create(overwrite=False) as stream,
        pq.ParquetWriter(
            stream, rows.schema, store_decimal_as_integer=True, **_get_parquet_writer_kwargs(properties)
        ) as writer,
    ):
        writer.write(rows, row_group_size=most)
    statistics = _statistics(writer.writer.metadata, sanitize_column_names(metadata.schema()), properties)
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=output.location,
        file_format=FileFormat.PARQUET,
        partition=Record() if key is None else key.partition,
        file_size_in_bytes=len(output),
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics,
    )


def _statistics(footer: pq.FileMetaData, schema: Schema, properties: Properties) -> dict[str, Any]:
    """Counts, and lower and upper bounds of the columns; without bounds of those for which PyIceberg fails."""
    columns, places = compute_statistics_plan(schema, properties), parquet_path_to_id_mapping(schema)
    try:
        return data_file_statistics_from_parquet_metadata(footer, columns, places).to_serialized_dict()
    except (OverflowError, UnicodeEncodeError):
        # A year that Python cannot hold, or a bound that PyIceberg cuts in the middle of a character.
        plain = {
            at: replace(column, mode=_COUNTS) if isinstance(column.iceberg_type, _OF_WIDE_RANGE) else column
            for at, column in columns.items()
        }
        return data_file_statistics_from_parquet_metadata(footer, plain, places).to_serialized_dict()


def _ids(kind: pa.DataType) -> list[int]:
    """The ids of the fields below a nested type, depth first."""
    if pa.types.is_map(kind):
        fields = [kind.key_field, kind.item_field]
    else:
        fields = [kind.field(at) for at in range(kind.num_fields)]
    return [number for field in fields for number in (_field_id(field), *_ids(field.type))]


def _field_id(field: pa.Field) -> int:
    return int((field.metadata or {}).get(_FIELD_ID, -1))
