"""Views: the views of a root and their state, as `Store.views`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from slackwater.reading.store_handle import StoreHandle
from slackwater.reading.tables.expectation_table import expectation_table, held_views
from slackwater.reading.tables.internal_view_table import internal_view_table
from slackwater.reading.tables.view_table import backfill_table, view_table
from slackwater.status.view_costs import ViewCost, view_costs


class Views:
    """The views of a root: their state, cost and expectations.  `Snapshot.view` has the rows of one.

    Args:
        handle: the root and its tables.
    """

    def __init__(self, handle: StoreHandle) -> None:
        self._handle = handle

    def table(self) -> pa.Table:
        """One row per view, with the path of its dataset; a view without a version was not committed yet.

        `reflects_epoch` is the epoch whose rows the view shows.  It is the latest epoch, except for a recomputed or
        stale view.  It is null for a view that failed in its first epoch, and has no rows.  `error` is the reason of a
        failure, or null.  `missing` lists ingested files that were deleted before the backfill read them; the view
        lacks their rows.  `reads` are the sources and views that its query reads.

        With `emit="on_close"`, `closed_until` is the watermark up to which the windows of the view are closed.
        `late_rows` counts the late rows of a view with `emit="on_close"` or `expire="by_watermark"`.  Both are null
        for other views.
        """
        state, catalog = self._handle.cataloged()
        return view_table(state, catalog, self._handle.root)

    def internal(self) -> pa.Table:
        """One row per dataset that views keep for their joins, windows and inner groups.

        `names` are the internal views with these rows, and `used_by` the views that read them: views with the same rows
        share a dataset.  `bytes` is the size of its files, without its indexes.

        `rows_in_memory` and `bytes_in_memory` are the rows in the memory of the run: all rows of the dataset, or 0.
        They are null if no pipeline runs on this root.  A run reports them every few seconds.
        """
        state, catalog = self._handle.cataloged()
        return internal_view_table(state, catalog, self._handle.root, self._handle.owner())

    def costs(self, epochs: int = 100) -> dict[str, ViewCost]:
        """Name of a view, or of an internal view, → its cost in the last epochs.

        Args:
            epochs: the largest number of epochs.
        """
        return view_costs(self._handle.latest().epochs(last=epochs))

    def backfills(self) -> pa.Table:
        """One row per view whose backfill is not complete: `name`, `class`, and `fraction`.

        `fraction` is the part of the earlier rows that the view has, from 0 to 1; null for a recomputed view.
        """
        state, catalog = self._handle.cataloged()
        return backfill_table(state, catalog)

    def expectations(self) -> pa.Table:
        """One row per expectation of a view, with the rows that violate it.

        `rows` counts the rows that violate it now, `accepted` the part of them that a release has accepted, and `came`
        all rows that have begun to violate it.  `is_held` is true if the rows close the gate, since the epoch
        `held_since` of their view.  `error` is the reason why an expectation cannot be computed, which closes the gate,
        too.  For an expectation over the view as a whole, `rows` is 1 while it is violated, and `found` is the number
        or time in the view.
        """
        return expectation_table(self._handle.cataloged()[1])

    def held(self) -> list[dict[str, Any]]:
        """The views that close the gate: `view`, `since` (an epoch), `expectations`, `errors`, `found`, `files`.

        `expectations` are the names of the violated expectations, with the number of rows.  `errors` are the names of
        expectations that cannot be computed.  `found` has the number or time in the view, for expectations over the
        view as a whole.  `files` are the URLs of at most 20 files with these rows, most rows first.

        Only the rows of an append view of materialized sources name their file, and `rows_name_files` is true then.
        Otherwise `files` are the files that were finished in the epochs of these rows.
        """
        state, catalog = self._handle.cataloged()
        return held_views(state, catalog)
