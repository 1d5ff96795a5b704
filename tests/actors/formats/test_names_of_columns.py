"""Columns of files without a usable name, and with names that differ from the source's names only in case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from actors.file_errors import UnreadableFile
from actors.formats.options import Csv, Orc, Parquet
from actors.formats.registry import Format, reader_for
from actors.rows import Offset
from tests.actors.formats.written_files import (
    KINDS,
    FileKind,
    flights,
    open_written,
    rows_of,
    table_of,
    write_csv,
    write_orc,
    write_parquet,
)

_NAMED = [kind for kind in KINDS if kind.name in ("parquet", "csv", "avro", "orc")]
_every_kind = pytest.mark.parametrize("kind", _NAMED, ids=lambda kind: kind.name)


_WRITERS: Mapping[str, tuple[Format, Callable[[pa.Table], bytes]]] = {
    "parquet": (Parquet(), write_parquet),
    "csv": (Csv(), write_csv),
    "orc": (Orc(), write_orc),
}
_every_writer = pytest.mark.parametrize("name", ["parquet", "csv"])


def _schema(*names: str) -> pa.Schema:
    """The schema of `flights` with other names."""
    return flights(0).rename_columns(names).schema


@_every_kind
def test_names_match_in_any_case(kind: FileKind, tmp_path: Path) -> None:
    table, schema = flights(40), _schema("ID", "Carrier", "delay", "aT")
    file = open_written(tmp_path, kind.write(table))
    pieces = list(reader_for(kind.format).read(file, schema, Offset(3), 400))
    assert rows_of(pieces) == table.rename_columns(schema.names).to_pylist()[3:]
    assert {(piece.others, piece.missing, piece.renamed) for piece in pieces} == {((), (), ())}


@_every_kind
def test_some_columns_are_read_in_any_case(kind: FileKind, tmp_path: Path) -> None:
    table = flights(40)
    file = open_written(tmp_path, kind.write(table))
    schema = _schema("ID", "carrier", "DELAY", "at")
    pieces = list(reader_for(kind.format).read(file, schema, columns=frozenset({"DELAY"})))
    assert [row["DELAY"] for row in rows_of(pieces)] == table["delay"].to_pylist()


@_every_kind
def test_an_earlier_source_takes_equal_names_alone(kind: FileKind, tmp_path: Path) -> None:
    file = open_written(tmp_path, kind.write(flights(40)))
    schema = _schema("ID", "carrier", "delay", "at")
    pieces = list(reader_for(kind.format, names="exact").read(file, schema))
    assert table_of(pieces)["ID"].null_count == 40
    assert {piece.missing for piece in pieces} == {("ID",)}


def _unnamed() -> pa.Table:
    columns = [pa.array([n], pa.int64()) for n in range(6)]
    return pa.Table.from_arrays(columns, names=["", "v", "v", "V", "a.b", "x"])


@_every_writer
def test_a_column_without_a_usable_name_is_read_by_the_name_that_it_gets(name: str, tmp_path: Path) -> None:
    format, write = _WRITERS[name]
    reader, file = reader_for(format), open_written(tmp_path, write(_unnamed()))
    schema = reader.infer_schema(file)
    assert schema.names == ["_c0", "v", "v_1", "V_2", "a_b", "x"]
    (piece,) = reader.read(file, schema)
    assert piece.table.to_pylist() == [{"_c0": 0, "v": 1, "v_1": 2, "V_2": 3, "a_b": 4, "x": 5}]
    assert piece.renamed == (("", "_c0"), ("v", "v_1"), ("V", "V_2"), ("a.b", "a_b"))
    (piece,) = reader.read(file, schema, columns={"v_1", "a_b"})
    assert piece.table.to_pylist() == [{"v_1": 2, "a_b": 4}]


@_every_writer
def test_of_a_large_file_too_by_the_same_requests(name: str, tmp_path: Path) -> None:
    format, write = _WRITERS[name]
    columns = [pa.array(range(start, start + 5_000), pa.int64()) for start in (0, 10_000, 20_000)]
    requests = []
    for names in (["a.b", "v", "v"], ["a_b", "v", "v_1"]):
        content = write(pa.Table.from_arrays(columns, names=names))
        file = open_written(tmp_path, content, whole_object_bytes=1_000, block_bytes=4_000)
        schema = pa.schema([("a_b", pa.int64()), ("v_1", pa.int64()), ("v", pa.int64())])
        table = table_of(reader_for(format).read(file, schema, Offset(7), 10_000))
        assert [column.to_pylist() for column in table.columns] == [columns[n].to_pylist()[7:] for n in (0, 2, 1)]
        requests.append(file.requests)
    assert requests[0] == requests[1]


@_every_writer
@pytest.mark.parametrize("names", [["v", "v"], ["v", "V"]])
def test_two_columns_for_one_of_the_source_are_refused(name: str, names: list[str], tmp_path: Path) -> None:
    format, write = _WRITERS[name]
    file = open_written(tmp_path, write(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=names)))
    with pytest.raises(UnreadableFile, match="of the file match column v of the source; rename them"):
        list(reader_for(format).read(file, pa.schema([("v", pa.int64())])))


def test_a_name_with_a_dot_is_not_a_field_of_a_struct(tmp_path: Path) -> None:
    struct = pa.array([{"b": 1, "c": 2}])
    content = write_parquet(pa.table({"a": struct, "a.b": pa.array([3])}))
    file = open_written(tmp_path, content)
    reader = reader_for(Parquet())
    schema = reader.infer_schema(file)
    assert schema.names == ["a", "a_b"]
    for columns in (None, {"a"}, {"a_b"}):
        (piece,) = reader.read(file, schema, columns=columns)
        row = {"a": {"b": 1, "c": 2}, "a_b": 3}
        assert piece.table.to_pylist() == [{key: row[key] for key in columns or row}]


def _nested(names: list[str]) -> pa.Table:
    """A list of structs with fields of these names."""
    fields = [pa.field(name, pa.int64()) for name in names]
    structs = pa.StructArray.from_arrays([pa.array([n, n + 10]) for n in range(len(names))], fields=fields)
    return pa.table({"s": pa.ListArray.from_arrays([0, 2], structs)})


@pytest.mark.parametrize("format", [Parquet(), Orc()], ids=lambda format: format.name)
def test_fields_of_structs_match_in_any_case(format: Format, tmp_path: Path) -> None:
    write = _WRITERS[format.name][1]
    file = open_written(tmp_path, write(_nested(["A", "b"])))
    schema = _nested(["a", "B"]).schema
    (piece,) = reader_for(format).read(file, schema)
    assert piece.table.to_pylist() == [{"s": [{"a": 0, "B": 1}, {"a": 10, "B": 11}]}]
    (piece,) = reader_for(format, names="exact").read(file, schema)
    assert piece.table.to_pylist() == [{"s": [{"a": None, "B": None}] * 2}]


def test_fields_of_structs_without_a_usable_name_get_one(tmp_path: Path) -> None:
    reader, file = reader_for(Parquet()), open_written(tmp_path, write_parquet(_nested(["", "v", "v", "a.b"])))
    schema = reader.infer_schema(file)
    assert [field.name for field in schema.field("s").type.value_type] == ["_c0", "v", "v_1", "a.b"]
    (piece,) = reader.read(file, schema)
    assert piece.table["s"][0].as_py()[0] == {"_c0": 0, "v": 1, "v_1": 2, "a.b": 3}
    with pytest.raises(UnreadableFile, match="columns v, v of the file match column v of"):
        list(reader.read(file, _nested(["v"]).schema))
