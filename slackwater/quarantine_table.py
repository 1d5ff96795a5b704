"""The public table of bad records, of one version of the store."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.file_table import require_source, whole_urls
from state.catalog import Catalog
from state.quarantine import bad_records
from state.store import StateStore

_COLUMNS = ("source", "path", "row", "raw", "reason", "epoch")


def quarantine_table(store: StateStore, catalog: Catalog, state_version: int | None, source: str | None) -> pa.Table:
    """One row per bad record that was not cleared, see `Store.quarantine`; of a file in the order they were found.

    Raises:
        NotFoundError: there is no such source.
    """
    require_source(source, catalog)
    records = bad_records(store, source, state_version=state_version)
    records = records.filter(pc.is_valid(records["reason"])).select(_COLUMNS)
    records = records.sort_by([(name, "ascending") for name in ("source", "path", "epoch", "row")])
    # What has no row is a message, and its place is a whole URL already.
    urls = pc.if_else(pc.is_null(records["row"]), records["path"], whole_urls(records, catalog))
    return records.set_column(1, "path", urls)
