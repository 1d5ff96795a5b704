"""The tables of `state.lance`: their fields, and the columns of the one dataset that holds them all.

All tables share one dataset, so that one commit is one epoch.  (table, vnode, key, epoch) identifies a row; its fields
are in the struct column of its table, and the struct columns of the other tables are null.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

import pyarrow as pa

from state.tables.lance_layout import for_lance

Op: TypeAlias = Literal[0, 1, 2]
"""The operation of a written row; the store keeps the number."""

DELETE: Final = 0
PUT: Final = 1
PATCH: Final = 2

LedgerStatus: TypeAlias = Literal["done", "quarantined", "vanished", "replaced", "forgotten"]

REMOVED_STATUSES: tuple[LedgerStatus, ...] = ("replaced", "forgotten")
"""Statuses in the ledger of a version whose rows were removed from the views; `rows_read` is their number."""

_TIME = pa.timestamp("us", tz="UTC")
_VERSION = pa.binary(8)
_VIEW = pa.struct(
    [
        ("name", pa.string()),
        ("path", pa.string()),
        ("version", pa.int64()),
        ("state_path", pa.string()),
        ("state_version", pa.int64()),
        ("distinct_path", pa.string()),
        ("distinct_version", pa.int64()),
        ("reflects_epoch", pa.int64()),
        ("pinned_epoch", pa.int64()),
        ("progress", pa.string()),
    ]
)
_VISIBLE = pa.struct([("source", pa.string()), ("columns", pa.list_(pa.string()))])
_TAG = pa.struct([("name", pa.string()), ("epoch", pa.int64())])
_PIECE = pa.struct(
    [
        ("path", pa.string()),
        ("table", pa.string()),
        ("run", pa.int64()),
        ("rows", pa.int64()),
        ("blocks", pa.int64()),
        ("deletes", pa.int64()),
        ("patches", pa.int64()),
        ("first_key", pa.binary()),
        ("last_key", pa.binary()),
    ]
)

COUNTS = pa.struct(
    [
        ("source", pa.string()),
        ("status", pa.string()),
        ("rows_read", pa.int64()),
        ("rows_bad", pa.int64()),
        ("bytes_read", pa.int64()),
        ("requests", pa.int64()),
        ("files", pa.int64()),
        ("files_bad", pa.int64()),
    ]
)
"""Counts of the ledger, see `ledger_counts`."""


def _schema(**fields: pa.DataType) -> pa.Schema:
    return pa.schema(list(fields.items()))


_FILE_VERSION = {
    "source": pa.string(),
    "path": pa.string(),
    "version": _VERSION,
    "etag": pa.string(),
    "size": pa.int64(),
    "last_modified": _TIME,
}

TABLES: dict[str, pa.Schema] = {
    "head": _schema(term=pa.int64(), epoch=pa.int64(), views=pa.list_(_VIEW), run=pa.string(), tags=pa.list_(_TAG)),
    "directory": _schema(pieces=pa.list_(_PIECE), counts=pa.list_(COUNTS)),
    "epoch": _schema(
        term=pa.int64(),
        committed_at=_TIME,
        state_version=pa.int64(),
        files=pa.int64(),
        rows=pa.int64(),
        bytes=pa.int64(),
        requests=pa.int64(),
        fetch_s=pa.float64(),
        align_s=pa.float64(),
        spark_s=pa.float64(),
        collect_s=pa.float64(),
        trace=pa.string(),
        views=pa.list_(_VIEW),
    ),
    "catalog": _schema(
        kind=pa.string(),
        name=pa.string(),
        definition=pa.string(),
        schema=pa.binary(),
        view_class=pa.string(),
        identity=pa.string(),
        sources=pa.list_(pa.string()),
        view_key=pa.list_(pa.string()),
        visible=pa.list_(_VISIBLE),
        missing=pa.list_(pa.string()),
        created_epoch=pa.int64(),
        stopped_epoch=pa.int64(),
        error=pa.string(),
        declared_at=_TIME,
        not_before=_TIME,
    ),
    "list_state": _schema(
        source=pa.string(),
        listed_at=_TIME,
        pages=pa.int64(),
        requests=pa.int64(),
        requests_last_hour=pa.int64(),
        period_s=pa.float64(),
        stretched_by=pa.string(),
        found=pa.int64(),
        queue=pa.string(),
        messages=pa.int64(),
        redelivered=pa.int64(),
        poison=pa.int64(),
        tracked=pa.int64(),
        oldest_sent_at=_TIME,
    ),
    "seen": _schema(source=pa.string(), path=pa.string(), version=_VERSION),
    "queue": _schema(
        **_FILE_VERSION,
        row_offset=pa.int64(),
        anchor_row=pa.int64(),
        anchor_byte=pa.int64(),
        rows_bad=pa.int64(),
        attempts=pa.int64(),
        listed_epoch=pa.int64(),
        first_epoch=pa.int64(),
        bytes_read=pa.int64(),
        requests=pa.int64(),
        error=pa.string(),
        replaces=pa.bool_(),
    ),
    "ledger": _schema(
        **_FILE_VERSION,
        status=pa.string(),
        rows_read=pa.int64(),
        rows_bad=pa.int64(),
        listed_epoch=pa.int64(),
        first_epoch=pa.int64(),
        done_epoch=pa.int64(),
        changed_epoch=pa.int64(),
        deleted_epoch=pa.int64(),
        bytes_read=pa.int64(),
        requests=pa.int64(),
        attempts=pa.int64(),
        error=pa.string(),
        replaces=pa.bool_(),
        removed_epoch=pa.int64(),
    ),
    "quarantine": _schema(
        source=pa.string(),
        path=pa.string(),
        version=_VERSION,
        row=pa.int64(),
        raw=pa.binary(),
        reason=pa.string(),
    ),
}
"""Table name -> its fields.  Paths are relative to the URL of their source."""


def row_column(table: str) -> str:
    """The struct column that holds the fields of a table."""
    return f"{table}_row"


def row_type(table: str, fields: Sequence[str] | None = None) -> pa.StructType:
    """The type of this column, with all fields or with some."""
    return pa.struct(list(TABLES[table]) if fields is None else [TABLES[table].field(name) for name in fields])


STATE_SCHEMA: pa.Schema = pa.schema(
    [
        ("table", pa.string()),
        ("vnode", pa.uint8()),
        ("epoch", pa.int64()),
        ("op", pa.uint8()),
        ("key", pa.binary()),
        *((row_column(table), row_type(table)) for table in TABLES),
    ]
)


def state_rows(parts: Iterable[tuple[str, pa.Table]], epoch: int) -> pa.Table:
    """Rows of several tables as rows of the dataset, without the struct columns of the other tables.

    Args:
        parts: names of tables, with rows of the columns vnode, op, key, row.
        epoch: the epoch of all rows.
    """
    tables = []
    for table, part in parts:
        count = part.num_rows
        tables.append(
            pa.table(
                {
                    "table": pa.repeat(pa.scalar(table), count),
                    "vnode": part["vnode"],
                    "epoch": pa.repeat(pa.scalar(epoch, pa.int64()), count),
                    "op": part["op"],
                    "key": part["key"],
                    row_column(table): part["row"],
                }
            )
        )
    rows = pa.concat_tables(tables, promote_options="default")
    # Chunks that become one are copied.
    return for_lance(rows) if len(tables) == 1 else rows.combine_chunks()


FORMAT_VERSION = 3
"""The number of the format of a root: of `TABLES`, and of everything else that a root stores.

Once a released version has written a number, every change of a stored format needs the next number
(`tests/state/stored_formats.py`)."""
