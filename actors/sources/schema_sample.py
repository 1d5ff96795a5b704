"""What the first files of a source without a schema show."""

from __future__ import annotations

import pyarrow as pa

from actors.schemas.merged_schema import merged_schema
from actors.sources.kept_schema import kept_schema
from actors.sources.source import SourceDefinition
from state.errors import SchemaError

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
