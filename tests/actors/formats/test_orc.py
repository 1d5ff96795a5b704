from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.file_errors import UnreadableFile
from actors.formats.orc.orc_reader import OrcReader
from actors.formats.orc.runs import Lengths, lengths
from actors.formats.orc.stripe import Stripe
from actors.formats.orc.tail import OrcTail
from actors.formats.orc.wire import fields, written
from actors.rows import Offset
from actors.schemas.safe_types import safe_schema
from actors.settings import MIB, ReadLimits
from tests.actors.formats.written_files import (
    ORC_CODECS,
    bad_of,
    flights,
    open_written,
    rows_of,
    table_of,
    write_orc,
)


def _words(rows: int) -> pa.Table:
    """Rows that make several stripes, also with a codec."""
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "word": [f"word {row * 7_919 % 10_007}" for row in range(rows)],
            "more": [f"{row * 104_729 % 1_000_003}" for row in range(rows)],
        }
    )


def test_every_type_of_orc_becomes_a_column(tmp_path: Path) -> None:
    at = datetime(2020, 1, 2, 3, 4, 5, 6, UTC)
    table = pa.table(
        {
            "tiny": pa.array([1, None], pa.int8()),
            "small": pa.array([2, None], pa.int16()),
            "number": pa.array([3, None], pa.int32()),
            "ok": pa.array([True, None]),
            "half": pa.array([0.5, None], pa.float32()),
            "raw": pa.array([b"\x00\xff", None]),
            "day": pa.array([date(1969, 12, 31), None]),
            "at": pa.array([at, None], pa.timestamp("us", "UTC")),
            "local": pa.array([at.replace(tzinfo=None), None], pa.timestamp("us")),
            "price": pa.array([Decimal("-1.50"), None], pa.decimal128(38, 2)),
            "tags": pa.array([["a", None], None]),
            "counts": pa.array([[("x", [1])], None], pa.map_(pa.string(), pa.list_(pa.int64()))),
            "here": pa.array([{"x": 1.5, "y": None}, None], pa.struct([("x", pa.float64()), ("y", pa.string())])),
        }
    )
    file = open_written(tmp_path, write_orc(table))
    schema = safe_schema(OrcReader().infer_schema(file))
    assert schema.types == table.schema.types
    assert rows_of(OrcReader().read(file, schema)) == table.to_pylist()
    for name in table.column_names:
        assert rows_of(OrcReader().read(file, schema, columns={name})) == table.select([name]).to_pylist()


