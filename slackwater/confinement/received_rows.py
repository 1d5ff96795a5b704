"""Rows in the answer of a worker, which ran the SQL of others: they are checked before they are used."""

from __future__ import annotations

import struct

import pyarrow as pa

from slackwater.confinement.errors import WorkerEndedError

_BITS = 8
# The fields of flatbuffers of Arrow IPC that are read here, by their numbers in Message.fbs.
_HEADER, _DICTIONARY_DATA, _COMPRESSION = 2, 1, 3


def received_table(answer: bytes) -> pa.Table:
    """The table in an answer.  Its buffers lie in the answer, so it takes no further memory.

    Raises:
        WorkerEndedError: the answer is not a stream of Arrow, is compressed, or has more rows than it has bits.
    """
    buffer = pa.py_buffer(answer)
    try:
        _require_uncompressed(buffer)
        table = pa.ipc.open_stream(buffer).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError, struct.error) as error:
        raise WorkerEndedError(f"the worker process sent no valid rows: {error}") from None
    if table.num_rows > _BITS * len(answer):
        raise WorkerEndedError("the worker process sent no valid rows: there are more than its answer has bits")
    return table


def _require_uncompressed(buffer: pa.Buffer) -> None:
    """Refuses compressed rows, which may take thousands of times the size of the answer."""
    for message in pa.ipc.MessageReader.open_stream(buffer):
        if message.type == "schema":
            continue
        metadata = message.metadata.to_pybytes()
        rows = _table(metadata, struct.unpack_from("<I", metadata)[0], _HEADER)
        if message.type == "dictionary":
            rows = _table(metadata, rows, _DICTIONARY_DATA)
        if _place(metadata, rows, _COMPRESSION):
            raise WorkerEndedError("the worker process sent no valid rows: they are compressed")


def _table(metadata: bytes, table: int, field: int) -> int:
    """The place of the table in a field of a table of a flatbuffer."""
    place = table + _place(metadata, table, field)
    return int(place + struct.unpack_from("<I", metadata, place)[0])


def _place(metadata: bytes, table: int, field: int) -> int:
    """The place of a field behind the start of its table; 0 for a field that is missing."""
    vtable = table - struct.unpack_from("<i", metadata, table)[0]
    size = struct.unpack_from("<H", metadata, vtable)[0]
    at = 4 + 2 * field
    return int(struct.unpack_from("<H", metadata, vtable + at)[0]) if at < size else 0
