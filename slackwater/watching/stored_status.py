"""Status of a root by the store alone, in the form of a run's status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from actors.protocol.run_state import CommittedEpoch
from slackwater.status.run_status import BackfillStatus, RunStatus, SourceStatus, ViewStatus
from state.tables.records import EpochCounts, EpochSeconds
from state.tables.tables import REMOVED_STATUSES

if TYPE_CHECKING:
    from slackwater.reading.store import Store

_RECENT_EPOCHS = 32
_STATUSES = ("waiting", "reading", "done", "quarantined", "vanished")


def stored_status(store: Store, phase: str = "stopped") -> RunStatus:
    """The committed counts of files and rows since the first run on the root, without rates.

    Args:
        store: the store of the root.
        phase: the phase of the run on it, if that is known.

    Raises:
        StorageError: the root cannot be read.
    """
    retained = store.epochs()
    epochs = retained.slice(max(0, retained.num_rows - _RECENT_EPOCHS)).to_pylist()
    files = store.files()
    return RunStatus(
        phase=phase,
        epoch=epochs[-1]["epoch"] if epochs else 0,
        sources={row["name"]: source_counts(files, row["name"]) for row in store.sources().to_pylist()},
        views={row["name"]: ViewStatus(row["class"], row["rows"]) for row in store.views().to_pylist()},
        backfills={row["name"]: BackfillStatus(row["fraction"] or 0.0) for row in store.backfills().to_pylist()},
        spark="",
        recent=tuple(_committed(row) for row in epochs),
    )


def source_counts(files: pa.Table, source: str) -> SourceStatus:
    """The counts of the files of one source.

    Args:
        files: the table of `Store.files`.
        source: the name of the source.
    """
    mine = files.filter(pc.equal(files["source"], source))
    in_views = mine.filter(pc.invert(pc.is_in(mine["status"], value_set=pa.array(REMOVED_STATUSES))))
    counts = {row["values"]: row["counts"] for row in pc.value_counts(mine["status"]).to_pylist()}
    rows_bad = _total(in_views["rows_bad"])
    return SourceStatus(
        **{status: counts.get(status, 0) for status in _STATUSES},
        listed=mine.num_rows - counts.get("vanished", 0),
        rows=_total(in_views["rows_read"]) - rows_bad,
        rows_bad=rows_bad,
        bytes=_total(mine["bytes_read"]),
        requests=_total(mine["requests"]),
    )


def _total(column: pa.ChunkedArray) -> int:
    return pc.sum(column).as_py() or 0


def _committed(row: Mapping[str, Any]) -> CommittedEpoch:
    counts = EpochCounts(row["files"], row["rows"], row["bytes"], row["requests"])
    seconds = EpochSeconds(row["fetch_s"], row["align_s"], row["spark_s"], row["collect_s"])
    return CommittedEpoch(row["epoch"], row["committed_at"], counts, seconds)
