from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.file_errors import UnreadableFile
from actors.formats.parquet.parquet_reader import ParquetReader
from actors.rows import Offset
from actors.settings import ReadLimits
from tests.actors.formats.foreign_parquet import with_fewer_columns, write_encrypted
from tests.actors.formats.written_files import bad_of, flights, open_written, rows_of, table_of, write_parquet


def _numbers(rows: int) -> pa.Table:
    return pa.table({f"c{column}": [row * 31 + column for row in range(rows)] for column in range(12)})


def test_many_row_groups_and_columns_cost_no_requests(tmp_path: Path) -> None:
    table = _numbers(50_000)
    content = write_parquet(table, 1_000)
    block_bytes = len(content) // 8
    file = open_written(tmp_path, content, whole_object_bytes=block_bytes, block_bytes=block_bytes)
    pieces = list(ParquetReader().read(file, table.schema, Offset(), block_bytes))
    assert len(pieces) > 3 and table_of(pieces).equals(table)
    # 8 blocks, and once more the last one, which was read first for the footer.
    assert file.requests <= 9


def test_one_huge_row_group_costs_no_requests_either(tmp_path: Path) -> None:
    table = _numbers(50_000)
    content = write_parquet(table, 50_000)
    block_bytes = len(content) // 8
    file = open_written(tmp_path, content, whole_object_bytes=block_bytes, block_bytes=block_bytes)
    pieces = list(ParquetReader().read(file, table.schema, Offset(), block_bytes))
    assert len(pieces) > 3 and table_of(pieces).equals(table)
    assert file.requests <= 9


def test_row_groups_before_the_offset_are_not_read(tmp_path: Path) -> None:
    table = _numbers(50_000)
    content = write_parquet(table, 1_000)
    block_bytes = len(content) // 16
    file = open_written(tmp_path, content, whole_object_bytes=block_bytes, block_bytes=block_bytes)
    pieces = list(ParquetReader().read(file, table.schema, Offset(45_500), block_bytes))
    assert table_of(pieces).equals(table.slice(45_500))
    assert file.bytes_read < len(content) // 3


