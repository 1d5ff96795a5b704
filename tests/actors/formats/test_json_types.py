"""Values of JSON in the types of their source, exact, and the types that are inferred."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

import slackwater as sw
from actors.file_errors import UnreadableFile
from actors.formats.options import Json
from actors.formats.text import json_text
from actors.formats.text.json import JsonReader
from actors.settings import ReadLimits
from actors.sources.source import SourceDefinition
from state.errors import SchemaError, SettingsError
from tests.actors.formats.written_files import bad_of, open_written, rows_of


def _inferred(directory: Path, content: bytes, **options: Any) -> dict[str, str]:
    schema = JsonReader(**options).infer_schema(open_written(directory, content))
    return {field.name: str(field.type) for field in schema}


def _read(directory: Path, content: bytes, *fields: tuple[str, pa.DataType], **options: Any) -> list[Any]:
    pieces = list(JsonReader(**options).read(open_written(directory, content), pa.schema(fields)))
    assert [each.reason for each in bad_of(pieces)] == []
    return rows_of(pieces)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["9223372036854775807", "-9223372036854775808"], "int64"),
        (["1", "9223372036854775808"], "decimal128(20, 0)"),
        (["12345678901234567890", "12345678901234567891"], "decimal128(20, 0)"),
        (["-9223372036854775809"], "decimal128(20, 0)"),
        (["123456789012345678901"], "decimal128(38, 0)"),
        (["1" * 39], "string"),
        (["1" * 5000], "string"),
        (["1", "1.5"], "double"),
        (["9007199254740993", "1.5"], "string"),
        (["100000000000000000000", "1.5"], "double"),
        (["[1, 18446744073709551615]"], "list<item: decimal128(20, 0)>"),
        (['{"x": 18446744073709551615}'], "struct<x: decimal128(20, 0)>"),
        (["1", '"x"'], "string"),
        (["true", "1"], "string"),
        (["1", '{"x": 1}'], "string"),
        (["[1]", '{"x": 1}', "null"], "string"),
        (["[1, {}]"], "list<item: string>"),
        (["null"], "null"),
        (["{}"], "null"),
        (["{}", '{"x": null}'], "struct<x: null>"),
        (["[]"], "list<item: null>"),
        (["[{}]"], "list<item: null>"),
        (['"2026-01-02T03:04:05"'], "timestamp[us]"),
        (['"2026-01-02T03:04:05Z"'], "timestamp[us, tz=UTC]"),
        (['"2026-01-02 03:04:05.123+01:00"', "null"], "timestamp[us, tz=UTC]"),
        (['"2026-01-02T03:04:05Z"', '"2026-01-02T03:04:05"'], "timestamp[us, tz=UTC]"),
        (['"2026-01-02T03:04:05.1234560Z"'], "timestamp[us, tz=UTC]"),
        (['"2026-01-02T03:04:05.1234567Z"'], "string"),
        (['"2026-13-02T03:04:05Z"'], "string"),
        (['"2026-01-02T03:04:05Z"', '"soon"'], "string"),
        (['"2026"'], "string"),
    ],
)
def test_a_column_gets_a_type_that_loses_nothing(values: list[str], kind: str, tmp_path: Path) -> None:
    content = "\n".join(f'{{"v": {value}}}' for value in values).encode()
    assert _inferred(tmp_path, content) == {"v": kind}
    if "null" not in kind:
        field = JsonReader().infer_schema(open_written(tmp_path, content)).field("v")
        rows = _read(tmp_path, content, ("v", field.type))
        if kind == "string":
            assert [row["v"] for row in rows] == [
                None if value == "null" else json.loads(value) if value[0] == '"' else value for value in values
            ]


def test_fields_of_several_kinds_are_reported(tmp_path: Path) -> None:
    with capture_logs() as logs:
        _inferred(tmp_path, b'{"a":1,"b":{"x":1},"c":1}\n{"a":"x","b":{"x":[]},"c":1.5}')
    assert [(each["log_level"], each["path"], each["columns"]) for each in logs] == [("warning", "file", "a, b")]


def test_large_integers_are_exact_at_any_depth(tmp_path: Path) -> None:
    content = (
        b'{"v":12345678901234567890,"l":[12345678901234567891],"s":{"x":-12345678901234567892},'
        b'"m":{"k":12345678901234567893}}'
    )
    kind = pa.decimal128(20, 0)
    fields = [("v", kind), ("l", pa.list_(kind)), ("s", pa.struct([("x", kind)])), ("m", pa.map_(pa.string(), kind))]
    assert _read(tmp_path, content, *fields) == [
        {
            "v": Decimal(12345678901234567890),
            "l": [Decimal(12345678901234567891)],
            "s": {"x": Decimal(-12345678901234567892)},
            "m": [("k", Decimal(12345678901234567893))],
        }
    ]


def test_a_large_integer_in_a_bigint_column_is_a_bad_record_with_the_type_that_helps(tmp_path: Path) -> None:
    content = b'{"v":1}\n{"v":12345678901234567890}\n{"v":2}'
    pieces = list(JsonReader().read(open_written(tmp_path, content), pa.schema([("v", pa.int64())])))
    assert [row["v"] for row in rows_of(pieces)] == [1, 2]
    assert "declare the column as decimal(20, 0)" in bad_of(pieces)[0].reason


_VALUES = ["1.50", "-0", "1e3", "true", '{"x": [1,  "}"]}', "[ 1, null ]", '"te\\u0078t"', "null", '""', '"\\"{"', "{}"]


@pytest.mark.parametrize("indent", [False, True])
def test_any_value_of_a_string_column_is_its_json_text(indent: bool, tmp_path: Path) -> None:
    lines = [f'{{"id": {number}, "v" : {value} }}' for number, value in enumerate(_VALUES)]
    content = "\n".join(line.replace(", ", ",\n  ", 1) if indent else line for line in lines).encode()
    expected = [None if v == "null" else json.loads(v) if v[0] == '"' else v for v in _VALUES]
    rows = _read(tmp_path, content, ("id", pa.int64()), ("v", pa.string()))
    assert [row["v"] for row in rows] == expected
    assert [row["id"] for row in rows] == [*range(len(_VALUES))]
    nested = "\n".join(f'{{"s":{{"l":[{{"v":{value}}},null]}}}}' for value in _VALUES).encode()
    element = pa.struct([("v", pa.string())])
    rows = _read(tmp_path, nested, ("s", pa.struct([("l", pa.list_(element))])))
    assert [row["s"]["l"][0]["v"] for row in rows] == expected
    assert {row["s"]["l"][1] for row in rows} == {None}


def test_maps_have_the_names_as_keys(tmp_path: Path) -> None:
    content = (
        b'{"m":{"a":1,"b c":null,"\\u00e9":3}}\n{"m":{}}\nnull\n{"m":null}\n'
        b'{"x":{"m":{"no":1}}}\n{"m" : { "z" : 4 } }\n'
    )
    rows = _read(tmp_path, content, ("m", pa.map_(pa.string(), pa.int64())))
    assert [row["m"] for row in rows] == [[("a", 1), ("b c", None), ("é", 3)], [], None, None, None, [("z", 4)]]


def test_maps_within_lists_structs_and_maps(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.map_(pa.string(), pa.string()))
    content = b'{"l":[{"a":{"b":1}},null,{}],"s":{"m":{"k":{"q":{"any":[]}}}}}\n{"l":[],"s":null}\n{"l":null}'
    rows = _read(tmp_path, content, ("l", pa.list_(kind)), ("s", pa.struct([("m", kind)])))
    assert [row["l"] for row in rows] == [[[("a", [("b", "1")])], None, []], [], None]
    assert rows[0]["s"] == {"m": [("k", [("q", '{"any":[]}')])]}
    assert rows[1]["s"] is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('{"k":1,"k":2}', "column m: the key 'k' appears twice"),
        ("5", "column m: an object is expected, not 5; declare the column as a string"),
        ("[1]", "column m: an object is expected"),
        ('{"k":"x"}', "column m: JSON parse error: Column"),
        ('{"k":1},"m":{}', "column m was specified twice"),
    ],
)
def test_a_map_that_is_none_is_a_bad_record(value: str, reason: str, tmp_path: Path) -> None:
    content = f'{{"m":{{"a":1}}}}\n{{"m":{value}}}\n{{"m":{{"a":3}}}}'.encode()
    schema = pa.schema([("m", pa.map_(pa.string(), pa.int64()))])
    pieces = list(JsonReader().read(open_written(tmp_path, content), schema))
    assert [row["m"] for row in rows_of(pieces)] == [[("a", 1)], [("a", 3)]]
    assert [each.row for each in bad_of(pieces)] == [1] and bad_of(pieces)[0].reason.startswith(reason)


def test_names_with_escapes_are_the_same_names(tmp_path: Path) -> None:
    content = b'{"\\u006d":{"k":1}}\n{"x\\"m":{"k":2}}\n{"m":{"k":3}}'
    rows = _read(tmp_path, content, ("m", pa.map_(pa.string(), pa.int64())))
    assert [row["m"] for row in rows] == [[("k", 1)], None, [("k", 3)]]


@pytest.mark.parametrize("layout", ["{}\n{}", "[{},\n{}]", "{}{}"])
def test_a_raw_column_has_the_text_of_the_record(layout: str, tmp_path: Path) -> None:
    first, second = '{"a": 1.0,\n "b": {"any": [1, "x"]}}', '{ "z":2 }'
    content = layout.replace("{}", "%s") % (first, second)
    fields = [("a", pa.float64()), ("record", pa.string())]
    rows = _read(tmp_path, content.encode(), *fields, format=Json(raw="record"))
    assert rows == [{"a": 1.0, "record": first}, {"a": None, "record": second}]
    rows = _read(tmp_path, content.encode(), fields[1], format=Json(raw="record"))
    assert rows == [{"record": first}, {"record": second}]
    kinds = _inferred(tmp_path, content.encode(), format=Json(raw="record"))
    assert kinds == {"a": "double", "b": "struct<any: list<item: string>>", "z": "int64", "record": "string"}


def test_a_raw_column_of_another_type_is_refused(tmp_path: Path) -> None:
    file, schema = open_written(tmp_path, b'{"a":1}'), pa.schema([("r", pa.int64())])
    with pytest.raises(SchemaError, match=r"column r: .* declare it as a string"):
        list(JsonReader(format=Json(raw="r")).read(file, schema))


def test_a_raw_column_is_checked_when_the_source_is_declared(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="give the name of a column"):
        Json(raw=" ")
    pipeline = sw.Pipeline("p", tmp_path / "root")
    with pytest.raises(SettingsError, match="the schema lacks the column record"):
        pipeline.source("s", tmp_path, format=Json(raw="record"), schema="a bigint")
    pipeline.source("s", tmp_path, format=Json(raw="record"), schema="record string")
    recorded = SourceDefinition.of_json("s", pipeline.sources["s"].to_json())
    assert recorded.format == Json(raw="record")


def test_digits_below_microseconds_that_are_zero_are_exact(tmp_path: Path) -> None:
    content = (
        b'{"t":"2026-01-02T03:04:05.1234560Z","l":["2026-01-02T03:04:05.123456000"],"s":"1:02:03.1234560"}\n{"t":null}'
    )
    fields = [("t", pa.timestamp("us", "UTC")), ("l", pa.list_(pa.timestamp("us"))), ("s", pa.string())]
    first, _ = _read(tmp_path, content, *fields)
    assert first["t"] == datetime(2026, 1, 2, 3, 4, 5, 123456, UTC)
    assert first["l"] == [datetime.fromisoformat("2026-01-02T03:04:05.123456")]
    assert first["s"] == "1:02:03.1234560"
    bad = list(JsonReader().read(open_written(tmp_path, content.replace(b"560Z", b"561Z")), pa.schema(fields)))
    assert [each.row for each in bad_of(bad)] == [0] and 'timestamps="truncate"' in bad_of(bad)[0].reason


def test_names_match_in_any_case_if_the_file_has_no_exact_one(tmp_path: Path) -> None:
    fields = [("UserId", pa.int64()), ("n", pa.int64())]
    assert _read(tmp_path, b'{"userid":1,"n":2}', *fields) == [{"UserId": 1, "n": 2}]
    assert _read(tmp_path, b'{"userid":1}', *fields, names="exact") == [{"UserId": None, "n": None}]
    rows = _read(tmp_path, b'{"UserId":1,"userid":5}\n{"userid":2}\n{"UserId":null}', *fields)
    assert [row["UserId"] for row in rows] == [1, 2, None]
    with pytest.raises(UnreadableFile, match="match column UserId of the source"):
        _read(tmp_path, b'{"userid":1}\n{"USERID":2}', *fields)


def test_fields_that_differ_by_case_are_two_columns_in_both_orders(tmp_path: Path) -> None:
    schema = JsonReader().infer_schema(open_written(tmp_path, b'{"id":1,"Id":2}'))
    assert schema.names == ["id", "Id_1"]
    assert _read(tmp_path, b'{"Id":2,"id":1}', *zip(schema.names, schema.types, strict=True)) == [{"id": 1, "Id_1": 2}]


def test_columns_of_null_are_read_as_null(tmp_path: Path) -> None:
    assert _read(tmp_path, b'{"a":1,"b":{"x":1}}', ("a", pa.int64()), ("b", pa.null())) == [{"a": 1, "b": None}]


def test_not_a_number_is_a_double_alone(tmp_path: Path) -> None:
    content = b'{"v":NaN}\n{"v":-Infinity}'
    assert _inferred(tmp_path, content) == {"v": "double"}
    first, second = _read(tmp_path, content, ("v", pa.float64()))
    assert str(first["v"]) == "nan" and second["v"] == float("-inf")
    pieces = list(JsonReader().read(open_written(tmp_path, content + b"\n{}"), pa.schema([("v", pa.int64())])))
    assert [each.row for each in bad_of(pieces)] == [0, 1]


def test_the_search_for_bad_records_parses_each_a_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [b'{"a":"x"}' if number % 10 == 3 else b'{"a":%d}' % number for number in range(2_000)]
    parses, parsed = [], json_text.parsed

    def counted(*given: Any) -> pa.Table:
        parses.append(len(given[0]))
        return parsed(*given)

    monkeypatch.setattr("actors.formats.text.json_values.parsed", counted)
    pieces = list(JsonReader().read(open_written(tmp_path, b"\n".join(lines)), pa.schema([("a", pa.int64())])))
    assert len(bad_of(pieces)) == 200
    assert len(parses) <= 4 * 200


def test_the_search_for_bad_records_ends_with_the_cpu_time_of_the_file(tmp_path: Path) -> None:
    names = [f"column{number}" for number in range(3_000)]
    lines = [json.dumps(dict.fromkeys(names[number : number + 3], "x")) for number in range(2_000)]
    schema = pa.schema([(name, pa.int64()) for name in names])
    limits = ReadLimits(max_cpu_s_per_mib=0.3)
    with pytest.raises(UnreadableFile, match="max_cpu_s_per_mib"):
        list(JsonReader(limits).read(open_written(tmp_path, "\n".join(["{}", *lines]).encode()), schema))


@pytest.mark.parametrize("columns", [20, 400])
def test_many_columns_of_several_kinds_take_a_few_parses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    parses, parsed = [], json_text.parsed

    def counted(*given: Any) -> pa.Table:
        parses.append(len(given[0]))
        return parsed(*given)

    monkeypatch.setattr("actors.formats.text.json_values.parsed", counted)
    names = [f"c{number}" for number in range(columns)]
    content = "{" + ", ".join(f'"{name}" : [{number}]' for number, name in enumerate(names)) + "}\n"
    # A name may be spelled with an escape, or end with another name.
    content += '{"\\u00630": 1, "x\\"c1": 2, "c2": "t"}\n'
    first, second = _read(tmp_path, content.encode(), *((name, pa.string()) for name in names))
    assert first == {name: f"[{number}]" for number, name in enumerate(names)}
    assert second == dict.fromkeys(names) | {"c0": "1", "c2": "t"}
    assert len(parses) <= 20


def test_fields_of_structs_match_in_any_case(tmp_path: Path) -> None:
    inner = pa.struct([("x", pa.int64()), ("Y", pa.string())])
    kinds = [("a", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner)), ("d", pa.struct([("e", inner)]))]
    value = '{"X": 1, "y": "z"}'
    lines = ["null", f'{{"a": {value}, "L": [{value}, null], "m": {{"k": {value}, "n": null}}, "d": {{"E": {value}}}}}']
    rows = _read(tmp_path, "\n".join([*lines, '{"l": [], "a": null}']).encode(), *kinds)
    struct = {"x": 1, "Y": "z"}
    found = {"a": struct, "l": [struct, None], "m": [("k", struct), ("n", None)], "d": {"e": struct}}
    assert rows == [dict.fromkeys("almd"), found, dict.fromkeys("almd") | {"l": []}]


def test_a_field_of_a_struct_that_is_spelled_as_declared_counts_first(tmp_path: Path) -> None:
    content = b'{"a": {"b": 1, "B": 2}}\n{"a": {"B": 3}}\n'
    assert _read(tmp_path, content, ("a", pa.struct([("b", pa.int64())]))) == [{"a": {"b": 1}}, {"a": {"b": 3}}]
    content = b'{"a": {"Bc": 1}}\n{"a": {"bC": 2}}\n'
    schema = JsonReader().infer_schema(open_written(tmp_path, content))
    assert _read(tmp_path, content, *((field.name, field.type) for field in schema)) == [
        {"a": {"Bc": 1, "bC_1": None}},
        {"a": {"Bc": None, "bC_1": 2}},
    ]
    with pytest.raises(UnreadableFile, match="the columns Bc, bC of the file match column bc of the source"):
        _read(tmp_path, content, ("a", pa.struct([("bc", pa.int64())])))


@pytest.mark.parametrize("name", ['"\\ud800"', '"x": 1, "\\udC00"', '"x": {"\\ud83d"', '"x": [{"a\\ude00"'])
def test_half_of_a_surrogate_pair_in_a_name_is_a_bad_record(tmp_path: Path, name: str) -> None:
    closing = "".join({"{": "}", "[": "]"}[sign] for sign in reversed(name) if sign in "[{")
    content = f'{{{name}: 1{closing}}}\n{{"x": "\\ud83d\\ude00"}}\n'.encode()
    file = open_written(tmp_path, content)
    schema = JsonReader().infer_schema(file)
    assert schema == pa.schema([("x", pa.string())])
    pieces = list(JsonReader().read(file, schema))
    assert rows_of(pieces) == [{"x": "\U0001f600"}]
    assert [bad.reason for bad in bad_of(pieces)] == ["JSON parse error: The surrogate pair in string is invalid"]
