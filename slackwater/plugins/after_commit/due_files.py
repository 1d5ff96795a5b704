"""The files of a source that are due: done, not read again, without quarantined records, in epochs up to a limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from actors.files import FileVersion
from state.store.store import StateStore
from state.tables.keys import encode_key
from state.tables.row_selection import Clue, after_prefix

_DONE = Clue("status", equals="done")
_FIELDS = (
    "source", "path", "version", "etag", "size", "last_modified", "rows_read", "rows_bad", "done_epoch", "deleted_epoch"
)  # fmt: skip


@dataclass(frozen=True)
class DueFile:
    """A file that is due.

    Args:
        file: the version that was read.
        epoch: the epoch that finished it.
        rows: the number of its rows.
    """

    file: FileVersion
    epoch: int
    rows: int = 0

    def is_old_enough(self, keep_s: float, now: datetime) -> bool:
        """True if the file was written at least `keep_s` seconds ago, by the store's clock."""
        return self.waits_s(keep_s, now) == 0

    def waits_s(self, keep_s: float, now: datetime) -> float:
        """The seconds until the file is old enough."""
        return max(0.0, (self.file.last_modified - now).total_seconds() + keep_s)


def due_files(state: StateStore, source: str, *, after: int, until: int) -> Iterator[list[DueFile]]:
    """The files of a source that the epochs after one, up to another, have finished, some at a time.

    A file with bad records stays out, since `reingest` reads it again, and so does one that is being read again or is
    known to be deleted.

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
    """The files among some that `due_files` would still return, up to an epoch."""
    keys = [encode_key(each.file.source, each.file.path, each.file.version) for each in files]
    queued = state.scan("queue", keys=keys, fields=["path"])["key"].combine_chunks()
    return _due(state.scan("ledger", keys=keys, where=[_DONE], fields=_FIELDS), queued, until)


def _due(rows: pa.Table, queued: pa.BinaryArray, until: int) -> list[DueFile]:
    due = pc.and_(pc.less_equal(rows["done_epoch"], until), pc.is_null(rows["deleted_epoch"]))
    due = pc.and_(due, pc.equal(pc.coalesce(rows["rows_bad"], 0), 0))
    due = pc.and_(due, pc.invert(pc.is_in(rows["key"], value_set=queued)))
    return [_due_file(row) for row in rows.filter(due).to_pylist()]


def _due_file(row: dict[str, object]) -> DueFile:
    values = {name: row[name] for name in ("source", "path", "version", "etag", "size", "last_modified")}
    return DueFile(FileVersion(**values), row["done_epoch"], row["rows_read"] or 0)  # type: ignore[arg-type]
