"""A fuzz test of one reader, in a process of its own with limits.

    python -m tests.actors.formats.mutated_files KIND[,KIND...] SEED FIRST COUNT

Each mutation of a small file is read as a run reads it, with and without a schema.  The process prints the number of
each mutation before it reads the file, so that the last line names the one that ended it.
"""

from __future__ import annotations

import base64
import lzma
import random
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from actors.file_errors import EmptyFile, UnreadableFile
from actors.formats.options import Avro, Csv, Debezium, Json, Orc, Parquet, Text
from actors.formats.registry import Format, reader_for
from actors.rows import Offset, Rows
from actors.settings import MIB, ReadLimits
from state.errors import SchemaError
from tests.actors.formats.foreign_parquet import write_encrypted
from tests.actors.formats.written_files import (
    AVRO_CODECS,
    COMPRESSIONS,
    ORC_CODECS,
    flights,
    open_written,
    write_avro,
    write_csv,
    write_debezium,
    write_json,
    write_orc,
    write_parquet,
)

CPU_S = 4.0
"""The CPU time of one mutation; the limit of the readers for a file of a few KiB is half of it."""
MEMORY_BYTES = 3 << 30
"""The limit of the address space, in addition to the address space of the process at the start."""
_HELD_BYTES = 512 * MIB
_LIMITS = ReadLimits(max_batch_bytes=32 * MIB, max_record_bytes=MIB, max_cpu_s_per_mib=CPU_S / 2, max_bad_records=50)
_ALLOWED = (UnreadableFile, EmptyFile)
_ROWS = 40


@dataclass(frozen=True)
class Fuzzed:
    """A kind of file: its format, and some small files of it."""

    format: Format
    contents: Callable[[], list[bytes]]


def _nested() -> pa.Table:
    us = pa.timestamp("us")
    return pa.table(
        {
            "l": pa.array([[1, None, 3], [], None] * 4),
            "s": pa.array([{"a": "x", "b": 1.5}, None, {"a": None, "b": None}] * 4),
            "m": pa.array([[("k", 1)], [], None] * 4, pa.map_(pa.string(), pa.int64())),
            "d": pa.array([Decimal("1.25"), None, Decimal("-9.99")] * 4, pa.decimal128(9, 2)),
            "day": pa.array([date(2026, 1, 1), None, date(1, 1, 1)] * 4),
            "t": pa.array([datetime(9999, 12, 31), None, datetime(1, 1, 1)] * 4, us),  # noqa: DTZ001
            "b": pa.array([b"\0\xff", None, b""] * 4),
            "x": pa.array(["dict", "dict", None] * 4).dictionary_encode(),
        }
    )


