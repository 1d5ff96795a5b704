"""Files that may be read after an epoch that killed: few at a time, until they have proven harmless.

The fetch actors hold every version of a file back until a barrier admits it.  A version is admitted only when it is
committed as queued: otherwise one that arrives during the attempt, and kills, would take the blame off the one before.
When everything admitted is finished and committed, twice as many paths are next; an attempt that dies leaves half as
many to the next one.  So the number falls to one before a file that kills, which is then known, and grows without
limit behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from actors.files import FileKey, PathKey
from state.tables.delta import Delta
from state.tables.keys import decode_key
from state.tables.tables import DELETE

_LIFTED_ABOVE = 512


class Admission:
    """The files that may be read: the queued versions of some paths.

    Args:
        files_at_once: number of paths at the start; None admits every path, for good.
        unfinished: the files that were not finished at the last commit, in the order of reading.
        closed: see `close`.
    """

    def __init__(
        self, files_at_once: int | None, unfinished: Iterable[FileKey], closed: Set[str] = frozenset()
    ) -> None:
        self.files_at_once = files_at_once
        self._closed = closed
        self._versions: dict[PathKey, set[bytes]] = {}
        self._admitted: set[PathKey] = set()
        if files_at_once is not None:
            for source, path, version in unfinished:
                self._versions.setdefault((source, path), set()).add(version)
        self._admit_next()

    @property
    def admitted(self) -> frozenset[FileKey] | None:
        """The versions that may be read now; None for all."""
        if self.files_at_once is None:
            return None
        return frozenset((*path, version) for path in self._admitted for version in self._versions[path])

    @property
    def suspects(self) -> frozenset[FileKey]:
        """The versions one of which is to blame if this attempt dies; empty if all may be read."""
        return self.admitted or frozenset()

    def close(self, sources: Set[str]) -> None:
        """Takes the files of closed sources out: they wait for another source's schema and must not hold its files up.

        Args:
            sources: all closed sources.
        """
        self._closed = sources
        self._admitted = {path for path in self._admitted if path[0] not in sources}
        if not self._admitted:
            self._admit_next()

    def on_committed(self, delta: Delta) -> bool:
        """Notes the files that an epoch has queued and finished.

        Args:
            delta: the changes of the epoch.

        Returns:
            True if further files are admitted: a barrier must say so.
        """
        if self.files_at_once is None or "queue" not in delta.tables:
            return False
        before = self.admitted or frozenset()
        self._note(delta)
        if not self._admitted:
            if self._proving:
                doubled = 2 * self.files_at_once
                self.files_at_once = None if doubled > _LIFTED_ABOVE else doubled
            self._admit_next()
        return self.admitted is None or not self.admitted <= before

    def _note(self, delta: Delta) -> None:
        rows = delta.tables["queue"]
        for key, op in zip(rows["key"].to_pylist(), rows["op"].to_pylist(), strict=True):
            source, path, version = decode_key(key)
            assert isinstance(source, str) and isinstance(path, str) and isinstance(version, bytes)
            versions = self._versions.setdefault((source, path), set())
            if op == DELETE:
                versions.discard(version)
            else:
                versions.add(version)
            if not versions:
                del self._versions[source, path]
                self._admitted.discard((source, path))

    def _admit_next(self) -> None:
        if self.files_at_once is not None:
            open_paths = [path for path in self._versions if path[0] not in self._closed]
            self._admitted = set(open_paths[: self.files_at_once])
        self._proving = bool(self._admitted)
