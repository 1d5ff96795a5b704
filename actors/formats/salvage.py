"""Some records of a file of which not all fit: those that do, and why the others do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from actors.file_errors import UnreadableFile
from actors.rows import BadRecord, Rows
from actors.settings import ReadLimits

_RAW_BYTES = 64 * 1024


class Records(Protocol):
    """Records one behind the other, none of them parsed yet."""

    def __len__(self) -> int: ...

    def parse(self, start: int, end: int) -> pa.Table:
        """Rows of those from `start` (inclusive) to `end` (exclusive); an error of `WRONG` if one does not fit."""
        ...

    def raw(self, index: int) -> bytes:
        """One record, as people may look at it."""
        ...


WRONG = (pa.ArrowException, UnreadableFile)
"""What parsing raises about a record."""


def salvaged(
    records: Records, first_row: int, reason_of: Callable[[Exception], str], bad_before: int, limits: ReadLimits
) -> Rows:
    """Parses records, by halves where they do not fit.

    Args:
        records: of which at least one does not fit.
        first_row: the row of the first.
        reason_of: what to say of an error.
        bad_before: how many records of the file were bad before them.
        limits: `max_bad_records` counts.

    Raises:
        UnreadableFile: more are bad.
    """
    good: list[pa.Table] = []
    bad: list[BadRecord] = []
    runs = [(0, len(records))]
    while runs:
        start, end = runs.pop()
        try:
            table = records.parse(start, end)
            if table.num_rows != end - start:
                raise UnreadableFile(f"{end - start} records are {table.num_rows} rows")
            good.append(table)
        except pa.ArrowMemoryError:
            raise  # says nothing about the file
        except WRONG as error:
            if end - start > 1:
                middle = (start + end) // 2
                runs += [(middle, end), (start, middle)]
                continue
            if bad_before + len(bad) == limits.max_bad_records:
                raise UnreadableFile(
                    f"more than {limits.max_bad_records} of its records are bad (ReadLimits.max_bad_records), "
                    f"the last: {reason_of(error)}",
                    first_row + start + 1,
                ) from None
            bad.append(BadRecord(first_row + start, records.raw(start)[:_RAW_BYTES], reason_of(error)))
    return Rows(pa.concat_tables(good) if good else records.parse(0, 0), first_row, tuple(bad))
