"""The head and the epoch records as rows of the store, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from state.keys import encode_key
from state.records import EpochCounts, EpochRecord, EpochSeconds, Head, ViewVersion
from state.tables import PUT, row_type

_VNODE = 0


def head_row(head: Head) -> pa.Table:
    """The head as one row of the table `head`: columns vnode, op, key, row."""
    fields = {"term": head.term, "epoch": head.epoch, "views": _view_rows(head.views)}
    return _one_row("head", b"", fields)


def read_head(fields: Mapping[str, Any]) -> Head:
    """The head out of its row's fields."""
    return Head(fields["term"], fields["epoch"], _views(fields["views"]))


def epoch_row(record: EpochRecord) -> pa.Table:
    """An epoch record as one row of the table `epoch`: columns vnode, op, key, row."""
    counts, seconds = record.counts, record.seconds
    fields = {
        "term": record.term,
        "committed_at": record.committed_at,
        "state_version": record.state_version,
        "files": counts.files,
        "rows": counts.rows,
        "bytes": counts.bytes,
        "requests": counts.requests,
        "fetch_s": seconds.fetch,
        "align_s": seconds.align,
        "spark_s": seconds.spark,
        "collect_s": seconds.collect,
        "views": _view_rows(record.views),
    }
    return _one_row("epoch", encode_key(record.epoch), fields)


def read_epochs(rows: pa.Table) -> list[EpochRecord]:
    """The records out of the current rows of the table `epoch`, oldest first."""
    return [
        EpochRecord(
            epoch=row["epoch"],
            term=row["term"],
            committed_at=row["committed_at"],
            state_version=row["state_version"],
            counts=EpochCounts(row["files"], row["rows"], row["bytes"], row["requests"]),
            seconds=EpochSeconds(row["fetch_s"], row["align_s"], row["spark_s"], row["collect_s"]),
            views=_views(row["views"]),
        )
        for row in rows.sort_by("epoch").to_pylist()
    ]


def _one_row(table: str, key: bytes, fields: Mapping[str, Any]) -> pa.Table:
    return pa.table(
        {
            "vnode": pa.array([_VNODE], pa.uint8()),
            "op": pa.array([PUT], pa.uint8()),
            "key": pa.array([key], pa.binary()),
            "row": pa.array([fields], row_type(table)),
        }
    )


def _view_rows(views: Mapping[str, ViewVersion]) -> list[dict[str, Any]]:
    return [vars(views[name]) for name in sorted(views)]


def _views(rows: Iterable[Mapping[str, Any]]) -> dict[str, ViewVersion]:
    return {row["name"]: ViewVersion(**row) for row in rows}
