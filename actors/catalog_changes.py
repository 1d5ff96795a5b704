"""What a declaration, a schema or a view changes in the catalog, and what it may not change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from actors.pipeline_definition import PipelineDefinition
from actors.source import SourceDefinition
from state.catalog import Catalog, CatalogPipeline, put_pipeline, put_source, put_view
from state.delta import Delta, DeltaBuilder
from state.errors import DefinitionChangedError, RootMismatchError
from state.records import CatalogSource, CatalogView


class CatalogChanges:
    """The catalog of one root, with the changes that the next commit will carry.

    Args:
        committed: the catalog as of the last commit.
    """

    def __init__(self, committed: Catalog) -> None:
        self._pipeline = committed.pipeline
        self._sources = dict(committed.sources)
        self.views: dict[str, CatalogView] = dict(committed.views)
        self.schemas: dict[str, pa.Schema] = {
            name: pa.ipc.read_schema(pa.py_buffer(source.schema))
            for name, source in committed.sources.items()
            if source.schema is not None
        }
        self._delta = DeltaBuilder()
        self.is_changed = False

    def declare(self, definition: PipelineDefinition, committed_epoch: int) -> None:
        """Compares a declaration with what is known, and notes what is new.

        Views that are not declared any more are frozen as of `committed_epoch`.

        Raises:
            RootMismatchError: the root belongs to another pipeline.
            DefinitionChangedError: a source has another URL, format, pattern or schema than before, the ANSI mode is
                another one, or a frozen view is declared again.
        """
        self._declare_pipeline(definition)
        for source in definition.sources:
            self._declare_source(source)
        for name, view in self.views.items():
            if name in definition.views and view.frozen_epoch is not None:
                raise DefinitionChangedError(
                    f"view {name} was not declared since epoch {view.frozen_epoch} and has missed rows; "
                    "declare it under another name on a new root"
                )
            if name not in definition.views and view.frozen_epoch is None:
                self.put_view(replace(view, frozen_epoch=committed_epoch))

    def set_schema(self, source: str, schema: pa.Schema) -> None:
        """The schema of a source is decided, for ever."""
        self.schemas[source] = schema
        self._put_source(replace(self._sources[source], schema=schema.serialize().to_pybytes()))

    def put_view(self, view: CatalogView) -> None:
        """A view begins, or is frozen."""
        self.views[view.name] = view
        put_view(self._delta, view)
        self.is_changed = True

    def take_delta(self, created: Iterable[CatalogView]) -> Delta:
        """What has changed since the last call, with the views that begin with this epoch."""
        for view in created:
            self.put_view(view)
        self.is_changed = False
        return self._delta.build()

    def _declare_pipeline(self, definition: PipelineDefinition) -> None:
        known = self._pipeline
        if known is None:
            self._pipeline = CatalogPipeline(definition.name, definition.ansi)
            put_pipeline(self._delta, self._pipeline)
            self.is_changed = True
        elif known.name != definition.name:
            raise RootMismatchError(
                f"{definition.root} belongs to the pipeline {known.name!r}, not to {definition.name!r}; "
                "use that name, or another root"
            )
        elif known.ansi != definition.ansi:
            raise DefinitionChangedError(
                f"{definition.root} was computed with Spark's ANSI mode {'on' if known.ansi else 'off'}; "
                f"run it with SparkSettings(ansi={known.ansi})"
            )

    def _declare_source(self, source: SourceDefinition) -> None:
        text = source.to_json()
        known = self._sources.get(source.name)
        if known is None:
            self._put_source(CatalogSource(source.name, text, None))
        elif known.definition != text:
            raise DefinitionChangedError(
                f"source {source.name} was {known.definition} and is now {text}; "
                "declare it as it was, or under another name"
            )
        if source.schema is None:
            return
        kept = self.schemas.get(source.name)
        if kept is None:
            self.set_schema(source.name, source.schema)
        elif not kept.equals(source.schema):
            raise DefinitionChangedError(
                f"source {source.name} has the schema ({_columns(kept)}) and is now declared with "
                f"({_columns(source.schema)}); declare it as it was, or under another name"
            )

    def _put_source(self, source: CatalogSource) -> None:
        self._sources[source.name] = source
        put_source(self._delta, source)
        self.is_changed = True


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
