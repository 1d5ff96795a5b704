"""Reader of Avro files."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from fastavro import schemaless_reader

from actors.file_errors import UnreadableFile, one_line
from actors.formats.avro.avro_schema import AvroPlan, plan_of
from actors.formats.avro.container import AvroContainer, Block
from actors.formats.compressed import Bytes
from actors.formats.limits import CpuTime, Expansion, row_bytes
from actors.formats.template import DecodedTable, OpenedFile, ReadRequest, TableReader
from actors.objects.object_file import ObjectFile
from actors.rows import Offset
from actors.settings import ReadLimits

# The errors of fastavro about bytes that are no records.
_NO_RECORD = (EOFError, IndexError, KeyError, OverflowError, TypeError, ValueError, struct.error)
_NO_COLUMN = (pa.ArrowException, OverflowError)
_PYTHON_FOR_PIECE = 16


class _AvroHead(NamedTuple):
    container: AvroContainer
    plan: AvroPlan


class AvroReader(TableReader[_AvroHead]):
    """Reads Avro files; see `FileReader`.

    The anchor of a row is its block.  Blocks are read one after the other, and all fields of their records are decoded.
    """

    declared, magics = "Avro", (b"Obj\x01",)

    def _open(self, file: ObjectFile) -> OpenedFile[_AvroHead]:
        container = AvroContainer(file, self._limits)
        plan = plan_of(container.schema, self._limits)
        return OpenedFile(_AvroHead(container, plan), plan.schema)

    def _tables(
        self, opened: OpenedFile[_AvroHead], request: ReadRequest, cpu: CpuTime, expansion: Expansion
    ) -> Iterator[DecodedTable]:
        return _Reading(opened.head, request, self._limits, cpu).tables(request.offset, expansion)


class _Reading:
    """One reading of columns of a file.

    Args:
        head: the blocks of the file, and the plan of its schema.
        request: the wanted columns, and the wanted size of a piece.
        limits: the limits of the reader.
        cpu: the CPU time of the reading.
    """

    def __init__(self, head: _AvroHead, request: ReadRequest, limits: ReadLimits, cpu: CpuTime) -> None:
        self._container, self._plan = head
        self._limits, self._cpu = limits, cpu
        plan, wanted = self._plan, request.wanted
        given = frozenset(plan.schema.names)
        self._names = [name for name in wanted.names if name in given]
        # The first column tells the number of rows when none of the wanted ones is in the file.
        self._names = self._names or plan.schema.names[:1]
        record_bytes = max(plan.row.python_bytes, row_bytes(wanted))
        most_bytes = min(limits.max_batch_bytes, _PYTHON_FOR_PIECE * request.piece_bytes)
        self._most_records = max(1, most_bytes // record_bytes)
        unfolds = plan.row.unfolds
        self._window_bytes = limits.max_batch_bytes // unfolds if unfolds else limits.max_batch_bytes

    def tables(self, offset: Offset, expansion: Expansion) -> Iterator[DecodedTable]:
        """Yields the tables of all blocks with a row from the offset on."""
        row = offset.anchor_row
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
                yield DecodedTable(self._table(block, records), row, anchor)
                row += len(records)

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
