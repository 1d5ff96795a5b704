"""Bad records that are kept: where in which file they were, and what they were until that is cleared.

A cleared record leaves its position behind: without it nobody could tell again which rows of a file the views hold.

Poison messages are kept among them.  Such a row has no position in a file: its path is the URL of the queue with the
message's id, and nothing is left of it when it is cleared.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from state.store.store import StateStore
from state.tables.delta import DeltaBuilder
from state.tables.keys import encode_key

_AFTER_EVERY_PART = b"\xff"
_URL = "http"
_POSITION = ("source", "path", "version", "row")


def bad_records(
    store: StateStore, source: str | None = None, path: str | None = None, *, state_version: int | None = None
) -> pa.Table:
    """Rows of the table `quarantine` as `StateStore.scan` has them, the cleared ones too; their reason is null.

    Args:
        store: a handle on the store.
        source: only this source's.
        path: and only of this file, in all of its versions.
        state_version: an older version of the store.
    """
    if source is None:
        return store.scan("quarantine", state_version=state_version)
    start = encode_key(source) if path is None else encode_key(source, path)
    return store.scan("quarantine", start=start, end=start + _AFTER_EVERY_PART, state_version=state_version)


def is_message(records: pa.Table) -> pa.ChunkedArray:
    """Whether each of these rows is a poison message, and no record of a file."""
    return pc.is_null(records["row"])


def poison_messages(store: StateStore, source: str) -> pa.Table:
    """The poison messages of a source that were not cleared, as rows of the table `quarantine`."""
    # Without the byte that ends a text: all paths count that begin so.
    start = encode_key(source, _URL)[:-1]
    records = store.scan("quarantine", start=start, end=start + _AFTER_EVERY_PART)
    return records.filter(is_message(records))


def clear_quarantine(store: StateStore, source: str | None, epoch: int) -> int:
    """Forgets what bad records were, and keeps where they were; of messages nothing.

    Args:
        store: the owner's handle.
        source: only this source's; None for all.
        epoch: what was quarantined later stays.

    Returns:
        How many records and messages.

    Raises:
        FencedError, CommitRefusedError, CommitUnknownError: as `StateStore.commit`.
    """
    records = bad_records(store, source)
    records = records.filter(pc.and_(pc.less_equal(records["epoch"], epoch), pc.is_valid(records["reason"])))
    if records.num_rows:
        delta = DeltaBuilder()
        messages, kept = records.filter(is_message(records)), records.filter(pc.is_valid(records["row"]))
        for key, vnode in zip(messages["key"].to_pylist(), messages["vnode"].to_pylist(), strict=True):
            delta.delete("quarantine", key, vnode)
        positions = {name: kept[name].combine_chunks() for name in _POSITION}
        delta.put_many("quarantine", kept["key"].to_pylist(), kept["vnode"].to_pylist(), positions)
        store.amend(delta.build())
    return int(records.num_rows)
