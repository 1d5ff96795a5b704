"""Blocks of Arrow rows in Ray's object store."""

from __future__ import annotations

import pyarrow as pa
import ray

from actors.protocol.blocks import Block


def ipc_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def blocks(table: pa.Table, pieces: int) -> list[Block]:
    step = -(-table.num_rows // pieces)
    cuts = [table.slice(start, step) for start in range(0, table.num_rows, step)]
    return [Block("test", "t", ray.put(ipc_bytes(each)), each.num_rows, each.nbytes) for each in cuts]
