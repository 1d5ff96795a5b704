"""Check of the reading order of a source."""

from __future__ import annotations

from actors.files import FileVersion, ReadingOrder, place
from actors.protocol.run_state import RunState
from tests.simulation.memory.file_tables import FileTables
from tests.simulation.memory.memory_disk import Row
from tests.simulation.promise_broken import PromiseBroken


class ReadingOrderChecker:
    """Checks that the files of each source are read one after the other, in their order.

    Args:
        order: the `order` of every source; None to check nothing.
    """

    def __init__(self, order: ReadingOrder | None) -> None:
        self._order = order

    def on_state(self, state: RunState) -> None:
        """Ends the checks when a run looks for a file that kills its reader: admission then decides the order."""
        if state.files_at_once is not None:
            self._order = None

    def check(self, tables: FileTables) -> None:
        """Checks that no file was opened while an earlier one, listed before it, was waiting."""
        order = self._order
        if order is None:
            return
        begun = [row for row in tables.queue.values() if row["row_offset"]]
        for source in {row["source"] for row in begun}:
            half_read = [row["path"] for row in begun if row["source"] == source]
            if len(half_read) > 1:
                raise PromiseBroken("order", f"{half_read} are half read at the same time")
        waiting = [row for row in tables.queue.values() if not row["row_offset"] and not row["replaces"]]
        opened = [*begun, *(row for row in tables.ledger.values() if row["rows_read"])]
        for later in opened:
            for row in waiting:
                was_known = row["source"] == later["source"] and row["listed_epoch"] < later["listed_epoch"]
                if was_known and place(_file_version(row), order) < place(_file_version(later), order):
                    raise PromiseBroken("order", f"{later['path']} was read before {row['path']}, which was known")


def _file_version(row: Row) -> FileVersion:
    return FileVersion(**{name: row[name] for name in FileVersion.__dataclass_fields__})
