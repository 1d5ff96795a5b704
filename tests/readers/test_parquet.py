from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from actors.read_errors import UnreadableFile
from actors.readers import ParquetReader
from tests.readers.written_files import flights, open_written, rows_of, write_parquet


def _numbers(rows: int) -> pa.Table:
    return pa.table({f"c{column}": [row * 31 + column for row in range(rows)] for column in range(12)})


def test_many_row_groups_and_columns_cost_no_requests(tmp_path: Path) -> None:
    table = _numbers(50_000)
    content = write_parquet(table, 1_000)
    block_bytes = len(content) // 8
    file = open_written(tmp_path, content, whole_object_bytes=block_bytes, block_bytes=block_bytes)
    pieces = list(ParquetReader().read(file, table.schema, 0, block_bytes))
    assert len(pieces) > 3 and pa.concat_tables(pieces).equals(table)
    # 8 blocks, and once more the last one, which was read first for the footer.
    assert file.requests <= 9


def test_one_huge_row_group_costs_no_requests_either(tmp_path: Path) -> None:
    table = _numbers(50_000)
    content = write_parquet(table, 50_000)
    block_bytes = len(content) // 8
    file = open_written(tmp_path, content, whole_object_bytes=block_bytes, block_bytes=block_bytes)
    pieces = list(ParquetReader().read(file, table.schema, 0, block_bytes))
    assert len(pieces) > 3 and pa.concat_tables(pieces).equals(table)
    assert file.requests <= 9


def test_row_groups_before_the_offset_are_not_read(tmp_path: Path) -> None:
    table = _numbers(50_000)
    content = write_parquet(table, 1_000)
    block_bytes = len(content) // 16
    file = open_written(tmp_path, content, whole_object_bytes=block_bytes, block_bytes=block_bytes)
    pieces = list(ParquetReader().read(file, table.schema, 45_500, block_bytes))
    assert pa.concat_tables(pieces).equals(table.slice(45_500))
    assert file.bytes_read < len(content) // 3


def test_reading_from_the_end_costs_the_footer_only(tmp_path: Path) -> None:
    content = write_parquet(_numbers(50_000), 1_000)
    file = open_written(tmp_path, content, whole_object_bytes=1_000, block_bytes=len(content) // 8)
    assert list(ParquetReader().read(file, _numbers(0).schema, 50_000)) == []
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
        for piece in ParquetReader().read(open_written(tmp_path, bytes(content)), table.schema, 0, 5_000):
            rows += piece.to_pylist()
    assert 0 < len(rows) < 1_000
    assert rows == table.to_pylist()[: len(rows)]


def test_a_column_of_another_kind_is_named_with_both_types(tmp_path: Path) -> None:
    file = open_written(tmp_path, write_parquet(pa.table({"a": [1], "b": ["x"]})))
    wanted = pa.schema([("a", pa.int64()), ("b", pa.float64())])
    with pytest.raises(UnreadableFile, match="column b: the source has double, the file has string"):
        list(ParquetReader().read(file, wanted))


def test_a_value_that_cannot_be_held_is_named_with_its_row(tmp_path: Path) -> None:
    values = [1_000] * 950
    values[777] = 1_001
    table = pa.table({"at": pa.array(values, pa.timestamp("ns"))})
    file = open_written(tmp_path, write_parquet(table, 100))
    for offset_rows in (0, 5, 775):
        for piece_bytes in (200, 8_000_000):
            with pytest.raises(UnreadableFile, match=r"row 778: column at: .*lose data") as caught:
                list(ParquetReader().read(file, pa.schema([("at", pa.timestamp("us"))]), offset_rows, piece_bytes))
            assert caught.value.row == 778


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
