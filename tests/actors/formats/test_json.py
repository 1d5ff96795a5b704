from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from actors.file_errors import EmptyFile, UnreadableFile
from actors.formats.text.json import JsonReader
from actors.rows import Offset
from tests.actors.formats.written_files import bad_of, open_written, rows_of

_A = pa.schema([("a", pa.int64())])


@pytest.mark.parametrize("content", [b"", b"\n", b" \n\n "])
def test_files_without_rows(content: bytes, tmp_path: Path) -> None:
    assert list(JsonReader().read(open_written(tmp_path, content), _A)) == []
    with pytest.raises(EmptyFile, match="the file is empty"):
        JsonReader().infer_schema(open_written(tmp_path, content))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a": 1.5}', "couldn't parse:1.5"),
        (b'{"a": "x"}', "changed from number to string"),
        (b'{"a": 1', "JSON parse error"),
        (b"nonsense", "JSON parse error"),
        (b'{"a": 1, "b": "\xff"}', "it is not UTF-8: byte 0xff at position 15"),
        (b'[{"a": 1}]', "it is a list, not an object"),
    ],
)
@pytest.mark.parametrize("piece_bytes", [300, 8_000_000])
def test_a_bad_record_is_told_and_the_others_are_rows(
    line: bytes, reason: str, piece_bytes: int, tmp_path: Path
) -> None:
    good = [b'{"a": %d}' % number for number in range(200)]
    content = b"\n\n".join([*good[:137], line, *good[138:]])
    for offset in (0, 100, 137, 138):
        pieces = list(JsonReader().read(open_written(tmp_path, content), _A, Offset(offset), piece_bytes))
        assert [(bad.row, bad.raw) for bad in bad_of(pieces)] == [(137, line)] * (offset <= 137)
        assert all(reason in bad.reason for bad in bad_of(pieces))
        assert rows_of(pieces) == [{"a": row} for row in range(offset, 200) if row != 137]
        assert (len(pieces) > 1) is (piece_bytes == 300)


def test_a_line_longer_than_a_block_is_read(tmp_path: Path) -> None:
    content = b'{"a":1}\n{"a":2,"b":"' + b"y" * 50_000 + b'"}\n{"a":3}'
    for offset in range(4):
        pieces = list(JsonReader().read(open_written(tmp_path, content), _A, Offset(offset), 100))
        assert [row["a"] for row in rows_of(pieces)] == [1, 2, 3][offset:]


def test_nested_values_and_types_that_json_lacks(tmp_path: Path) -> None:
    line = (
        b'{"day":"2013-01-02","at":"2013-01-01T06:00:00+01:00","price":1.25,'
        b'"items":[{"k":"x","on":"2013-01-03","extra":1},{"k":null}],"s":{"b":null}}\n{}\n'
    )
    schema = pa.schema(
        [
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("price", pa.decimal128(10, 2)),
            ("items", pa.list_(pa.struct([("k", pa.string()), ("on", pa.date32())]))),
            ("s", pa.struct([("b", pa.float64()), ("c", pa.string())])),
        ]
    )
    first, second = rows_of(list(JsonReader().read(open_written(tmp_path, line), schema)))
    assert first == {
        "day": date(2013, 1, 2),
        "at": datetime(2013, 1, 1, 5, tzinfo=UTC),
        "price": Decimal("1.25"),
        "items": [{"k": "x", "on": date(2013, 1, 3)}, {"k": None, "on": None}],
        "s": {"b": None, "c": None},
    }
    assert second == dict.fromkeys(schema.names)


def test_what_is_inferred(tmp_path: Path) -> None:
    lines = b'{"n":1,"x":1,"none":null,"tags":["a"],"empty":{}}\n{"n":2,"x":1.5,"sub":{"k":"v"}}\n'
    schema = JsonReader().infer_schema(open_written(tmp_path, lines))
    assert {field.name: str(field.type) for field in schema} == {
        "n": "int64",
        "x": "double",
        "none": "null",
        "tags": "list<item: string>",
        "empty": "null",
        "sub": "struct<k: string>",
    }


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (b'{"a":1}\n{"a":\n{"a":2.5}\n', {"a": "double"}),
        (b'{"a":2}\n[1]\n{"a":2}\n\xff\n', {"a": "int64"}),
        (b'{"t":"2026-01-01T00:00:00"}\n{"t":null,"T":4}\n', {"t": "timestamp[us]", "T_1": "int64"}),
    ],
)
def test_lines_that_are_no_objects_show_nothing(content: bytes, columns: Mapping[str, str], tmp_path: Path) -> None:
    schema = JsonReader().infer_schema(open_written(tmp_path, content))
    assert {field.name: str(field.type) for field in schema} == columns


