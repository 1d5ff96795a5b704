"""A history of millions of files, written into a root as a run leaves it after its last fold, without the run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import lance
import numpy as np
import pyarrow as pa

from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.runs.directory import Directory
from state.runs.fragments import data_file
from state.runs.piece_writer import PieceWriter
from state.runs.table_reader import SLICE_ROWS
from state.store.store import StagedFold
from state.tables.fingerprint import path_fingerprint, path_fingerprints
from state.tables.keys import encode_key
from state.tables.ledger_counts import counted, summed
from state.tables.tables import PUT, row_type, state_rows
from state.vnode import vnode_of

SOURCE = "events"
AT = datetime(2026, 1, 1, tzinfo=UTC)

_DIRECTORY = 1
"""The fragment of the directory of a new store."""


def path_of(number: int) -> str:
    return f"year=2026/day={number // 100_000:05}/part-{number:010}-c000.snappy.parquet"


def version_of(number: int) -> bytes:
    return number.to_bytes(8, "big")


def ledger_columns(numbers: range, epoch: int) -> dict[str, object]:
    """Column → one value for all files, or a list with one for each."""
    return {
        "source": SOURCE,
        "path": [path_of(number) for number in numbers],
        "version": [version_of(number) for number in numbers],
        "etag": '"0123456789abcdef0123456789abcdef"',
        "size": 8_192,
        "last_modified": AT,
        "status": "done",
        "rows_read": 500,
        "rows_bad": 0,
        "listed_epoch": epoch,
        "first_epoch": epoch,
        "done_epoch": epoch,
        "bytes_read": 8_192,
        "requests": 1,
        "attempts": 0,
    }


def write_history(location: Location, store: LanceStateStore, files: int) -> None:
    """Puts finished files into the ledger and their names into `seen`.

    Args:
        location: the root.
        store: its store, owned, which has not been folded yet.
        files: the number of files.
    """
    epoch = store.head.epoch
    dataset = lance.dataset(location.child("state.lance").lance_uri)
    counts: list[pa.Table] = []
    ledger, seen = PieceWriter(dataset, "ledger", 1), PieceWriter(dataset, "seen", 1)
    ledger.write(_ledger_slices(files, epoch, counts), files)
    seen.write(_seen_slices(files, epoch), files)
    directory = Directory((*ledger.pieces, *seen.pieces), tuple(summed(counts).to_pylist()))
    [written] = lance.fragment.write_fragments(
        state_rows(directory.to_delta().tables.items(), epoch), dataset, mode="append"
    )
    new, before = (*ledger.fragments, *seen.fragments), data_file(dataset.get_fragment(_DIRECTORY))
    store.commit_fold(StagedFold(store.head.term, new=new, directory=written, directory_before=before))


def _ledger_slices(files: int, epoch: int, counts: list[pa.Table]) -> Iterator[pa.Table]:
    for start in range(0, files, SLICE_ROWS):
        numbers = range(start, min(files, start + SLICE_ROWS))
        columns = ledger_columns(numbers, epoch)
        paths = [path_of(number) for number in numbers]
        keys = [encode_key(SOURCE, path, version_of(number)) for path, number in zip(paths, numbers, strict=True)]
        row = _struct("ledger", len(keys), **columns)
        counts.append(counted(pa.Table.from_struct_array(row)))
        yield _stored(keys, paths, epoch, row)


def _seen_slices(files: int, epoch: int) -> Iterator[pa.Table]:
    prints = np.empty(files, "S16")
    for start in range(0, files, SLICE_ROWS):
        some = pa.array([path_of(number) for number in range(start, min(files, start + SLICE_ROWS))])
        # With a last byte that is not 0, which numpy would cut off.
        prints[start : start + len(some)] = [each[:15] + b"\x01" for each in path_fingerprints(SOURCE, some)]
    order = np.argsort(prints)
    for start in range(0, files, SLICE_ROWS):
        numbers = order[start : start + SLICE_ROWS].tolist()
        paths = [path_of(number) for number in numbers]
        versions = [version_of(number) for number in numbers]
        keys = [path_fingerprint(SOURCE, path) for path in paths]
        yield _stored(keys, paths, epoch, _struct("seen", len(keys), source=SOURCE, path=paths, version=versions))


def _stored(keys: list[bytes], paths: list[str], epoch: int, row: pa.StructArray) -> pa.Table:
    count = len(keys)
    columns = {
        "vnode": pa.array([vnode_of(path) for path in paths], pa.uint8()),
        "epoch": pa.repeat(pa.scalar(epoch, pa.int64()), count),
        "op": pa.repeat(pa.scalar(PUT, pa.uint8()), count),
        "key": pa.array(keys, pa.binary()),
        "row": row,
    }
    return pa.table(columns)


def _struct(table: str, count: int, **columns: object) -> pa.StructArray:
    fields = list(row_type(table))
    values = []
    for field in fields:
        given = columns.get(field.name)
        values.append(pa.array(given, field.type) if isinstance(given, list) else pa.array([given] * count, field.type))
    return pa.StructArray.from_arrays(values, fields=fields)
