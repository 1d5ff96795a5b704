from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from actors.file_errors import EmptyFile
from actors.formats.options import Csv
from actors.formats.text.csv import CsvReader
from actors.rows import Offset
from actors.schemas.safe_types import safe_schema
from state.errors import SchemaError
from tests.actors.formats.written_files import bad_of, open_written, rows_of

_AB = pa.schema([("a", pa.int64()), ("b", pa.string())])


@pytest.mark.parametrize("content", [b"", b"\n\n", b"a,b", b"a,b\n", b"a,b\r\n\r\n"])
def test_files_without_rows(content: bytes, tmp_path: Path) -> None:
    assert list(CsvReader(Csv()).read(open_written(tmp_path, content), _AB)) == []


def test_an_empty_file_suggests_no_schema(tmp_path: Path) -> None:
    with pytest.raises(EmptyFile, match="the file is empty"):
        CsvReader(Csv()).infer_schema(open_written(tmp_path, b""))


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"zz,y", "column a: CSV conversion error to int64: invalid value 'zz'"),
        (b"3", "Expected 2 columns, got 1"),
        (b"3,4,5", "Expected 2 columns, got 3"),
        (b"3,\xff\xfe", "invalid UTF8"),
        (b"99999999999999999999,y", "conversion error to int64"),
    ],
)
@pytest.mark.parametrize("piece_bytes", [300, 8_000_000])
def test_a_bad_record_is_told_and_the_others_are_rows(
    line: bytes, reason: str, header: bool, piece_bytes: int, tmp_path: Path
) -> None:
    good = [b"%d,x" % number for number in range(200)]
    content = b"\n".join([b"a,b"] * header + good[:137] + [line] + good[138:]) + b"\n"
    for offset in (0, 100, 137, 138):
        file = open_written(tmp_path, content)
        pieces = list(CsvReader(Csv(header=header)).read(file, _AB, Offset(offset), piece_bytes))
        assert [(bad.row, bad.raw) for bad in bad_of(pieces)] == [(137, line)] * (offset <= 137)
        assert all(reason in bad.reason for bad in bad_of(pieces))
        assert [row["a"] for row in rows_of(pieces)] == [row for row in range(offset, 200) if row != 137]
        assert [piece.first_row for piece in pieces[1:]] == [piece.end_row for piece in pieces[:-1]]
        assert (len(pieces) > 1) is (piece_bytes == 300)


def test_a_record_longer_than_a_block_is_read(tmp_path: Path) -> None:
    content = b"a,b\n1,x\n2," + b"y" * 50_000 + b"\n3,z\n"
    for offset in range(4):
        pieces = list(CsvReader(Csv()).read(open_written(tmp_path, content), _AB, Offset(offset), 100))
        assert [row["a"] for row in rows_of(pieces)] == [1, 2, 3][offset:]


def test_instants_are_utc_unless_the_text_says_otherwise(tmp_path: Path) -> None:
    content = b'at\n2013-01-01 05:00:00\n2013-01-01T05:00:00Z\n2013-01-01T06:00:00.5+01:00\n2013-01-01\n\n""\n'
    schema = pa.schema([("at", pa.timestamp("us", "UTC"))])
    rows = rows_of(list(CsvReader(Csv()).read(open_written(tmp_path, content), schema)))
    five = datetime(2013, 1, 1, 5, tzinfo=UTC)
    assert [row["at"] for row in rows] == [five, five, five.replace(microsecond=500_000), five.replace(hour=0), None]


def test_what_is_inferred(tmp_path: Path) -> None:
    content = b"n,x,ok,day,at,clock,nothing,word\n1,1.5,true,2013-01-01,2013-01-01 10:00:00Z,12:30:00,,hi\n"
    file = open_written(tmp_path, content)
    schema = CsvReader(Csv()).infer_schema(file)
    assert [str(kind) for kind in schema.types] == [
        "int64",
        "double",
        "bool",
        "date32[day]",
        "timestamp[us, tz=UTC]",
        "string",
        "null",
        "string",
    ]
    (row,) = rows_of(list(CsvReader(Csv()).read(file, safe_schema(schema))))
    assert (row["day"], row["clock"], row["nothing"]) == (date(2013, 1, 1), "12:30:00", None)


def test_options_are_followed(tmp_path: Path) -> None:
    file = open_written(tmp_path, b"1|'x|y'\n-|-\n")
    reader = CsvReader(Csv(delimiter="|", quote="'", header=False, null_values=("-",)))
    assert rows_of(list(reader.read(file, _AB))) == [{"a": 1, "b": "x|y"}, {"a": None, "b": None}]


def test_nested_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="column tags: CSV has no list"):
        list(CsvReader(Csv()).read(open_written(tmp_path, b"tags\nx\n"), pa.schema([("tags", pa.list_(pa.string()))])))


@pytest.mark.parametrize("piece_bytes", [7, 20, 100, 8_000_000])
def test_files_that_mix_line_ends_are_cut_between_records(tmp_path: Path, piece_bytes: int) -> None:
    lines = [b"%d,x" % number for number in range(100)]
    content = b"a,b\n" + b"".join(line + (b"\n", b"\r", b"\r\n")[number // 40] for number, line in enumerate(lines))
    pieces = list(CsvReader(Csv()).read(open_written(tmp_path, content), _AB, piece_bytes=piece_bytes))
    assert bad_of(pieces) == []
    assert [row["a"] for row in rows_of(pieces)] == list(range(100))
