"""The public table of bad records, of one version of the store."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.file_table import require_source, whole_urls
from state.catalog import Catalog
from state.quarantine import bad_records, is_message
from state.store import StateStore

_COLUMNS = ("source", "path", "row", "raw", "reason", "epoch")


def quarantine_table(store: StateStore, catalog: Catalog, state_version: int | None, source: str | None) -> pa.Table:
    """One row per bad record and poison message that was not cleared, see `Store.quarantine`.

    Those of a file are in the order in which they were found.

    Raises:
        NotFoundError: there is no such source.
    """
    require_source(source, catalog)
    records = bad_records(store, source, state_version=state_version)
    records = records.filter(pc.is_valid(records["reason"])).select(_COLUMNS)
    records = records.sort_by([(name, "ascending") for name in ("source", "path", "epoch", "row")])
    # The place of a message is a whole URL already.
    places = pc.if_else(is_message(records), records["path"], whole_urls(records, catalog))
    return records.set_column(1, "path", places)