def test_reading_from_the_end_costs_the_footer_only(tmp_path: Path) -> None:
    content = write_parquet(_numbers(50_000), 1_000)
    file = open_written(tmp_path, content, whole_object_bytes=1_000, block_bytes=len(content) // 8)
    assert list(ParquetReader().read(file, _numbers(1).schema, Offset(50_000))) == []
    assert file.requests == 1


def test_an_empty_file_is_no_parquet_file(tmp_path: Path) -> None:
    file = open_written(tmp_path, b"")
    with pytest.raises(UnreadableFile, match="the file is empty"):
        ParquetReader().infer_schema(file)
    with pytest.raises(UnreadableFile, match="the file is empty"):
        list(ParquetReader().read(file, flights(0).schema))


def test_rows_before_a_damaged_row_group_stay(tmp_path: Path) -> None:
    table = flights(1_000)
    content = bytearray(write_parquet(table, 100))
    # The pages of the last row groups; the footer stays whole.
    at = int(len(content) * 0.6)
    content[at : at + 400] = b"\xff" * 400
    rows: list[object] = []
    with pytest.raises(UnreadableFile, match=r"damaged Parquet file, in row groups \d to \d"):
        for piece in ParquetReader().read(open_written(tmp_path, bytes(content)), table.schema, Offset(), 5_000):
            rows += piece.table.to_pylist()
    assert 0 < len(rows) < 1_000
    assert rows == table.to_pylist()[: len(rows)]


def test_a_column_of_another_kind_is_named_with_both_types(tmp_path: Path) -> None:
    file = open_written(tmp_path, write_parquet(pa.table({"a": [1], "b": ["x"]})))
    wanted = pa.schema([("a", pa.int64()), ("b", pa.float64())])
    with pytest.raises(UnreadableFile, match="column b: the source has double, the file has string"):
        list(ParquetReader().read(file, wanted))


def test_a_value_that_cannot_be_held_is_a_bad_record(tmp_path: Path) -> None:
    values = [1_000] * 950
    values[777] = 1_001
    table = pa.table({"at": pa.array(values, pa.timestamp("ns"))})
    file = open_written(tmp_path, write_parquet(table, 100))
    for offset_rows in (0, 5, 775):
        for piece_bytes in (200, 8_000_000):
            schema = pa.schema([("at", pa.timestamp("us"))])
            pieces = list(ParquetReader().read(file, schema, Offset(offset_rows), piece_bytes))
            (bad,) = bad_of(pieces)
            assert bad.row == 777 and "column at:" in bad.reason and "lose data" in bad.reason
            assert bad.raw.startswith(b'{"at": "1970-01-01 00:00:00.000001001')
            assert len(rows_of(pieces)) == 949 - offset_rows


def test_types_that_spark_does_not_take_are_brought_to_those_it_does(tmp_path: Path) -> None:
    table = pa.table(
        {
            "word": pa.array(["a", "b", "a"]).dictionary_encode(),
            "big": pa.array(["x", None, "z"], pa.large_string()),
            "count": pa.array([1, 2**64 - 1, None], pa.uint64()),
            "at": pa.array([1_000, None, 3_000], pa.timestamp("ns", "Europe/Berlin")),
            "tags": pa.array([["p"], None, []], pa.large_list(pa.large_string())),
        }
    )
    file = open_written(tmp_path, write_parquet(table))
    schema = ParquetReader().infer_schema(file)
    assert [str(kind) for kind in schema.types] == [
        "string",
        "string",
        "decimal128(20, 0)",
        "timestamp[us, tz=UTC]",
        "list<item: string>",
    ]
    rows = rows_of(list(ParquetReader().read(file, schema)))
    assert [row["count"] for row in rows] == [1, 2**64 - 1, None]
    assert [row["word"] for row in rows] == ["a", "b", "a"]
    assert [row["tags"] for row in rows] == [["p"], None, []]
    assert [row["at"] and row["at"].microsecond for row in rows] == [1, None, 3]


def test_of_a_large_file_only_the_columns_that_are_asked_for_are_fetched(tmp_path: Path) -> None:
    table = _numbers(50_000)
    content = write_parquet(table, 5_000)
    file = open_written(tmp_path, content, whole_object_bytes=1_000, block_bytes=len(content) // 100)
    pieces = list(ParquetReader().read(file, table.schema, columns={"c2", "c9"}))
    assert table_of(pieces).equals(table.select(["c2", "c9"]))
    assert file.bytes_read < len(content) * 0.25
    assert file.requests <= 2 + 20, "its footer, and each chunk"


def test_a_file_without_the_columns_that_are_asked_for_has_nulls_and_costs_its_footer(tmp_path: Path) -> None:
    schema = pa.schema([*_numbers(1).schema, pa.field("more", pa.int8())])
    content = write_parquet(_numbers(5_000), 1_000)
    file = open_written(tmp_path, content, whole_object_bytes=1_000, block_bytes=len(content) // 2)
    pieces = list(ParquetReader().read(file, schema, Offset(2_000), columns={"more"}))
    assert table_of(pieces).equals(pa.table({"more": pa.nulls(3_000, pa.int8())}))
    assert file.requests == 1


def test_a_footer_that_is_longer_than_the_first_request_is_asked_for_once(tmp_path: Path) -> None:
    table = _numbers(5_000)
    content = write_parquet(table, 50)
    file = open_written(tmp_path, content, whole_object_bytes=1_000, block_bytes=1_000)
    assert ParquetReader().infer_schema(file).names == table.schema.names
    assert 1 < file.requests <= 120 and file.bytes_read < len(content)


@pytest.mark.more_after(1)
@pytest.mark.parametrize("held_bytes", [1, 600_000, 2_000_000])
def test_a_row_group_that_is_too_large_to_be_held_is_read_in_windows(tmp_path: Path, held_bytes: int) -> None:
    words = [f"word {row * 7919}" for row in range(100_000)]
    table = _numbers(100_000).append_column("word", pa.array(words)).append_column("list", pa.array([[1, 2]] * 100_000))
    content = write_parquet(table, 60_000)
    file = open_written(tmp_path, content, whole_object_bytes=1_000, block_bytes=100_000, max_held_bytes=held_bytes)
    for offset in (0, 1, 59_999, 60_000, 99_999):
        assert table_of(ParquetReader().read(file, table.schema, Offset(offset), 1_000_000)).equals(table.slice(offset))
    before = file.bytes_read
    assert table_of(ParquetReader().read(file, table.schema, columns={"word"})).equals(table.select(["word"]))
    assert file.bytes_read - before < len(content) // 2


@pytest.mark.parametrize("held_bytes", [1, 300_000])
def test_what_is_read_in_windows_is_looked_at_before_it_is_decoded(tmp_path: Path, held_bytes: int) -> None:
    rng = random.Random(1)
    texts = pa.array([rng.randbytes(500).hex() for _ in range(3_000)])
    for column in (texts, pa.array([["x"] * 10] * 2_000 + [["y"] * 200_000])):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"a": column}), sink, use_dictionary=False, data_page_size=1 << 20, compression="zstd")
        file = open_written(tmp_path, sink.getvalue().to_pybytes(), whole_object_bytes=1_000, max_held_bytes=held_bytes)
        schema = pa.schema([("a", column.type)])
        assert table_of(ParquetReader().read(file, schema))["a"].to_pylist() == column.to_pylist()
        small = ReadLimits(max_batch_bytes=500_000)
        with pytest.raises(UnreadableFile, match=r"column a.*: a page takes \d+ bytes .*ReadLimits.max_batch_bytes"):
            list(ParquetReader(small).read(file, schema))


