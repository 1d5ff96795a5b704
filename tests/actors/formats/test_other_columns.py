"""Columns of files that their source does not have, and the other way round."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from actors.formats.options import Csv
from actors.formats.registry import reader_for
from actors.formats.text.csv import CsvReader
from actors.formats.text.json import JsonReader
from actors.rows import Offset
from tests.actors.formats.written_files import KINDS, FileKind, flights, open_written, rows_of
from tests.cases import few

_NAMED = [kind for kind in KINDS if kind.name not in ("csv-bare", "debezium")]
"""The kinds whose columns have names in the file, at the top of its records."""
_every_kind = pytest.mark.parametrize("kind", _NAMED, ids=lambda kind: kind.name)


@_every_kind
def test_a_cheap_look_tells_their_names(kind: FileKind, tmp_path: Path) -> None:
    file = open_written(tmp_path, kind.write(flights(40)))
    (piece,) = reader_for(kind.format).read(file, pa.schema([("delay", pa.float64()), ("x", pa.int8())]))
    assert [field.name for field in piece.others] == ["id", "carrier", "at"]
    assert piece.table.schema.names == ["delay", "x"]


@_every_kind
def test_asked_for_they_have_types(kind: FileKind, tmp_path: Path) -> None:
    file = open_written(tmp_path, kind.write(flights(40)))
    schema = pa.schema([("delay", pa.float64())])
    (piece,) = reader_for(kind.format).read(file, schema, every_column=True)
    assert [(field.name, field.type) for field in piece.others[:2]] == [("id", pa.int64()), ("carrier", pa.string())]
    (at,) = piece.others[2:]
    assert at.name == "at" and pa.types.is_timestamp(at.type)


@_every_kind
@pytest.mark.parametrize("every_column", few([False, True], True))
def test_without_any_nothing_is_told(kind: FileKind, every_column: bool, tmp_path: Path) -> None:
    table = flights(40)
    file = open_written(tmp_path, kind.write(table))
    pieces = list(reader_for(kind.format).read(file, table.schema, Offset(3), 400, every_column=every_column))
    assert rows_of(pieces) == table.to_pylist()[3:]
    assert {piece.others for piece in pieces} == {()}


@_every_kind
def test_a_column_that_a_file_lacks_is_told_if_its_format_has_columns(kind: FileKind, tmp_path: Path) -> None:
    file = open_written(tmp_path, kind.write(flights(40)))
    schema = pa.schema([("delay", pa.float64()), ("gate", pa.string()), ("id", pa.int64())])
    pieces = list(reader_for(kind.format).read(file, schema, Offset(3), 400, frozenset({"gate", "delay"})))
    assert {piece.missing for piece in pieces} == {() if kind.name.startswith("json") else ("gate",)}
    assert all(piece.table["gate"].null_count == piece.table.num_rows for piece in pieces)


def _lines(*rows: Mapping[str, object]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


_X = pa.schema([("x", pa.int64())])


def test_json_tells_every_column_when_it_is_asked_and_those_of_the_first_lines_otherwise(tmp_path: Path) -> None:
    content = _lines({"x": 0, "first": 1}, *({"x": n} for n in range(1, 500)), {"x": 500, "late": [1, 2]})
    exact = list(JsonReader().read(open_written(tmp_path, content), _X, every_column=True))
    found = {field.name: str(field.type) for field in exact[-1].others}
    assert found == {"first": "int64", "late": "list<item: int64>"}
    cheap = list(JsonReader().read(open_written(tmp_path, content), _X))
    assert {field.name: str(field.type) for piece in cheap for field in piece.others} == {"first": "null"}
    assert rows_of(exact) == rows_of(cheap) == [{"x": n} for n in range(501)]


def test_json_finds_a_column_behind_lines_with_unknown_fields_in_a_struct(tmp_path: Path) -> None:
    schema = pa.schema([("s", pa.struct([("a", pa.int64())]))])
    rows: list[Mapping[str, object]] = [{"s": {"a": n, "inner": 1}} for n in range(200)]
    file = open_written(tmp_path, _lines(*rows, {"s": {"a": 200}, "late": 1.5}), whole_object_bytes=100)
    pieces = list(JsonReader().read(file, schema, Offset(), 500, every_column=True))
    assert len(pieces) > 1 and {piece.others for piece in pieces[:-1]} == {()}
    assert pieces[-1].others == (pa.field("late", pa.float64()),)
    assert [row["s"] for row in rows_of(pieces)] == [{"a": n} for n in range(201)]


def test_json_records_are_good_or_bad_whatever_else_they_have(tmp_path: Path) -> None:
    content = _lines({"x": 1, "y": 1}, {"x": "a", "y": 1}, {"x": 3, "y": "text"})
    for every_column in (False, True):
        (piece,) = JsonReader().read(open_written(tmp_path, content), _X, every_column=every_column)
        assert piece.table.to_pylist() == [{"x": 1}, {"x": 3}]
        assert [bad.row for bad in piece.bad] == [1]
        assert [field.name for field in piece.others] == ["y"]


def test_a_csv_column_that_is_empty_at_first_gets_its_type_later(tmp_path: Path) -> None:
    content = b"x,y\n" + b"".join(b"%d,\n" % n for n in range(300)) + b"300,1.5\n"
    file = open_written(tmp_path, content, whole_object_bytes=100)
    pieces = list(CsvReader(Csv()).read(file, _X, Offset(), 500, every_column=True))
    assert len(pieces) > 2 and pieces[0].others == (pa.field("y", pa.null()),)
    assert pieces[-1].others == (pa.field("y", pa.float64()),)
