"""Reader of Avro files."""

from __future__ import annotations

import io
import struct
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from fastavro import schemaless_reader

from actors.file_errors import UnreadableFile, one_line
from actors.formats.avro.avro_schema import AvroPlan, plan_of
from actors.formats.avro.container import AvroContainer, Block
from actors.formats.compressed import Bytes
from actors.formats.conformed import conformed
from actors.formats.limits import CpuTime, Expansion, row_bytes
from actors.formats.pieces import pieces
from actors.objects.object_file import ObjectFile
from actors.rows import Offset, Rows
from actors.schemas.chosen_columns import missing_columns, only_columns, without_columns
from actors.schemas.conform import Timestamps, require_common_column, require_fitting_columns
from actors.schemas.safe_types import safe_schema
from actors.settings import MIB, ReadLimits

# The errors of fastavro about bytes that are no records.
_NO_RECORD = (EOFError, IndexError, KeyError, OverflowError, TypeError, ValueError, struct.error)
_NO_COLUMN = (pa.ArrowException, OverflowError)
_PYTHON_FOR_PIECE = 16


class AvroReader:
    """Reads Avro files; see `FileReader`.

    The anchor of a row is its block.  Blocks are read one after the other, and all fields of their records are decoded.

    Args:
        limits: the limits of one file.
        timestamps: the treatment of digits below microseconds.
    """

    def __init__(self, limits: ReadLimits = ReadLimits(), timestamps: Timestamps = "exact") -> None:
        self._limits, self._timestamps = limits, timestamps

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        container = AvroContainer(file, self._limits)
        return safe_schema(plan_of(container.schema, self._limits).schema, null=pa.null())

    def read(
        self,
        file: ObjectFile,
        schema: pa.Schema,
        offset: Offset = Offset(),
        piece_bytes: int = 8 * MIB,
        columns: Collection[str] | None = None,
        every_column: bool = False,
    ) -> Iterator[Rows]:
        cpu = CpuTime(file.size, self._limits)
        container = AvroContainer(file, self._limits)
        plan = plan_of(container.schema, self._limits)
        require_common_column(plan.schema.names, schema)
        require_fitting_columns(plan.schema, schema)
        wanted = only_columns(schema, columns)
        others = tuple(without_columns(plan.schema, schema.names))
        missing = missing_columns(wanted, plan.schema.names)
        reading = _Reading(container, plan, wanted, self._limits, self._timestamps, piece_bytes, cpu)
        parts = reading.rows(offset, Expansion(file.size, self._limits))
        for rows in cpu.pausing(pieces(parts, piece_bytes)):
            yield replace(rows, others=others, missing=missing) if others or missing else rows


class _Reading:
    """One reading of columns of a file.

    Args:
        container: the blocks of the file.
        plan: the plan of its schema.
        wanted: the wanted columns, as the source has them.
        limits: the limits of the reader.
        timestamps: the treatment of digits below microseconds.
        piece_bytes: the wanted size of a piece, in bytes.
        cpu: the CPU time of the reading.
    """

    def __init__(
        self,
        container: AvroContainer,
        plan: AvroPlan,
        wanted: pa.Schema,
        limits: ReadLimits,
        timestamps: Timestamps,
        piece_bytes: int,
        cpu: CpuTime,
    ) -> None:
        self._container, self._plan, self._wanted = container, plan, wanted
        self._limits, self._timestamps, self._cpu = limits, timestamps, cpu
        self._names = [name for name in wanted.names if name in plan.schema.names]
        # The first column tells the number of rows when none of the wanted ones is in the file.
        self._names = self._names or plan.schema.names[:1]
        record_bytes = max(plan.row.python_bytes, row_bytes(wanted))
        most_bytes = min(limits.max_batch_bytes, _PYTHON_FOR_PIECE * piece_bytes)
        self._most_records = max(1, most_bytes // record_bytes)
        unfolds = plan.row.unfolds
        self._window_bytes = limits.max_batch_bytes // unfolds if unfolds else limits.max_batch_bytes

    def rows(self, offset: Offset, expansion: Expansion) -> Iterator[Rows]:
        """Yields the rows from an offset."""
        row, num_bad = offset.anchor_row, 0
        for block in self._container.blocks(offset.anchor_byte):
            self._cpu.require()
            anchor, end = Offset(row, row, block.start), row + block.num_records
            if end <= offset.row:
                row = end
                continue
            data = self._container.data(block)
            expansion.add(len(data) if self._container.is_compressed else 0)
            for records in self._records(block, data):
                self._cpu.require()
                table = self._table(block, records)
                rows = conformed(table, self._wanted, row, self._timestamps, num_bad, self._limits)
                num_bad += len(rows.bad)
                expansion.add(rows.nbytes)
                row = rows.end_row
                if row > offset.row:
                    rows = rows.between(offset.row, row) if offset.row > rows.first_row else rows
                    yield replace(rows, anchor=anchor)

    def _table(self, block: Block, records: list[Any]) -> pa.Table:
        try:
            return self._plan.table(records, self._names)
        except pa.ArrowMemoryError:
            raise  # not an error of the file
        except _NO_COLUMN as error:
            reason = one_line(error)
        raise _damaged(block, reason)

    def _records(self, block: Block, data: Bytes) -> Iterator[list[Any]]:
        """Yields the records of a block, some at a time, decoded from a window of its bytes."""
        left, start, window_bytes = block.num_records, 0, self._window_bytes
        if left * self._plan.row.least_bytes > len(data):
            raise _damaged(block, f"it claims {left} records in {len(data)} bytes")
        while left:
            stream = io.BytesIO(data[start : start + window_bytes])
            is_last = start + window_bytes >= len(data)
            used, reason = 0, ""
            while left and not reason:
                records, used, reason = _decoded(stream, self._plan.encoded, min(left, self._most_records), used)
                left -= len(records)
                if records:
                    yield records
            if left and (is_last or not used):
                if not is_last:
                    most = self._limits.max_batch_bytes
                    reason = f"one record may take more than {most} bytes of memory (ReadLimits.max_batch_bytes)"
                raise _damaged(block, reason)
            start += used
        if start < len(data):
            raise _damaged(block, f"{len(data) - start} of its bytes are behind its records")


def _decoded(stream: io.BytesIO, schema: Any, most: int, start: int) -> tuple[list[Any], int, str]:
    """The next records of a window, the position behind the last one, and why there are no more in it."""
    records: list[Any] = []
    end = start
    try:
        for _ in range(most):
            records.append(schemaless_reader(stream, schema, None))
            end = stream.tell()
    except _NO_RECORD as error:
        return records, end, one_line(error) or "a record ends too early"
    return records, end, ""


def _damaged(block: Block, reason: str) -> UnreadableFile:
    return UnreadableFile(f"damaged Avro file, in the block at byte {block.start}: {reason}")
