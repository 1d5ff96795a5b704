"""The table of internal views: the rows that views keep for their joins, windows and groups within."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from slackwater.status.run_status import RowsInMemory, RunStatus
from state.lance.lance_access import open_dataset, stored_bytes
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.ownership.owner import Owner
from state.tables.catalog import Catalog
from state.tables.records import CatalogView, ViewVersion
from state.tables.stored_rows import declared_name, is_internal_view

_INTERNAL_VIEWS = pa.schema(
    [
        ("names", pa.list_(pa.string())),
        ("used_by", pa.list_(pa.string())),
        ("class", pa.string()),
        ("reads", pa.list_(pa.string())),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("rows_in_memory", pa.int64()),
        ("bytes_in_memory", pa.int64()),
        ("path", pa.string()),
    ]
)


_NOT_IN_MEMORY = RowsInMemory(0, 0)


def internal_view_table(state: LanceStateStore, catalog: Catalog, root: Location, owner: Owner | None) -> pa.Table:
    """One row per dataset of internal views, see `Views.internal`.

    Args:
        state: a handle on the store.
        owner: the process that runs on the root or ran last.
    """
    found: dict[str, list[tuple[CatalogView, ViewVersion]]] = {}
    for name, version in state.head.views.items():
        if name in catalog.views and is_internal_view(name):
            found.setdefault(version.path, []).append((catalog.views[name], version))
    in_memory = _in_memory(owner)
    rows = [
        _row(each, root, None if in_memory is None else in_memory.get(path, _NOT_IN_MEMORY))
        for path, each in found.items()
    ]
    return pa.Table.from_pylist(rows, _INTERNAL_VIEWS)


def _in_memory(owner: Owner | None) -> Mapping[str, RowsInMemory] | None:
    """Path below the root → its rows in the memory of the run; None if none is known to run."""
    status = None if owner is None or owner.is_gone() else RunStatus.of_owner(owner)
    return None if status is None else status.in_memory


def _row(
    sharing: list[tuple[CatalogView, ViewVersion]], root: Location, in_memory: RowsInMemory | None
) -> dict[str, object]:
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
        "rows_in_memory": None if in_memory is None else in_memory.rows,
        "bytes_in_memory": None if in_memory is None else in_memory.bytes,
        "path": str(root.child(version.path)),
    }