@pytest.mark.more_after(4)
@pytest.mark.parametrize("codec", ORC_CODECS)
@pytest.mark.parametrize("dictionaries", [0.0, 1.0])
def test_stripes_of_every_codec_are_read_from_any_row(codec: str, dictionaries: float, tmp_path: Path) -> None:
    table = _words(30_000)
    content = write_orc(table, 1_000, codec, dictionary_key_size_threshold=dictionaries)
    file = open_written(tmp_path, content, whole_object_bytes=1_000, block_bytes=len(content) // 8)
    assert len(OrcTail(file, ReadLimits()).stripes) > 1
    for offset in (0, 1, 14_999, 29_999):
        for piece_bytes in (100_000, 8 * MIB):
            pieces = list(OrcReader().read(file, table.schema, Offset(offset), piece_bytes))
            assert table_of(pieces).equals(table.slice(offset))
            assert max(piece.table.nbytes for piece in pieces) <= 2.5 * piece_bytes


def test_a_large_file_costs_a_request_for_its_tail_and_one_for_each_stripe(tmp_path: Path) -> None:
    table = _words(30_000)
    file = open_written(tmp_path, write_orc(table, 1_000, "zstd"), whole_object_bytes=1_000, block_bytes=10_000)
    stripes = len(OrcTail(file, ReadLimits()).stripes)
    before = file.requests
    assert table_of(OrcReader().read(file, table.schema)).equals(table)
    # A stripe that is longer than a span is several requests, side by side.
    assert file.requests - before <= 1 + stripes + file.size // 20_000


def test_of_a_large_file_only_the_columns_that_are_asked_for_are_fetched(tmp_path: Path) -> None:
    table = _words(30_000)
    file = open_written(tmp_path, write_orc(table, 10_000, "zstd"), whole_object_bytes=1_000, block_bytes=5_000)
    assert table_of(OrcReader().read(file, table.schema, columns={"id"})).equals(table.select(["id"]))
    assert file.bytes_read < file.size // 4


def test_stripes_before_the_offset_are_not_fetched(tmp_path: Path) -> None:
    table = _words(50_000)
    file = open_written(tmp_path, write_orc(table, 1_000, "zstd"), whole_object_bytes=1_000, block_bytes=5_000)
    last = OrcTail(file, ReadLimits()).stripes[-1]
    before = file.bytes_read
    assert table_of(OrcReader().read(file, table.schema, Offset(49_999))).equals(table.slice(49_999))
    assert file.bytes_read - before < (last.end - last.start) + 20_000 < file.size // 2


@pytest.mark.parametrize("held_bytes", [1, 60_000])
def test_a_stripe_that_is_too_large_to_be_held_is_read_in_windows(tmp_path: Path, held_bytes: int) -> None:
    table = _words(40_000)
    content = write_orc(table, 40_000, "zstd")
    file = open_written(tmp_path, content, whole_object_bytes=1_000, block_bytes=10_000, max_held_bytes=held_bytes)
    for columns in (None, {"word"}):
        expected = table.slice(39_000) if columns is None else table.select(["word"]).slice(39_000)
        assert table_of(OrcReader().read(file, table.schema, Offset(39_000), columns=columns)).equals(expected)


def test_rows_before_a_damaged_stripe_stay(tmp_path: Path) -> None:
    table = flights(2_000)
    content = bytearray(write_orc(table, 100, "uncompressed"))
    stripes = OrcTail(open_written(tmp_path, bytes(content)), ReadLimits()).stripes
    start, end = stripes[len(stripes) // 2].footer
    content[start:end] = b"\xff" * (end - start)
    rows: list[object] = []
    with pytest.raises(UnreadableFile, match="ORC file"):
        for piece in OrcReader().read(open_written(tmp_path, bytes(content)), table.schema, Offset(), 5_000):
            rows += piece.table.to_pylist()
    assert 500 < len(rows) < 1_500 and rows == table.to_pylist()[: len(rows)]


@pytest.mark.parametrize("block_bytes", [2_000, 8 * MIB])
@pytest.mark.parametrize("codec", ["uncompressed", "zlib"])
def test_a_file_of_hive_0_11_has_no_magic_at_its_end(tmp_path: Path, codec: str, block_bytes: int) -> None:
    table = _words(500)
    content = write_orc(table, 100, codec, file_version="0.11")
    postscript = content[-1 - content[-1] : -1]
    kept = b"".join(bytes(each.raw) for each in fields(memoryview(postscript)) if each.number in (1, 2, 3))
    old = content[: -1 - len(postscript)] + kept + bytes([len(kept)])
    file = open_written(tmp_path, old, whole_object_bytes=block_bytes, block_bytes=block_bytes)
    assert OrcReader().infer_schema(file) == table.schema
    for start in (0, 250):
        assert table_of(OrcReader().read(file, table.schema, Offset(start))) == table.slice(start)
    with pytest.raises(UnreadableFile, match="its end is not that of one"):
        OrcReader().infer_schema(open_written(tmp_path, b"OR?" + old[3:]))


def test_a_file_of_no_rows_has_a_schema(tmp_path: Path) -> None:
    file = open_written(tmp_path, write_orc(flights(0)))
    assert OrcReader().infer_schema(file).names == ["id", "carrier", "delay", "at"]
    assert list(OrcReader().read(file, flights(0).schema)) == []


def test_a_file_without_the_wanted_columns_has_nulls(tmp_path: Path) -> None:
    schema = pa.schema([*_words(1).schema, pa.field("new", pa.int8())])
    pieces = list(OrcReader().read(open_written(tmp_path, write_orc(_words(3_000))), schema, columns={"new"}))
    assert table_of(pieces).equals(pa.table({"new": pa.nulls(3_000, pa.int8())}))


# Hostile files


def _one_text(rows: int, text_bytes: int, dictionary: float = 1.0) -> bytes:
    return write_orc(pa.table({"a": ["x" * text_bytes] * rows}), None, "zstd", dictionary_key_size_threshold=dictionary)


_TEXT = pa.schema([("a", pa.string())])
_SMALL = ReadLimits(max_batch_bytes=4 * MIB)


@pytest.mark.more
def test_a_dictionary_that_unfolds_comes_in_pieces_and_ends_at_the_limit(tmp_path: Path) -> None:
    content = _one_text(20_000, 100_000)
    assert len(content) < 30_000
    rows = 0
    with pytest.raises(UnreadableFile, match=r"ReadLimits.max_expansion"):
        for piece in OrcReader(_SMALL).read(open_written(tmp_path, content), _TEXT):
            assert piece.table.nbytes < 20 * MIB
            rows += piece.num_rows
    assert 0 < rows < 10_000


@pytest.mark.more
def test_a_text_that_takes_more_than_a_batch_is_refused(tmp_path: Path) -> None:
    for dictionary in (0.0, 1.0):
        content = _one_text(20, 5 * MIB, dictionary)
        with pytest.raises(UnreadableFile, match=r"ReadLimits.max_batch_bytes"):
            list(OrcReader(_SMALL).read(open_written(tmp_path, content), _TEXT))
        assert len(rows_of(OrcReader().read(open_written(tmp_path, content), _TEXT))) == 20


def test_a_list_of_many_elements_is_refused(tmp_path: Path) -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 3_000_000], pa.int32()), pa.nulls(3_000_000, pa.int64()))
    file = open_written(tmp_path, write_orc(pa.table({"a": lists})))
    with pytest.raises(UnreadableFile, match=r"a row may take \d+ bytes .*ReadLimits.max_batch_bytes"):
        list(OrcReader(_SMALL).read(file, pa.schema([("a", pa.list_(pa.int64()))])))


