"""Checks of a merge: it takes all or nothing, and only if root and branch have read the same files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from actors.files import FileKey
from state.errors import SlackwaterError, UsageError
from state.tables.records import EpochRecord
from state.tables.stored_rows import declared_name, is_view
from state.tables.tables import REMOVED_STATUSES
from tests.simulation.memory.file_tables import FileTables, file_of
from tests.simulation.memory.memory_disk import MemoryDisk, MemoryVersion
from tests.simulation.promise_broken import PromiseBroken

if TYPE_CHECKING:
    from slackwater.branching.merge_steps import Merged

_OTHER_FILES = "have not read the same files"


class MergeChecker:
    """Checks the result of one merge against both roots (G1, G2, G4).

    The rows of the views are checked with the version of the store that shows them, as those of all others.

    Args:
        root: the disk of the root.
        run: the name of the merge, which owns the root.
        branch: the disk of the branch.
        record: the epoch of the branch that is merged.
    """

    def __init__(self, root: MemoryDisk, run: str, branch: MemoryDisk, record: EpochRecord) -> None:
        self._root, self._run, self._record = root, run, record
        self._there = branch.versions[record.state_version]
        self._began = root.versions[root.latest]

    def taken(self) -> list[str]:
        """The names of the views that it has taken, also if it died without an answer: each as a whole."""
        shown = self._shown()
        if shown is None:
            return []
        rows = [row for row in FileTables.of(shown).catalog.values() if row["kind"] == "view" and is_view(row["name"])]
        names = sorted(row["name"] for row in rows if row["created_epoch"] == shown.head.epoch)
        self._check_taken(shown, names)
        return names

    def check(self, merged: Merged | None, error: SlackwaterError | None) -> None:
        """Checks the end of the merge: its result, or its error."""
        taken = self.taken()
        if merged is not None and (*taken,) != merged.views:
            raise PromiseBroken("G2", f"{self._run} has taken {merged.views}, and the root shows {taken}")
        if isinstance(error, UsageError):
            if self._shown() is not None:
                raise PromiseBroken("G2", f"{self._run} was refused ({error}), and has taken {taken}")
            if _OTHER_FILES in str(error) and _files_of(self._began) == _files_of(self._there):
                raise PromiseBroken("G4", f"{self._run} was refused, and the files are the same: {error}")

    def _shown(self) -> MemoryVersion | None:
        """The version of the root that shows the views."""
        before = self._began.head.epoch
        own = (each for each in self._root.versions.values() if each.head.run == self._run)
        return next((each for each in own if each.head.epoch > before), None)

    def _check_taken(self, shown: MemoryVersion, names: list[str]) -> None:
        """Checks that all of each view is there, and that the files are the same."""
        here, there = FileTables.of(shown).identities(), FileTables.of(self._there).identities()
        for name in names:
            parts = {each for each in self._record.views if declared_name(each) == name}
            found = {each for each in shown.head.views if declared_name(each) == name}
            if parts != found or any(here[each] != there[each] for each in parts):
                raise PromiseBroken("G2", f"{self._run} has taken {sorted(found)} of {sorted(parts)}")
        sources = {source for name in names for source in _sources(shown, name)}
        rows, others = (
            {file: state for file, state in _files_of(each).items() if file[0] in sources}
            for each in (shown, self._there)
        )
        if rows != others:
            raise PromiseBroken("G1", f"{self._run} has taken views of {others}, and the root has {rows}")


def _sources(version: MemoryVersion, view: str) -> list[str]:
    [row] = [row for row in version.tables["catalog"].values() if row["kind"] == "view" and row["name"] == view]
    sources: list[str] = row["sources"]
    return sources


def _files_of(version: MemoryVersion) -> dict[FileKey, Any]:
    """The file versions of which rows are in the views: how far they were read, and whether to their end."""
    return {
        file_of(row): (offset, row.get("status"))
        for row, offset in FileTables.of(version).offsets()
        if offset and row.get("status") not in REMOVED_STATUSES
    }
