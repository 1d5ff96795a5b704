"""The stored rows of all materialized sources, maintained beside the views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from actors.protocol.blocks import Block
from spark_bridge.changes.corrections import CorrectedSource
from spark_bridge.datasets.index_audit import IndexAudit
from spark_bridge.datasets.stored_rows import StoredRows
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import stored_rows_name


class StoredSources:
    """Opens the stored rows of a source when it gets rows, and keeps them open.

    Args:
        root: the directory of the pipeline.
    """

    def __init__(self, root: Location) -> None:
        self._root = root
        self._open: dict[str, StoredRows] = {}

    def close(self) -> None:
        """Forgets the open versions; the next call opens the recorded ones."""
        self._open = {}

    def work(
        self, blocks: Mapping[str, Sequence[Block]], versions: Mapping[str, ViewVersion]
    ) -> dict[str, Callable[[], ViewVersion]]:
        """Recorded name → the work that makes a source's new rows visible.

        Args:
            blocks: source → its new rows.
        """
        work: dict[str, Callable[[], ViewVersion]] = {}
        for source, each in blocks.items():
            if stored := [block.stored for block in each if block.stored is not None]:
                work[stored_rows_name(source)] = partial(self._opened(source, versions).apply, stored)
        return work

    def correct(
        self, sources: Mapping[str, CorrectedSource], versions: Mapping[str, ViewVersion], epoch: int
    ) -> dict[str, ViewVersion]:
        """Replaces the rows of corrected files.

        Args:
            sources: source → its corrections.
            epoch: the epoch of the corrections.

        Returns:
            Recorded name → new version; a source that never had rows is missing.
        """
        corrected: dict[str, ViewVersion] = {}
        for source, each in sources.items():
            version = self._opened(source, versions).correct(each.files.keys(), each.blocks, epoch)
            if version is not None:
                corrected[version.name] = version
        return corrected

    def tidy(self, audit: IndexAudit | None) -> bool:
        """See `View.tidy`."""
        return any(rows.tidy(audit) for rows in self._open.values())

    def _opened(self, source: str, versions: Mapping[str, ViewVersion]) -> StoredRows:
        if source not in self._open:
            rows = self._open[source] = StoredRows(self._root, source)
            version = versions.get(stored_rows_name(source))
            if version is not None:
                rows.open(version)
        return self._open[source]
