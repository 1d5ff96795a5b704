"""The schema of a source: sampled from its first files, and as the catalog keeps it."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from actors.schemas.merged_schema import merged_schema, with_headers
from actors.schemas.metadata_columns import metadata_fields
from actors.schemas.path_columns import path_fields
from actors.schemas.safe_types import STORABLE_NAME, can_be_stored, is_open, open_text, safe_schema, widest_type
from actors.sources.source import SourceDefinition
from state.errors import SchemaError

SAMPLE_FILES = 8
"""The largest number of files that are sent ahead to show a schema."""


def kept_schema(source: SourceDefinition, schema: pa.Schema, paths: Iterable[str] = ()) -> pa.Schema:
    """The schema of a source in the catalog: columns of the files, of their paths, then metadata columns.

    Args:
        source: the source; its `evolution` and `metadata` count.
        schema: the declared schema, or the schema of the first files.
        paths: the paths of those files, whose parts may be columns; empty if the schema is declared.

    Raises:
        SchemaError: a column cannot be carried to Spark, or stored, or has the name of a metadata column; or the
            source lacks a column of its key, or its event time.
    """
    of_paths = path_fields(paths)
    named_by_path = {field.name.lower() for field in of_paths}
    own = [*(field for field in schema if field.name.lower() not in named_by_path), *of_paths]
    metadata = metadata_fields(source.metadata)
    taken = {field.name.lower(): field.name for field in own}
    for field in metadata:
        if field.name in taken:
            raise SchemaError(
                f"source {source.name}: its files have a column {taken[field.name]}; rename it, or declare the source "
                f"without metadata {field.name[1:]!r}"
            )
    columns = [open_text(field.name) if pa.types.is_null(field.type) else field for field in own]
    kept = safe_schema(pa.schema([*own, *metadata]))
    kept = pa.schema(
        [column if is_open(column) else field for column, field in zip([*columns, *metadata], kept, strict=True)]
    )
    if source.key is not None:
        source.key.require_columns(source.name, [field.name for field in own])
    if source.event_time is not None:
        source.event_time.require_column(source.name, pa.schema(own))
    for name in kept.names if source.materialize else ():
        if not can_be_stored(name):
            raise SchemaError(
                f"source {source.name}, column {name!r}: {STORABLE_NAME}; declare a schema that leaves it out, or the "
                "source without materialize=True"
            )
    if source.evolution != "widen":
        return kept
    return pa.schema([field.with_type(widest_type(field.type)) for field in kept])


def addable_columns(kept: pa.Schema, others: Iterable[pa.Field], *, stored: bool = False) -> pa.Schema:
    """The columns that can be added to a source: of a known type that survives the ingest into Spark.

    Args:
        kept: the schema of the source; names are compared without case, as in Spark.
        others: columns of a file that the schema lacks.
        stored: whether the rows of the source are stored.
    """
    taken = {name.lower() for name in kept.names}
    fields = []
    for field in others:
        if field.name.lower() in taken or not field.name or pa.types.is_null(field.type):
            continue
        if stored and not can_be_stored(field.name):
            continue
        try:
            fields += safe_schema(pa.schema([field]))
        except SchemaError:
            continue
        taken.add(field.name.lower())
    return pa.schema(fields)


class SchemaSample:
    """Collects the schemas of the files that were sent ahead.

    Args:
        source: the source of the files.
        expected: the number of files that were sent ahead so far.
        is_hasty: True if the first schema decides: after an epoch that killed, few files are read at a time.
    """

    def __init__(self, source: SourceDefinition, expected: int, is_hasty: bool = False) -> None:
        self._source, self._expected, self._is_hasty = source, expected, is_hasty
        self._shown: dict[str, pa.Schema | None] = {}
        self._answers = 0

    def add(self, path: str, schema: pa.Schema | None, expected: int = 0) -> None:
        """Adds the answer of one file.

        Args:
            path: the path of the file, relative to the source.
            schema: its schema; None for a file that is empty or unreadable.
            expected: the number of files that were sent ahead so far, as far as the fetch actor knows.
        """
        self._expected = max(self._expected, expected)
        self._shown[path] = schema
        # A path that vanished and was sent again answers twice.
        self._answers += 1

    @property
    def is_complete(self) -> bool:
        """True if every file that was sent ahead has answered."""
        return self._answers >= self._expected or (self._is_hasty and bool(self._schemas()))

    @property
    def shows_something(self) -> bool:
        """True if any file has a schema."""
        return bool(self._schemas())

    def schema(self) -> pa.Schema:
        """The schema of the source, of which at least one file has shown a schema."""
        schemas = with_headers(self._schemas())
        return kept_schema(self._source, merged_schema(schemas.values()), schemas)

    def _schemas(self) -> dict[str, pa.Schema]:
        return {path: shown for path, shown in sorted(self._shown.items()) if isinstance(shown, pa.Schema)}
