"""Columns of the rows of one file: of the file, of its path, and its metadata."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.file_errors import UnreadableFile
from actors.files import FileVersion
from actors.formats.options import Csv, Json, Parquet, Text
from actors.formats.registry import Format, reader_for
from actors.objects.object_store import ObjectStore
from actors.reading.file_columns import FileColumns
from actors.reading.open_file import NewColumns, OpenFile
from actors.rows import BadRecord, Offset, Rows
from actors.schemas.metadata_columns import with_epoch
from actors.settings import ReadLimits
from actors.sources.row_key import Key
from actors.sources.source import SchemaEvolution, SourceDefinition
from actors.sources.source_schema import kept_schema
from state.location import Location
from tests.actors.flow import AT
from tests.actors.formats.written_files import write_csv, write_parquet


def now() -> datetime:
    return AT


_ALL = ("path", "size", "last_modified", "etag", "row", "epoch")
_X = pa.schema([("x", pa.int64())])


def source(directory: Path = Path("/in"), format: Format = Json(), **options: Any) -> SourceDefinition:
    return SourceDefinition(name="s", location=Location(str(directory)), format=format, **options)


def version(path: str) -> FileVersion:
    return FileVersion("s", path, b"", '"e"', 10, AT)


def table(*values: int) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.int64())})


def opened(
    directory: Path,
    path: str,
    content: bytes,
    made: SourceDefinition,
    limits: ReadLimits = ReadLimits(),
    now: Callable[[], datetime] | None = None,
) -> OpenFile:
    file = directory / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    store = ObjectStore(made.location)
    size = len(content)
    listed = FileVersion("s", path, b"", "", size, AT)
    return OpenFile(store.open(listed), listed, made, reader_for(made.format, limits), 8 << 20, limits, now)


def test_rows_get_the_columns_of_their_path_and_of_their_file() -> None:
    made = source(metadata=_ALL)
    schema = kept_schema(made, _X, ["k=1/f"])
    columns = FileColumns(made, schema, version("k=2/f"))
    assert columns.content == _X
    found = columns.complete(Rows(table(7, 8), 5)).table
    assert found.schema == schema
    assert with_epoch(found, 9).to_pylist() == [
        {
            "x": value,
            "k": 2,
            "_path": "file:///in/k=2/f",
            "_size": 10,
            "_last_modified": AT,
            "_etag": '"e"',
            "_row": row,
            "_epoch": 9,
        }
        for value, row in ((7, 5), (8, 6))
    ]


def test_positions_leave_bad_records_out() -> None:
    made = source(metadata=("row",))
    columns = FileColumns(made, kept_schema(made, _X), version("f"))
    bad = tuple(BadRecord(row, b"", "") for row in (10, 13))
    rows = columns.complete(Rows(table(1, 2, 3), 10, bad))
    assert rows.table["_row"].to_pylist() == [11, 12, 14]
    assert rows.between(12, 14).table["_row"].to_pylist() == [12]


def test_without_a_column_for_it_the_epoch_is_nobodys_matter() -> None:
    assert with_epoch(table(1), 9) == table(1)


def test_the_path_wins_over_a_column_of_the_content_and_is_none_that_is_left_out() -> None:
    schema = pa.schema([("x", pa.int64()), ("k", pa.int64())])
    columns = FileColumns(source(), schema, version("k=5/f"))
    rows = columns.complete(Rows(table(1), 0, others=(pa.field("k", pa.string()), pa.field("y", pa.int8()))))
    assert rows.table.to_pylist() == [{"x": 1, "k": 5}]
    assert [field.name for field in rows.others] == ["y"]


@pytest.mark.parametrize(("format", "content"), [(Csv(), b"COL1,x\n1,2\n"), (Parquet(), None)], ids=["csv", "parquet"])
def test_a_column_that_differs_from_a_directory_by_case_is_that_of_the_path(
    format: Format, content: bytes | None, tmp_path: Path
) -> None:
    content = content or write_parquet(pa.table({"COL1": [1], "x": [2]}))
    made = source(tmp_path, format, materialize=True)
    file = opened(tmp_path, "col1=7/f", content, made)
    schema = kept_schema(made, file.infer_schema(), ["col1=7/f"])
    assert schema.names == ["x", "col1"]
    rows, last = file.next_piece(schema, Offset())
    assert last and rows.table.to_pylist() == [{"x": 2, "col1": 7}] and rows.others == ()


@pytest.mark.parametrize("header", [b",a,b", b"a,b,", b"v,v", b"a.b,a", b"__sw_a,b", b"sep=;,"])
def test_every_header_gives_a_source_that_can_be_stored(header: bytes, tmp_path: Path) -> None:
    made = source(tmp_path, Csv(), materialize=True)
    file = opened(tmp_path, "f", header + b"\n" + b",".join([b"1"] * (header.count(b",") + 1)) + b"\n", made)
    schema = kept_schema(made, file.infer_schema(), ["f"])
    rows, last = file.next_piece(schema, Offset())
    assert last and rows.table.to_pylist() == [dict.fromkeys(schema.names, 1)]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array([5, None], pa.int32()), ["5", None]),
        (pa.array([1.5, -0.25]), ["1.5", "-0.25"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array(["a", "é"]).dictionary_encode(), ["a", "é"]),
        (pa.array(["1.50", None], pa.string()).cast(pa.decimal128(9, 2)), ["1.50", None]),
        (pa.array([0, 1], pa.date32()), ["1970-01-01", "1970-01-02"]),
        (pa.array([1_500, None], pa.timestamp("ms", "UTC")), ["1970-01-01 00:00:01.500000Z", None]),
        (pa.nulls(2), [None, None]),
    ],
    ids=lambda values: str(getattr(values, "type", "")),
)
def test_a_column_without_a_value_in_the_sample_takes_values_of_every_type_as_text(
    values: pa.Array, texts: list[str | None], tmp_path: Path
) -> None:
    made = source(tmp_path, Parquet())
    first = opened(tmp_path, "a", write_parquet(pa.table({"x": [1], "open": pa.nulls(1)})), made)
    kept = kept_schema(made, first.infer_schema(), ["a"])
    kept = pa.ipc.read_schema(pa.py_buffer(kept.serialize().to_pybytes()))  # as the catalog keeps it
    assert kept == pa.schema([("x", pa.int64()), ("open", pa.string())])
    later = opened(tmp_path, "b", write_parquet(pa.table({"x": [2, 3], "open": values})), made)
    rows, last = later.next_piece(kept, Offset())
    assert last and rows.table["open"].to_pylist() == texts
    assert [field.metadata for field in rows.table.schema] == [None, None]
    rows, _ = first.next_piece(kept, Offset())
    assert rows.table["open"].to_pylist() == [None]


@pytest.mark.parametrize("values", [pa.array([[1]]), pa.array([b"x"]), pa.array([{"a": 1}])], ids=str)
def test_lists_and_structs_and_bytes_have_no_text(values: pa.Array, tmp_path: Path) -> None:
    made = source(tmp_path, Parquet())
    kept = kept_schema(made, pa.schema([("x", pa.int64()), ("open", pa.null())]), ["a"])
    later = opened(tmp_path, "b", write_parquet(pa.table({"x": [1], "open": values})), made)
    with pytest.raises(UnreadableFile, match="column open: the source has string, the file has"):
        later.next_piece(kept, Offset())


def test_a_column_of_texts_takes_no_numbers(tmp_path: Path) -> None:
    made = source(tmp_path, Parquet())
    kept = kept_schema(made, pa.schema([("x", pa.string())]), ["a"])
    with pytest.raises(
        UnreadableFile, match="column x: the source has string, the file has int64; write the file again"
    ):
        opened(tmp_path, "b", write_parquet(table(1)), made).next_piece(kept, Offset())


@pytest.mark.parametrize("format", [Csv(), Parquet()], ids=lambda format: format.name)
@pytest.mark.parametrize("evolution", ["strict", "lenient", "add_columns", "widen"])
def test_a_strict_source_has_no_rows_of_a_file_without_one_of_its_columns(
    format: Format, evolution: SchemaEvolution, tmp_path: Path
) -> None:
    content = pa.table({"id": [1, 2], "quantity": [3, 4]})
    made = source(
        tmp_path, format, schema_evolution=evolution, schema=pa.schema([("id", pa.int64()), ("qty", pa.int64())])
    )
    file = opened(tmp_path, "f", write_csv(content) if format.name == "csv" else write_parquet(content), made, now=now)
    schema = kept_schema(made, made.schema)
    if evolution == "add_columns":
        with pytest.raises(NewColumns) as found:
            file.next_piece(schema, Offset())
        schema = pa.schema([*schema, *found.value.columns])
    if evolution != "strict":
        rows, _ = file.next_piece(schema, Offset())
        assert rows.missing == ("qty",) and rows.table["qty"].null_count == 2
        return
    for columns in (None, {"id"}):
        file = opened(tmp_path, "f", (tmp_path / "f").read_bytes(), made, now=now)
        with pytest.raises(
            UnreadableFile,
            match=r'^it lacks the column qty of the source, and has quantity; .*Schema\(evolution="lenient"\)',
        ):
            file.next_piece(schema, Offset(), columns)
    before = opened(tmp_path, "f", (tmp_path / "f").read_bytes(), made)
    rows, _ = before.next_piece(schema, Offset())
    assert rows.table.num_rows == 2, "a file that was read before is read again as it was"


def test_a_strict_source_of_json_needs_a_record_with_each_field(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("qty", pa.int64())])
    made = source(tmp_path, Json(), schema_evolution="strict", schema=schema)
    lines = [b'{"id": 1, "quantity": 2}\n', b'{"id": 2}\n']
    for columns in (None, {"id"}):
        with pytest.raises(UnreadableFile, match=r"^it lacks the column qty of the source, and has quantity"):
            opened(tmp_path, "a", b"".join(lines), made, now=now).next_piece(schema, Offset(), columns)
    for line in (b'{"id": 3, "QTY": 4}\n', b'{"qty": null}\n'):
        rows, last = opened(tmp_path, "b", b"".join([*lines, line]), made, now=now).next_piece(schema, Offset())
        assert last and rows.table.num_rows == 3
    with pytest.raises(UnreadableFile, match=r"^it lacks the columns id, qty of the source; correct"):
        opened(tmp_path, "c", b"{}\n{}\n", made, now=now).next_piece(schema, Offset())
    lenient = source(tmp_path, Json(), schema=schema)
    rows, _ = opened(tmp_path, "a", b"".join(lines), lenient, now=now).next_piece(schema, Offset())
    assert rows.table.num_rows == 2 and rows.missing == ("qty",)


def test_a_column_that_no_json_record_has_is_reported(tmp_path: Path) -> None:
    names = ["id", "qty", "größe", *(f"c{number}" for number in range(20))]
    schema = pa.schema([(name, pa.int64()) for name in names])
    made = source(tmp_path, Json(), schema=schema)
    content = b'{"id": 1, "c1": null}\n{"C2": null, "gr\\u00F6\\u00dfe": 1}\n{"id": "x", "c3": 1}\n'
    for wanted in (schema, pa.schema(list(schema)[:4])):
        rows, _ = opened(tmp_path, "a", content, made, now=now).next_piece(wanted, Offset())
        present = ("id", "c1", "c2", "größe")
        assert rows.missing == tuple(name for name in wanted.names if name not in present) and len(rows.bad) == 1
    rows, _ = opened(tmp_path, "a", content, made, now=now).next_piece(schema, Offset(1))
    assert rows.missing == (), "only the first records of a file show its fields"


def test_a_strict_source_has_the_columns_of_the_path(tmp_path: Path) -> None:
    made = source(tmp_path, Csv(), schema=pa.schema([("x", pa.int64()), ("Day", pa.int64())]))
    file = opened(tmp_path, "day=7/f", b"x,extra\n1,2\n", made, now=now)
    rows, last = file.next_piece(kept_schema(made, made.schema), Offset())
    assert last and rows.table.to_pylist() == [{"x": 1, "Day": 7}] and [each.name for each in rows.others] == ["extra"]


def test_a_file_that_its_source_cannot_have_shows_no_schema(tmp_path: Path) -> None:
    content = write_parquet(pa.table({"x": [1], "clock": pa.array([1], pa.time64("us"))}))
    assert opened(tmp_path, "f", content, source(tmp_path, Parquet())).infer_schema() == _X
    clock = write_parquet(pa.table({"clock": pa.array([1], pa.time64("us"))}))
    with pytest.raises(UnreadableFile, match=r"column clock: time64\[us\] has no form in Spark"):
        opened(tmp_path, "f", clock, source(tmp_path, Parquet())).infer_schema()
    keyed = source(tmp_path, Parquet(), key=Key("id"), metadata=("path", "row"))
    with pytest.raises(UnreadableFile, match="source s: key names the column id, which it does not have"):
        opened(tmp_path, "f", content, keyed).infer_schema()
    with pytest.raises(UnreadableFile, match="its files have a column _ROW"):
        content = write_parquet(pa.table({"_ROW": [1]}))
        opened(tmp_path, "f", content, source(tmp_path, Parquet(), metadata=("row",))).infer_schema()


def test_a_file_without_the_segment_has_the_column_or_null() -> None:
    schema = pa.schema([("x", pa.int64()), ("k", pa.int64())])
    assert FileColumns(source(), schema, version("f")).content == schema


@pytest.mark.parametrize(("schema", "others"), [(None, ["k"]), (_X, [])])
def test_a_segment_that_the_schema_does_not_have_is_left_out_and_told_if_it_was_not_declared(
    schema: pa.Schema | None, others: list[str]
) -> None:
    columns = FileColumns(source(schema=schema), _X, version("k=5/f"))
    assert [field.name for field in columns.complete(Rows(table(1), 0)).others] == others


def test_a_file_with_a_column_of_the_name_of_a_metadata_column_is_refused() -> None:
    made = source(metadata=("row",))
    columns = FileColumns(made, kept_schema(made, _X), version("f"))
    with pytest.raises(UnreadableFile, match="column _row is in the file and is a metadata column"):
        columns.complete(Rows(table(1), 0, others=(pa.field("_row", pa.null()),)))


def test_a_source_of_nothing_but_its_paths_cannot_be_read() -> None:
    with pytest.raises(UnreadableFile, match="its path has every column"):
        FileColumns(source(), pa.schema([("k", pa.int64())]), version("k=1/f"))


def test_only_columns_of_use_are_made_and_one_is_read_to_count_the_rows() -> None:
    made = source(metadata=("path", "row"))
    schema = kept_schema(made, pa.schema([("text", pa.string()), ("small", pa.int8())]))
    columns = FileColumns(made, schema, version("f"), {"_row"})
    assert columns.columns == frozenset({"small"})
    rows = columns.complete(Rows(pa.table({"small": pa.array([1, 2], pa.int8())}), 3))
    assert rows.table.to_pylist() == [{"_row": 3}, {"_row": 4}]


@pytest.mark.parametrize("format", [Json(), Csv(), Parquet(), Text()], ids=lambda format: format.name)
def test_every_format_gets_them_after_a_resume_too(format: Format, tmp_path: Path) -> None:
    contents = {
        "json": b'{"x":0}\n{"x":1}\n{"x":2}\n',
        "csv": b"x\n0\n1\n2\n",
        "parquet": write_parquet(table(0, 1, 2)),
        "text": b"0\n1\n2\n",
    }
    made = source(tmp_path, format, metadata=("row",))
    file = opened(tmp_path, "k=a/f", contents[format.name], made)
    schema = kept_schema(made, file.infer_schema(), ["k=a/f"])
    rows, last = file.next_piece(schema, Offset(1))
    assert last and [(str(each[schema.names[0]]), each["k"], each["_row"]) for each in rows.table.to_pylist()] == [
        ("1", "a", 1),
        ("2", "a", 2),
    ]


@pytest.mark.parametrize("format", [Json(), Csv(), Parquet(), Text()], ids=lambda format: format.name)
def test_a_file_of_any_format_that_takes_too_much_cpu_time_cannot_be_read(format: Format, tmp_path: Path) -> None:
    content = write_parquet(table(0)) if format.name == "parquet" else b'{"x":0}\n{"x":1}\n'
    made = source(tmp_path, format)
    file = opened(tmp_path, "f", content, made, ReadLimits(max_cpu_s_per_mib=1e-9))
    with pytest.raises(UnreadableFile, match=r"ReadLimits.max_cpu_s_per_mib"):
        file.next_piece(_X if format.name != "text" else pa.schema([("x", pa.string())]), Offset())


def test_new_columns_come_first_and_then_the_rows_that_have_them(tmp_path: Path) -> None:
    lines = [b'{"x":%d}\n' % n for n in range(3)] + [b'{"x":3,"y":1.5,"z":null}\n']
    file = opened(tmp_path, "f", b"".join(lines), source(tmp_path, schema_evolution="add_columns"))
    with pytest.raises(NewColumns) as caught:
        file.next_piece(_X, Offset(1))
    assert caught.value.columns == pa.schema([("y", pa.float64())])
    rows, last = file.next_piece(pa.schema([*_X, *caught.value.columns]), Offset(1))
    assert last and rows.table.to_pylist() == [{"x": 1, "y": None}, {"x": 2, "y": None}, {"x": 3, "y": 1.5}]
    assert rows.others == () and file.take_cost()[0] == 1


def test_what_cannot_be_added_is_left_out_and_told(tmp_path: Path) -> None:
    clock = pa.array([1], pa.time64("us"))
    content = write_parquet(pa.table({"x": pa.array([1], pa.int64()), "clock": clock}))
    file = opened(tmp_path, "f", content, source(tmp_path, Parquet(), schema_evolution="add_columns"))
    rows, last = file.next_piece(_X, Offset())
    assert last and [field.name for field in rows.others] == ["clock"]
