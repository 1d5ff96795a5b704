"""Changes of the catalog by a declaration, a schema or a view; a change that is not allowed is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

import pyarrow as pa

from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.source import SourceDefinition, changed_arguments
from actors.sources.source_schema import kept_schema
from state.errors import DefinitionChangedError, RootMismatchError
from state.tables.catalog import (
    Catalog,
    CatalogPipeline,
    delete_expectations,
    delete_view,
    put_expectations,
    put_pipeline,
    put_source,
    put_unmatched,
    put_view,
)
from state.tables.delta import Delta, DeltaBuilder
from state.tables.expectations import Gate, ViewExpectations, gate_of
from state.tables.records import CatalogSource, CatalogView, UnmatchedColumn
from state.tables.stored_rows import declared_name


class CatalogChanges:
    """The catalog of one root, with the changes that the next commit will carry.

    Args:
        committed: the catalog as of the last commit.

    `is_changed` is True if the next commit has changes; `watermarks` are as of the last commit.
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
        self.watermarks = dict(committed.watermarks)
        self.expectations = dict(committed.expectations)
        self._unmatched = {_unmatched_key(each) for each in committed.unmatched}
        self._delta = DeltaBuilder()
        self.is_changed = False

    def declare(
        self, definition: PipelineDefinition, committed_epoch: int, declared_at: datetime | None = None
    ) -> None:
        """Compares a declaration with the catalog, and adds its new parts.

        Args:
            committed_epoch: the last commit: views that are not declared any more stop at it.
            declared_at: time since which new sources are declared; None if it is not kept.

        Raises:
            RootMismatchError: the root belongs to another pipeline.
            DefinitionChangedError: a source has another URL, format, pattern or schema than before, or the ANSI mode
                has changed.
            SchemaError: a declared column has the name of a metadata column.
        """
        self._declare_pipeline(definition)
        for source in definition.sources:
            self._declare_source(source, declared_at)
        for name, view in self.views.items():
            if declared_name(name) not in definition.views and view.stopped_epoch is None:
                self.put_view(replace(view, stopped_epoch=committed_epoch))

    def set_schema(self, source: str, schema: pa.Schema) -> None:
        """Decides the schema of a source for ever; later changes only add columns to its end."""
        self.schemas[source] = schema
        self._put_source(replace(self._sources[source], schema=schema.serialize().to_pybytes()))

    @property
    def not_before(self) -> dict[str, datetime | None]:
        """Source → the earliest time at which its objects may have been written; None for no limit."""
        return {name: source.not_before for name, source in self._sources.items()}

    def put_unmatched(self, columns: Iterable[UnmatchedColumn]) -> list[UnmatchedColumn]:
        """Notes columns that files and sources do not share.  Returns the columns that are new in the catalog."""
        new = []
        for column in columns:
            key = _unmatched_key(column)
            if key not in self._unmatched:
                self._unmatched.add(key)
                put_unmatched(self._delta, column)
                new.append(column)
        self.is_changed = self.is_changed or bool(new)
        return new

    @property
    def filled(self) -> dict[str, tuple[str, ...]]:
        """Source → its columns that a file lacked, and that are null in the rows of the file."""
        filled: dict[str, tuple[str, ...]] = {}
        for source, column, is_missing, _ in sorted(self._unmatched):
            if is_missing:
                filled[source] = (*filled.get(source, ()), column)
        return filled

    def put_view(self, view: CatalogView) -> None:
        """Adds a view, or changes its row."""
        self.views[view.name] = view
        put_view(self._delta, view)
        self.is_changed = True

    def expect(self, changed: Mapping[str, ViewExpectations | None]) -> None:
        """Changes the expectations of views; None removes them."""
        for view, expectations in changed.items():
            if expectations is not None:
                self.expectations[view] = expectations
                put_expectations(self._delta, expectations)
            elif self.expectations.pop(view, None) is not None:
                delete_expectations(self._delta, view)

    @property
    def gate(self) -> Gate:
        """The gate of the root, with these changes."""
        return gate_of(self.expectations.values())

    def take_delta(self, views: Iterable[CatalogView], dropped: Iterable[str] = ()) -> Delta:
        """Changes since the last call, and the changes of views in this epoch.

        Args:
            views: the views that begin or change with the epoch.
            dropped: names of views that end with it.
        """
        for name in dropped:
            if self.views.pop(name, None) is not None:
                delete_view(self._delta, name)
        for view in views:
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

    def _declare_source(self, source: SourceDefinition, declared_at: datetime | None) -> None:
        known = self._sources.get(source.name)
        if known is None:
            self._put_source(CatalogSource(source.name, source.to_json(), None))
        else:
            source = source.as_recorded(known.definition)
            recorded, text = SourceDefinition.of_json(source.name, known.definition).to_json(), source.to_json()
            if changed := changed_arguments(recorded, text):
                raise DefinitionChangedError(
                    f"source {source.name}: {'; '.join(changed)}; declare it as it was, or under another name"
                )
            if recorded != text:
                self._put_source(replace(known, definition=text))
        self._limit(source, declared_at)
        if source.schema is None:
            return
        declared, kept = kept_schema(source, source.schema), self.schemas.get(source.name)
        if kept is None:
            self.set_schema(source.name, declared)
        elif list(kept)[: len(declared)] != list(declared):
            # Added columns follow the declared columns.
            raise DefinitionChangedError(
                f"source {source.name} has the schema ({_columns(kept)}) and is now declared with "
                f"({_columns(declared)}); declare it as it was, or under another name"
            )

    def _limit(self, source: SourceDefinition, declared_at: datetime | None) -> None:
        """Notes the time since which a source has been declared, and the age limit of its objects."""
        known = self._sources[source.name]
        if known.declared_at is None and declared_at is not None:
            # S3 gives times in whole seconds: an object of this second is taken.
            known = replace(known, declared_at=declared_at.replace(microsecond=0))
        known = replace(known, not_before=source.discovery.not_before(known.declared_at))
        if known != self._sources[source.name]:
            self._put_source(known)

    def _put_source(self, source: CatalogSource) -> None:
        self._sources[source.name] = source
        put_source(self._delta, source)
        self.is_changed = True


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _unmatched_key(column: UnmatchedColumn) -> tuple[str, str, bool, bool]:
    return column.source, column.column, column.is_missing, column.was is not None
