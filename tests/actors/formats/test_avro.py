from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from actors.file_errors import UnreadableFile
from actors.formats.avro.avro_reader import AvroReader
from actors.rows import Offset
from actors.schemas.safe_types import safe_schema
from actors.settings import MIB, ReadLimits
from tests.actors.formats.written_files import AVRO_CODECS, bad_of, flights, open_written, rows_of, table_of, write_avro

_SYNC = b"sixteen letters."
_INT = pa.schema([("a", pa.int64())])


def _schema(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def _logical(kind: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical, **more}


def _container(schema: Any, *blocks: tuple[int, bytes], codec: str = "null", sync: bytes = _SYNC) -> bytes:
    """A file of blocks, each with the number of its records, whether that is true or not."""
    text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    sink = io.BytesIO()
    header = {"magic": b"Obj\x01", "meta": {"avro.schema": text, "avro.codec": codec.encode()}, "sync": _SYNC}
    fastavro.schemaless_writer(sink, fastavro.read.HEADER_SCHEMA, header)
    for num_records, data in blocks:
        fastavro.schemaless_writer(sink, "long", num_records)
        fastavro.schemaless_writer(sink, "bytes", data)
        sink.write(sync)
    return sink.getvalue()


def _read(directory: Path, content: bytes, schema: pa.Schema | None = None) -> list[Mapping[str, Any]]:
    file = open_written(directory, content)
    pieces = list(AvroReader().read(file, schema or safe_schema(AvroReader().infer_schema(file))))
    assert bad_of(pieces) == []
    for piece in pieces:
        piece.table.validate(full=True)
    return rows_of(pieces)


def test_every_type_of_avro_becomes_a_column(tmp_path: Path) -> None:
    point = {"type": "record", "name": "geo.point", "fields": [{"name": "x", "type": "double"}]}
    schema = _schema(
        ("number", "int"),
        ("ok", "boolean"),
        ("small", "float"),
        ("raw", "bytes"),
        ("day", _logical("int", "date")),
        ("ms", _logical("long", "timestamp-millis")),
        ("us", _logical("long", "timestamp-micros")),
        ("local", _logical("long", "local-timestamp-micros")),
        ("price", _logical("bytes", "decimal", precision=9, scale=2)),
        ("exact", {"type": "fixed", "name": "d", "size": 20, "logicalType": "decimal", "precision": 30, "scale": 3}),
        ("key", _logical("string", "uuid")),
        ("color", {"type": "enum", "name": "c", "symbols": ["red", "green"]}),
        ("hash", {"type": "fixed", "name": "h", "size": 3}),
        ("tags", {"type": "array", "items": ["null", "string"]}),
        ("counts", {"type": "map", "values": {"type": "array", "items": "long"}}),
        ("here", point),
        ("there", ["null", "geo.point"]),
        ("nothing", "null"),
        ("wide", ["int", "null", "long"]),
        ("either", ["null", "string", "long"]),
    )
    at = datetime(2020, 1, 2, 3, 4, 5, 6_000, UTC)
    row: dict[str, Any] = {
        "number": -7,
        "ok": True,
        "small": 0.5,
        "raw": b"\x00\xff",
        "day": date(1969, 12, 31),
        "ms": at,
        "us": at,
        "local": at.replace(tzinfo=None),
        "price": Decimal("-1234567.89"),
        "exact": Decimal("12345678901234567890123.456"),
        "key": "0b9a8f3e-1111-2222-3333-444455556666",
        "color": "green",
        "hash": b"abc",
        "tags": ["a", None, "é"],
        "counts": {"x": [1, 2], "": []},
        "here": {"x": 1.5},
        "there": None,
        "nothing": None,
        "wide": 2**40,
        "either": 5,
    }
    other = row | {
        "there": {"x": 2.5},
        "wide": None,
        "either": "text",
        "price": Decimal("0.00"),
        "exact": Decimal("-1.000"),
        "color": "red",
    }
    file = open_written(tmp_path, write_avro([row, other], schema))
    inferred = AvroReader().infer_schema(file)
    assert {field.name: str(field.type) for field in inferred} == {
        "number": "int32",
        "ok": "bool",
        "small": "float",
        "raw": "binary",
        "day": "date32[day]",
        "ms": "timestamp[us, tz=UTC]",
        "us": "timestamp[us, tz=UTC]",
        "local": "timestamp[us]",
        "price": "decimal128(9, 2)",
        "exact": "decimal128(30, 3)",
        "key": "string",
        "color": "string",
        "hash": "binary",
        "tags": "list<item: string>",
        "counts": "map<string, list<item: int64>>",
        "here": "struct<x: double>",
        "there": "struct<x: double>",
        "nothing": "null",
        "wide": "int64",
        "either": "struct<member0: string, member1: int64>",
    }
    rows = _read(tmp_path, write_avro([row, other], schema))
    of_maps: list[dict[str, Any]] = [{"counts": [("x", [1, 2]), ("", [])]}] * 2
    of_unions: list[dict[str, Any]] = [
        {"either": {"member0": None, "member1": 5}},
        {"either": {"member0": "text", "member1": None}},
    ]
    assert rows == [
        each | counts | either for each, counts, either in zip([row, other], of_maps, of_unions, strict=True)
    ]


@pytest.mark.parametrize("codec", AVRO_CODECS)
def test_what_fastavro_writes_is_read(codec: str, tmp_path: Path) -> None:
    table = flights(3_000)
    content = write_avro(table.to_pylist(), codec=codec)
    for offset in (0, 1, 2_999):
        file = open_written(tmp_path, content, whole_object_bytes=1_000, block_bytes=5_000)
        assert table_of(AvroReader().read(file, table.schema, Offset(offset))).equals(table.slice(offset))


def test_blocks_before_the_anchor_are_not_fetched(tmp_path: Path) -> None:
    table = flights(20_000)
    file = open_written(tmp_path, write_avro(table.to_pylist()), whole_object_bytes=1_000, block_bytes=20_000)
    pieces = list(AvroReader().read(file, table.schema, Offset(), 100_000))
    last = pieces[-2].anchor
    assert last.anchor_row > 15_000
    again = open_written(tmp_path, write_avro(table.to_pylist()), whole_object_bytes=1_000, block_bytes=20_000)
    rows = table_of(AvroReader().read(again, table.schema, Offset(19_999, last.anchor_row, last.anchor_byte)))
    assert rows.equals(table.slice(19_999))
    assert again.bytes_read < again.size // 2


def test_rows_before_a_damaged_block_stay(tmp_path: Path) -> None:
    table = flights(2_000)
    content = bytearray(write_avro(table.to_pylist(), block_bytes=2_000))
    at = content.index(_SYNC, int(len(content) * 0.6))
    content[at : at + 4] = b"----"
    rows: list[object] = []
    with pytest.raises(UnreadableFile, match=r"damaged Avro file, in the block at byte \d+: it does not end with"):
        for piece in AvroReader().read(open_written(tmp_path, bytes(content)), table.schema):
            rows += piece.table.to_pylist()
    assert 1_000 < len(rows) < 2_000 and rows == table.to_pylist()[: len(rows)]


def test_a_record_with_text_that_is_not_utf8_is_bad_and_the_others_are_rows(tmp_path: Path) -> None:
    texts = [b"a", b"\xff\xfe", b"c"]
    fields = (("a", "string"), ("m", {"type": "map", "values": "int"}))
    data = b"".join(bytes([2 * len(text)]) + text + b"\x00" for text in texts)
    data += b"\x02d\x02\x02\xff\x02\x00"
    schema = pa.schema([("a", pa.string()), ("m", pa.map_(pa.string(), pa.int32()))])
    pieces = list(AvroReader().read(open_written(tmp_path, _container(_schema(*fields), (4, data))), schema))
    assert [row["a"] for row in rows_of(pieces)] == ["a", "c"]
    assert [(bad.row, bad.reason.partition(":")[0]) for bad in bad_of(pieces)] == [(1, "column a"), (3, "column m")]


def test_a_decimal_with_more_digits_than_its_type_is_a_bad_record(tmp_path: Path) -> None:
    schema = _schema(("d", _logical("bytes", "decimal", precision=3, scale=1)))
    values = [999, 1_000, -999]
    data = b"".join(b"\x04" + value.to_bytes(2, "big", signed=True) for value in values)
    wanted = pa.schema([("d", pa.decimal128(3, 1))])
    pieces = list(AvroReader().read(open_written(tmp_path, _container(schema, (3, data))), wanted))
    assert rows_of(pieces) == [{"d": Decimal("99.9")}, {"d": Decimal("-99.9")}]
    assert [bad.row for bad in bad_of(pieces)] == [1]


def test_a_time_of_day_has_no_form_in_spark_and_the_other_columns_are_read(tmp_path: Path) -> None:
    schema = _schema(("a", "long"), ("t", _logical("int", "time-millis")))
    content = _container(schema, (1, b"\x0e\x08"))
    assert AvroReader().infer_schema(open_written(tmp_path, content)).names == ["a"]
    assert _read(tmp_path, content, _INT) == [{"a": 7}]


def test_a_file_of_no_rows_has_a_schema(tmp_path: Path) -> None:
    file = open_written(tmp_path, write_avro([]))
    assert AvroReader().infer_schema(file).names == ["id", "carrier", "delay", "at"]
    assert list(AvroReader().read(file, flights(0).schema)) == []


_NODE = {"type": "record", "name": "node", "fields": [{"name": "next", "type": ["null", "node"]}]}


def _doubling(levels: int) -> dict[str, Any]:
    """A schema whose size doubles with each level."""
    inner: Any = {"type": "record", "name": "r0", "fields": [{"name": "x", "type": "int"}]}
    for level in range(1, levels):
        pair = [{"name": "a", "type": inner}, {"name": "b", "type": f"r{level - 1}"}]
        inner = {"type": "record", "name": f"r{level}", "fields": pair}
    return dict(inner)


@pytest.mark.more_after(3)
@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (_schema(("a", "long"), ("n", _NODE)), "its schema has no end: node contains itself"),
        (_doubling(40), "more than 10000 columns .ReadLimits.max_columns"),
        (b'{"type":"array","items":' * 5_000 + b'"int"' + b"}" * 5_000, "its schema"),
        (_schema(("a", "long"), ("a", "int")), "has the field a of r twice"),
        (
            _schema(("a", {"type": "fixed", "name": "f", "size": 1}), ("b", {"type": "fixed", "name": "f", "size": 1})),
            "defines f twice",
        ),
        (_schema(("a", "other")), "uses other, which it does not define"),
        (_schema(("a", {"type": "array", "items": "null"})), "lists of null, whose values take no bytes"),
        (_schema(("a", {"type": "fixed", "name": "f", "size": -1})), "the fixed f of -1 bytes"),
        (_schema(("a", [])), "a union of no types"),
        (_schema(("a", ["null", ["int"]])), "a union directly within a union"),
        (_schema(("a", 7)), "has 7 in the place of a type"),
        ("long", "its schema is long, and not that of a record"),
        (b"{", "its schema is not JSON"),
        (b"\xff\xff", "its schema is not JSON"),
    ],
)
def test_a_schema_without_sense_is_refused(schema: Any, reason: str, tmp_path: Path) -> None:
    file = open_written(tmp_path, _container(schema, (1, b"\x02\x02")))
    with pytest.raises(UnreadableFile, match=reason):
        AvroReader().infer_schema(file)
    with pytest.raises(UnreadableFile, match=reason):
        list(AvroReader().read(file, _INT))


