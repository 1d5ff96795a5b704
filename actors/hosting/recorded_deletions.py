"""The deletions of one source, read from the record of its root."""

from __future__ import annotations

from collections.abc import Sequence

from actors.listing.run_deletions import RunDeletion
from state.location import Location


class RecordedDeletions:
    """See `Deletions`.

    Args:
        root: the root with the record.
        source: the name of the source.
        is_growing: whether this run deletes files of the source; otherwise the record is read once.
    """

    def __init__(self, root: Location, source: str, *, is_growing: bool) -> None:
        self._root, self._source, self._is_growing = root, source, is_growing
        self._rows: int | None = None

    def news(self) -> Sequence[RunDeletion]:
        if self._rows is not None and not self._is_growing:
            return ()
        from state.lance.handled_files import HandledFiles  # late: Lance takes half a second to load

        files, self._rows = HandledFiles(self._root).deletions(self._source, self._rows or 0)
        return [
            RunDeletion(each.path, each.version, each.last_modified) for each in files if each.last_modified is not None
        ]