def test_a_file_without_any_object_shows_nothing_and_says_why(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="row 1: JSON parse error: Invalid value"):
        JsonReader().infer_schema(open_written(tmp_path, b"not JSON\n{'a': 1}\n"))


@pytest.mark.parametrize(
    "content", [b"null", b" \n null\nnull\n", b'null\n{"a": 1}\n', b'{"a": 1}\nnull\n', b"null\n{}\n"]
)
@pytest.mark.parametrize("piece_bytes", [6, 8_000_000])
def test_null_is_a_row_of_nulls_wherever_it_stands(content: bytes, piece_bytes: int, tmp_path: Path) -> None:
    values = [json.loads(line) or {} for line in content.splitlines() if line.strip()]
    for every_column in (False, True):
        file = open_written(tmp_path, content)
        pieces = list(JsonReader().read(file, _A, piece_bytes=piece_bytes, every_column=every_column))
        assert rows_of(pieces) == [{"a": value.get("a")} for value in values]
        assert bad_of(pieces) == []
    if any(values):
        assert JsonReader().infer_schema(open_written(tmp_path, content)) == _A
    else:
        with pytest.raises(EmptyFile):
            JsonReader().infer_schema(open_written(tmp_path, content))


@pytest.mark.parametrize("line", [b"[1, 2]", b'"text"', b"3"])
def test_a_line_that_is_no_object_is_a_bad_record_beside_unmatched(tmp_path: Path, line: bytes) -> None:
    content = b'{"a": 1, "x": {"y": 1}}\n' * 3 + line + b'\n{"a": 2, "x": {"z": 1}}\n'
    pieces = list(JsonReader().read(open_written(tmp_path, content), _A, piece_bytes=30, every_column=True))
    assert [bad.row for bad in bad_of(pieces)] == [3]
    assert [row["a"] for row in rows_of(pieces)] == [1, 1, 1, 2]
    assert {field.name for piece in pieces for field in piece.others} == {"x"}


@pytest.mark.parametrize("line", [b'{"a": 1', b"nonsense", b"3"])
def test_a_file_without_a_good_line_is_unreadable_with_and_without_a_schema(line: bytes, tmp_path: Path) -> None:
    content = b"\n".join([line] * 3)
    with pytest.raises(UnreadableFile) as inferring:
        JsonReader().infer_schema(open_written(tmp_path, content))
    with pytest.raises(UnreadableFile) as reading:
        list(JsonReader().read(open_written(tmp_path, content), _A))
    assert str(reading.value) == str(inferring.value)
    assert str(reading.value).startswith("row 1: ")
    resumed = list(JsonReader().read(open_written(tmp_path, content), _A, Offset(1)))
    assert [bad.row for bad in bad_of(resumed)] == [1, 2], "an earlier version has read the first row"


def test_lines_that_are_good_for_another_schema_are_bad_records(tmp_path: Path) -> None:
    content = b'{"a": "x"}\n{"a": "y"}\n'
    pieces = list(JsonReader().read(open_written(tmp_path, content), _A))
    assert [bad.row for bad in bad_of(pieces)] == [0, 1]


def test_good_lines_behind_blocks_of_bad_ones_are_rows(tmp_path: Path) -> None:
    content = b"bad\n" * 100 + b'{"a": 1}\n'
    pieces = list(JsonReader().read(open_written(tmp_path, content), _A, piece_bytes=100))
    assert (rows_of(pieces), len(bad_of(pieces))) == ([{"a": 1}], 100)


def test_lines_whose_fields_tell_no_type_are_bad_records_of_a_schema(tmp_path: Path) -> None:
    pieces = list(JsonReader().read(open_written(tmp_path, b'{"a": {}}\n{"a": {}}\n'), _A))
    assert [bad.row for bad in bad_of(pieces)] == [0, 1]
