"""A row without a value in the key of its source is a bad record, at its place in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.file_errors import UnreadableFile
from actors.files import FileVersion
from actors.formats.options import Json
from actors.formats.registry import reader_for
from actors.objects.object_store import ObjectStore
from actors.reading.open_file import OpenFile
from actors.reading.required_values import with_values
from actors.rows import BadRecord, Offset, Rows
from actors.settings import ReadLimits
from actors.sources.row_key import METADATA, Key
from actors.sources.source import FilePolicy, SourceDefinition
from actors.sources.source_schema import kept_schema
from state.errors import SchemaError, SettingsError
from state.location import Location
from tests.actors.flow import AT

_SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.int64()), ("x", pa.int64())])
_KEY = Key("id", order_by="at")
_NEEDS = dict.fromkeys(_KEY.required, "key")


def _source(directory: Path = Path("/in"), **options: Any) -> SourceDefinition:
    made: dict[str, Any] = {"format": Json(), "metadata": METADATA, "key": _KEY, **options}
    return SourceDefinition(name="s", location=Location(str(directory)), **made)


def test_rows_that_lack_a_value_are_bad_records_between_the_others() -> None:
    table = pa.table({"id": [1, None, 3, 4], "at": [1, 2, None, 4], "x": pa.array([None] * 4, pa.int64())})
    rows = with_values(Rows(table, 10, (BadRecord(12, b"", "it was bad before"),)), _NEEDS)
    assert rows.table.to_pylist() == [{"id": 1, "at": 1, "x": None}, {"id": 4, "at": 4, "x": None}]
    assert [each.row for each in rows.bad] == [11, 12, 13]
    assert rows.bad[0].reason == "column id is null, and the key of the source needs it"
    assert json.loads(rows.bad[2].raw) == {"id": 3, "at": None, "x": None}
    assert (rows.first_row, rows.end_row) == (10, 15)


def test_a_column_that_is_not_read_is_not_looked_at() -> None:
    rows = Rows(pa.table({"x": [1, None]}), 0)
    assert with_values(rows, _NEEDS) is rows


@pytest.mark.parametrize("most", [2, 3])
def test_more_of_them_than_allowed_end_the_file(tmp_path: Path, most: int) -> None:
    lines = [{"id": None if number % 2 else number, "at": 0} for number in range(6)]
    content = "\n".join(map(json.dumps, lines)).encode()
    (tmp_path / "f").write_bytes(content)
    made, limits = _source(tmp_path), ReadLimits(max_bad_records=most)
    listed = FileVersion("s", "f", b"", "", len(content), AT)
    file = OpenFile(
        ObjectStore(made.location).open(listed), listed, made, reader_for(made.format, limits), 8 << 20, limits
    )
    if most == 2:
        with pytest.raises(UnreadableFile, match=r"row 6: more than 2 of its records are bad .*column id is null"):
            file.next_piece(kept_schema(made, _SCHEMA), Offset())
        return
    piece, is_last = file.next_piece(kept_schema(made, _SCHEMA), Offset())
    assert is_last and piece.table["id"].to_pylist() == [0, 2, 4] and piece.table["_row"].to_pylist() == [0, 2, 4]
    assert [each.row for each in piece.bad] == [1, 3, 5]


def test_the_columns_of_a_key_are_columns_of_the_source() -> None:
    with pytest.raises(
        SchemaError, match=r"source s: Key\(order_by\) names the column at, which it does not have; it has id"
    ):
        kept_schema(_source(), pa.schema([("id", pa.int64())]))
    assert kept_schema(_source(), _SCHEMA).names == ["id", "at", "x", "_path", "_row"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ()}, "name at least one column"),
        ({"columns": "id", "order_by": ["at", "ID"]}, "name the column id twice"),
        ({"columns": ["id", 5]}, "name columns of the source"),
        ({"columns": 5}, "name columns of the source"),
        ({"columns": "id", "order_by": [""]}, r"Key\(order_by=\('',\)\): name columns of the source"),
        ({"columns": "id", "deleted": "  "}, r"Key\(deleted='  '\): write an SQL condition"),
    ],
)
def test_a_key_that_cannot_be_one_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Key(**options)


def test_a_file_must_not_have_its_rows_twice() -> None:
    with pytest.raises(SettingsError, match=r'declare the source with on_change="replace"'):
        _source(policy=FilePolicy(on_change="append"))


def test_the_definition_survives_the_catalog() -> None:
    key = Key(("a", "b"), order_by="at", deleted="op = 'D'")
    made = _source(key=key)
    assert SourceDefinition.of_json("s", made.to_json()).key == key
    assert "key" not in _source(key=None).to_json()