def test_a_name_is_found_in_its_namespace(tmp_path: Path) -> None:
    inner = {"type": "record", "name": "p", "namespace": "a.b", "fields": [{"name": "x", "type": "int"}]}
    schema = _schema(("one", inner), ("two", "a.b.p")) | {"namespace": "a.b"}
    schema["fields"].append({"name": "three", "type": "p"})
    assert _read(tmp_path, _container(schema, (1, b"\x02\x04\x06"))) == [
        {"one": {"x": 1}, "two": {"x": 2}, "three": {"x": 3}}
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"Obj\x01", "its header is damaged"),
        (b"Obj\x02" + b"x" * 100, "not an Avro file"),
        (_container(_schema(("a", "long")), (2, b"\x02\x02"), codec="lzo"), "its codec 'lzo' is not known"),
        (_container(_schema(("a", "long")), (3, b"\x02\x02")), "it claims 3 records in 2 bytes"),
        (_container(_schema(("a", "long")), (2**60, b"\x02\x02")), "it claims 1152921504606846976 records in 2 bytes"),
        (_container(_schema(("a", "long")), (1, b"\x02\x02")), "1 of its bytes are behind its records"),
        (_container(_schema(("a", "long")), (-1, b"\x02")), "it claims -1 records"),
        (
            _container(_schema(("a", "long")), (1, b"\x02"))[:-20] + b"\x02\xfe\xff\xff\xff\x0f\x02",
            "the file ends within",
        ),
        (_container(_schema(("a", "string")), (1, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01a")), "the block at byte"),
        (_container(_schema(("a", ["null", "long"])), (1, b"\x08\x02")), "the block at byte"),
        (_container(_schema(("a", "int")), (1, b"\xfe\xff\xff\xff\xff\x1f")), "the block at byte"),
        (_container(_schema(("a", "long")), (1, b"\x02"), sync=b"fifteen letters"), "the file ends within"),
        (_container(_schema(("a", "long")), (1, b"\x02"), sync=b"sixteen letters!"), "does not end with the marker"),
        (_container(_schema(("a", "long")), (1, b"garbage"), codec="deflate"), "cannot be decompressed by deflate"),
        (_container(_schema(("a", "long")), (1, b""), codec="snappy"), "the block at byte"),
        (
            _container(_schema(("a", "long")), (1, b"\x01\x00\x02" + b"sums"), codec="snappy"),
            "its checksum does not fit",
        ),
    ],
)
def test_damage_is_named_with_its_place(content: bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=reason):
        list(
            AvroReader().read(
                open_written(tmp_path, content), pa.schema([("a", pa.string())]) if b'"string"' in content else _INT
            )
        )


@pytest.mark.parametrize("codec", [codec for codec in AVRO_CODECS if codec != "null"])
def test_a_block_that_decompresses_to_more_than_the_limit_is_refused(codec: str, tmp_path: Path) -> None:
    content = write_avro([{"a": "x" * 3 * MIB}], _schema(("a", "string")), codec=codec)
    assert len(content) < MIB
    with pytest.raises(UnreadableFile, match=r"becomes more than 1048576 bytes .ReadLimits.max_batch_bytes"):
        list(
            AvroReader(ReadLimits(max_batch_bytes=MIB)).read(
                open_written(tmp_path, content), pa.schema([("a", pa.string())])
            )
        )


@pytest.mark.more
def test_many_blocks_that_become_too_much_are_refused(tmp_path: Path) -> None:
    content = write_avro(({"a": "x" * MIB} for _ in range(300)), _schema(("a", "string")), codec="bzip2")
    limits = ReadLimits(max_expansion=100)
    with pytest.raises(UnreadableFile, match=r"ReadLimits.max_expansion"):
        for piece in AvroReader(limits).read(open_written(tmp_path, content), pa.schema([("a", pa.string())])):
            assert piece.table.nbytes < 20 * MIB


@pytest.mark.more
def test_rows_without_bytes_end_at_a_limit(tmp_path: Path) -> None:
    content = _container(_schema(("n", "null")), (2**62, b""))
    limits = ReadLimits(max_cpu_s_per_mib=1.0)
    wanted = pa.schema([("n", pa.int64()), *((f"c{number}", pa.int64()) for number in range(100))])
    with pytest.raises(UnreadableFile, match=r"ReadLimits.max_(expansion|cpu_s_per_mib)"):
        for piece in AvroReader(limits).read(open_written(tmp_path, content), wanted):
            assert piece.table.nbytes < 40 * MIB


@pytest.mark.more
def test_a_large_block_of_lists_is_decoded_in_windows(tmp_path: Path) -> None:
    schema = _schema(("a", {"type": "array", "items": ["null", "long"]}))
    rows: Sequence[Mapping[str, Any]] = [{"a": [None] * (n % 50)} for n in range(5_000)]
    content = write_avro(rows, schema, block_bytes=10 * MIB)
    wanted = pa.schema([("a", pa.list_(pa.int64()))])
    small = AvroReader(ReadLimits(max_batch_bytes=200_000))
    for offset in (0, 1, 777, 4_999):
        pieces = list(small.read(open_written(tmp_path, content), wanted, Offset(offset)))
        assert rows_of(pieces) == rows[offset:]
    long = write_avro([{"a": []}, {"a": [None] * 100_000}], schema, block_bytes=10 * MIB)
    with pytest.raises(UnreadableFile, match=r"one record may take more than 200000 bytes .*max_batch_bytes"):
        list(small.read(open_written(tmp_path, long), wanted))
