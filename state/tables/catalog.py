"""The catalog: the declarations of the pipeline, its sources and its views, as rows of the store and back."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa

from state.tables.delta import DeltaBuilder
from state.tables.expectations import Gate, ViewExpectations, gate_of
from state.tables.keys import encode_key
from state.tables.records import CatalogSource, CatalogView, SourceWatermark, UnmatchedColumn
from state.tables.stored_rows import declared_name

_VNODE = 0
_Kind: TypeAlias = Literal["pipeline", "source", "view", "column", "watermark", "expectations"]
_KINDS: tuple[_Kind, ...] = get_args(_Kind)


@dataclass(frozen=True)
class CatalogPipeline:
    """The pipeline that a root belongs to.

    Args:
        name: the name of the pipeline.
        ansi: Spark's ANSI mode, fixed by the first commit to the root.
    """

    name: str
    ansi: bool


@dataclass(frozen=True)
class Catalog:
    """All definitions at one epoch.

    Args:
        pipeline: the pipeline; None before the first commit.
        sources: the sources by name.
        views: the views by name, in the order of their creation.
        unmatched: the columns that files have and their sources do not, or the other way round, each once.
        watermarks: the watermarks of the sources with an event time, by source.
        expectations: the expectations of views, by view.
    """

    pipeline: CatalogPipeline | None = None
    sources: Mapping[str, CatalogSource] = field(default_factory=dict)
    views: Mapping[str, CatalogView] = field(default_factory=dict)
    unmatched: tuple[UnmatchedColumn, ...] = ()
    watermarks: Mapping[str, SourceWatermark] = field(default_factory=dict)
    expectations: Mapping[str, ViewExpectations] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: pa.Table) -> Catalog:
        """The catalog from the current rows of the table `catalog`."""
        kinds: dict[_Kind, list[Mapping[str, Any]]] = {kind: [] for kind in _KINDS}
        for row in rows.to_pylist():
            kinds[row["kind"]].append(row)
        sources = [
            CatalogSource(row["name"], row["definition"], row["schema"], row["declared_at"], row["not_before"])
            for row in kinds["source"]
        ]
        views = [_view(row) for row in kinds["view"]]
        unmatched = [_unmatched(row) for row in kinds["column"]]
        return cls(
            _pipeline(kinds["pipeline"][0]) if kinds["pipeline"] else None,
            {source.name: source for source in sorted(sources, key=lambda source: source.name)},
            {view.name: view for view in sorted(views, key=lambda view: (view.created_epoch, view.name))},
            tuple(sorted(unmatched, key=lambda each: (each.source, each.epoch, each.column))),
            {row["name"]: SourceWatermark(row["name"], **json.loads(row["definition"])) for row in kinds["watermark"]},
            {row["name"]: ViewExpectations.of_json(row["name"], row["definition"]) for row in kinds["expectations"]},
        )

    @property
    def gate(self) -> Gate:
        return gate_of(self.expectations.values())

    def readers(self, names: Collection[str]) -> set[str]:
        """The declared views that read one of these, by themselves or by their internal views."""
        return {declared_name(view.name) for view in self.views.values() if not {*names}.isdisjoint(view.views)}

    def with_readers(self, names: Collection[str]) -> set[str]:
        """These views, and the declared views that read them, also by way of others."""
        found = {*names}
        while more := self.readers(found) - found:
            found |= more
        return found


def put_pipeline(delta: DeltaBuilder, pipeline: CatalogPipeline) -> None:
    """Writes the row of the pipeline."""
    _put(delta, "pipeline", pipeline.name, pipeline.name, definition=json.dumps({"ansi": pipeline.ansi}))


def put_source(delta: DeltaBuilder, source: CatalogSource) -> None:
    """Writes the row of a source."""
    _put(
        delta,
        "source",
        source.name,
        source.name,
        definition=source.definition,
        schema=source.schema,
        declared_at=source.declared_at,
        not_before=source.not_before,
    )


def put_unmatched(delta: DeltaBuilder, column: UnmatchedColumn) -> None:
    """Writes the row of a column that files and their source do not share."""
    _put(
        delta,
        "column",
        column.column,
        *(column.source, column.column, *(() if column.was is None else ("renamed",))),
        definition=json.dumps(
            {"path": column.path}
            | ({"is_missing": True} if column.is_missing else {})
            | ({} if column.was is None else {"was": column.was})
        ),
        sources=[column.source],
        created_epoch=column.epoch,
    )


def put_watermark(delta: DeltaBuilder, watermark: SourceWatermark) -> None:
    """Writes the row of the watermark of a source."""
    definition = json.dumps({"at": watermark.at, "high": watermark.high})
    _put(delta, "watermark", watermark.source, watermark.source, definition=definition)


def put_expectations(delta: DeltaBuilder, expectations: ViewExpectations) -> None:
    """Writes the row of the expectations of a view."""
    _put(delta, "expectations", expectations.view, expectations.view, definition=expectations.to_json())


def delete_expectations(delta: DeltaBuilder, view: str) -> None:
    """Deletes the row of the expectations of a view."""
    delta.delete("catalog", encode_key("expectations", view), _VNODE)


def put_view(delta: DeltaBuilder, view: CatalogView) -> None:
    """Writes the row of a view."""
    _put(
        delta,
        "view",
        view.name,
        view.name,
        definition=view.definition,
        view_class=view.view_class,
        identity=view.identity,
        sources=list(view.sources),
        view_key=list(view.key),
        created_epoch=view.created_epoch,
        stopped_epoch=view.stopped_epoch,
        error=view.error,
        missing=list(view.missing),
        visible=[{"source": source, "columns": list(columns)} for source, columns in view.visible.items()],
    )


def delete_view(delta: DeltaBuilder, name: str) -> None:
    """Deletes the row of a view."""
    delta.delete("catalog", encode_key("view", name), _VNODE)


def _put(delta: DeltaBuilder, kind: _Kind, name: str, *key: str, **fields: Any) -> None:
    delta.put("catalog", encode_key(kind, *key), _VNODE, kind=kind, name=name, **fields)


def _pipeline(row: Mapping[str, Any]) -> CatalogPipeline:
    return CatalogPipeline(row["name"], json.loads(row["definition"])["ansi"])


def _view(row: Mapping[str, Any]) -> CatalogView:
    return CatalogView(
        name=row["name"],
        view_class=row["view_class"],
        definition=row["definition"],
        identity=row["identity"],
        sources=tuple(row["sources"]),
        key=tuple(row["view_key"]),
        created_epoch=row["created_epoch"],
        stopped_epoch=row["stopped_epoch"],
        error=row["error"],
        missing=tuple(row["missing"]),
        visible={each["source"]: tuple(each["columns"]) for each in row["visible"]},
    )


def _unmatched(row: Mapping[str, Any]) -> UnmatchedColumn:
    definition = json.loads(row["definition"])
    return UnmatchedColumn(
        row["sources"][0],
        row["name"],
        definition["path"],
        row["created_epoch"],
        definition.get("is_missing", False),
        definition.get("was"),
    )
