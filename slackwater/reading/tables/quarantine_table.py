"""Table of bad records, of one version of the store."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.reading.tables.file_table import require_source, whole_urls
from slackwater.reading.tables.page import Page, page_of
from state.lance.lance_store import LanceStateStore
from state.store.store import StateStore
from state.tables.catalog import Catalog
from state.tables.keys import encode_key
from state.tables.tables import TABLES
from state.upkeep.quarantine import bad_records, has_no_row

_COLUMNS = ("source", "path", "row", "raw", "reason", "epoch")
QUARANTINE_SCHEMA = pa.schema([*(TABLES["quarantine"].field(name) for name in _COLUMNS[:-1]), ("epoch", pa.int64())])


def quarantine_table(store: StateStore, catalog: Catalog, state_version: int | None, source: str | None) -> pa.Table:
    """One row per bad record, poison message and skipped name that was not cleared, see `Ledger.quarantine`.

    The records of a file are in the order in which they were found.

    Raises:
        NotFoundError: the source does not exist.
    """
    require_source(source, catalog)
    records = _kept(bad_records(store, source, state_version=state_version), catalog).select(_COLUMNS)
    return records.sort_by([(name, "ascending") for name in ("source", "path", "epoch", "row")])


def find_bad_records(
    store: LanceStateStore, catalog: Catalog, source: str | None, after: str | None, limit: int
) -> Page:
    """A page of the bad records, ordered by source, path and row, see `Ledger.find_bad_records`.

    Raises:
        NotFoundError: the source does not exist.
        UsageError: `after` or `limit` is not valid.
    """
    require_source(source, catalog)
    start = b"" if source is None else encode_key(source)
    keys = store.find_keys("quarantine", [], start=start, end=start + b"\xff")
    page = page_of([keys], lambda some: _kept(store.scan("quarantine", keys=some), catalog), after, limit)
    return replace(page, rows=page.rows.select(_COLUMNS))


def _kept(records: pa.Table, catalog: Catalog) -> pa.Table:
    """The records that were not cleared, with whole URLs."""
    records = records.filter(pc.is_valid(records["reason"]))
    # The path of a message or a skipped name is a whole URL already.
    places = pc.if_else(has_no_row(records), records["path"], whole_urls(records, catalog))
    return records.set_column(records.column_names.index("path"), "path", places)
