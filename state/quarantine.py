"""Bad records that are kept: where in which file they were, and what they were until that is cleared.

A cleared record leaves its position behind: without it nobody could tell again which rows of a file the views hold.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from state.delta import DeltaBuilder
from state.keys import encode_key
from state.store import StateStore

_AFTER_EVERY_PART = b"\xff"
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


def clear_quarantine(store: StateStore, source: str | None, epoch: int) -> int:
    """Forgets what bad records were, and keeps where they were.

    Args:
        store: the owner's handle.
        source: only this source's; None for all.
        epoch: what was quarantined later stays.

    Returns:
        How many records.

    Raises:
        FencedError, CommitRefusedError, CommitUnknownError: as `StateStore.commit`.
    """
    records = bad_records(store, source)
    records = records.filter(pc.and_(pc.less_equal(records["epoch"], epoch), pc.is_valid(records["reason"])))
    if records.num_rows:
        delta = DeltaBuilder()
        positions = {name: records[name].combine_chunks() for name in _POSITION}
        delta.put_many("quarantine", records["key"].to_pylist(), records["vnode"].to_pylist(), positions)
        store.amend(delta.build())
    return int(records.num_rows)
