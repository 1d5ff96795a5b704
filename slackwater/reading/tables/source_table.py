"""Table of sources, with the progress of their discovery."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from actors.recovery.committed_files import num_ignored
from slackwater.reading.tables.file_table import source_url
from state.ownership.owner import Owner
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.discovery_progress import DiscoveryProgress, QueueProgress
from state.tables.keys import encode_key
from state.upkeep.quarantine import poison_messages


@dataclass(frozen=True)
class SourceDiscovery:
    """The discovery of a source: as its run reports it, or else as of the last epoch that handed a file on.

    Args:
        poison: the number of quarantined messages that were not cleared.
        is_running: True while a pipeline runs.
    """

    progress: DiscoveryProgress
    poison: int
    is_running: bool

    @classmethod
    def read(cls, source: str, store: StateStore, owner: Owner | None) -> SourceDiscovery:
        """The discovery of one source, by the owner of the root and by the store.

        Args:
            source: the name of the source.
            store: a handle on the store.
            owner: the process that runs on the root or ran last.
        """
        is_running = owner is not None and not owner.is_gone()
        row = store.get("list_state", encode_key(source))
        kept = DiscoveryProgress() if row is None else DiscoveryProgress.of_row(row)
        said = None if owner is None else owner.sources.get(source)
        progress = kept if said is None or _is_later(kept.listed_at, said.listed_at) else said
        messages = poison_messages(store, source).num_rows
        return cls(progress if is_running else progress.at_rest(), messages, is_running)

    def text(self, now: datetime) -> str:
        """The discovery in words, without a full stop: the last and the next listing, and the content of the queue.

        Args:
            now: the time of the wall clock.
        """
        listed_at, period_s, queue = self.progress.listed_at, self.progress.period_s, self.progress.queue
        parts = ["nothing was listed yet" if listed_at is None else f"the last listing ended at {_at(listed_at)}"]
        if queue is not None and listed_at is not None and period_s:
            parts.append(f"the next one {self._when(listed_at + timedelta(seconds=period_s), now)}")
        if not self.is_running:
            parts.append("no pipeline runs on this root now")
        last = parts.pop()
        text = f"{', '.join(parts)}, and {last}" if parts else last
        return text if queue is None else f"{text}; {self._messages(queue, now)}"

    def _when(self, due: datetime, now: datetime) -> str:
        if due > now:
            return f"begins at {_at(due)} at the latest" if self.is_running else f"is due at {_at(due)}"
        return "is due now" if self.is_running else "begins with the next run"

    def _messages(self, queue: QueueProgress, now: datetime) -> str:
        are = "1 message of its queue is" if queue.in_flight == 1 else f"{queue.in_flight:,} messages of its queue are"
        parts = [f"{are} in flight"]
        if queue.oldest_sent_at is not None:
            parts.append(f"the oldest was sent {seconds_since(queue.oldest_sent_at, now):,.0f} s ago")
        if queue.redelivered:
            parts.append(f"{queue.redelivered:,} came again")
        if self.poison:
            parts.append(f"{self.poison:,} {'is' if self.poison == 1 else 'are'} in quarantine as poison")
        return ", ".join(parts)


def seconds_since(time: datetime, now: datetime) -> float:
    """The age of a time in seconds, at least 0: one of two clocks may be late."""
    return max(0.0, (now - time).total_seconds())


def _is_later(time: datetime | None, other: datetime | None) -> bool:
    return time is not None and (other is None or time > other)


def _at(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


_COLUMN = pa.struct([("column", pa.string()), ("path", pa.string()), ("epoch", pa.int64())])
_RENAMED = pa.struct([*_COLUMN, ("in_file", pa.string())])
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
SOURCE_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("url", pa.string()),
        ("format", pa.string()),
        ("pattern", pa.string()),
        ("schema", pa.string()),
        ("left_out", pa.list_(_COLUMN)),
        ("missing", pa.list_(_COLUMN)),
        ("renamed", pa.list_(_RENAMED)),
        ("changes_ignored", pa.int64()),
        ("listed_at", pa.timestamp("us", tz="UTC")),
        ("requests_last_hour", pa.int64()),
        ("period_s", pa.float64()),
        ("stretched_by", pa.string()),
        ("paused_removals", pa.int64()),
        ("paused", pa.string()),
        ("watermark", pa.timestamp("us", tz="UTC")),
        ("queue", _QUEUE),
    ]
)


def source_table(store: StateStore, catalog: Catalog, owner: Owner | None, now: datetime) -> pa.Table:
    """One row per source, see `Ledger.sources`.

    Args:
        store: a handle on the store.
        owner: the process that runs on the root or ran last.
        now: the time of the wall clock.
    """
    ignored = num_ignored(store)
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
                **_columns(catalog, source.name, url),
                "changes_ignored": ignored.get(source.name, 0),
                "listed_at": discovery.progress.listed_at,
                "requests_last_hour": listing.get("requests_last_hour"),
                "period_s": discovery.progress.period_s,
                "stretched_by": listing.get("stretched_by"),
                "paused_removals": discovery.progress.paused_removals,
                "paused": discovery.progress.paused,
                "watermark": None if (known := catalog.watermarks.get(source.name)) is None else known.at,
                "queue": _queue(discovery, now),
            }
        )
    return pa.Table.from_pylist(rows, SOURCE_SCHEMA)


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


def _columns(catalog: Catalog, source: str, url: str) -> Mapping[str, list[dict[str, Any]]]:
    """The columns that files and the source do not share, or that have another name in files."""
    columns: dict[str, list[dict[str, Any]]] = {"left_out": [], "missing": [], "renamed": []}
    for each in catalog.unmatched:
        if each.source == source:
            column = {"column": each.column, "path": f"{url}/{each.path}", "epoch": each.epoch}
            if each.was is not None:
                columns["renamed"].append({**column, "in_file": each.was})
            else:
                columns["missing" if each.is_missing else "left_out"].append(column)
    return columns
