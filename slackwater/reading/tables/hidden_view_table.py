"""The table of hidden views: the rows that views keep for their joins, windows and groups within."""

from __future__ import annotations

import pyarrow as pa

from state.lance.lance_access import open_dataset, stored_bytes
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.catalog import Catalog
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import declared_name, is_hidden_view

_HIDDEN_VIEWS = pa.schema(
    [
        ("names", pa.list_(pa.string())),
        ("used_by", pa.list_(pa.string())),
        ("class", pa.string()),
        ("reads", pa.list_(pa.string())),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("path", pa.string()),
    ]
)


def hidden_view_table(state: LanceStateStore, catalog: Catalog, root: Location) -> pa.Table:
    """See `Store.hidden_views`."""
    found: dict[str, list[tuple[CatalogView, ViewVersion]]] = {}
    for name, version in state.head.views.items():
        if name in catalog.views and is_hidden_view(name):
            found.setdefault(version.path, []).append((catalog.views[name], version))
    return pa.Table.from_pylist([_row(each, root) for each in found.values()], _HIDDEN_VIEWS)


def _row(sharing: list[tuple[CatalogView, ViewVersion]], root: Location) -> dict[str, object]:
    views = [view for view, _ in sharing]
    view, version = sharing[0]
    datasets = [open_dataset(root.child(path), number) for path, number in version.datasets.items()]
    return {
        "names": [each.name for each in views],
        "used_by": list(dict.fromkeys(declared_name(each.name) for each in views)),
        "class": view.view_class,
        "reads": list(view.visible),
        "rows": datasets[0].count_rows(),
        "bytes": sum(map(stored_bytes, datasets)),
        "path": str(root.child(version.path)),
    }