@pytest.mark.more
def test_lengths_that_are_not_true_are_refused_before_room_is_made_for_them(tmp_path: Path) -> None:
    content = write_orc(pa.table({"a": ["x" * (1 << 24)] * 5}), None, "uncompressed", dictionary_key_size_threshold=0.0)
    # A run of five equal lengths, of four bytes each.
    claimed = content.replace(b"\x1a\x01\x00\x00\x00", b"\x1a\x40\x00\x00\x00")
    assert claimed != content
    with pytest.raises(UnreadableFile, match=r"a row may take 2147\d+ bytes .*ReadLimits.max_batch_bytes"):
        list(OrcReader().read(open_written(tmp_path, claimed), _TEXT))


def test_scales_that_would_take_minutes_are_refused(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([Decimal("1.25")] * 50, pa.decimal128(10, 2))})
    content = write_orc(table, None, "uncompressed")
    # A run of fifty equal scales: twice 2, and no step; then a step of -64, and a scale of -1.
    scales = b"\xc0\x31\x04\x00"
    assert content.count(scales) == 1
    for hostile in (b"\xc0\x31\x04\x7f", b"\xc0\x31\x01\x00"):
        file = open_written(tmp_path, content.replace(scales, hostile))
        with pytest.raises(UnreadableFile, match="scales without sense"):
            list(OrcReader().read(file, table.schema))
    assert rows_of(OrcReader().read(open_written(tmp_path, content), table.schema)) == table.to_pylist()


@pytest.mark.more
def test_many_nulls_come_in_pieces_and_end_at_the_limit(tmp_path: Path) -> None:
    file = open_written(tmp_path, write_orc(pa.table({"a": pa.nulls(50_000_000, pa.int64())}), None, "zstd"))
    rows = 0
    with pytest.raises(UnreadableFile, match=r"ReadLimits.max_expansion"):
        for piece in OrcReader().read(file, pa.schema([("a", pa.int64())])):
            assert piece.table.nbytes <= 20 * MIB
            rows += piece.num_rows
    assert 30_000_000 < rows < 50_000_000


def _with_footer(content: bytes, **changes: bytes) -> bytes:
    """An uncompressed file with other fields in its footer, by their numbers."""
    postscript_bytes = content[-1]
    footer = b"".join(changes.values())
    postscript = written(1, len(footer)) + written(2, 0) + written(8000, b"ORC")
    start = content.index(b"ORC") + 3
    return content[:start] + b"\x00" * postscript_bytes + footer + postscript + bytes([len(postscript)])


def _type(kind: int, *children: int, names: tuple[str, ...] = (), more: bytes = b"") -> bytes:
    parts = written(1, kind) + b"".join(written(2, child) for child in children)
    return written(4, parts + b"".join(written(3, name.encode()) for name in names) + more)


_ROOT = _type(12, 1, names=("a",))
_STRIPE = written(1, 3) + written(2, 0) + written(3, 0)


