"""Writes a small store of the format of this version: three epochs, one view, a bad record, a half-read file, a tag.

`stores/format-<number>` is its output.  Once a released version has written the number, it is never written again: a
new format takes the next number, and its example replaces this one:

    python -m tests.state.lance.write_format_store tests/state/lance/stores/format-3
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from state.clock import ManualClock
from state.epoch import next_epoch
from state.lance import view_dataset
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.catalog import CatalogPipeline, put_pipeline, put_source, put_unmatched, put_view
from state.tables.delta import DeltaBuilder
from state.tables.epoch_trace import EpochTrace, Span
from state.tables.fingerprint import path_fingerprint, version_fingerprint
from state.tables.group_key import group_keys
from state.tables.keys import encode_key
from state.tables.records import CatalogSource, CatalogView, EpochCounts, EpochSeconds, UnmatchedColumn, ViewVersion
from state.upkeep.tags import put_tag
from state.vnode import vnode_of

START = datetime(2026, 1, 31, 12, tzinfo=UTC)
FILES = ("day=1/a.csv", "day=1/b.csv", "day=2/big.csv")
SIZE = 100
VERSION = version_fingerprint('"e"', SIZE, START)
_SECONDS = EpochSeconds(fetch=0.5, align=0.25, spark=1.0, collect=0.125)
_SPANS = (Span("fetch", "", -0.5, 0.5), Span("align", "", 0.0, 0.25), Span("spark", "by_carrier", 0.25, 1.0))


class FormatStoreWriter:
    """Commits epochs one second apart to a new store."""

    def __init__(self, root: Location) -> None:
        self._clock = ManualClock(START)
        self._store = LanceStateStore.create(root, self._clock)
        self._store.take_over("run-1")
        self._location = root
        self._views: dict[str, ViewVersion] = {}
        self.delta = DeltaBuilder()
        self.epoch = next_epoch(self._clock, 0)

    def commit(self, rows: dict[str, int], counts: EpochCounts) -> None:
        """Commits the delta; the view then holds these rows."""
        self._write_view(rows)
        trace = EpochTrace.of(_SPANS, (self._store.head.epoch, 0.0625) if self._store.head.epoch else None)
        self._store.commit(
            epoch=self.epoch,
            delta=self.delta.build(),
            views=self._views,
            counts=counts,
            seconds=_SECONDS,
            trace=trace.to_json(),
        )
        self._clock.advance(1)
        self.epoch = next_epoch(self._clock, self.epoch)

    def put_file(self, table: str, path: str, **fields: Any) -> None:
        """Writes a row of `queue` or `ledger`; a row of `ledger` replaces the row of `queue`."""
        key, vnode = encode_key("flights", path, VERSION), vnode_of(path)
        if table == "ledger":
            self.delta.delete("queue", key, vnode)
        file = {"source": "flights", "path": path, "version": VERSION, "etag": '"e"', "size": SIZE}
        self.delta.put(table, key, vnode, **file, last_modified=START, attempts=1, **fields)

    def tag(self, name: str, epoch: int) -> None:
        put_tag(self._store, name, epoch)

    def _write_view(self, rows: dict[str, int]) -> None:
        carriers = pa.array(list(rows), pa.string())
        counts = pa.array(list(rows.values()), pa.int64())
        columns = {"carrier": carriers, "n": counts, "__sw_key": group_keys([carriers]), "__sw_partial_0": counts}
        path = f"views/by_carrier-{next_epoch(ManualClock(START), 0)}.lance"
        location = self._location.child(path)
        if not self._views:
            version = view_dataset.create(location, pa.table(columns)).version
        else:
            version = lance.write_dataset(pa.table(columns), location.lance_uri, mode="overwrite").version
        self._views = {"by_carrier": ViewVersion("by_carrier", path, version)}
        view_dataset.tag_committed(self._location, self._views["by_carrier"])


def write_store(root: Location) -> None:
    """The store: declared and listed in the first epoch, two files read in the second, half of one in the third."""
    writer = FormatStoreWriter(root)
    first = writer.epoch
    schema = pa.schema([("carrier", pa.string())]).serialize().to_pybytes()
    put_pipeline(writer.delta, CatalogPipeline("flights", ansi=False))
    definition = '{"url": "s3://raw/flights", "format": {"name": "csv"}, "pattern": "**/*.csv"}'
    put_source(writer.delta, CatalogSource("flights", definition, schema, START, None))
    query = "SELECT carrier, count(*) AS n FROM flights GROUP BY carrier"
    view = CatalogView("by_carrier", "aggregate", query, "plan", ("flights",), ("carrier",), first)
    put_view(writer.delta, view)
    put_unmatched(writer.delta, UnmatchedColumn("flights", "tail", FILES[0], first))
    for path in FILES:
        writer.put_file("queue", path, row_offset=0, listed_epoch=first)
        seen = path_fingerprint("flights", path)
        writer.delta.put("seen", seen, vnode_of(path), source="flights", path=path, version=VERSION)
    writer.delta.put("list_state", encode_key("flights"), 0, source="flights", listed_at=START, pages=1, requests=1)
    writer.commit({}, EpochCounts())

    second = writer.epoch
    done = {"status": "done", "listed_epoch": first, "first_epoch": second, "done_epoch": second, "bytes_read": SIZE}
    writer.put_file("ledger", FILES[0], rows_read=2, rows_bad=0, **done)
    writer.put_file("ledger", FILES[1], rows_read=3, rows_bad=1, **done)
    bad = {"source": "flights", "path": FILES[1], "version": VERSION, "row": 2, "raw": b"x,y", "reason": "two fields"}
    key = encode_key("flights", FILES[1], VERSION, 2)
    writer.delta.put("quarantine", key, vnode_of(FILES[1]), **bad)
    writer.commit({"AA": 3, "o'hare|1": 1}, EpochCounts(2, 4, 2 * SIZE, 2))

    key = encode_key("flights", FILES[2], VERSION)
    writer.delta.patch("queue", key, vnode_of(FILES[2]), row_offset=1_000, first_epoch=writer.epoch)
    writer.commit({"AA": 903, "o'hare|1": 101}, EpochCounts(0, 1_000, SIZE, 1))
    writer.tag("monday", second)


if __name__ == "__main__":
    write_store(Location(str(Path(sys.argv[1]).absolute())))
