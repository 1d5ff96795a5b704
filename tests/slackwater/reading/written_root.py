"""A root with four epochs, committed through the real store without Ray or Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import lance
import pyarrow as pa

from actors.coordination.epoch_times import EpochTimes
from state.clock import ManualClock
from state.epoch import next_epoch
from state.lance import view_dataset
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.catalog import CatalogPipeline, put_pipeline, put_source, put_view
from state.tables.delta import DeltaBuilder
from state.tables.epoch_trace import EpochTrace, Span
from state.tables.fingerprint import version_fingerprint
from state.tables.group_key import group_keys
from state.tables.keys import encode_key
from state.tables.records import (
    CatalogSource,
    CatalogView,
    EpochCounts,
    EpochRecord,
    EpochSeconds,
    ViewClass,
    ViewVersion,
)

START = datetime(2026, 1, 31, 12, tzinfo=UTC)
SECONDS = EpochSeconds(fetch=0.5, align=0.25, spark=1.0, collect=0.125)
SPANS = EpochTimes(
    opened_s=-0.5,
    aligned_s=0.25,
    materialized_s=1.25,
    collected_s={"list-flights": 0.125, "fetch-0": 0.1875, "fetch-1": 0.25, "merger": 0.25},
    complete_s=1.5,
    work_s=0.875,
    work=[Span("spark", "ingest into Spark", 0.0, 0.125), Span("spark", "by_carrier", 0.125, 0.75)],
).spans()
RAW_SCHEMA = pa.schema([("carrier", pa.string()), ("day", pa.date32())])


@dataclass
class WrittenRoot:
    """The first epoch declares, the second queues, the third reads a and b, the fourth half of big; bad is bad."""

    root: Location
    raw: Location
    records: list[EpochRecord]

    @property
    def epochs(self) -> list[int]:
        return [record.epoch for record in self.records]


class RootWriter:
    """Commits epochs one second apart, by hand."""

    def __init__(self, root: Location, raw: Location) -> None:
        self.clock = ManualClock(START)
        self.root, self.raw = root, raw
        self.store = LanceStateStore.create(root, self.clock)
        self.store.take_over()
        self.delta = DeltaBuilder()
        self.views: dict[str, ViewVersion] = {}
        self.records: list[EpochRecord] = []
        self.epoch = next_epoch(self.clock, 0)

    def commit(self, files: int = 0, rows: int = 0, published: int | None = None) -> None:
        record = self.store.commit(
            epoch=self.epoch,
            delta=self.delta.build(),
            views=self.views,
            counts=EpochCounts(files, rows, rows * 10, files),
            seconds=SECONDS,
            trace=EpochTrace.of(SPANS, self._commit_before()).to_json(),
            published=published,
        )
        self.records.append(record)
        self.clock.advance(1)
        self.epoch = next_epoch(self.clock, self.epoch)

    def _commit_before(self) -> tuple[int, float] | None:
        return (self.records[-1].epoch, 0.0625) if self.records else None

    def reopen(self) -> None:
        """Goes on after another process has changed the tags of the root."""
        self.store = LanceStateStore.open(self.root, self.clock)
        self.store.take_over()

    def queue(self, path: str, size: int = 100, **fields: Any) -> None:
        known: dict[str, Any] = {
            "row_offset": 0,
            "attempts": 0,
            "listed_epoch": self.epoch,
            "etag": '"e"',
            "last_modified": START,
        }
        self.delta.put("queue", self._key(path, size), 1, **{**self._identity(path, size), **known, **fields})

    def finish(self, path: str, size: int = 100, status: str = "done", **fields: Any) -> None:
        self.delta.delete("queue", self._key(path, size), 1)
        known: dict[str, Any] = {
            "status": status,
            "listed_epoch": self.epoch - 1,
            "done_epoch": self.epoch,
            "rows_bad": 0,
        }
        self.delta.put("ledger", self._key(path, size), 1, **{**self._identity(path, size), **known, **fields})

    def view(self, name: str, rows: pa.Table) -> None:
        """The view holds these rows from the next commit on."""
        old = self.views.get(name)
        if old is None:
            path = f"views/{name}-{self.epoch}.lance"
            version = view_dataset.create(self.root.child(path), rows).version
        else:
            path = old.path
            dataset = lance.write_dataset(
                rows,
                self.root.child(path).lance_uri,
                mode="append" if name == "late" else "overwrite",
                storage_options=dict(self.root.storage_options) or None,
            )
            version = dataset.version
        self.views[name] = ViewVersion(name, path, version)

    def _key(self, path: str, size: int) -> bytes:
        return encode_key("flights", path, version_fingerprint('"e"', size, START))

    def _identity(self, path: str, size: int) -> dict[str, Any]:
        version = version_fingerprint('"e"', size, START)
        return {"source": "flights", "path": path, "version": version, "size": size}


def by_carrier(rows: dict[str | None, int]) -> pa.Table:
    """An aggregate view with its key and a partial beside the result."""
    carriers = pa.array(list(rows), pa.string())
    numbers = pa.array(list(rows.values()), pa.int64())
    return pa.table({"carrier": carriers, "n": numbers, "__sw_key": group_keys([carriers]), "__sw_partial_0": numbers})


def late(*days: int) -> pa.Table:
    start = START.date()
    return pa.table(
        {
            "day": pa.array([start + timedelta(days=day) for day in days], pa.date32()),
            "delay": pa.array(days, pa.int64()),
        }
    )


def begin_root(root: Location, raw: Location) -> RootWriter:
    """The first epoch of a root: a source and two views without rows."""
    writer = RootWriter(root, raw)
    definition = {"url": raw.url, "format": {"name": "csv", "delimiter": ","}, "pattern": "**/*.csv"}
    put_pipeline(writer.delta, CatalogPipeline("flights", ansi=False))
    schema = RAW_SCHEMA.serialize().to_pybytes()
    put_source(writer.delta, CatalogSource("flights", json.dumps(definition), schema))
    views: list[tuple[str, ViewClass, tuple[str, ...]]] = [
        ("by_carrier", "aggregate", ("carrier",)),
        ("late", "append", ()),
    ]
    for name, view_class, key in views:
        query = f"SELECT ... AS {name}"
        put_view(writer.delta, CatalogView(name, view_class, query, "plan", ("flights",), key, writer.epoch))
    writer.view("by_carrier", by_carrier({}))
    writer.view("late", late())
    writer.commit()
    return writer


def write_root(root: Location, raw: Location) -> WrittenRoot:
    writer = begin_root(root, raw)
    for path in ("day=1/a.csv", "day=1/b.csv", "day=2/big.csv", "day=2/bad.csv", "day=3/new.csv"):
        writer.queue(path)
    writer.delta.put("list_state", encode_key("flights"), 0, source="flights", listed_at=START, pages=1, requests=1)
    writer.commit()

    writer.finish("day=1/a.csv", rows_read=2)
    writer.finish("day=1/b.csv", rows_read=3, rows_bad=1)
    writer.view("by_carrier", by_carrier({"AA": 3, "o'hare|1": 1, None: 1}))
    writer.view("late", late(1, 2))
    writer.commit(files=2, rows=5)

    writer.queue("day=2/big.csv", row_offset=1000, listed_epoch=writer.records[1].epoch, first_epoch=writer.epoch)
    writer.finish("day=2/bad.csv", status="quarantined", rows_read=0, error="row 3: 'x' is no bigint")
    writer.view("by_carrier", by_carrier({"AA": 903, "o'hare|1": 101, None: 1}))
    writer.view("late", late(3))
    writer.commit(files=1, rows=1000)
    return WrittenRoot(root, raw, writer.records)