@pytest.mark.parametrize(
    ("footer", "reason"),
    [
        (b"", "its schema is not that of records"),
        (_type(4), "its schema is not that of records"),
        (_ROOT, "its schema is no tree|damaged|not an ORC file"),
        (_ROOT + _type(12, 0, names=("b",)), "its schema is no tree"),
        (_ROOT + _type(12, 9, names=("b",)), "its schema is no tree"),
        (_ROOT + _type(10), "a list without elements"),
        (_ROOT + _type(12, 2), "fields without names|no tree"),
        (_ROOT + _type(14, more=written(5, 64) + written(6, 2)), "a column of kind 14"),
        (_ROOT + _type(77), "a column of kind 77"),
        (_type(12, 1, names=("a",)).replace(b"a", b"\xff") + _type(4), "not UTF-8"),
        (_ROOT + b"".join(_type(10, number) for number in range(2, 72)) + _type(4), "more than 64 levels"),
        (_ROOT + _type(4) + written(3, _STRIPE + written(4, 1 << 40) + written(5, 1)), "a stripe lies outside"),
        (_ROOT + _type(4) + written(3, written(1, 1 << 60) + written(5, 1)), "a stripe lies outside"),
        (
            _ROOT + _type(4) + written(3, _STRIPE + written(4, 0) + written(5, 1 << 63)),
            "claims 9223372036854775808 rows",
        ),
        (_ROOT + _type(4) + written(3, _STRIPE + written(4, 0) + written(5, 1 << 61)), "damaged ORC file|max_"),
    ],
)
def test_a_footer_without_sense_is_refused(footer: bytes, reason: str, tmp_path: Path) -> None:
    content = _with_footer(write_orc(flights(1), None, "uncompressed"), footer=footer)
    limits = ReadLimits(max_cpu_s_per_mib=1.0)
    with pytest.raises(UnreadableFile, match=reason) as refused:
        for piece in OrcReader(limits).read(open_written(tmp_path, content), pa.schema([("a", pa.int64())])):
            assert piece.table.nbytes < 20 * MIB
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"ORC", "its end is not that of one"),
        (b"\xff" * 100, "its end is not that of one"),
        (
            b"ORC" + written(1, 1 << 60) + written(2, 0) + written(8000, b"ORC") + b"\x14",
            "its end is not|its footer has",
        ),
    ],
)
def test_what_is_no_orc_file_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    for read in (OrcReader().infer_schema, lambda file: list(OrcReader().read(file, _TEXT))):
        with pytest.raises(UnreadableFile, match=reason):
            read(open_written(tmp_path, content))


@pytest.mark.parametrize("number", [3, 6, 99])
def test_a_codec_that_is_not_known_is_named(number: int, tmp_path: Path) -> None:
    postscript = written(1, 0) + written(2, number) + written(8000, b"ORC")
    content = b"ORC" + postscript + bytes([len(postscript)])
    with pytest.raises(UnreadableFile, match=f"its codec has the number {number}, and is not known"):
        OrcReader().infer_schema(open_written(tmp_path, content))


def _bounds(directory: Path, values: list[int], **options: Any) -> Lengths:
    """The bounds of the lengths of lists, as Arrow writes them."""
    lists = pa.array([[True] * value for value in values], pa.list_(pa.bool_()))
    content = write_orc(pa.table({"a": lists}), None, "uncompressed", **options)
    tail = OrcTail(open_written(directory, content), ReadLimits())
    (stripe,) = tail.stripes
    found = Stripe(tail, stripe, content[slice(*stripe.footer)], ReadLimits())
    start, end = found._streams[1, 2]
    return lengths(content[start:end], is_second=found._encoding(1) in (2, 3))


@pytest.mark.parametrize("version", ["0.11", "0.12"])
@pytest.mark.parametrize(
    "values",
    [
        [5] * 5,
        [7] * 1_000,
        list(range(600)),
        list(range(600, 0, -1)),
        [3, 1, 4, 1, 5, 9, 2, 6] * 90,
        [1, 2] * 100 + [5_000] + [2, 1] * 100,
        [value * value % 1_009 for value in range(1_500)],
    ],
)
def test_bounds_of_lengths_hold_and_are_near(values: list[int], version: str, tmp_path: Path) -> None:
    found = _bounds(tmp_path, values, file_version=version)
    assert found.total >= sum(values) and found.longest >= max(values)
    assert found.total <= 300 * sum(values) and found.longest <= 300 * max(values)


def test_a_run_that_ends_early_is_refused() -> None:
    for is_second in (False, True):
        with pytest.raises(UnreadableFile, match="damaged ORC file"):
            lengths(b"\x5e\x03", is_second=is_second)


def test_the_rows_of_a_value_out_of_range_are_not_lost_in_silence(tmp_path: Path) -> None:
    # Arrow reads times of ORC in nanoseconds, from 1677 to 2262.
    table = pa.table({"at": pa.array([datetime(9999, 12, 31)], pa.timestamp("s"))})  # noqa: DTZ001
    file = open_written(tmp_path, write_orc(table))
    with pytest.raises(UnreadableFile, match="out of range for nanosecond resolution"):
        list(OrcReader().read(file, pa.schema([("at", pa.timestamp("us"))])))
    assert bad_of(OrcReader().read(open_written(tmp_path, write_orc(flights(3))), flights(0).schema)) == []
