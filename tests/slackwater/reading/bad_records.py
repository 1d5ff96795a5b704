"""Bad records in a root that was written by hand."""

from __future__ import annotations

from collections.abc import Sequence

from state.clock import ManualClock
from state.lance.lance_store import LanceStateStore
from state.tables.delta import DeltaBuilder
from state.tables.fingerprint import version_fingerprint
from state.tables.keys import encode_key
from state.tables.records import EpochCounts, EpochSeconds
from tests.slackwater.reading.written_root import START, WrittenRoot

BIG, DONE, BAD = "day=2/big.csv", "day=1/b.csv", "day=2/bad.csv"
_VERSION = {"etag": '"e"', "size": 100, "last_modified": START}


def quarantine(written: WrittenRoot, path: str, *records: tuple[int, bytes, str], table: str = "ledger") -> int:
    """An epoch in which these records (row, raw, reason) of a file are quarantined."""
    store = LanceStateStore.open(written.root, ManualClock())
    fingerprint = version_fingerprint('"e"', 100, START)
    delta = DeltaBuilder()
    for row, raw, reason in records:
        key = encode_key("flights", path, fingerprint, row)
        fields = {"source": "flights", "path": path, "version": fingerprint, "row": row, "raw": raw, "reason": reason}
        delta.put("quarantine", key, 1, **fields)
    delta.patch(table, encode_key("flights", path, fingerprint), 1, rows_bad=len(records), **_VERSION)
    epoch = store.head.epoch + 1
    store.commit(epoch=epoch, delta=delta.build(), views=store.head.views, counts=EpochCounts(), seconds=EpochSeconds())
    return epoch


def rows_bad(files: Sequence[dict[str, object]]) -> dict[str, object]:
    """The name of each file → how many of its records are bad."""
    return {str(row["path"]).rpartition("/")[2]: row["rows_bad"] for row in files}
