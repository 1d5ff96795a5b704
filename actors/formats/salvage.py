"""Salvage of a block with bad records: its good rows, and the reason for each bad record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from actors.file_errors import EmptyFile, TooLargeToInfer, UnreadableFile
from actors.rows import BadRecord, Rows
from actors.schemas.metadata_columns import row_positions
from actors.settings import ReadLimits
from state.errors import SchemaError

RAW_BYTES = 64 * 1024
"""The bytes of a bad record that are kept."""


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


def with_a_record(pieces: Iterator[Rows], infer_schema: Callable[[], object]) -> Iterator[Rows]:
    """The pieces of a file from its first row on.  A file without one good record is not read, but unreadable.

    It is unreadable to a source that has no schema yet, too: a file has one outcome, whenever it is read.

    Args:
        infer_schema: raises the error of a file that shows no schema.

    Raises:
        UnreadableFile: no record is good, neither in this schema nor in another one.
    """
    for piece in pieces:
        if piece.first_row == 0 and piece.bad and not piece.table.num_rows:
            # A record may be good, but without a field that has a type, or too large to look for its fields.
            with suppress(SchemaError, EmptyFile, TooLargeToInfer):
                infer_schema()
        yield piece


def salvaged(
    records: Records,
    first_row: int,
    reason_of: Callable[[Exception], str],
    bad_before: int,
    limits: ReadLimits,
    require_time: Callable[[], None],
    faults: Sequence[BadRecord] = (),
) -> Rows:
    """Parses records, and finds the bad ones by binary search.

    Args:
        records: records of which some are bad, without the faults.
        first_row: the position of the first record in the file, from 0.
        reason_of: the reason of an error, in one line.
        bad_before: the number of earlier bad records of the file.
        limits: the limits of the reader; `max_bad_records` counts.
        require_time: ends a file that takes too long, see `CpuTime.require`: each bad record costs several attempts.
        faults: bad records that are known, in file order.

    Raises:
        UnreadableFile: more are bad, or the time is used up.
    """
    if len(faults) > (most := limits.max_bad_records - bad_before):
        raise too_many_bad(limits.max_bad_records, faults[most].reason, faults[most].row)
    all_rows = np.arange(first_row, first_row + len(records) + len(faults))
    rows = np.delete(all_rows, [fault.row - first_row for fault in faults]).tolist()
    good: list[pa.Table] = []
    bad = [*faults]
    runs = [(0, len(records))]
    while runs:
        require_time()
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
                raise too_many_bad(limits.max_bad_records, reason_of(error), rows[start]) from None
            bad.append(BadRecord(rows[start], records.raw(start)[:RAW_BYTES], reason_of(error)))
    table = pa.concat_tables(good) if good else records.parse(0, 0)
    return Rows(table, first_row, tuple(sorted(bad, key=lambda each: each.row)))


def too_many_bad(most: int, reason: str, row: int) -> UnreadableFile:
    """The error of a file with more bad records than `most`, of which this row is one, counted from 0."""
    return UnreadableFile(
        f"more than {most} of its records are bad (ReadLimits.max_bad_records), the last: {reason}", row + 1
    )


def set_aside(rows: Rows, records: pa.Table, is_bad: npt.NDArray[np.bool_], reason: Callable[[int], str]) -> Rows:
    """The rows without some of them, which are bad records.

    Args:
        records: what is shown of each, in the same order.
        is_bad: for each row whether it is a bad record.
        reason: index of a row → why it is one.
    """
    positions = row_positions(rows).to_numpy()
    bad = [
        BadRecord(int(positions[at]), row_as_json(records, int(at)), reason(int(at))) for at in np.flatnonzero(is_bad)
    ]
    return replace(
        rows,
        table=rows.table.filter(pa.array(~is_bad)),
        bad=tuple(sorted([*rows.bad, *bad], key=lambda each: each.row)),
    )


def row_as_json(table: pa.Table, index: int) -> bytes:
    """One row of a table as JSON, or the first 64 KiB of it."""
    row = {name: _shown(column[index]) for name, column in zip(table.column_names, table.columns, strict=True)}
    return json.dumps(row, default=str, ensure_ascii=False).encode("utf-8", "replace")[:RAW_BYTES]


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
