"""Contract of the readers of all formats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from actors.file_errors import ObjectChanged, ObjectVanished, UnreadableFile
from actors.files import FileVersion
from actors.formats.options import Avro, Orc, Parquet
from actors.formats.registry import reader_for
from actors.objects.object_store import ObjectStore
from actors.rows import Offset, Rows
from actors.schemas.safe_types import safe_schema
from actors.settings import ReadLimits
from slackwater.testing.servers.s3_server import S3Server
from state.location import Location
from tests.actors.formats.written_files import KINDS, FileKind, bad_of, flights, open_written, rows_of, table_of
from tests.cases import few

_PLAIN = ("parquet", "csv", "csv-bare", "json", "debezium", "avro", "orc")
_every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
_a_few_kinds = pytest.mark.parametrize("kind", few(KINDS, *_PLAIN, "csv-gzip"), ids=lambda kind: kind.name)


@_every_kind
def test_a_small_file_is_one_piece_with_exactly_its_rows(kind: FileKind, tmp_path: Path) -> None:
    table = flights(40)
    file = open_written(tmp_path, kind.write(table))
    pieces = list(reader_for(kind.format).read(file, table.schema))
    assert [piece.num_rows for piece in pieces] == [40]
    assert pieces[0].table.schema == table.schema
    assert pieces[0].table.to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    "kind", few(KINDS, "parquet", "csv", "json", "avro-null", "orc-zstd"), ids=lambda kind: kind.name
)
@pytest.mark.parametrize("piece_bytes", few([200, 400, 8_000_000], 400))
def test_reading_resumes_at_every_row(kind: FileKind, piece_bytes: int, tmp_path: Path) -> None:
    table = flights(40)
    file = open_written(tmp_path, kind.write(table), whole_object_bytes=600, block_bytes=500)
    reader = reader_for(kind.format)
    everything = list(reader.read(file, table.schema, Offset(), piece_bytes))
    assert rows_of(everything) == table.to_pylist()
    if piece_bytes < 8_000_000:
        assert len(everything) > 2
    for offset in range(41):
        pieces = list(reader.read(file, table.schema, Offset(offset), piece_bytes))
        assert rows_of(pieces) == table.to_pylist()[offset:], f"from row {offset}"
        assert all(piece.num_rows for piece in pieces)
        assert all(piece.table.schema == table.schema for piece in pieces)
    for piece in everything:
        for offset in range(piece.end_row, 41):
            pieces = list(reader.read(file, table.schema, replace(piece.anchor, row=offset), piece_bytes))
            assert rows_of(pieces) == table.to_pylist()[offset:], f"from row {offset}, by {piece.anchor}"


@pytest.mark.parametrize("kind", few(KINDS, *_PLAIN), ids=lambda kind: kind.name)
def test_pieces_of_a_large_file_are_near_the_size_asked_for(kind: FileKind, tmp_path: Path) -> None:
    table = flights(20_000)
    piece_bytes = table.nbytes // 10
    file = open_written(tmp_path, kind.write(table))
    pieces = list(reader_for(kind.format).read(file, table.schema, Offset(), piece_bytes))
    assert sum(piece.num_rows for piece in pieces) == 20_000
    assert 4 <= len(pieces) <= 30
    assert max(piece.table.nbytes for piece in pieces) <= 2.5 * piece_bytes


@_a_few_kinds
def test_a_file_of_no_rows_has_no_pieces(kind: FileKind, tmp_path: Path) -> None:
    table = flights(0)
    file = open_written(tmp_path, kind.write(table))
    assert list(reader_for(kind.format).read(file, table.schema)) == []


@pytest.mark.parametrize("kind", few(KINDS, *_PLAIN), ids=lambda kind: kind.name)
def test_inference_and_reading_of_a_small_file_are_one_get(kind: FileKind, s3: S3Server, bucket: str) -> None:
    table = flights(40)
    s3.put(bucket, "file", kind.write(table))
    log = s3.proxy()
    store = ObjectStore(Location(f"s3://{bucket}", log.storage_options))
    page = next(store.list_pages())
    file = store.open(FileVersion("s", "file", b"", page.etags[0], page.sizes[0], page.last_modified[0]))
    reader = reader_for(kind.format)
    with log.recording() as seen:
        schema = reader.infer_schema(file)
        pieces = list(reader.read(file, schema))
    assert sum(piece.num_rows for piece in pieces) == 40
    assert [(request.method, request.key, request.status) for request in seen] == [("GET", "file", 200)]
    assert (file.requests, file.bytes_read) == (1, page.sizes[0])


@_every_kind
def test_inferred_schemas_are_safe_and_have_the_columns_of_the_file(kind: FileKind, tmp_path: Path) -> None:
    file = open_written(tmp_path, kind.write(flights(40)))
    schema = reader_for(kind.format).infer_schema(file)
    assert schema == safe_schema(schema)
    named = ["f0", "f1", "f2", "f3"] if kind.name == "csv-bare" else ["id", "carrier", "delay", "at"]
    assert schema.names == named
    assert [str(kind) for kind in schema.types][:3] == ["int64", "string", "double"]
    assert pa.types.is_timestamp(schema.types[3])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.name != "csv-bare"], ids=lambda kind: kind.name)
def test_columns_are_taken_by_name(kind: FileKind, tmp_path: Path) -> None:
    table = flights(40)
    wanted = pa.schema([("delay", pa.float64()), ("missing", pa.int32()), ("id", pa.int64())])
    file = open_written(tmp_path, kind.write(table))
    pieces = list(reader_for(kind.format).read(file, wanted, Offset(3)))
    assert pieces[0].table.schema == wanted
    assert rows_of(pieces) == [
        {"delay": row["delay"], "missing": None, "id": row["id"]} for row in table.to_pylist()[3:]
    ]


@pytest.mark.parametrize("name", ["parquet", "csv", "csv-gzip", "avro", "orc"])
def test_a_file_with_none_of_the_columns_is_unreadable_and_not_all_null(name: str, tmp_path: Path) -> None:
    kind = next(kind for kind in KINDS if kind.name == name)
    file = open_written(tmp_path, kind.write(flights(40)))
    with pytest.raises(
        UnreadableFile, match=r"none of the source's columns \(other\) is in the file, which has id, car"
    ):
        list(reader_for(kind.format).read(file, pa.schema([("other", pa.string())])))


@_every_kind
def test_a_value_that_does_not_fit_is_never_a_row(kind: FileKind, tmp_path: Path) -> None:
    table = flights(40)
    wanted = table.schema.set(1, pa.field("carrier", pa.int64()))
    file = open_written(tmp_path, kind.write(table))
    try:
        pieces = list(reader_for(kind.format).read(file, wanted))
    except UnreadableFile as error:
        assert isinstance(kind.format, (Parquet, Avro, Orc)) and "carrier" in str(error) and "\n" not in str(error)
        return
    assert [row["carrier"] for row in rows_of(pieces)] == [None] * 6
    assert [bad.row for bad in bad_of(pieces)] == [row for row in range(40) if row % 7 != 3]
    assert all("carrier" in bad.reason and "\n" not in bad.reason for bad in bad_of(pieces))


@_a_few_kinds
@pytest.mark.parametrize("content", [b"\x00\xff\xfe garbage \x80\n" * 50, b"\x1f\x8b broken", b"\x28\xb5\x2f\xfd x"])
def test_of_garbage_nothing_is_a_row(kind: FileKind, content: bytes, tmp_path: Path) -> None:
    file = open_written(tmp_path, content)
    try:
        pieces = list(reader_for(kind.format).read(file, flights(0).schema))
    except UnreadableFile:
        return
    assert rows_of(pieces) == [] and len(bad_of(pieces)) == 50


@_a_few_kinds
def test_more_bad_records_than_allowed_make_the_file_unreadable(kind: FileKind, tmp_path: Path) -> None:
    wanted = flights(0).schema.set(1, pa.field("carrier", pa.int64()))
    file = open_written(tmp_path, kind.write(flights(400)))
    reader = reader_for(kind.format, ReadLimits(max_bad_records=9))
    pieces: list[Rows] = []
    with pytest.raises(
        UnreadableFile, match=r"row 12: more than 9 .*ReadLimits.max_bad_records|carrier: the source has"
    ):
        for piece in reader.read(file, wanted, Offset(), 200):
            pieces.append(piece)
    assert sum(piece.num_rows for piece in pieces) < 12


@_every_kind
def test_only_the_columns_that_are_asked_for_are_in_the_rows(kind: FileKind, tmp_path: Path) -> None:
    table = flights(40)
    file = open_written(tmp_path, kind.write(table))
    pieces = list(reader_for(kind.format).read(file, table.schema, columns={"delay", "id"}))
    assert table_of(pieces).equals(table.select(["id", "delay"]))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.tells_its_end], ids=lambda kind: kind.name)
def test_half_a_file_never_reads_as_a_whole_one(kind: FileKind, tmp_path: Path) -> None:
    table = flights(4_000)
    content = kind.write(table)
    file = open_written(tmp_path, content[: len(content) // 2])
    rows: list[object] = []
    with pytest.raises(UnreadableFile):
        for piece in reader_for(kind.format).read(file, table.schema, Offset(), 10_000):
            rows += piece.table.to_pylist()
    assert rows == table.to_pylist()[: len(rows)]


@_a_few_kinds
@pytest.mark.parametrize("whole_object_bytes", few([100, 8_000_000], 100))
def test_what_is_wrong_with_the_object_passes_through(kind: FileKind, whole_object_bytes: int, tmp_path: Path) -> None:
    table = flights(4_000)
    content = kind.write(table)
    file = open_written(tmp_path, content, whole_object_bytes=whole_object_bytes, block_bytes=1_000)
    (tmp_path / "file").write_bytes(content + b" ")
    with pytest.raises(ObjectChanged):
        list(reader_for(kind.format).read(file, table.schema, Offset(), 10_000))
    (tmp_path / "file").unlink()
    with pytest.raises(ObjectVanished):
        reader_for(kind.format).infer_schema(file)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.name in ("csv", "json")], ids=lambda kind: kind.name)
def test_the_rows_before_what_cannot_be_read_are_rows(kind: FileKind, tmp_path: Path) -> None:
    table = flights(700)
    file = open_written(tmp_path, kind.write(table) + b"\n" + b"x" * 50_000 + b"\n", block_bytes=10_000)
    reader = reader_for(kind.format, ReadLimits(max_record_bytes=20_000))
    for piece_bytes in (3_000, 8_000_000):
        rows: list[object] = []
        with pytest.raises(UnreadableFile, match="a line is longer"):
            for piece in reader.read(file, table.schema, Offset(), piece_bytes):
                rows += piece.table.to_pylist()
        assert rows == table.to_pylist()
