"""Versions of a simulated store, written by hand: files, their rows in the tables, and epochs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from actors.files import FileVersion
from state.tables.fingerprint import path_fingerprint
from state.tables.record_rows import epoch_delta
from state.tables.records import EpochCounts, EpochRecord, EpochSeconds, Head, ViewVersion
from tests.simulation.memory.file_tables import FileTables, path_of
from tests.simulation.memory.memory_disk import MemoryVersion, Row
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.bucket import Bucket, Content

SOURCE = "s"
_AT = datetime(2026, 2, 3, tzinfo=UTC)


@contextmanager
def breaks(promise: str, why: str) -> Iterator[None]:
    """Checks that a promise is broken, for a reason that contains `why`."""
    with pytest.raises(PromiseBroken, match=f"^{promise}: .*{re.escape(why)}"):
        yield


def put(bucket: Bucket, path: str, rows: int = 3, bad_records: Iterable[int] = (), *, fails: str = "") -> FileVersion:
    """Puts an object into a bucket; a view `fails` over its first row."""
    bucket.put(SOURCE, path, Content(rows, bad_records=frozenset(bad_records), fails=fails), _AT)
    return bucket.present()[SOURCE, path].file


def finished(file: FileVersion, rows_read: int = 3, **fields: object) -> Row:
    """A row of the ledger; `done` in epoch 1 unless the fields say otherwise."""
    row = {"status": "done", "rows_read": rows_read, "rows_bad": 0, "listed_epoch": 1, "done_epoch": 1, "attempts": 0}
    return vars(file) | row | {"changed_epoch": None, "deleted_epoch": None, "replaces": None, "error": None} | fields


def waiting(file: FileVersion, row_offset: int = 0, **fields: object) -> Row:
    """A row of the queue."""
    return vars(file) | {"row_offset": row_offset, "rows_bad": 0, "listed_epoch": 1, "replaces": None} | fields


def bad_record(file: FileVersion, row: int, epoch: int = 1, reason: str | None = "no number") -> Row:
    """A row of the quarantine."""
    fields = {"source": file.source, "path": file.path, "version": file.version}
    return {**fields, "row": row, "epoch": epoch, "reason": reason}


def file_tables(
    ledger: Sequence[Row] = (),
    queue: Sequence[Row] = (),
    quarantine: Sequence[Row] = (),
    seen: Iterable[Row] | None = None,
    *,
    must_list: bool = False,
) -> FileTables:
    """The rows about files at one version; `seen` has every path of ledger and queue unless it is given.

    With `must_list` a restart lists, whatever a queue of events has told.
    """
    known = [*ledger, *queue] if seen is None else seen
    return FileTables(
        ledger={_key(row): row for row in ledger},
        queue={_key(row): row for row in queue},
        seen={path_fingerprint(*path_of(row)): {"source": row["source"], "version": row["version"]} for row in known},
        quarantine={b"%d" % number: row for number, row in enumerate(quarantine)},
        catalog={},
        list_state={b"s": {"source": SOURCE, "queue": None if must_list else "queue"}},
    )


def record(
    epoch: int, *, state_version: int | None = None, rows: int = 0, term: int = 1, views: Iterable[ViewVersion] = ()
) -> EpochRecord:
    """The record of an epoch; the store's version is one more than the epoch unless it is given."""
    version = epoch + 1 if state_version is None else state_version
    by_name = {view.name: view for view in views}
    return EpochRecord(epoch, term, _AT, version, EpochCounts(rows=rows), EpochSeconds(), by_name)


def store_version(head: Head, records: Sequence[EpochRecord] = (), tables: FileTables | None = None) -> MemoryVersion:
    """One version of the store."""
    rows: dict[str, Mapping[bytes, Row]] = dict(vars(tables or file_tables()))
    rows["epoch"] = {
        key: {"epoch": each.epoch, **change.fields}
        for each in records
        for key, change in epoch_delta(each).changes["epoch"].items()
    }
    return MemoryVersion("by hand", head, rows)


def _key(row: Row) -> bytes:
    return b"%s %s %s" % (row["source"].encode(), row["path"].encode(), row["version"])