def _parquet(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _compressed(content: bytes) -> list[bytes]:
    return [compress(content) for compress in COMPRESSIONS.values()]


KINDS: Mapping[str, Fuzzed] = {
    "parquet": Fuzzed(
        Parquet(),
        lambda: [
            write_parquet(flights(_ROWS), 13),
            *(write_parquet(flights(_ROWS), 19, codec) for codec in ("none", "gzip", "zstd", "lz4", "brotli")),
            _parquet(_nested()),
            _parquet(_nested(), use_deprecated_int96_timestamps=True, row_group_size=5, data_page_version="2.0"),
            _parquet(
                pa.table({"a": ["abc", "abd"] * 9}), use_dictionary=False, column_encoding={"a": "DELTA_BYTE_ARRAY"}
            ),
            write_encrypted(
                pa.table({"id": [1, 2], "secret": ["a", "b"]}), plaintext_footer=True, column_keys={"k": ["secret"]}
            ),
        ],
    ),
    "orc": Fuzzed(
        Orc(),
        lambda: [
            *(write_orc(flights(_ROWS), 19, codec) for codec in ORC_CODECS),
            write_orc(_nested().drop_columns(["x"])),
            write_orc(flights(_ROWS), 19, file_version="0.11"),
        ],
    ),
    "avro": Fuzzed(
        Avro(),
        lambda: [write_avro(flights(_ROWS).to_pylist(), block_bytes=500, codec=codec) for codec in AVRO_CODECS],
    ),
    "csv": Fuzzed(
        Csv(), lambda: [write_csv(flights(_ROWS)), b"a,b\n1,2\n\n3,4", *_compressed(write_csv(flights(_ROWS)))]
    ),
    "csv-utf-16": Fuzzed(Csv(encoding="utf-16"), lambda: [write_csv(flights(_ROWS)).decode().encode("utf-16")]),
    "json": Fuzzed(
        Json(),
        lambda: [
            write_json(flights(_ROWS)),
            b'{"a": [1, {"b": null}], "c": {"d": "\\u00e9"}}\n' * 9,
            b'[{"a": 1},\n {"a": 2}]',
            *_compressed(write_json(flights(_ROWS))),
        ],
    ),
    "debezium": Fuzzed(Debezium(), lambda: [write_debezium(flights(_ROWS))]),
    "text": Fuzzed(Text(), lambda: ["é\n\nb\r\nc".encode() * 20, *_compressed(b"line\n" * 100)]),
}


def mutated(content: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """The content with one to five changes."""
    made = bytearray(content)
    for _ in range(chance.randint(1, 5)):
        size = len(made)
        at = chance.randrange(size) if size else 0
        if size and chance.random() < 0.5:  # headers and footers decide more than the bytes between them
            at = chance.choice([chance.randrange(min(64, size)), size - 1 - chance.randrange(min(700, size))])
        length = chance.choice([1, 2, 4, 8, chance.randint(1, 200)])
        match chance.randrange(9):
            case 0 if size:
                made[at] ^= 1 << chance.randrange(8)
            case 1 if size:
                made[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, ord("\n"), ord('"'), ord("{"), chance.randrange(256)])
            case 2:
                made[at : at + length] = chance.choice([bytes(length), b"\xff" * length, b"\x7f" * length])
            case 3:
                made[at:at] = chance.randbytes(length)
            case 4:
                del made[at : at + length]
            case 5:
                made[at:at] = made[at : at + length] * chance.choice([1, 2, 50])
            case 6:
                other = chance.choice(others)
                start = chance.randrange(len(other))
                made[at : at + length] = other[start : start + length]
            case 7 if chance.random() < 0.3:
                del made[at:]
            case _:
                # A number of variable length, or a length of four bytes, becomes an extreme one.
                made[at : at + 4] = chance.choice(
                    [b"\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x08", (1 << 31).to_bytes(4, "big")]
                )
    return bytes(made)


def fuzz(kind: Fuzzed, seed: int, numbers: Iterator[int]) -> None:
    """Reads mutations.

    Raises:
        AssertionError: a reader raised an error that it does not document, or took too much.
    """
    contents = kind.contents()
    schemas = [_schema_of(kind.format, content) for content in contents]
    with tempfile.TemporaryDirectory() as directory:
        for number in numbers:
            chance = random.Random(f"{seed}-{number}")
            original = chance.randrange(len(contents))
            content = mutated(contents[original], chance, contents)
            print(number, flush=True)
            began_s = time.process_time()
            try:
                _read(kind.format, Path(directory), content, schemas[original], chance)
                took_s = time.process_time() - began_s
                assert took_s < CPU_S, f"it took {took_s:.1f} CPU seconds"
                held = pa.default_memory_pool().max_memory()
                assert held < _HELD_BYTES, f"it held {held} bytes of Arrow's memory"
            except BaseException:
                traceback.print_exc()
                shown = base64.b85encode(lzma.compress(content)).decode()
                print(f"mutation {number} of seed {seed}, by base85 and xz: {shown}", file=sys.stderr)
                raise


def _schema_of(format: Format, content: bytes) -> pa.Schema:
    with tempfile.TemporaryDirectory() as directory:
        try:
            return reader_for(format).infer_schema(open_written(Path(directory), content))
        except (UnreadableFile, SchemaError):
            return pa.schema([("id", pa.int64()), ("secret", pa.string())])


def _read(format: Format, directory: Path, content: bytes, schema: pa.Schema, chance: random.Random) -> None:
    whole = chance.choice([8 * MIB, 700])
    file = open_written(directory, content, whole_object_bytes=whole, block_bytes=chance.choice([700, 100_000]))
    reader = reader_for(format, _LIMITS)
    try:
        inferred = reader.infer_schema(file)
    except (*_ALLOWED, SchemaError):
        inferred = schema
    _read_twice(reader, file, schema, chance)
    if inferred.names and not inferred.equals(schema) and not any(pa.types.is_null(each) for each in inferred.types):
        _read_twice(reader, file, inferred, chance)


def _read_twice(reader: Any, file: Any, schema: pa.Schema, chance: random.Random) -> None:
    """Reads a file from its start and from a later row: what both show is equal."""
    whole, reason = _pieces(reader, file, schema, Offset(), 100_000)
    num_rows = sum(piece.num_rows for piece in whole)
    start = chance.randint(0, num_rows)
    rest, again = _pieces(reader, file, schema, Offset(start), chance.choice([200, 100_000]))
    before = [row for piece in whole for row in _shown(piece) if row[0] >= start]
    after = [row for piece in rest for row in _shown(piece)]
    # The rows behind the last whole piece are lost with the error.
    most = min(len(before), len(after)) if reason or again else max(len(before), len(after))
    assert before[:most] == after[:most], f"from row {start} on it is read otherwise: {reason}; {again}"


def _pieces(reader: Any, file: Any, schema: pa.Schema, offset: Offset, piece_bytes: int) -> tuple[list[Rows], str]:
    pieces: list[Rows] = []
    try:
        for piece in reader.read(file, schema, offset, piece_bytes):
            assert piece.first_row == (pieces[-1].end_row if pieces else max(offset.row, piece.first_row))
            piece.table.validate(full=True)
            pieces.append(piece)
    except _ALLOWED as error:
        return pieces, str(error)
    return pieces, ""


def _shown(piece: Rows) -> list[tuple[int, str]]:
    bad = {each.row for each in piece.bad}
    good = (row for row in range(piece.first_row, piece.end_row) if row not in bad)
    shown = [(row, _values(piece.table.slice(at, 1))) for at, row in enumerate(good)]
    return sorted([*shown, *((row, "bad") for row in bad)])


def _values(row: pa.Table) -> str:
    """The values of a row; some, such as far times, have no form in Python."""
    return " ".join(column.combine_chunks().to_string() for column in row.columns)


def main() -> None:
    """Runs the mutations that the arguments name."""
    kinds, seed, first, count = sys.argv[1].split(","), *map(int, sys.argv[2:5])
    # Threads and libraries reserve address space before the first file.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    reserved = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (reserved + MEMORY_BYTES, resource.RLIM_INFINITY))
    for kind in kinds:
        print(kind, flush=True)
        fuzz(KINDS[kind], seed, iter(range(first, first + count)))


if __name__ == "__main__":
    main()
