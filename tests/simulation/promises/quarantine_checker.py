"""Checks of the quarantine against the bucket, and of the reports of columns that files lack."""

from __future__ import annotations

from collections.abc import Mapping

from actors.files import FileKey, PathKey
from tests.simulation.memory.file_tables import FileTables, file_of, path_of
from tests.simulation.memory.memory_disk import Row
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.bucket import Content
from tests.simulation.world.file_rows import LACKED, lacks_column


class QuarantineChecker:
    """Checks that the bad records that were read, and no others, are in quarantine and counted (G6).

    Attributes:
        messages: the messages of queues in quarantine, at any time, that are not valid events.

    Args:
        contents: file version → its content.
    """

    def __init__(self, contents: Mapping[FileKey, Content]) -> None:
        self._contents = contents
        self._forgotten: set[PathKey] = set()
        self.messages: set[str] = set()

    def begin(self, above: QuarantineChecker) -> None:
        """Begins with the history of the root above a branch."""
        self._forgotten, self.messages = {*above._forgotten}, {*above.messages}

    def check(self, tables: FileTables) -> None:
        """Checks the rows about files at one version of the store."""
        quarantined: dict[FileKey, set[int]] = {}
        for record in tables.quarantine.values():
            if record["row"] is None:
                self.messages.add(record["path"])
            elif record["version"] is not None:  # else it is a late row, which is good
                quarantined.setdefault(file_of(record), set()).add(record["row"])
        self._forgotten |= {path_of(row) for row in tables.ledger.values() if row["status"] == "forgotten"}
        for row, offset in tables.offsets():
            found = quarantined.pop(file_of(row), set()) if offset else set()
            expected = self._bad_records(row, offset)
            if not found and row.get("status") == "replaced" and path_of(row) in self._forgotten:
                continue  # the records of a forgotten object are deleted, of whatever version
            if found != expected or (expected and len(found) != row["rows_bad"]):
                raise PromiseBroken(
                    "G6",
                    f"{row['path']} has the bad records {sorted(expected)}; {sorted(found)} are in quarantine, "
                    f"{row['rows_bad']} are counted",
                )
        if quarantined:
            raise PromiseBroken("G6", f"quarantine has records of {sorted(quarantined)}, of which no row was read")

    def _bad_records(self, row: Row, offset: int) -> set[int]:
        """The bad records before an offset; none of a forgotten file, whose records are deleted."""
        if row.get("status") == "forgotten":
            return set()
        return {record for record in self._contents[file_of(row)].bad_records if record < offset}


def check_lacked_columns(tables: FileTables) -> None:
    """Checks that each version with rows of a file that lacks a column has the report of the column (G6)."""
    reported = {
        row["sources"][0] for row in tables.catalog.values() if row["kind"] == "column" and row["name"] == LACKED
    }
    for row, offset in tables.offsets():
        if offset and lacks_column(row["path"]) and row["source"] not in reported:
            raise PromiseBroken("G6", f"{row['path']} lacks the column {LACKED}, and no commit reports it")
