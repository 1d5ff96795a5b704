"""Views: the views of a root and their state, as `Store.views`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from slackwater.reading.store_handle import StoreHandle
from slackwater.reading.tables.expectation_table import expectation_table, held_views
from slackwater.reading.tables.hidden_view_table import hidden_view_table
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

        `reflects_epoch` is the epoch whose rows the view shows: the latest, unless the view is recomputed as a whole,
        is frozen, or has failed; null for a view that failed in its first epoch, and has no rows.  `error` is the
        reason of a failure; null for a view that has not failed.  `missing` lists ingested files that were gone at
        their turn in the backfill; the view lacks them.  `reads` are the sources and views that its query reads.

        With `emit="on_close"`, `closed_until` is the watermark up to which the windows of the view are closed.
        `late_rows` counts the rows that came too late for such a view, or for one with `expire="by_watermark"`.  For
        other views they are null.
        """
        state, catalog = self._handle.cataloged()
        return view_table(state, catalog, self._handle.root)

    def hidden(self) -> pa.Table:
        """One row per dataset that views keep for their joins, windows and groups within.

        `names` are the hidden views with these rows, and `used_by` the views that they belong to: views with the same
        rows share them.  `bytes` is the size of its files, without those of its indices.

        `rows_in_memory` and `bytes_in_memory` are the rows that the run keeps in its memory: all of them, or 0.  They
        are null if no pipeline runs on this root.  A run tells them every few seconds.
        """
        state, catalog = self._handle.cataloged()
        return hidden_view_table(state, catalog, self._handle.root, self._handle.owner())

    def costs(self, epochs: int = 100) -> dict[str, ViewCost]:
        """Name of a view, or of a hidden view, → what an epoch has cost it, over the last epochs.

        Args:
            epochs: at most this number of epochs, the last ones.
        """
        return view_costs(self._handle.latest().epochs(last=epochs))

    def backfills(self) -> pa.Table:
        """One row per view whose backfill is not complete: `name`, `class`, and `fraction`.

        `fraction` is the part of the earlier rows that the view has, from 0 to 1; null for a view that is computed as a
        whole.
        """
        state, catalog = self._handle.cataloged()
        return backfill_table(state, catalog)

    def expectations(self) -> pa.Table:
        """One row per expectation of a view, with the rows that violate it.

        `rows` counts those that violate it now, `accepted` those among them that a release has accepted, and `came`
        all rows that have begun to violate it.  `is_held` is true if they close the gate, since the epoch `held_since`
        of their view.  `error` says why an expectation cannot be computed, which closes the gate as well.  Of one over
        the view as a whole `rows` is 1 while it is violated, and `found` says what the view has.
        """
        return expectation_table(self._handle.cataloged()[1])

    def held(self) -> list[dict[str, Any]]:
        """The views that close the gate: `view`, `since` (an epoch), `expectations`, `errors`, `found`, `files`.

        `expectations` are the names of the violated ones, with the number of rows; `errors` those that cannot be
        computed; `found` what the view has, for those over it as a whole.  `files` are the URLs of at most 20 files
        that brought these rows, most rows first.  Only rows of an append view of materialized sources name their file,
        and `rows_name_files` is true then.  Otherwise `files` are those that were finished in the epochs that brought
        such rows.
        """
        state, catalog = self._handle.cataloged()
        return held_views(state, catalog)
