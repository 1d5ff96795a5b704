"""Rows out of a worker that was taken over."""

from __future__ import annotations

import io
import struct
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


MANY_NULLS = pa.nulls(20_000_000)


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
            assert received_table(bytes(mutated)).num_rows <= 8 * (len(answer) + (1 << 20))
        except WorkerEndedError:
            pass


def test_rows_of_many_types_are_received() -> None:
    number = pa.array([1, None, 3])
    union = pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), [number, pa.array(["a", "b", "c"])])
    table = pa.table(
        {
            "times": pa.array([1, 2, None], pa.timestamp("us", "Europe/Berlin")),
            "structs": [{"a": {"b": [1, 2]}}, None, {"a": None}],
            "maps": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
            "arrays": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)),
            "nothing": pa.nulls(3),
            "decimals": pa.array([1, 2, 3], pa.decimal128(38, 3)),
            "either": union,
        }
    )
    fields = [field.with_metadata({"key": "value" * 100}) for field in table.schema]
    table = table.cast(pa.schema(fields, metadata={"all": "x" * 1_000}))
    assert received_table(stream(table)).equals(table, check_metadata=True)
    nulls = pa.table({"n": pa.array([[None] * 10_000, [], None], pa.list_(pa.null()))})
    assert received_table(stream(nulls)) == nulls
    wide = pa.table({f"c{number}": pa.array([], pa.int64()) for number in range(2_000)})
    assert received_table(stream(wide)) == wide
    assert received_table(stream(pa.table({}))).num_rows == 0


def test_compression_in_custom_metadata_is_refused_before_it_takes_memory() -> None:
    schema, sink = pa.schema([("n", pa.int64())]), io.BytesIO()
    version = pa.ipc.MetadataVersion.V4
    options = pa.ipc.IpcWriteOptions(metadata_version=version, compression="zstd")
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        rows = pa.record_batch([pa.repeat(0, 1_000_000)], schema=schema)
        writer.write_batch(rows, custom_metadata={"ARROW:experimental_compression": "zstd"})
    answer = bytearray(sink.getvalue())
    _, batch = pa.ipc.MessageReader.open_stream(sink.getvalue())
    start = sink.getvalue().index(batch.metadata.to_pybytes())
    root = start + struct.unpack_from("<I", answer, start)[0]
    header = root + struct.unpack_from("<H", answer, root - struct.unpack_from("<i", answer, root)[0] + 8)[0]
    table = header + struct.unpack_from("<I", answer, header)[0]
    # The batch then names no compression, and the reader uses the one of the custom metadata.
    struct.pack_into("<H", answer, table - struct.unpack_from("<i", answer, table)[0] + 10, 0)
    assert pa.ipc.open_stream(bytes(answer)).read_all().num_rows == 1_000_000
    before = pa.total_allocated_bytes()
    with pytest.raises(WorkerEndedError, match="version"):
        received_table(bytes(answer))
    assert pa.total_allocated_bytes() - before < 1 << 20


def test_a_dictionary_that_comes_in_parts_is_refused() -> None:
    texts, sink = ["x" * 10_000], io.BytesIO()
    schema = pa.schema([("kinds", pa.dictionary(pa.int32(), pa.string()))])
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for number in range(100):
            texts.append(str(number))
            kinds = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array(texts))
            writer.write_batch(pa.record_batch([kinds], schema=schema))
    before = pa.total_allocated_bytes()
    with pytest.raises(WorkerEndedError, match="parts"):
        received_table(sink.getvalue())
    assert pa.total_allocated_bytes() - before < 1 << 18


def test_a_large_dictionary_with_many_batches_is_refused_in_time() -> None:
    values = pa.array(["x" * (1 << 20)] * 8)
    kinds = pa.DictionaryArray.from_arrays(pa.array([7], pa.int8()), values)
    few = pa.table({"a": pa.chunked_array([kinds] * 10), "b": pa.chunked_array([kinds] * 10)})
    assert received_table(stream(few)) == few
    many = pa.table({"a": pa.chunked_array([kinds] * 600), "b": pa.chunked_array([kinds] * 600)})
    with pytest.raises(WorkerEndedError, match="too many batches"):
        received_table(stream(many))


def test_columns_that_share_their_bytes_are_refused() -> None:
    answer = bytearray(stream(pa.table({"a": ["x" * 640], "b": ["y" * 640]})))
    second = answer.index(struct.pack("<qq", 656, 640))
    answer[second : second + 16] = struct.pack("<qq", 0, 1_296)
    assert pa.ipc.open_stream(bytes(answer)).read_all().num_rows == 1
    with pytest.raises(WorkerEndedError, match="share"):
        received_table(bytes(answer))


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["x" * 100] * 3, pa.string_view()),
        pa.array([[1], [2]], pa.list_view(pa.int8())),
        pa.RunEndEncodedArray.from_arrays(pa.array([2]), pa.array([1])),
        pa.UnionArray.from_dense(pa.array([0, 0], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1])]),
        pa.FixedSizeListArray.from_arrays(MANY_NULLS, len(MANY_NULLS)),
        pa.StructArray.from_arrays([pa.ListArray.from_arrays([0, len(MANY_NULLS)], MANY_NULLS)], ["a"]),
    ],
    ids=["views of texts", "views of lists", "runs", "dense union", "array of nulls", "list of nulls"],
)
def test_arrays_that_repeat_values_are_refused(array: pa.Array) -> None:
    with pytest.raises(WorkerEndedError, match=r"no answer has|more values"):
        received_table(stream(pa.table({"a": array})))


def test_a_schema_that_refers_to_one_field_many_times_is_refused() -> None:
    answer = shared_field_stream(1_000)
    assert len(pa.ipc.open_stream(answer).schema) == 1_000
    with pytest.raises(WorkerEndedError, match="schema"):
        received_table(answer)


def shared_field_stream(field_count: int) -> bytes:
    """An empty stream whose schema names one field of type Null many times."""
    field = 48 + 4 * field_count
    metadata = bytearray(field + 48)
    message = struct.pack("<I5H2xiIhB", 16, 10, 12, 8, 10, 4, 12, 16, 4, 1)
    schema = struct.pack("<4HiII", 8, 8, 0, 4, 8, 4, field_count)
    metadata[: len(message)] = message
    metadata[28 : 28 + len(schema)] = schema
    for place in range(48, field, 4):
        struct.pack_into("<I", metadata, place, field + 16 - place)
    struct.pack_into("<8HiIIB3x2HiI", metadata, field, 16, 16, 0, 0, 12, 4, 0, 8, 16, 16, 16, 1, 4, 4, 4, 0)
    return struct.pack("<iI", -1, len(metadata)) + bytes(metadata) + struct.pack("<iI", -1, 0)
