"""Rows out of a worker that was taken over."""

from __future__ import annotations

import io
from random import Random

import pyarrow as pa
import pytest

from slackwater.confinement.errors import WorkerEndedError
from slackwater.confinement.received_rows import received_table


def stream(table: pa.Table, compression: str | None = None) -> bytes:
    """A table as a worker sends it, or compressed."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return sink.getvalue()


ROWS = pa.table(
    {
        "numbers123": [1, None, 3],
        "texts": ["a", "b" * 1_000, None],
        "lists": [[1], [], None],
        "kinds": pa.array(["x", "y", "x"]).dictionary_encode(),
    }
)


def test_rows_of_a_worker_are_received() -> None:
    assert received_table(stream(ROWS)) == ROWS


@pytest.mark.parametrize("table", [pa.table({"n": pa.array([0]).take(pa.array([0] * 1_000_000))}), ROWS])
@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_rows_are_refused_before_they_take_memory(table: pa.Table, compression: str) -> None:
    answer = stream(table, compression)
    before = pa.total_allocated_bytes()
    with pytest.raises(WorkerEndedError, match="compressed"):
        received_table(answer)
    assert pa.total_allocated_bytes() - before < 1 << 20


@pytest.mark.parametrize(
    "answer",
    [
        stream(ROWS).replace(b"numbers123", b"\xff" * 10),
        stream(pa.table({"n": pa.nulls(1 << 30)})),
        stream(ROWS)[:-100],
        b"",
        b"\xff" * 100,
    ],
    ids=["a name that is not UTF-8", "rows without bytes", "cut off", "nothing", "noise"],
)
def test_an_answer_that_is_not_rows_is_an_error_of_the_worker(answer: bytes) -> None:
    with pytest.raises(WorkerEndedError):
        received_table(answer)


def test_mutated_answers_are_rows_or_an_error_of_the_worker() -> None:
    answer, random = stream(ROWS), Random(1)
    for _ in range(2_000):
        mutated = bytearray(answer)
        for _ in range(random.randrange(1, 4)):
            mutated[random.randrange(len(mutated))] = random.randrange(256)
        try:
            assert received_table(bytes(mutated)).num_rows <= 8 * len(answer)
        except WorkerEndedError:
            pass
