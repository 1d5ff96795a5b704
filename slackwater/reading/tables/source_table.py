"""The public table of sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from slackwater.reading.tables.file_table import ignored_changes, source_url
from slackwater.reading.tables.source_discovery import SourceDiscovery, seconds_since
from state.ownership.owner import Owner
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.keys import encode_key

_LEFT_OUT = pa.struct([("column", pa.string()), ("path", pa.string()), ("epoch", pa.int64())])
_QUEUE = pa.struct(
    [
        ("url", pa.string()),
        ("in_flight", pa.int64()),
        ("oldest_s", pa.float64()),
        ("received", pa.int64()),
        ("redelivered", pa.int64()),
        ("poison", pa.int64()),
        ("found_by_listing", pa.int64()),
    ]
)
_SOURCES = pa.schema(
    [
        ("name", pa.string()),
        ("url", pa.string()),
        ("format", pa.string()),
        ("pattern", pa.string()),
        ("schema", pa.string()),
        ("left_out", pa.list_(_LEFT_OUT)),
        ("changes_ignored", pa.int64()),
        ("listed_at", pa.timestamp("us", tz="UTC")),
        ("requests_last_hour", pa.int64()),
        ("period_s", pa.float64()),
        ("stretched_by", pa.string()),
        ("queue", _QUEUE),
    ]
)


def source_table(store: StateStore, catalog: Catalog, owner: Owner | None, now: datetime) -> pa.Table:
    """One row per source, see `Store.sources`.

    Args:
        store: a handle on the store.
        catalog: the sources.
        owner: who runs on the root, or ran last.
        now: the time of the wall clock.
    """
    ignored = ignored_changes(store)
    rows = []
    for source in catalog.sources.values():
        definition = json.loads(source.definition)
        url = source_url(source.definition)
        listing = store.get("list_state", encode_key(source.name)) or {}
        discovery = SourceDiscovery.read(source.name, store, owner)
        rows.append(
            {
                "name": source.name,
                "url": url,
                "format": definition["format"]["name"],
                "pattern": definition["pattern"],
                "schema": None if source.schema is None else _schema_text(source.schema),
                "left_out": [
                    {"column": each.column, "path": f"{url}/{each.path}", "epoch": each.epoch}
                    for each in catalog.left_out
                    if each.source == source.name
                ],
                "changes_ignored": ignored.get(source.name, 0),
                "listed_at": discovery.progress.listed_at,
                "requests_last_hour": listing.get("requests_last_hour"),
                "period_s": discovery.progress.period_s,
                "stretched_by": listing.get("stretched_by"),
                "queue": _queue(discovery, now),
            }
        )
    return pa.Table.from_pylist(rows, _SOURCES)


def _queue(discovery: SourceDiscovery, now: datetime) -> Mapping[str, Any] | None:
    queue = discovery.progress.queue
    if queue is None:
        return None
    oldest = queue.oldest_sent_at
    return {
        "url": queue.url,
        "in_flight": queue.in_flight,
        "oldest_s": None if oldest is None else seconds_since(oldest, now),
        "received": queue.received,
        "redelivered": queue.redelivered,
        "poison": discovery.poison,
        "found_by_listing": discovery.progress.found,
    }


def _schema_text(schema: bytes) -> str:
    fields = pa.ipc.read_schema(pa.py_buffer(schema))
    return ", ".join(f"{field.name} {field.type}" for field in fields)
