"""Files of every format, written by the format's own writer, and opened as a listing would."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet as pq

from actors.files import FileVersion
from actors.formats.options import Avro, Csv, Debezium, Json, Orc, Parquet
from actors.formats.registry import Format
from actors.objects.object_file import ObjectFile
from actors.objects.object_store import ObjectStore
from actors.rows import BadRecord, Rows
from actors.settings import MIB, RequestSettings
from state.location import Location


@dataclass(frozen=True)
class FileKind:
    """A format and a way to write it."""

    name: str
    format: Format
    write: Callable[[pa.Table], bytes]

    @property
    def tells_its_end(self) -> bool:
        """Whether a file that was cut off can be told from a whole one."""
        return self.name not in ("csv", "csv-bare", "csv-utf-16", "json", "debezium")


def open_written(
    directory: Path,
    content: bytes,
    *,
    whole_object_bytes: int = 8 * MIB,
    block_bytes: int = 8 * MIB,
    max_held_bytes: int = 128 * MIB,
) -> ObjectFile:
    """Writes a file and opens the version that a listing shows."""
    (directory / "file").write_bytes(content)
    requests = RequestSettings(
        whole_object_bytes=whole_object_bytes,
        footer_bytes=block_bytes,
        max_gap_bytes=block_bytes // 10,
        max_span_bytes=2 * block_bytes,
        max_held_bytes=max_held_bytes,
        block_bytes=block_bytes,
    )
    store = ObjectStore(Location(str(directory)), requests=requests)
    page = next(store.list_pages())
    at = page.paths.index("file")
    return store.open(FileVersion("s", "file", b"", page.etags[at], page.sizes[at], page.last_modified[at]))


def rows_of(pieces: Iterable[Rows]) -> list[Mapping[str, Any]]:
    """The rows of all pieces."""
    return [row for piece in pieces for row in piece.table.to_pylist()]


def table_of(pieces: Iterable[Rows]) -> pa.Table:
    """The rows of all pieces."""
    return pa.concat_tables(piece.table for piece in pieces)


def bad_of(pieces: Iterable[Rows]) -> list[BadRecord]:
    """The bad records of all pieces."""
    return [bad for piece in pieces for bad in piece.bad]


def flights(rows: int) -> pa.Table:
    """Rows with nulls, text that needs quotes, and instants."""
    start = datetime(2013, 1, 1, tzinfo=UTC).timestamp()
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "carrier": pa.array([None if n % 7 == 3 else f'"{n}", é\n{n}' for n in range(rows)], pa.string()),
            "delay": pa.array([None if n % 5 == 0 else n / 8 for n in range(rows)], pa.float64()),
            "at": pa.array([int((start + n * 60) * 1e6) for n in range(rows)], pa.timestamp("us", "UTC")),
        }
    )


CODECS = ("none", "gzip", "zstd", "lz4", "brotli")
COMPRESSIONS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda content: pa.compress(content, "zstd", asbytes=True),
    "lz4": lambda content: pa.compress(content, "lz4", asbytes=True),
}


def write_parquet(table: pa.Table, row_group_size: int | None = None, codec: str = "snappy") -> bytes:
    """One Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=row_group_size, compression=codec)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def write_csv(table: pa.Table) -> bytes:
    """One CSV file with a header."""
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def write_bare_csv(table: pa.Table) -> bytes:
    """One CSV file without a header, with semicolons."""
    sink = pa.BufferOutputStream()
    options = pyarrow.csv.WriteOptions(include_header=False, delimiter=";")
    pyarrow.csv.write_csv(table, sink, options)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def write_json(table: pa.Table) -> bytes:
    """One object a line, with an empty line here and there, and no line end at the end."""
    lines = [json.dumps(row, default=lambda at: at.isoformat()) for row in table.to_pylist()]
    return "\n".join(line + "\n" * (n % 4 == 0) for n, line in enumerate(lines)).rstrip("\n").encode()


def write_debezium(table: pa.Table) -> bytes:
    """One change a line: deletions, insertions, and updates of rows of which only the key is told."""
    rows = [json.dumps(row, default=lambda at: at.isoformat()) for row in table.to_pylist()]
    forms = ('{"before": ROW}', '{"before": null, "after": ROW}', '{"before": {"id": -1}, "after": ROW}')
    return "\n".join(forms[n % 3].replace("ROW", row) for n, row in enumerate(rows)).encode()


