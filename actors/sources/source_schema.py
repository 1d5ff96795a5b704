"""The schema of a source: sampled from its first files, and as the catalog keeps it."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from actors.schemas.merged_schema import merged_schema
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


SAMPLE_FILES = 8
"""How many files are sent ahead at most."""


class SchemaSample:
    """Collects a proposal of each file that was sent ahead.

    Args:
        source: whose files they are.
        expected: how many files are out already.
        is_hasty: the first schema decides: after an epoch that killed few files are read at a time.
    """

    def __init__(self, source: SourceDefinition, expected: int, is_hasty: bool = False) -> None:
        self._source, self._expected, self._is_hasty = source, expected, is_hasty
        self._shown: dict[str, pa.Schema | SchemaError | None] = {}
        self._answers = 0

    def add(self, path: str, schema: pa.Schema | SchemaError | None, expected: int = 0) -> None:
        """A file shows a schema, or none that can be used.

        Args:
            path: of the file, relative to the source.
            schema: None if it is empty or cannot be read; an error if no source can have one of its columns.
            expected: how many files have been sent ahead so far, as far as its reader knows.
        """
        self._expected = max(self._expected, expected)
        self._shown[path] = schema
        # A path that was sent again, since it had vanished, answers twice.
        self._answers += 1

    @property
    def is_complete(self) -> bool:
        """Whether every file that is out has shown what it has."""
        return self._answers >= self._expected or (self._is_hasty and bool(self._schemas()))

    @property
    def shows_something(self) -> bool:
        """Whether any of them has columns."""
        return any(shown is not None for shown in self._shown.values())

    def schema(self) -> pa.Schema:
        """The schema of the source.

        Raises:
            SchemaError: none of the files has one that can be used.
        """
        schemas = self._schemas()
        if not schemas:
            raise next(shown for _, shown in sorted(self._shown.items()) if isinstance(shown, SchemaError))
        return kept_schema(self._source, merged_schema(schemas.values()), schemas)

    def _schemas(self) -> dict[str, pa.Schema]:
        return {path: shown for path, shown in sorted(self._shown.items()) if isinstance(shown, pa.Schema)}