_US = pa.schema([("t", pa.timestamp("us"))])
_1970 = datetime(1970, 1, 1)  # noqa: DTZ001
_NEAR = _1970 + timedelta(days=20_000, microseconds=5)
_FAR, _EARLY = _1970 + timedelta(days=2_932_896, hours=23), _1970 - timedelta(days=719_162)
"""9999-12-31 and 0001-01-01."""


def _int96(table: pa.Table, rows: int | None = None, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True, row_group_size=rows, **options)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


@pytest.mark.parametrize("timestamps", ["exact", "truncate"])
@pytest.mark.parametrize("piece_bytes", [30, 8_000_000])
def test_int96_outside_of_nanoseconds_is_read_in_microseconds(
    tmp_path: Path, timestamps: Any, piece_bytes: int
) -> None:
    values = [_NEAR, None, _FAR, _EARLY] * 25
    file = open_written(tmp_path, _int96(pa.table({"t": pa.array(values, pa.timestamp("us"))}), 40))
    reader = ParquetReader(timestamps=timestamps)
    assert reader.infer_schema(file) == _US
    for start in (0, 41):
        pieces = list(reader.read(file, _US, Offset(start), piece_bytes))
        assert table_of(pieces)["t"].to_pylist() == values[start:] and not bad_of(pieces)


def test_int96_inside_of_lists_and_structs_is_read_in_microseconds(tmp_path: Path) -> None:
    us = pa.timestamp("us")
    table = pa.table(
        {
            "l": pa.array([[_NEAR, None, _FAR], None, []], pa.list_(us)),
            "s": pa.array([{"t": _EARLY}, None, {"t": None}], pa.struct([("t", us)])),
            "m": pa.array([[("a", _FAR)], [], None], pa.map_(pa.string(), us)),
        }
    )
    pieces = list(ParquetReader().read(open_written(tmp_path, _int96(table)), table.schema))
    assert rows_of(pieces) == table.to_pylist() and not bad_of(pieces)


