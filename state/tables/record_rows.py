"""The head and the epoch records as rows of the store, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from state.tables.delta import Change, Delta
from state.tables.keys import encode_key
from state.tables.records import EpochCounts, EpochRecord, EpochSeconds, Head, ViewVersion
from state.tables.tables import DELETE, PUT

_VNODE = 0


def head_delta(head: Head) -> Delta:
    """The head as the one row of the table `head`."""
    fields = {
        "term": head.term,
        "epoch": head.epoch,
        "views": _view_rows(head.views),
        "run": head.run,
        "tags": [{"name": name, "epoch": epoch} for name, epoch in sorted(head.tags.items())],
    }
    return Delta({"head": {b"": Change(PUT, _VNODE, fields)}})


def read_head(fields: Mapping[str, Any]) -> Head:
    """The head from the fields of its row."""
    tags = {tag["name"]: tag["epoch"] for tag in fields["tags"]}
    return Head(fields["term"], fields["epoch"], _views(fields["views"]), fields["run"], tags)


def epoch_delta(record: EpochRecord) -> Delta:
    """An epoch record as one row of the table `epoch`."""
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
        "trace": record.trace,
        "views": _view_rows(record.views),
    }
    return Delta({"epoch": {encode_key(record.epoch): Change(PUT, _VNODE, fields)}})


def expiry_delta(epochs: Iterable[int]) -> Delta:
    """A delta that deletes epoch records."""
    return Delta({"epoch": {encode_key(epoch): Change(DELETE, _VNODE, {}) for epoch in epochs}})


def read_epochs(rows: Iterable[Mapping[str, Any]]) -> list[EpochRecord]:
    """The records from the current rows of the table `epoch`, oldest first."""
    return [
        EpochRecord(
            epoch=row["epoch"],
            term=row["term"],
            committed_at=row["committed_at"],
            state_version=row["state_version"],
            counts=EpochCounts(row["files"], row["rows"], row["bytes"], row["requests"]),
            seconds=EpochSeconds(row["fetch_s"], row["align_s"], row["spark_s"], row["collect_s"]),
            views=_views(row["views"]),
            trace=row["trace"],
        )
        for row in sorted(rows, key=lambda row: int(row["epoch"]))
    ]


def _view_rows(views: Mapping[str, ViewVersion]) -> list[dict[str, Any]]:
    return [dict(vars(views[name])) for name in sorted(views)]


def _views(rows: Iterable[Mapping[str, Any]]) -> dict[str, ViewVersion]:
    return {row["name"]: ViewVersion(**row) for row in rows}
