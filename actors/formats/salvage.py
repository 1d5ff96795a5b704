"""Salvage of a block with bad records: its good rows, and the reason for each bad record."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

from actors.file_errors import UnreadableFile
from actors.rows import BadRecord, Rows
from actors.settings import ReadLimits

MOST_RAW_BYTES = 64 * 1024
"""Of a bad record, which are kept."""


class Records(Protocol):
    """Consecutive records of a file, not parsed yet."""

    def __len__(self) -> int: ...

    def parse(self, start: int, end: int) -> pa.Table:
        """The rows of the records from `start` (inclusive) to `end` (exclusive); raises `WRONG` for a bad record."""
        ...

    def raw(self, index: int) -> bytes:
        """The raw bytes of one record."""
        ...


WRONG = (pa.ArrowException, UnreadableFile)
"""The errors of a parser about a record."""


def salvaged(
    records: Records, first_row: int, reason_of: Callable[[Exception], str], bad_before: int, limits: ReadLimits
) -> Rows:
    """Parses records, and finds the bad ones by binary search.

    Args:
        records: records with at least one bad one.
        first_row: the position of the first record in the file, from 0.
        reason_of: the reason of an error, in one line.
        bad_before: the number of earlier bad records of the file.
        limits: the limits of the reader; `max_bad_records` counts.

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
            raise  # not an error of the file
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
            bad.append(BadRecord(first_row + start, records.raw(start)[:MOST_RAW_BYTES], reason_of(error)))
    return Rows(pa.concat_tables(good) if good else records.parse(0, 0), first_row, tuple(bad))


def row_as_json(table: pa.Table, index: int) -> bytes:
    """One row of a table, as JSON."""
    row = {name: _shown(column[index]) for name, column in zip(table.column_names, table.columns, strict=True)}
    return json.dumps(row, default=str, ensure_ascii=False).encode("utf-8", "replace")


def _shown(value: pa.Scalar) -> object:
    """A value as text; some values have no form in Python."""
    for form in (
        lambda: value.as_py(),
        lambda: str(value),
        lambda: bytes(value.as_buffer()).decode("utf-8", "replace"),
    ):
        try:
            return form()
        except (ValueError, OverflowError, AttributeError):
            continue
    return f"a {value.type} that cannot be shown"
