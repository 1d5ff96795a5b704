"""Rows of the last small commits of this process: a fold, and a search of the log, need not read them again."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence

import lance
import pyarrow as pa

from state.runs.fragments import data_file

_MOST_ROWS, _MOST_COMMITS = 256, 64


class RecentRows:
    """The rows of fragments of the log, as they were written.  A commit adds its rows, and a fold drops them.

    Lance takes as long for a scan of sixteen small files as for the commits that wrote them.
    """

    def __init__(self) -> None:
        self._rows: dict[str, pa.Table] = {}
        self._changing = threading.Lock()

    def keep(self, path: str, rows: pa.Table) -> None:
        """Keeps the rows of a data file, if they are few."""
        if rows.num_rows > _MOST_ROWS:
            return
        with self._changing:
            while len(self._rows) >= _MOST_COMMITS:
                del self._rows[next(iter(self._rows))]
            self._rows[path] = rows

    def drop(self, paths: Collection[str]) -> None:
        """Drops the rows of fragments that are folded."""
        with self._changing:
            for path in paths:
                self._rows.pop(path, None)

    def read(
        self, dataset: lance.LanceDataset, fragments: Sequence[lance.LanceFragment], columns: Sequence[str]
    ) -> pa.Table:
        """All rows of fragments of the log, in their order.

        Args:
            fragments: at least one fragment of its log.
            columns: columns of the dataset; each is in some fragment.

        Raises:
            OSError, ValueError: an error of Lance.
        """
        kept = [rows for fragment in fragments if (rows := self._rows.get(data_file(fragment))) is not None]
        if len(kept) < len(fragments):
            return dataset.scanner(columns=list(columns), fragments=list(fragments), scan_in_order=True).to_table()
        return pa.concat_tables(kept, promote_options="default").select(columns)
