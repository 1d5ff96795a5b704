"""Checks of the reports of columns that files lack."""

from __future__ import annotations

from tests.simulation.memory.file_tables import FileTables
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.file_rows import LACKED, lacks_column


def check_lacked_columns(tables: FileTables) -> None:
    """Checks that each version with rows of a file that lacks a column has the report of the column (G6)."""
    reported = {
        row["sources"][0] for row in tables.catalog.values() if row["kind"] == "column" and row["name"] == LACKED
    }
    for row, offset in tables.offsets():
        if offset and lacks_column(row["path"]) and row["source"] not in reported:
            raise PromiseBroken("G6", f"{row['path']} lacks the column {LACKED}, and no commit reports it")
