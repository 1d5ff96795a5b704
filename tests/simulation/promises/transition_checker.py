"""Checks of ledger and queue between two versions of the store."""

from __future__ import annotations

from actors.sources.source import OnChange
from tests.simulation.memory.file_tables import FileTables, path_of
from tests.simulation.memory.memory_disk import Row
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.promises.command_checker import CommandChecker


class TransitionChecker:
    """Checks that no file is forgotten, that finished files stay finished, and that offsets only grow (G3, G4).

    Args:
        on_change: the `on_change` of every source.
        commands: the wishes of users.
    """

    def __init__(self, on_change: OnChange, commands: CommandChecker) -> None:
        self._commands = commands
        self._replaces = on_change == "replace"
        self._tables = FileTables.of(None)

    def begin(self, tables: FileTables) -> None:
        """Begins with the rows of the first version of a branch."""
        self._tables = tables

    def check(self, tables: FileTables) -> None:
        """Checks the rows of the next version against those of the last one."""
        before, self._tables = self._tables, tables
        for key, earlier in before.ledger.items():
            if self._commands.is_retried(key):
                _check_retried(key, earlier, tables)
                continue
            if key not in tables.ledger:
                raise PromiseBroken("G4", f"{earlier['path']} is no longer in the ledger")
            row = tables.ledger[key]
            if earlier is not row:
                self._check_finished(earlier, row)
        for key, earlier in before.queue.items():
            if not (self._commands.is_reread(earlier) and _begins_again(key, earlier, tables)):
                _check_waiting(key, earlier, tables)

    def _check_finished(self, earlier: Row, row: Row) -> None:
        """Checks a finished version.

        It stays, its rows are removed, the same version is back and read again, or a user wants that.
        """
        was_removed = self._replaces and earlier["status"] == "forgotten" and earlier["deleted_epoch"] is not None
        is_back = was_removed or (earlier["status"] == "vanished" and not earlier["rows_read"])
        is_back |= self._commands.is_reread(row)
        is_deleted = (self._replaces and row["deleted_epoch"] is not None) or self._commands.is_forgotten(row)
        allowed = (earlier["status"], "replaced", *(["forgotten"] if is_deleted else []))
        is_same = earlier["rows_read"] == row["rows_read"] and row["status"] in allowed
        if not is_back and not is_same:
            raise PromiseBroken(
                "G3",
                f"{row['path']} was {earlier['status']} with {earlier['rows_read']} rows, "
                f"and is {row['status']} with {row['rows_read']}",
            )


def _check_retried(key: bytes, earlier: Row, tables: FileTables) -> None:
    """Checks a version that is in the queue again, or has ended once more: it continues behind its last row."""
    row = tables.queue.get(key)
    rows = tables.ledger[key]["rows_read"] if row is None else row["row_offset"]
    if rows < earlier["rows_read"]:
        raise PromiseBroken("G3", f"{earlier['path']} was at row {earlier['rows_read']}, was retried, and is at {rows}")


def _begins_again(key: bytes, earlier: Row, tables: FileTables) -> bool:
    """Whether a version is read from its first row again while the ledger keeps the rows so far."""
    row, kept = tables.queue.get(key), tables.ledger.get(key)
    if row is None or not row["replaces"]:
        return False
    return not earlier["row_offset"] or (kept is not None and bool(kept["rows_read"] == earlier["row_offset"]))


def _check_waiting(key: bytes, earlier: Row, tables: FileTables) -> None:
    """Checks a waiting version: it waits at the same row or a later one, is finished, or a later version waits."""
    row = tables.queue.get(key)
    if row is not None:
        if row["row_offset"] < earlier["row_offset"]:
            raise PromiseBroken("G3", f"{row['path']} was at row {earlier['row_offset']} and is at {row['row_offset']}")
        return
    row = tables.ledger.get(key)
    if row is not None and row["rows_read"] >= earlier["row_offset"]:
        return
    others = [*tables.queue.values(), *tables.ledger.values()]
    if earlier["row_offset"] or not any(path_of(each) == path_of(earlier) for each in others):
        raise PromiseBroken("G4", f"{earlier['path']} was waiting, and its row is deleted")
