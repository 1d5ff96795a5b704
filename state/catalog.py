"""The catalog: what the pipeline, its sources and its views were when they were declared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from state.delta import DeltaBuilder
from state.keys import encode_key
from state.records import CatalogSource, CatalogView
from state.store_format import FORMAT_VERSION

_VNODE = 0


@dataclass(frozen=True)
class CatalogPipeline:
    """The pipeline that a root belongs to.  `ansi` is Spark's mode, fixed when the root was first written."""

    name: str
    ansi: bool


@dataclass(frozen=True)
class Catalog:
    """All definitions at some epoch; the mappings go by name.  `pipeline` is None before the first commit."""

    pipeline: CatalogPipeline | None = None
    sources: Mapping[str, CatalogSource] = field(default_factory=dict)
    views: Mapping[str, CatalogView] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: pa.Table) -> Catalog:
        """Reads the current rows of the table `catalog`."""
        kinds: dict[str, list[Mapping[str, Any]]] = {"pipeline": [], "source": [], "view": []}
        for row in rows.to_pylist():
            kinds[row["kind"]].append(row)
        sources = [CatalogSource(row["name"], row["definition"], row["schema"]) for row in kinds["source"]]
        views = [_view(row) for row in kinds["view"]]
        return cls(
            _pipeline(kinds["pipeline"][0]) if kinds["pipeline"] else None,
            {source.name: source for source in sorted(sources, key=lambda source: source.name)},
            {view.name: view for view in sorted(views, key=lambda view: (view.created_epoch, view.name))},
        )


def put_pipeline(delta: DeltaBuilder, pipeline: CatalogPipeline) -> None:
    """Writes the row of the pipeline."""
    # A program of format 1 looks for the format here, and refuses the store.
    definition = json.dumps({"format_version": FORMAT_VERSION, "ansi": pipeline.ansi})
    key = encode_key("pipeline", pipeline.name)
    delta.put("catalog", key, _VNODE, kind="pipeline", name=pipeline.name, definition=definition)


def put_source(delta: DeltaBuilder, source: CatalogSource) -> None:
    """Writes the row of a source."""
    delta.put(
        "catalog",
        encode_key("source", source.name),
        _VNODE,
        kind="source",
        name=source.name,
        definition=source.definition,
        schema=source.schema,
    )


def put_view(delta: DeltaBuilder, view: CatalogView) -> None:
    """Writes the row of a view."""
    delta.put(
        "catalog",
        encode_key("view", view.name),
        _VNODE,
        kind="view",
        name=view.name,
        definition=view.definition,
        view_class=view.view_class,
        identity=view.identity,
        sources=list(view.sources),
        view_key=list(view.key),
        created_epoch=view.created_epoch,
        frozen_epoch=view.frozen_epoch,
    )


def _pipeline(row: Mapping[str, Any]) -> CatalogPipeline:
    return CatalogPipeline(row["name"], json.loads(row["definition"])["ansi"])


def _view(row: Mapping[str, Any]) -> CatalogView:
    return CatalogView(
        name=row["name"],
        view_class=row["view_class"],
        definition=row["definition"],
        identity=row["identity"],
        sources=tuple(row["sources"] or ()),
        key=tuple(row["view_key"] or ()),
        created_epoch=row["created_epoch"],
        frozen_epoch=row["frozen_epoch"],
    )
