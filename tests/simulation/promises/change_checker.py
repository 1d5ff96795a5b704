"""Checks of sources that end the run when a file changes."""

from __future__ import annotations

import re
from collections import Counter

from actors.files import PathKey
from state.errors import BadInputError
from tests.simulation.memory.file_tables import FileTables, path_of
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.bucket import Bucket

_CHANGED = re.compile(r"source ([^:]+): ([^:]+): the file has changed since it was listed; ")


class ChangeChecker:
    """Checks that a changed file ends the run, and nothing else does, until the user accepts changes (G4).

    Args:
        bucket: the files and their history.
        fails: whether changed files end the run: `on_change="fail"`.

    Attributes:
        is_accepted: whether the user has accepted changes.
    """

    def __init__(self, bucket: Bucket, *, fails: bool) -> None:
        self._bucket, self._fails = bucket, fails
        self.is_accepted = False

    def check_error(self, error: BadInputError) -> None:
        """Checks the error of a run: it names a file that has changed."""
        named = _CHANGED.match(str(error))
        path: PathKey | None = None if named is None else (named[1], named[2])
        versions = {version for _, version in self._bucket.history.get(path, ())} - {None} if path else set()
        if not self._fails or len(versions) < 2:
            raise PromiseBroken("G4", f"no file has changed that the error names: {error}")

    def check(self, tables: FileTables) -> None:
        """Checks the rows of the next version of the store: no object has rows of two versions, and none is ignored."""
        if not self._fails or self.is_accepted:
            return
        for row in tables.ledger.values():
            if row["status"] == "done" and row["rows_read"] and row["changed_epoch"] is not None:
                raise PromiseBroken("G4", f"{row['path']} has changed, and the run has gone on")
        read = Counter(path_of(row) for row, offset in tables.offsets() if offset)
        twice = sorted(path for path, count in read.items() if count > 1)
        if twice:
            raise PromiseBroken("G4", f"{twice} have changed, and were read in two versions")
