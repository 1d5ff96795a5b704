"""The files of a source that are due: done, committed for the stated time, published, and needed by no view."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from actors.files import FileVersion
from slackwater.reading.tables.expectation_table import published_epoch
from state.epoch import first_epoch_at
from state.location import Location
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.keys import encode_key
from state.tables.row_selection import Clue, after_prefix
from state.tables.stored_rows import declared_name
from state.upkeep.branches import root_above

_DONE = Clue("status", equals="done")
_FIELDS = ("source", "path", "version", "etag", "size", "last_modified", "rows_bad", "done_epoch", "gone_epoch")


@dataclass(frozen=True)
class Reach:
    """The last epoch whose files may be touched.

    Args:
        epoch: the epoch; 0 for none.
        waits_for: why it is not a later one; empty if only the stated time has to pass.
    """

    epoch: int
    waits_for: str = ""


@dataclass(frozen=True)
class DueFile:
    """A file that is due, and the epoch that finished it."""

    file: FileVersion
    epoch: int


def reach(
    state: StateStore,
    catalog: Catalog,
    root: Location,
    source: str,
    *,
    keep_s: float,
    is_stored: bool,
    published: Mapping[str, int | None],
    now: datetime,
) -> Reach:
    """How far the files of a source may be touched.

    Args:
        state: a handle on the store.
        catalog: the catalog that this handle sees.
        root: the root of the store.
        source: the name of the source.
        keep_s: seconds since the commit.
        is_stored: whether the root keeps the rows of the source.
        published: view → the last epoch that all tables that follow it have; None if one has none.
        now: the time.
    """
    if root_above(root) is not None:
        return Reach(0, "a branch leaves the files of its root alone")
    if not is_stored and (needed := _needing(state, catalog, source)):
        return Reach(0, f"view {needed} needs the files: it has failed, or is being built")
    kept = _committed_before(state, now - timedelta(seconds=keep_s))
    limits = {"": kept, "an expectation holds the last epochs back": published_epoch(state, catalog)}
    for view in sorted({declared_name(each.name) for each in catalog.views.values() if source in each.sources}):
        if view in published:
            limits[f"a table that follows view {view} lacks the last epochs"] = published[view] or 0
    waits_for, epoch = min(limits.items(), key=lambda limit: limit[1])
    latest = state.head.epoch
    return Reach(min(epoch, latest), waits_for if epoch < min(kept, latest) else "")


def due_files(state: StateStore, source: str, *, after: int, until: int) -> Iterator[list[DueFile]]:
    """The files of a source that the epochs after one, up to another, have finished, some at a time.

    A file with bad records stays out, since `reingest` reads it again, and so does one that is being read again or is
    known to be gone.

    Args:
        state: a handle on the store.
        source: the name of the source.
        after: the epoch before the first.
        until: the last epoch.
    """
    start = encode_key(source)
    end = after_prefix(start)
    queued = state.scan("queue", start=start, end=end, fields=["path"])["key"].combine_chunks()
    where = [_DONE, Clue("done_epoch", above=after)]
    for rows in state.slices("ledger", start=start, end=end, where=where, fields=_FIELDS):
        yield _due(rows, queued, until)


def still_due(state: StateStore, files: Iterable[DueFile], *, until: int) -> list[DueFile]:
    """Those of some files that `due_files` would still give, up to an epoch."""
    keys = [encode_key(each.file.source, each.file.path, each.file.version) for each in files]
    queued = state.scan("queue", keys=keys, fields=["path"])["key"].combine_chunks()
    return _due(state.scan("ledger", keys=keys, where=[_DONE], fields=_FIELDS), queued, until)


def _due(rows: pa.Table, queued: pa.BinaryArray, until: int) -> list[DueFile]:
    due = pc.and_(pc.less_equal(rows["done_epoch"], until), pc.is_null(rows["gone_epoch"]))
    due = pc.and_(due, pc.equal(pc.coalesce(rows["rows_bad"], 0), 0))
    due = pc.and_(due, pc.invert(pc.is_in(rows["key"], value_set=queued)))
    return [_due_file(row) for row in rows.filter(due).to_pylist()]


def _committed_before(state: StateStore, time: datetime) -> int:
    """The last epoch that was committed until a time; of expired ones only the time of their barrier is known."""
    times = state.epoch_times()
    committed = times.filter(pc.less_equal(times["committed_at"], time))["epoch"]
    if len(committed):
        return int(committed[-1].as_py())
    first = times["epoch"][0].as_py() if times.num_rows else 0
    return max(0, min(first, first_epoch_at(time)) - 1)


def _due_file(row: dict[str, object]) -> DueFile:
    values = {name: row[name] for name in ("source", "path", "version", "etag", "size", "last_modified")}
    return DueFile(FileVersion(**values), row["done_epoch"])  # type: ignore[arg-type]


def _needing(state: StateStore, catalog: Catalog, source: str) -> str:
    """A view that reads the source and needs its files; empty without one."""
    for view in catalog.views.values():
        version = state.head.views.get(view.name)
        is_built = version is not None and version.pinned_epoch is not None
        if source in view.sources and (view.error is not None or is_built):
            return declared_name(view.name)
    return ""