def test_digits_of_int96_below_microseconds_make_a_bad_record_as_ever(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([1_000, 1_001, -1, 5_000], pa.timestamp("ns"))})
    near = _int96(table)
    assert _micros(tmp_path, near, "exact") == ([1, 5], [1, 2])
    assert _micros(tmp_path, near, "truncate") == ([1, 1, -1, 5], [])
    # The last value becomes a far time: 12 bytes, the nanoseconds of the day and the Julian day.
    day = 2_440_588
    plain = _int96(table, use_dictionary=False, compression="none")
    before = (5_000).to_bytes(8, "little") + day.to_bytes(4, "little")
    assert plain.count(before) == 1
    far = plain.replace(before, bytes(8) + (day + 2_932_896).to_bytes(4, "little"))
    far_us = timedelta(days=2_932_896) // timedelta(microseconds=1)
    assert _micros(tmp_path, far, "exact") == ([1, far_us], [1, 2])
    assert _micros(tmp_path, far, "truncate") == ([1, 1, -1, far_us], [])
    lossy_far = plain.replace(before, (1).to_bytes(8, "little") + (day + 2_932_896).to_bytes(4, "little"))
    assert _micros(tmp_path, lossy_far, "exact") == ([1], [1, 2, 3])


def _micros(directory: Path, content: bytes, timestamps: Any) -> tuple[list[int], list[int]]:
    """The times of a file in microseconds, and the positions of its bad records."""
    pieces = list(ParquetReader(timestamps=timestamps).read(open_written(directory, content), _US))
    return table_of(pieces)["t"].cast(pa.int64()).to_pylist(), [bad.row for bad in bad_of(pieces)]


@pytest.mark.parametrize("block_bytes", [1_000, 8_000_000])
@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_an_encrypted_file_is_refused_before_the_metadata_of_a_column_is_read(
    tmp_path: Path, plaintext_footer: bool, block_bytes: int
) -> None:
    table = pa.table({"id": [1, 2], "secret": ["a", "b"]})
    content = write_encrypted(table, plaintext_footer=plaintext_footer, column_keys={"column key": ["secret"]})
    file = open_written(tmp_path, content, whole_object_bytes=block_bytes, block_bytes=block_bytes)
    what = "columns are" if plaintext_footer else "footer is"
    for schema in (table.schema, pa.schema([table.schema.field("id")])):
        with pytest.raises(UnreadableFile, match=f"its {what} encrypted; encrypted Parquet files are not read: decry"):
            list(ParquetReader().read(file, schema))
    with pytest.raises(UnreadableFile, match="encrypted"):
        ParquetReader().infer_schema(file)


def test_an_encrypted_column_is_found_without_the_signature_of_the_footer(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2], "secret": ["a", "b"]})
    content = write_encrypted(table, plaintext_footer=True, column_keys={"column key": ["secret"]})
    nbytes = int.from_bytes(content[-8:-4], "little")
    unsigned = content[:-36] + (nbytes - 28).to_bytes(4, "little") + content[-4:]
    with pytest.raises(UnreadableFile, match="its columns are encrypted"):
        list(ParquetReader().read(open_written(tmp_path, unsigned), table.schema))


def test_a_plain_file_with_the_bytes_of_an_encrypted_column_is_read(tmp_path: Path) -> None:
    table = pa.table({"id": ["\x2c\x19\x18\x02id\x00\x00"]})
    assert (
        rows_of(ParquetReader().read(open_written(tmp_path, write_parquet(table)), table.schema)) == table.to_pylist()
    )


def test_a_row_group_with_fewer_columns_than_the_schema_is_damage(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2, 3], "b": [1, 2, 3]})
    with pytest.raises(UnreadableFile, match="damaged Parquet file: row group 0 has 1 columns, and the schema 2"):
        list(ParquetReader().read(open_written(tmp_path, with_fewer_columns(table)), table.schema))
