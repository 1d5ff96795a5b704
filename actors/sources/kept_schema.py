"""The schema of a source as its views see it and the catalog keeps it."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from actors.schemas.metadata_columns import metadata_fields
from actors.schemas.path_columns import path_fields
from actors.schemas.safe_types import safe_schema, widest_type
from actors.sources.source import SourceDefinition
from state.errors import SchemaError


def kept_schema(source: SourceDefinition, schema: pa.Schema, paths: Iterable[str] = ()) -> pa.Schema:
    """The columns of the files, then those of their paths, then those that tell where a row is from.

    Args:
        source: its `schema_evolution` and `metadata` count.
        schema: declared, or what the files show.
        paths: files whose paths have columns, if the schema is not declared.

    Raises:
        SchemaError: a column cannot be carried to Spark, or has the name of a metadata column.
    """
    of_paths = path_fields(paths)
    named_by_path = {field.name for field in of_paths}
    own = [*(field for field in schema if field.name not in named_by_path), *of_paths]
    metadata = metadata_fields(source.metadata)
    taken = {field.name.lower(): field.name for field in own}
    for field in metadata:
        if field.name in taken:
            raise SchemaError(
                f"source {source.name}: its files have a column {taken[field.name]}; rename it, or declare the source "
                f"without metadata {field.name[1:]!r}"
            )
    kept = safe_schema(pa.schema([*own, *metadata]))
    if source.schema_evolution != "widen":
        return kept
    return pa.schema([field.with_type(widest_type(field.type)) for field in kept])


def addable_columns(kept: pa.Schema, others: Iterable[pa.Field]) -> pa.Schema:
    """Those of some columns that can become columns of a source: of a type that is known and survives the way to Spark.

    Args:
        kept: the schema of the source; its names count without their case, as they do in Spark.
        others: columns that it does not have.
    """
    taken = {name.lower() for name in kept.names}
    fields = []
    for field in others:
        if field.name.lower() in taken or not field.name or pa.types.is_null(field.type):
            continue
        try:
            fields += safe_schema(pa.schema([field]))
        except SchemaError:
            continue
        taken.add(field.name.lower())
    return pa.schema(fields)
