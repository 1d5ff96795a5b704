"""The quarantine: bad records, with their position in a file and their bytes, poison messages, and skipped names.

Clearing a record deletes its bytes and reason and keeps its position: the positions identify the rows of a file
that the views hold.

A poison message, and a name that listings skip, have no position in a file.  Their path is a whole URL, of the queue
with the message's id or of the name, and clearing deletes them completely.

A late row of a view is a good record of its file: it has no version, its key has the name of the view, and clearing
deletes it completely.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from state.store.store import StateStore
from state.tables.delta import DeltaBuilder
from state.tables.keys import decode_key, encode_key

_AFTER_EVERY_PART = b"\xff"
_URL = "http"
_NO_VERSION = b""
_POSITION = ("source", "path", "version", "row")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MISSED = re.compile(r", by the watermark (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}) UTC$")


def bad_records(
    store: StateStore, source: str | None = None, path: str | None = None, *, state_version: int | None = None
) -> pa.Table:
    """Rows of the table `quarantine` as in `StateStore.scan`; the reason of a cleared record is null.

    Args:
        store: a handle on the store.
        source: only records of this source; None for all.
        path: only records of this file, in all of its versions; None for all.
        state_version: an older version of the store.
    """
    if source is None:
        return store.scan("quarantine", state_version=state_version)
    start = encode_key(source) if path is None else encode_key(source, path)
    return store.scan("quarantine", start=start, end=start + _AFTER_EVERY_PART, state_version=state_version)


def has_no_row(records: pa.Table) -> pa.ChunkedArray:
    """True for each row that is a poison message or a skipped name, false for a record of a file."""
    return pc.is_null(records["row"])


def poison_messages(store: StateStore, source: str) -> pa.Table:
    """The poison messages of a source, as rows of the table `quarantine`."""
    # Without the byte that ends a text, the key is a prefix: it selects all paths that begin with it.
    start = encode_key(source, _URL)[:-1]
    records = store.scan("quarantine", start=start, end=start + _AFTER_EVERY_PART)
    return records.filter(has_no_row(records))


def late_row_key(source: str, path: str, row: int, view: str, epoch: int, content: bytes) -> bytes:
    """The key of a late row.

    Args:
        row: its position there.
        view: the view that it is late for.
        epoch: the epoch in which it came.
        content: distinguishes it from the row of another version of the file in the same epoch.
    """
    return encode_key(source, path, _NO_VERSION, row, view, epoch, content)


def late_reason(view: str, what: str, missed_us: int) -> str:
    """The reason of a late row.

    Args:
        view: the view that it is late for.
        what: the state that was closed, for people.
        missed_us: the watermark by which it is late, in microseconds since 1970.
    """
    missed = (_EPOCH + timedelta(microseconds=missed_us)).replace(tzinfo=None).isoformat(" ", "microseconds")
    return f"view {view}: {what}, by the watermark {missed} UTC"


def missed_watermark(reason: str) -> int | None:
    """The watermark in the reason of a late row, in microseconds since 1970; None for another reason."""
    found = _MISSED.search(reason)
    if found is None:
        return None
    return (datetime.fromisoformat(found[1]).replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def late_rows(
    store: StateStore, source: str, views: Collection[str], after: int, *, state_version: int | None = None
) -> pa.Table:
    """The late rows of some views that were not cleared, as rows of the table `quarantine`.

    Args:
        store: a handle on the store.
        views: the names of the views.
        after: only records of later epochs.
        state_version: an older version of the store.
    """
    records = bad_records(store, source, state_version=state_version)
    is_new = pc.and_(pc.greater(records["epoch"], after), pc.is_valid(records["reason"]))
    records = records.filter(pc.and_(is_new, pc.and_not(pc.is_null(records["version"]), has_no_row(records))))
    return records.filter(pa.array([decode_key(key)[4] in views for key in records["key"].to_pylist()], pa.bool_()))


def clear_quarantine(store: StateStore, source: str | None, epoch: int) -> int:
    """Deletes the bytes and reasons of bad records, and completely poison messages, skipped names and late rows.

    Args:
        source: only records of this source; None for all.
        epoch: records of later epochs stay as they are.

    Returns:
        The number of rows.

    Raises:
        FencedError, CommitRefusedError, CommitUnknownError: as `StateStore.commit`.
    """
    records = bad_records(store, source)
    records = records.filter(pc.and_(pc.less_equal(records["epoch"], epoch), pc.is_valid(records["reason"])))
    if records.num_rows:
        delta = DeltaBuilder()
        has_place = pc.and_(pc.is_valid(records["row"]), pc.is_valid(records["version"]))
        whole, kept = records.filter(pc.invert(has_place)), records.filter(has_place)
        for key, vnode in zip(whole["key"].to_pylist(), whole["vnode"].to_pylist(), strict=True):
            delta.delete("quarantine", key, vnode)
        positions = {name: kept[name].combine_chunks() for name in _POSITION}
        delta.put_many("quarantine", kept["key"].to_pylist(), kept["vnode"].to_pylist(), positions)
        store.amend(delta.build())
    return int(records.num_rows)
