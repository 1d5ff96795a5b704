"""A root whose ledger has quarantined files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from actors.fetching.file_progress import Ending, FileProgress
from actors.files import FileVersion
from state.clock import Clock, SystemClock
from state.epoch import next_epoch
from state.lance.lance_root import LanceRoot
from state.location import Location
from state.tables.catalog import CatalogPipeline, put_pipeline, put_source, put_view
from state.tables.delta import DeltaBuilder
from state.tables.fingerprint import version_fingerprint
from state.tables.records import CatalogSource, CatalogView, EpochCounts, EpochSeconds

AT = datetime(2026, 1, 1, tzinfo=UTC)
RAW = "s3://raw"
BAD = Ending("quarantined", "bad")
DONE = Ending("done")


def version(path: str, etag: str = "1", source: str = "s") -> FileVersion:
    return FileVersion(source, path, version_fingerprint(etag, 10, AT), etag, 10, AT)


def progress(path: str, rows: int = 0, etag: str = "1", source: str = "s", listed: int = 1) -> FileProgress:
    first = listed if rows else None
    return FileProgress(
        version(path, etag, source), listed, first, rows, attempts=1, requests=3, bytes_read=70, stored=True
    )


class BadFiles:
    """A root with the sources `s` and `t`, and epochs that are written by hand."""

    def __init__(self, root: Location, clock: Clock | None = None, raw: str = RAW) -> None:
        self.root = LanceRoot(root, clock or SystemClock())
        store = self.root.create_or_open()
        store.take_over("by hand")
        delta = DeltaBuilder()
        put_pipeline(delta, CatalogPipeline("flights", ansi=False))
        for name in ("s", "t"):
            definition = {"url": f"{raw}/{name}", "format": {"name": "csv"}, "pattern": "**"}
            put_source(delta, CatalogSource(name, json.dumps(definition), None))
        self._commit(delta)

    def ended(self, ending: Ending, *files: FileProgress, changed_epoch: int | None = None) -> None:
        """These end in one epoch; with `changed_epoch` their objects are others since."""
        delta = DeltaBuilder()
        for each in files:
            delta.delete("queue", each.state_key, each.vnode)
            row = each.ledger_row(ending, done_epoch=9, changed_epoch=changed_epoch)
            delta.put("ledger", each.state_key, each.vnode, **row)
        self._commit(delta)

    def view(self, view: CatalogView) -> None:
        """The catalog has a view."""
        delta = DeltaBuilder()
        put_view(delta, view)
        self._commit(delta)

    def queued(self, *files: FileProgress) -> None:
        """These are in the queue, and no more in the ledger."""
        delta = DeltaBuilder()
        for each in files:
            delta.delete("ledger", each.state_key, each.vnode)
            delta.put("queue", each.state_key, each.vnode, **each.queue_row())
        self._commit(delta)

    def paths(self, table: str) -> Sequence[str]:
        return sorted(self.root.open(read_only=True).scan(table)["path"].to_pylist())

    def _commit(self, delta: DeltaBuilder) -> None:
        store = self.root.open()
        store.commit(
            epoch=next_epoch(self.root.clock, store.head.epoch),
            delta=delta.build(),
            views={},
            counts=EpochCounts(),
            seconds=EpochSeconds(),
        )
