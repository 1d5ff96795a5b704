"""Files that may be read after an epoch that killed: few at a time, until they have proven harmless.

The fetch actors hold every version of a file back until a barrier admits it.  A version is admitted only when it is
committed as queued: otherwise one that arrives during the attempt, and kills, would take the blame off the one before.
When each admitted version is finished, or has rows in a later commit, the number of paths doubles.  When an attempt
dies, the next attempt begins with half of its number.  So the number falls to one before a file that kills, and that
file is identified.  Afterwards the number grows without limit, also while a large file makes progress.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

import pyarrow as pa
import pyarrow.compute as pc

from actors.files import FileKey, PathKey
from state.tables.delta import Delta
from state.tables.keys import decode_key
from state.tables.tables import DELETE

_LIFTED_ABOVE = 512


class Admission:
    """The files that may be read: the queued versions of some paths.

    Args:
        files_at_once: number of paths at the start; None admits every path, for good.
        unfinished: the files that were not finished at the last commit, in the order of reading → their rows in it.
        closed: see `close`.
    """

    def __init__(
        self, files_at_once: int | None, unfinished: Mapping[FileKey, int], closed: Set[str] = frozenset()
    ) -> None:
        self.files_at_once = files_at_once
        self._closed = closed
        self._versions: dict[PathKey, dict[FileKey, int]] = {}
        self._admitted: set[PathKey] = set()
        self._unproven: set[FileKey] = set()
        if files_at_once is not None:
            for file, rows in unfinished.items():
                self._versions.setdefault(file[:2], {})[file] = rows
        self._admit_next()

    @property
    def admitted(self) -> frozenset[FileKey] | None:
        """The versions that may be read now; None for all."""
        return None if self.files_at_once is None else frozenset(self.suspects)

    @property
    def suspects(self) -> dict[FileKey, int]:
        """Versions of which one may be to blame if this attempt dies → committed rows; empty if all may be read."""
        if self.files_at_once is None:
            return {}
        return {file: rows for path in self._admitted for file, rows in self._versions[path].items()}

    def close(self, sources: Set[str]) -> None:
        """Removes the files of closed sources: they wait for another source's schema and must not delay its files."""
        self._closed = sources
        self._admitted = {path for path in self._admitted if path[0] not in sources}
        self._unproven = {file for file in self._unproven if file[0] not in sources}
        if not self._admitted:
            self._admit_next()

    def on_committed(self, delta: Delta) -> bool:
        """Notes the files that an epoch has queued, read on and finished.

        Args:
            delta: the changes of the epoch.

        Returns:
            True if further files are admitted: a barrier must say so.
        """
        if self.files_at_once is None or "queue" not in delta.tables:
            return False
        before = self.admitted or frozenset()
        for file, rows in _queue_changes(delta.tables["queue"]):
            if rows is None:
                self._end(file)
            else:
                self._note(file, rows)
        if not self._unproven:
            if self._proving:
                doubled = 2 * self.files_at_once
                self.files_at_once = None if doubled > _LIFTED_ABOVE else doubled
            self._admit_next()
        return self.admitted is None or not self.admitted <= before

    def _note(self, file: FileKey, rows: int) -> None:
        versions = self._versions.setdefault(file[:2], {})
        if rows > versions.get(file, 0):
            self._unproven.discard(file)
        elif file not in versions and file[:2] in self._admitted:
            self._unproven.add(file)
        versions[file] = rows

    def _end(self, file: FileKey) -> None:
        self._unproven.discard(file)
        versions = self._versions.get(file[:2], {})
        versions.pop(file, None)
        if not versions:
            self._versions.pop(file[:2], None)
            self._admitted.discard(file[:2])

    def _admit_next(self) -> None:
        if self.files_at_once is not None:
            waiting = [path for path in self._versions if path[0] not in self._closed and path not in self._admitted]
            self._admitted.update(waiting[: max(0, self.files_at_once - len(self._admitted))])
            self._unproven = set(self.suspects)
        self._proving = bool(self._unproven)


def _queue_changes(rows: pa.Table) -> Iterator[tuple[FileKey, int | None]]:
    """Version → its committed rows; None if it has left the queue."""
    offsets = pc.struct_field(rows["row"], "row_offset").to_pylist()
    for key, op, offset in zip(rows["key"].to_pylist(), rows["op"].to_pylist(), offsets, strict=True):
        source, path, version = decode_key(key)
        assert isinstance(source, str) and isinstance(path, str) and isinstance(version, bytes)
        yield (source, path, version), None if op == DELETE else offset or 0
