"""Table of the retained epochs of a root."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from state.errors import UsageError
from state.store.store import StateStore
from state.tables.records import EpochRecord
from state.tables.stored_rows import is_view

_VIEW_VERSION = pa.struct(
    [("name", pa.string()), ("path", pa.string()), ("version", pa.int64()), ("reflects_epoch", pa.int64())]
)
EPOCH_SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("epoch", pa.int64()),
        ("committed_at", pa.timestamp("us", tz="UTC")),
        ("term", pa.int64()),
        ("files", pa.int64()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("requests", pa.int64()),
        ("views", pa.list_(_VIEW_VERSION)),
        ("fetch_s", pa.float64()),
        ("align_s", pa.float64()),
        ("spark_s", pa.float64()),
        ("collect_s", pa.float64()),
    ]
)


def epoch_table(state: StateStore, *, before: int | None, limit: int | None) -> pa.Table:
    """See `Store.epochs`.

    Raises:
        UsageError: the limit is not valid.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"limit={limit}: ask for 1 epoch or more")
    return pa.Table.from_pylist([_row(record) for record in state.epochs(before=before, last=limit)], EPOCH_SCHEMA)


def _row(record: EpochRecord) -> Mapping[str, Any]:
    counts, seconds = record.counts, record.seconds
    return {
        "number": record.state_version,
        "epoch": record.epoch,
        "committed_at": record.committed_at,
        "term": record.term,
        "files": counts.files,
        "rows": counts.rows,
        "bytes": counts.bytes,
        "requests": counts.requests,
        "views": [
            {"name": v.name, "path": v.path, "version": v.version, "reflects_epoch": v.reflects_epoch}
            for v in record.views.values()
            if is_view(v.name)
        ],
        "fetch_s": seconds.fetch,
        "align_s": seconds.align,
        "spark_s": seconds.spark,
        "collect_s": seconds.collect_alone,
    }
