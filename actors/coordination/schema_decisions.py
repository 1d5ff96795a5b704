"""Schemas of the sources without a declared one: sampled from their first files, and extended by later columns."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from actors.coordination.instructions import CoordinateInstruction, DecideSchema, TryNextFile
from actors.protocol.instructions import ProposeSchema
from actors.recovery.catalog_changes import CatalogChanges
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.source_schema import SchemaSample, addable_columns


class SchemaDecisions:
    """The decided schemas, and the sources that are closed: their files wait for the schema of another source.

    Args:
        catalog: takes the decisions to the next commit.
        samples: source → the proposals of its first files.
    """

    def __init__(
        self, definition: PipelineDefinition, catalog: CatalogChanges, samples: Mapping[str, SchemaSample]
    ) -> None:
        self._definition, self._catalog, self._samples = definition, catalog, samples
        self.closed = self._closed()

    @property
    def decided(self) -> Mapping[str, pa.Schema]:
        """Source → its schema."""
        return self._catalog.schemas

    @property
    def filled(self) -> Mapping[str, tuple[str, ...]]:
        """See `CatalogChanges.filled`."""
        return self._catalog.filled

    @property
    def open(self) -> dict[str, pa.Schema]:
        """Source → its schema, of the sources whose files may be read."""
        return {name: schema for name, schema in self.decided.items() if name not in self.closed}

    def propose(self, proposal: ProposeSchema) -> list[CoordinateInstruction]:
        """Adds the proposal of one of the first files; the last proposal of a sample decides the schema.

        Returns:
            The decisions for the sources that are open from now on; or a request for another file.
        """
        source = proposal.source
        sample = self._samples[source]
        sample.add(proposal.path, proposal.schema, proposal.sample)
        if not sample.is_complete:
            return []
        if not sample.shows_something:
            return [TryNextFile(source)]
        self._catalog.set_schema(source, sample.schema())
        before, self.closed = self.closed, self._closed()
        return [DecideSchema(each, self.decided[each]) for each in sorted((before | {source}) - self.closed)]

    def add_columns(self, source: str, columns: pa.Schema) -> bool:
        """Adds the new columns of a file to the end of its source's schema.

        Returns:
            True if the schema has changed.
        """
        kept = self.decided[source]
        new = addable_columns(kept, columns)
        if new.names:
            self._catalog.set_schema(source, pa.schema([*kept, *new]))
        return bool(new.names)

    def _closed(self) -> frozenset[str]:
        return self._definition.closed_sources(self.decided.keys())
