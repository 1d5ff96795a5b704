"""Tables of the views of a root, and of its backfills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from slackwater.reading.view import View
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.catalog import Catalog
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import base_name, declared_name, is_view, next_name

_VIEWS = pa.schema(
    [
        ("name", pa.string()),
        ("class", pa.string()),
        ("definition", pa.string()),
        ("sources", pa.list_(pa.string())),
        ("reads", pa.list_(pa.string())),
        ("key", pa.list_(pa.string())),
        ("rows", pa.int64()),
        ("path", pa.string()),
        ("version", pa.int64()),
        ("reflects_epoch", pa.int64()),
        ("closed_until", pa.timestamp("us", tz="UTC")),
        ("late_rows", pa.int64()),
        ("stopped", pa.bool_()),
        ("error", pa.string()),
        ("missing", pa.list_(pa.string())),
    ]
)
_BACKFILLS = pa.schema([("name", pa.string()), ("class", pa.string()), ("fraction", pa.float64())])


def view_table(state: LanceStateStore, catalog: Catalog, root: Location) -> pa.Table:
    """See `Views.table`."""
    views = [view for view in catalog.views.values() if is_view(view.name)]
    missing: dict[str, list[str]] = {}
    for each in catalog.views.values():
        if each.name == base_name(each.name):
            missing.setdefault(declared_name(each.name), []).extend(each.missing)
    rows = [{**_row(view, missing[view.name], state, root), "reads": _reads(view, catalog)} for view in views]
    return pa.Table.from_pylist(rows, _VIEWS)


def reflected_epoch(view: CatalogView, version: ViewVersion, epoch: int) -> int | None:
    """The epoch whose rows a view shows; None for a view that failed in its first epoch, and has no rows.

    Args:
        view: the view, as the catalog of an epoch has it.
        version: its version in the record of that epoch.
    """
    if version.reflects_epoch is not None:
        return version.reflects_epoch
    if view.stopped_epoch is None:
        return epoch
    return view.stopped_epoch or None


def backfill_table(state: LanceStateStore, catalog: Catalog) -> pa.Table:
    """See `Views.backfills`."""
    rows: dict[str, dict[str, Any]] = {}
    for name, version in state.head.views.items():
        if name == base_name(name):
            continue
        view, progress = declared_name(name), version.noted.get("fraction")
        known = rows.get(view, {}).get("fraction")
        fraction = min((each for each in (known, progress) if each is not None), default=None)
        entry = catalog.views.get(next_name(view))
        rows[view] = {"name": view, "class": None if entry is None else entry.view_class, "fraction": fraction}
    return pa.Table.from_pylist(list(rows.values()), _BACKFILLS)


def _reads(view: CatalogView, catalog: Catalog) -> list[str]:
    """The views that a view reads, and its sources that none of these reads."""
    behind = {source for name in view.views if name in catalog.views for source in catalog.views[name].sources}
    return [*(source for source in view.sources if source not in behind), *view.views]


def _row(view: CatalogView, missing: Sequence[str], state: LanceStateStore, root: Location) -> Mapping[str, Any]:
    declared = {
        "name": view.name,
        "class": view.view_class,
        "definition": view.definition,
        "sources": list(view.sources),
        "key": list(view.key),
        "stopped": view.stopped_epoch is not None,
        "error": view.error,
        "missing": list(dict.fromkeys(missing)),
    }
    version = state.head.views.get(view.name)
    if version is None:
        return declared
    return {
        **declared,
        "rows": View(root, version, view.key, state.head.epoch).count_rows(),
        "path": str(root.child(version.path)),
        "version": version.version,
        "reflects_epoch": reflected_epoch(view, version, state.head.epoch),
        "closed_until": version.noted.get("closed"),
        "late_rows": _late_rows(view.name, state.head.views),
    }


def _late_rows(name: str, versions: Mapping[str, ViewVersion]) -> int | None:
    """The late rows of a view, which it counts itself, or its sides do; None if no row is late for it."""
    own = (version.noted for each, version in versions.items() if declared_name(each) == name)
    counts = [noted["late"] for noted in own if "late" in noted]
    return sum(counts) if counts else None
