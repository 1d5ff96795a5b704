"""Table of the expectations of views: the rows that violate them, and the files and epochs that brought these rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.reading.tables.file_table import whole_urls
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.expectations import PUBLISHED, ViewExpectations
from state.tables.fingerprint import path_fingerprint
from state.tables.row_selection import Clue

EXPECTATION_SCHEMA = pa.schema(
    [
        ("view", pa.string()),
        ("expectation", pa.string()),
        ("condition", pa.string()),
        ("on_violation", pa.string()),
        ("rows", pa.int64()),
        ("accepted", pa.int64()),
        ("came", pa.int64()),
        ("is_held", pa.bool_()),
        ("held_since", pa.int64()),
        ("error", pa.string()),
        ("found", pa.string()),
    ]
)
HELD_FILES = 20
"""Files that are shown of a view."""

_HELD_EPOCHS = 10


def expectation_table(catalog: Catalog) -> pa.Table:
    """See `Views.expectations`."""
    rows = [
        {
            "view": view.view,
            "expectation": name,
            "condition": each.condition,
            "on_violation": view.on_violation,
            "rows": each.rows,
            "accepted": each.accepted,
            "came": each.came,
            "is_held": view.on_violation == "hold" and each.is_violated,
            "held_since": view.held_since,
            "error": each.error,
            "found": each.found,
        }
        for view in sorted(catalog.expectations.values(), key=lambda each: each.view)
        for name, each in view.expectations.items()
    ]
    return pa.Table.from_pylist(rows, EXPECTATION_SCHEMA)


def published_epoch(store: StateStore, catalog: Catalog) -> int:
    """See `Store.published_epoch`.

    Args:
        store: a handle on the store.
        catalog: the catalog that this handle sees.
    """
    return store.head.tags.get(PUBLISHED, 0) if catalog.gate == "closed" else store.head.epoch


def violating_files(store: StateStore, catalog: Catalog, view: ViewExpectations) -> tuple[list[str], bool]:
    """The URLs of files that brought rows that violate the expectations of a view, most rows first.

    Args:
        store: a handle on the store.
        catalog: the catalog that this handle sees.
        view: the expectations of the view.

    Returns:
        At most `HELD_FILES` URLs; and whether the rows name them.  Otherwise they are the files that were finished in
        the epochs that brought such rows.
    """
    if view.files:
        keys = [bytes.fromhex(each) for each in view.files][:HELD_FILES]
        found = store.scan("seen", keys=keys, fields=["source", "path"])
        urls = dict(zip(found["key"].to_pylist(), _urls(found, catalog), strict=True))
        return [urls[key] for key in keys if key in urls], True
    named: list[str] = []
    sources = catalog.views[view.view].sources if view.view in catalog.views else ()
    for epoch in view.epochs[-_HELD_EPOCHS:]:
        files = store.scan("ledger", where=[Clue("done_epoch", equals=epoch)], fields=["source", "path"])
        files = files.filter(pc.is_in(files["source"], value_set=pa.array(sources, pa.string())))
        named += _urls(files, catalog)
    return list(dict.fromkeys(named))[:HELD_FILES], False


def violation_lines(catalog: Catalog, source: str, path: str) -> list[str]:
    """Sentences on the rows of a file that violate expectations, for each view whose rows name their file.

    Args:
        catalog: the views and their expectations.
        source: the name of the source.
        path: of the file, below the URL of the source.
    """
    key, lines = path_fingerprint(source, path).hex(), []
    for each in sorted(catalog.expectations.values(), key=lambda view: view.view):
        if rows := each.files.get(key):
            of_it = f"{rows:,} of its rows {'violates' if rows == 1 else 'violate'} expectations"
            if each.on_violation == "quarantine":
                lines.append(f"{of_it}: {'it is' if rows == 1 else 'they are'} in view {each.view}.")
            else:
                lines.append(f"{of_it} of view {each.view}.")
    return lines


def held_views(store: StateStore, catalog: Catalog) -> list[dict[str, Any]]:
    """See `Views.held`."""
    views = []
    for each in catalog.expectations.values():
        if each.holds_back:
            files, is_exact = violating_files(store, catalog, each)
            broken = {name: one for name, one in each.expectations.items() if one.is_violated}
            views.append(
                {
                    "view": each.view,
                    "since": each.held_since,
                    "expectations": {name: one.rows - one.accepted for name, one in broken.items()},
                    "errors": {name: one.error for name, one in broken.items() if one.error is not None},
                    "found": {name: one.found for name, one in broken.items() if one.found is not None},
                    "files": files,
                    "rows_name_files": is_exact,
                }
            )
    return views


def _urls(files: pa.Table, catalog: Catalog) -> list[str]:
    urls: list[str] = whole_urls(files, catalog).to_pylist() if files.num_rows else []
    return urls