AVRO_CODECS = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")
_FLIGHT = {
    "type": "record",
    "name": "flight",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "carrier", "type": ["null", "string"]},
        {"name": "delay", "type": ["double", "null"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}


def write_avro(
    rows: Iterable[Mapping[str, Any]],
    schema: Mapping[str, Any] = _FLIGHT,
    block_bytes: int = 16_000,
    codec: str = "null",
) -> bytes:
    """One Avro file; with `snappy` and `zstandard` by Arrow, whose codecs fastavro does not have."""
    sink = io.BytesIO()
    own = codec if codec in ("null", "deflate", "bzip2", "xz") else "null"
    fastavro.writer(sink, dict(schema), rows, codec=own, sync_interval=block_bytes, sync_marker=b"sixteen letters.")
    return sink.getvalue() if own == codec else _recoded(sink.getvalue(), codec)


def _recoded(content: bytes, codec: str) -> bytes:
    """The same Avro file with its blocks compressed by another codec."""
    blocks: Any = fastavro.block_reader(io.BytesIO(content))
    sink = io.BytesIO()
    metadata = {"avro.codec": codec.encode(), "avro.schema": json.dumps(blocks.writer_schema).encode()}
    header = {"magic": b"Obj\x01", "meta": metadata, "sync": b"sixteen letters."}
    fastavro.schemaless_writer(sink, fastavro.read.HEADER_SCHEMA, header)
    for block in blocks:
        plain = block.bytes_.getvalue()
        data: bytes = pa.compress(plain, "zstd" if codec == "zstandard" else codec, asbytes=True)
        if codec == "snappy":
            data += zlib.crc32(plain).to_bytes(4)
        fastavro.schemaless_writer(sink, "long", block.num_records)
        fastavro.schemaless_writer(sink, "bytes", data)
        sink.write(b"sixteen letters.")
    return sink.getvalue()


ORC_CODECS = ("uncompressed", "zlib", "snappy", "lz4", "zstd")


def write_orc(table: pa.Table, rows: int | None = None, codec: str = "zlib", **options: Any) -> bytes:
    """One ORC file; with `rows`, in stripes of so many."""
    sink = pa.BufferOutputStream()
    if rows is not None:
        # The writer looks at the size of a stripe after each of its batches.
        options |= {"stripe_size": 1, "batch_size": rows}
    with pyarrow.orc.ORCWriter(sink, compression=codec, **options) as writer:
        writer.write(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _orc_by(codec: str) -> Callable[[pa.Table], bytes]:
    return lambda table: write_orc(table, 19, codec)


def _avro_by(codec: str, block_bytes: int) -> Callable[[pa.Table], bytes]:
    return lambda table: write_avro(table.to_pylist(), block_bytes=block_bytes, codec=codec)


def _parquet_by(codec: str) -> Callable[[pa.Table], bytes]:
    return lambda table: write_parquet(table, 19, codec)


def _compressed(write: Callable[[pa.Table], bytes], compress: Callable[[bytes], bytes]) -> Callable[[pa.Table], bytes]:
    return lambda table: compress(write(table))


KINDS = [
    FileKind("parquet", Parquet(), write_parquet),
    FileKind("parquet-groups", Parquet(), lambda table: write_parquet(table, 7)),
    *(FileKind(f"parquet-{codec}", Parquet(), _parquet_by(codec)) for codec in CODECS),
    FileKind("csv", Csv(), write_csv),
    FileKind("csv-utf-16", Csv(encoding="utf-16"), lambda table: write_csv(table).decode().encode("utf-16")),
    *(FileKind(f"csv-{name}", Csv(), _compressed(write_csv, compress)) for name, compress in COMPRESSIONS.items()),
    FileKind("csv-bare", Csv(header=False, delimiter=";"), write_bare_csv),
    FileKind("json", Json(), write_json),
    FileKind("debezium", Debezium(), write_debezium),
    FileKind("avro", Avro(), lambda table: write_avro(table.to_pylist())),
    FileKind("orc", Orc(), write_orc),
    *(FileKind(f"orc-{codec}", Orc(), _orc_by(codec)) for codec in ORC_CODECS),
    *(FileKind(f"avro-{codec}", Avro(), _avro_by(codec, 200)) for codec in AVRO_CODECS),
    *(FileKind(f"json-{name}", Json(), _compressed(write_json, compress)) for name, compress in COMPRESSIONS.items()),
]
