"""CSV files as spreadsheets, databases and other programs write them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.file_errors import UnreadableFile
from actors.formats.options import Csv, Text
from actors.formats.text import csv_values
from actors.formats.text.csv import CsvReader
from actors.formats.text.csv_records import CsvRecords
from actors.rows import Offset
from actors.schemas.merged_schema import DOUBTFUL_HEADER, with_headers
from actors.schemas.safe_types import safe_schema
from actors.settings import ReadLimits
from state.errors import SettingsError
from tests.actors.formats.written_files import bad_of, open_written, rows_of

_ID_T = pa.schema([("id", pa.int64()), ("t", pa.string())])
_BACKSLASH = "\\"


def _types(content: str, format: Csv, tmp_path: Path) -> list[str]:
    return [str(kind) for kind in CsvReader(format).infer_schema(open_written(tmp_path, content.encode())).types]


def _read(
    content: str | bytes, format: Csv, schema: pa.Schema, tmp_path: Path, **arguments: Any
) -> tuple[list[Mapping[str, Any]], list[tuple[int, bytes, str]]]:
    raw = content.encode() if isinstance(content, str) else content
    pieces = list(CsvReader(format).read(open_written(tmp_path, raw), schema, **arguments))
    return rows_of(pieces), [(bad.row, bad.raw, bad.reason) for bad in bad_of(pieces)]


def test_only_an_unquoted_empty_field_is_null(tmp_path: Path) -> None:
    content = 'id,t\n1,NA\n2,"NA"\n3,null\n4,""\n5,\n6,NaN\n'
    rows, bad = _read(content, Csv(), _ID_T, tmp_path)
    assert [row["t"] for row in rows] == ["NA", "NA", "null", "", None, "NaN"]
    assert bad == []
    rows, _ = _read(content, Csv(null_values=("NA", "NaN")), _ID_T, tmp_path)
    assert [row["t"] for row in rows] == [None, "NA", "null", "", "", None]


def test_a_quoted_empty_field_has_no_number(tmp_path: Path) -> None:
    """Spark, DuckDB and pyarrow agree: programs that quote every field write a missing number so."""
    content = 'id,t\n"1","x"\n"",""\n'
    assert _types(content, Csv(), tmp_path) == ["int64", "string"]
    rows, bad = _read(content, Csv(), _ID_T, tmp_path)
    assert (rows, bad) == ([{"id": 1, "t": "x"}, {"id": None, "t": ""}], [])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["01234", "99999"], "string"),
        (['"01234"', "9"], "string"),
        (["0", "-0", "10"], "int64"),
        (["007.5", "1.5"], "string"),
        (["0.5", "-0.25", ".5", "1."], "double"),
        (["0xFF"], "string"),
        (["0xFFFFFFFFFFFFFFFF"], "string"),
        (["9223372036854775807"], "int64"),
        (["9223372036854775808", "1"], "decimal128(20, 0)"),
        (["12345678901234567890"], "decimal128(20, 0)"),
        (["123456789012345678901"], "decimal128(38, 0)"),
        (["1" * 38], "decimal128(38, 0)"),
        (["1" * 39], "string"),
        (["12345678901234567890", "1.5"], "string"),
        (["9007199254740993", "1.5"], "double"),
        (["+1", "+49"], "string"),
        (["1e5", "2"], "double"),
        (["1E400", "2"], "string"),
        (["1_000"], "string"),
        (["infinity"], "string"),
        (["Nan", "Inf"], "string"),
        (["NaN"], "double"),
        (["1.5", "nan", "-inf"], "double"),
        ([" 1", "2 "], "int64"),
        (["1d"], "string"),
        (["true", "FALSE"], "bool"),
        (["t", "f"], "string"),
        (["1", "true"], "string"),
        (["2020-01-31"], "date32[day]"),
        (["2020-02-31"], "string"),
        (["2020-1-5"], "string"),
        (["20200105"], "int64"),
        (["12:30:00"], "string"),
        (["2020-01-01 10:00", "2020-01-01"], "timestamp[us]"),
        (["9999-12-31 23:59:59.999"], "timestamp[us]"),
        (["2020-01-01T00:00:00.1234567"], "timestamp[us]"),
        (["2020-01-01T00:00:00Z", "2020-01-01 00:00:00"], "timestamp[us, tz=UTC]"),
        (["2020-01-01 00:00:00+0530"], "timestamp[us, tz=UTC]"),
        (['""', ""], "null"),
    ],
)
def test_an_inferred_type_keeps_every_value(values: list[str], kind: str, tmp_path: Path) -> None:
    content = "v,w\n" + "".join(f"{value},x\n" for value in values)
    assert _types(content, Csv(), tmp_path) == [kind, "string"]


def test_integers_that_no_bigint_holds_are_exact(tmp_path: Path) -> None:
    content = "v\n12345678901234567890\n12345678901234567891\n"
    schema = safe_schema(CsvReader(Csv()).infer_schema(open_written(tmp_path, content.encode())))
    rows, _ = _read(content, Csv(), schema, tmp_path)
    assert [row["v"] for row in rows] == [Decimal("12345678901234567890"), Decimal("12345678901234567891")]


def test_hexadecimal_text_is_no_integer(tmp_path: Path) -> None:
    rows, bad = _read("id,t\n1,0xFF\n0xFFFFFFFFFFFFFFFF,a\n 0X1,b\n2,c\n", Csv(), _ID_T, tmp_path)
    assert [row["id"] for row in rows] == [1, 2]
    assert [(row, "hexadecimal text" in reason) for row, _, reason in bad] == [(1, True), (2, True)]


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [("2020-01-01 00:00:01.1234560", 123456), ("2020-01-01T00:00:01.123456000", 123456)],
)
@pytest.mark.parametrize("zone", ["", "Z", "+00:00"])
def test_zeros_below_microseconds_lose_nothing(text: str, microseconds: int, zone: str, tmp_path: Path) -> None:
    wanted = datetime(2020, 1, 1, 0, 0, 1, microseconds, tzinfo=UTC if zone else None)
    kind = pa.timestamp("us", "UTC" if zone else None)
    rows, bad = _read(f"id,at\n1,{text}{zone}\n", Csv(), pa.schema([("id", pa.int64()), ("at", kind)]), tmp_path)
    assert (rows, bad) == ([{"id": 1, "at": wanted}], [])


def test_files_of_sparks_writer_are_read_with_a_backslash(tmp_path: Path) -> None:
    lines = [
        r'1,"say \"hi\" now"',
        r"2,a\b",
        r'3,"a\\b,c"',
        r'4,"a\\\"b"',
        "5,x" + _BACKSLASH,
        r'6,"x,\\"',
        r'7,"a\nb,"',
        '8,"p' + _BACKSLASH + '"\nq"',
        '9,"a""b"',
    ]
    content = "id,t\n" + "\n".join(lines) + "\n"
    rows, bad = _read(content, Csv(escape=_BACKSLASH), _ID_T, tmp_path)
    assert [row["t"] for row in rows] == [
        'say "hi" now',
        r"a\b",
        r"a\b,c",
        r"a\"b",
        "x" + _BACKSLASH,
        "x," + _BACKSLASH,
        r"a\nb,",
        'p"\nq',
        'a"b',
    ]
    assert bad == []
    for offset in range(10):
        rows, _ = _read(content, Csv(escape=_BACKSLASH), _ID_T, tmp_path, offset=Offset(offset), piece_bytes=9)
        assert [row["id"] for row in rows] == [*range(offset + 1, 10)]


def test_without_the_option_an_escaped_quote_is_a_bad_record_that_names_it(tmp_path: Path) -> None:
    rows, bad = _read('id,t\n1,"say \\"hi\\" now"\n2,"x"\n', Csv(), _ID_T, tmp_path)
    assert rows == [{"id": 2, "t": "x"}]
    ((row, raw, reason),) = bad
    assert (row, raw) == (0, b'1,"say \\"hi\\" now"')
    assert r'declare Csv(escape="\\")' in reason


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("piece_bytes", [7, 40, 8_000_000])
@pytest.mark.parametrize(
    ("opening", "following"),
    [('1,"open', ["2,x"] * 11), ('1,"open', ['2,"x"'] * 11), ('1,"open', ["2,x", '3,"y, ""z"""']), ('1,"', ["2,x"])],
)
def test_an_unclosed_quote_is_a_bad_record_and_the_rows_behind_it_are_read(
    opening: str, following: list[str], piece_bytes: int, end: str, tmp_path: Path
) -> None:
    content = (end or "\n").join(["id,t", "0,good", opening, *following]) + end
    for offset in range(len(following) + 2):
        rows, bad = _read(content, Csv(), _ID_T, tmp_path, offset=Offset(offset), piece_bytes=piece_bytes)
        wanted = [0, None, *(int(line[0]) for line in following)]
        assert [row["id"] for row in rows] == [each for each in wanted[offset:] if each is not None]
        assert [(row, raw) for row, raw, _ in bad] == [(1, opening.encode())] * (offset <= 1)
        assert all("quoted field" in reason and "quote=None" in reason for _, _, reason in bad)


def test_a_quote_behind_a_closed_field_is_not_lost(tmp_path: Path) -> None:
    rows, bad = _read('id,t\n1,"a"b"\n2,c\n', Csv(), _ID_T, tmp_path)
    assert ([row["id"] for row in rows], [row for row, _, _ in bad]) == ([2], [0])


def test_preambles_comments_and_the_line_of_excel_are_left_out(tmp_path: Path) -> None:
    content = 'Report "of May\nmade by X\n# it\'s "so\nid,t\n1,a\n#2,"b\n3,#c\n'
    format = Csv(skip_rows=2, comment="#")
    for offset in range(3):
        for piece_bytes in (5, 8_000_000):
            rows, bad = _read(content, format, _ID_T, tmp_path, offset=Offset(offset), piece_bytes=piece_bytes)
            assert (rows, bad) == ([{"id": 1, "t": "a"}, {"id": 3, "t": "#c"}][offset:], [])
    assert _read("sep=;\r\nid;t\r\n1;a\r\n", Csv(delimiter=";"), _ID_T, tmp_path)[0] == [{"id": 1, "t": "a"}]
    with pytest.raises(UnreadableFile, match=r"declare Csv\(delimiter=';'\)"):
        _read("sep=;\r\nid;t\r\n1;a\r\n", Csv(), _ID_T, tmp_path)
    headless = Csv(header=False, skip_rows=1)
    assert _read("x\n1,a\n2,b\n", headless, _ID_T, tmp_path)[0] == [{"id": 1, "t": "a"}, {"id": 2, "t": "b"}]


def test_a_quote_in_a_comment_opens_no_field(tmp_path: Path) -> None:
    rows, bad = _read('id,t\n1,a\n#2,"b\n3,x"\n', Csv(comment="#"), _ID_T, tmp_path)
    assert (rows, bad) == ([{"id": 1, "t": "a"}, {"id": 3, "t": 'x"'}], [])


def test_without_a_quote_each_line_is_a_record(tmp_path: Path) -> None:
    rows, bad = _read('id\tt\n1\t5" pipe\n2\t"open\n', Csv(delimiter="\t", quote=None), _ID_T, tmp_path)
    assert ([row["t"] for row in rows], bad) == (['5" pipe', '"open'], [])


def test_numbers_and_times_of_other_countries(tmp_path: Path) -> None:
    content = 'n;d;at;ok\n1.234,50;27.12.2025;"1.2.2026 3:04:05";ja\n7;01.02.2026;;nein\n'
    format = Csv(
        delimiter=";",
        decimal=",",
        thousands=".",
        date_format="%d.%m.%Y",
        timestamp_format="%d.%m.%Y %H:%M:%S",
        true_values=("ja",),
        false_values=("nein",),
    )
    assert _types(content, format, tmp_path) == ["double", "date32[day]", "timestamp[us]", "bool"]
    schema = safe_schema(CsvReader(format).infer_schema(open_written(tmp_path, content.encode())))
    rows, bad = _read(content, format, schema, tmp_path)
    assert [tuple(row.values()) for row in rows] == [
        (1234.5, date(2025, 12, 27), datetime.fromisoformat("2026-02-01 03:04:05"), True),
        (7.0, date(2026, 2, 1), None, False),
    ]
    assert bad == []
    _, bad = _read("n;d;at;ok\n1.23,5;27.12.2025;;ja\n1;31.02.2025;;ja\n1;1.1.25;;ja\n", format, schema, tmp_path)
    assert [row for row, _, _ in bad] == [0, 1, 2]
    assert "'1.23,5' is not a number of the form 1.234,5" in bad[0][2]


def test_columns_without_a_name_of_their_own_get_one(tmp_path: Path) -> None:
    schema = CsvReader(Csv()).infer_schema(open_written(tmp_path, b",v,v,\n1,2,3,4\n"))
    assert schema.names == ["_c0", "v", "v_1", "_c3"]
    rows, _ = _read(",v,v,\n1,2,3,4\n", Csv(), schema, tmp_path)
    assert rows == [{"_c0": 1, "v": 2, "v_1": 3, "_c3": 4}]


@pytest.mark.parametrize("every_column", [False, True])
def test_a_first_line_that_is_no_header_refuses_the_file(every_column: bool, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="its first line is not a header of this source"):
        _read("1,a\n2,b\n", Csv(), _ID_T, tmp_path, every_column=every_column)
    with pytest.raises(UnreadableFile, match=r"contains ';': declare Csv\(delimiter=';'\)"):
        _read("id;t\n2;b\n", Csv(), _ID_T, tmp_path)


@pytest.mark.parametrize(
    ("content", "is_doubtful"),
    [
        ("id,n\n1,10\n", False),
        ("1,10\n2,20\n", True),
        ("1,alice\n2,bob\n", True),
        ("01,a\n9,b\n", True),
        ("a,b\nc,d\n", False),
    ],
)
def test_a_first_line_of_values_makes_the_columns_doubtful(content: str, is_doubtful: bool, tmp_path: Path) -> None:
    schema = CsvReader(Csv()).infer_schema(open_written(tmp_path, content.encode()))
    assert (DOUBTFUL_HEADER in (schema.metadata or {})) is is_doubtful


def test_a_row_as_first_line_shows_no_columns_beside_a_header(tmp_path: Path) -> None:
    contents = {"a": b"1,alice\n2,bob\n", "b": b"id,name\n1,carol\n", "c": b"ID,2020\n1,2\n"}
    shown = {path: CsvReader(Csv()).infer_schema(open_written(tmp_path, content)) for path, content in contents.items()}
    assert [*with_headers(shown)] == ["b", "c"]
    years = {path: CsvReader(Csv()).infer_schema(open_written(tmp_path, b"land,2019\nDE,5\n")) for path in "ab"}
    assert [*with_headers(years)] == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "hint"),
    [(b"id,t\n1,Espec\xedfica\n", 'declare Csv(encoding="...")'), (b"id,t\n1;x\n", "declare Csv(delimiter=';')")],
)
def test_the_reason_names_the_option_that_helps(content: bytes, hint: str, tmp_path: Path) -> None:
    _, ((_, _, reason),) = _read(content, Csv(), _ID_T, tmp_path)
    assert hint in reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": "||"}, r"Csv\(delimiter='\|\|'\): give exactly one character"),
        ({"delimiter": None}, "exactly one"),
        ({"delimiter": "é"}, "printable ASCII"),
        ({"delimiter": "\n"}, "printable ASCII"),
        ({"delimiter": '"'}, "two characters"),
        ({"quote": "''"}, "exactly one"),
        ({"escape": "\\", "quote": None}, "give a quote"),
        ({"comment": ","}, "two characters"),
        ({"header": "yes"}, "True or False"),
        ({"skip_rows": -1}, "0 or more"),
        ({"skip_rows": True}, "0 or more"),
        ({"null_values": "NA"}, "give a tuple of texts"),
        ({"null_values": (1,)}, "give a tuple of texts"),
        ({"true_values": ("y",)}, "give both"),
        ({"true_values": ("y",), "false_values": ("y",)}, "'y' is in both: remove it from one"),
        ({"decimal": ",", "thousands": ","}, "two characters"),
        ({"decimal": "5"}, "not part of a number"),
        ({"decimal": ",", "quote": None}, "need a quote"),
        ({"date_format": "dd.MM.yyyy"}, "%d.%m.%Y"),
        ({"date_format": "%d.%m"}, "%Y or %y once"),
        ({"date_format": "%d.%m.%Y %H"}, "timestamp_format"),
        ({"timestamp_format": "%Y-%m-%d"}, "an hour"),
        ({"timestamp_format": "%Y-%m-%d %Q"}, "%Q is not supported"),
        ({"encoding": "nope"}, "no such encoding"),
        ({"encoding": "hex"}, "no such encoding"),
    ],
)
def test_options_are_checked_at_the_declaration(options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Csv(**options)


def test_the_encoding_of_text_is_checked_at_the_declaration() -> None:
    with pytest.raises(SettingsError, match="no such encoding"):
        Text(encoding="nope")


def test_a_source_of_the_old_rules_reads_as_before(tmp_path: Path) -> None:
    old = CsvReader(Csv(null_values=("", "NA")), names="exact")
    pieces = list(old.read(open_written(tmp_path, b'id,t\n1,"NA"\n0x10,"a"b"\n2,"open\n3,x\n'), _ID_T))
    assert rows_of(pieces) == [{"id": 1, "t": None}, {"id": 16, "t": 'ab"'}, {"id": 2, "t": "open\n3,x\n"}]


def test_the_search_for_bad_records_ends_with_the_time_of_the_file(tmp_path: Path) -> None:
    columns = 300
    schema = pa.schema([(f"c{number}", pa.int64()) for number in range(columns)])
    lines = [",".join(schema.names), *(["x" + ",1" * (columns - 1)] * 200)]
    limits = ReadLimits(max_cpu_s_per_mib=1e-3)
    with pytest.raises(UnreadableFile, match="max_cpu_s_per_mib"):
        list(CsvReader(Csv(), limits).read(open_written(tmp_path, "\n".join(lines).encode()), schema))


def test_the_text_behind_an_open_quote_is_read_in_blocks(tmp_path: Path) -> None:
    content = 'id,t\n1,"open\n' + "".join(f"{number},x\n" for number in range(2, 5_000))
    pieces = list(CsvReader(Csv()).read(open_written(tmp_path, content.encode()), _ID_T, piece_bytes=1_000))
    assert [row["id"] for row in rows_of(pieces)] == [*range(2, 5_000)]
    assert [bad.row for bad in bad_of(pieces)] == [0]
    assert max(piece.nbytes for piece in pieces) < 20_000


def test_a_field_longer_than_the_limit_of_a_record_is_not_closed(tmp_path: Path) -> None:
    content = 'id,t\n1,"open\n' + "2,x\n" * 100 + '3,"\n'
    limits = ReadLimits(max_record_bytes=200)
    for piece_bytes in (50, 8_000_000):
        pieces = list(
            CsvReader(Csv(), limits).read(open_written(tmp_path, content.encode()), _ID_T, Offset(), piece_bytes)
        )
        assert [row["id"] for row in rows_of(pieces)] == [2] * 100
        assert [bad.row for bad in bad_of(pieces)] == [0, 101]


_BAD_LINES = [
    ("b", pa.int64(), ["x", "1.5", "9223372036854775808", "-1" + "0" * 500, "0x", "1 2", "", "٣"]),
    ("b", pa.int32(), ["2147483648", "-2147483649", "007", " 5 "]),
    ("b", pa.float64(), ["n/a", "1,5", "12 km", "--", "1e", "nano", "Infinity", "-inf"]),
    ("b", pa.decimal128(5, 2), ["n/a", "1e9", "12.5", "1234567"]),
    ("b", pa.bool_(), ["yes", "TRUE", "tRue", "2"]),
    ("b", pa.date32(), ["n/a", "2025-02-30", "27.12.2025"]),
    ("b", pa.timestamp("us"), ["soon", "2025-12-27 25:00:00", "2025-12-27"]),
    ("b", pa.timestamp("us", "UTC"), ["soon", "2025-12-27 25:00:00", "2025-12-27T10:00:00Z"]),
    ("b", pa.string(), ["f\udcfc", '"x"y"z', '"open', "fine"]),
    ("c", pa.int64(), ["too,many", "x"]),
]


@pytest.mark.parametrize(("column", "kind", "values"), _BAD_LINES, ids=lambda each: str(each)[:20])
def test_the_reasons_of_many_bad_lines_are_those_of_single_lines(
    column: str, kind: pa.DataType, values: list[str], tmp_path: Path
) -> None:
    lines = [f"{number},{value}\n".encode("utf-8", "surrogateescape") for number, value in enumerate(values)]
    schema = pa.schema([("a", pa.int64()), (column, kind)])
    header = f"a,{column}\n".encode()
    together = _read(header + b"".join(lines), Csv(), schema, tmp_path)
    alone = [_read(header + line, Csv(), schema, tmp_path) for line in lines]
    assert together[0] == [row for rows, _ in alone for row in rows]
    reasons = [bad[0][2] for _, bad in alone if bad]
    assert [reason for _, _, reason in together[1]] == reasons and reasons


@pytest.mark.parametrize("good_lines", [0, 2])
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int64(), "x"),
        (pa.int64(), "99999999999999999999"),
        (pa.int64(), "1,2,3"),
        (pa.float64(), "n/a"),
        (pa.timestamp("us", "UTC"), "n/a"),
        (pa.string(), "f\udcfc"),
        (pa.string(), '"x"y"z'),
    ],
)
def test_the_cost_of_bad_lines_does_not_depend_on_their_number(
    kind: pa.DataType, value: str, good_lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parses, windows = [0], [0]
    parse, window = csv_values.read_text, CsvRecords._window

    def counted(*given: Any) -> pa.Table:
        parses[0] += 1
        return parse(*given)

    def counted_window(self: CsvRecords, *given: Any, **options: Any) -> Any:
        windows[0] += 1
        return window(self, *given, **options)

    monkeypatch.setattr(csv_values, "read_text", counted)
    monkeypatch.setattr(CsvRecords, "_window", counted_window)
    lines = [f"{number},{value}\n" + f"{number},\n" * good_lines for number in range(2_000)]
    content = ("a,b\n" + "".join(lines)).encode("utf-8", "surrogateescape")
    rows, bad = _read(content, Csv(), pa.schema([("a", pa.int64()), ("b", kind)]), tmp_path)
    assert (len(rows), len(bad)) == (2_000 * good_lines, 2_000)
    assert parses[0] <= 20 and windows[0] <= 100
    with pytest.raises(UnreadableFile, match=r"row [13]\d{3}: more than 1000 of its records are bad"):
        reader = CsvReader(Csv(), ReadLimits(max_bad_records=1_000))
        list(reader.read(open_written(tmp_path, content), pa.schema([("a", pa.int64()), ("b", kind)])))


def test_each_line_of_a_wide_file_is_counted_at_most_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block of fewer lines than `max_batch_bytes` allows needs no search for its records."""
    monkeypatch.setattr(CsvRecords, "ends", lambda *_: pytest.fail("searched"))
    names = [f"c{number}" for number in range(200)]
    content = ",".join(names) + "\n" + (",".join("1" * 200) + "\n") * 50
    limits = ReadLimits(max_batch_bytes=100 * 8 * 200)
    schema = pa.schema([(name, pa.int64()) for name in names])
    pieces = list(CsvReader(Csv(), limits).read(open_written(tmp_path, content.encode()), schema))
    assert sum(piece.num_rows for piece in pieces) == 50


@pytest.mark.parametrize("content", ["a,b\n1,2,\n3,4,\n", "a,b\n1\n", "a\n,\n"])
def test_a_file_whose_records_have_other_numbers_of_fields_shows_no_schema(content: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"^CSV parse error: Expected \d columns, got \d"):
        _types(content, Csv(), tmp_path)
    for good in ("a,b\n", "a,b\n\n", "a,b\n,\n", "a,b\n1,2,\n,\n"):
        assert _types(good, Csv(), tmp_path) == ["null", "null"]


def test_a_delimiter_that_only_the_rows_have_is_named(tmp_path: Path) -> None:
    rows, bad = _read("id,t\n1,x,\n2,y\n3,z,z\n", Csv(), _ID_T, tmp_path)
    assert rows == [{"id": 2, "t": "y"}]
    assert ["the line ends with a delimiter" in reason for _, _, reason in bad] == [True, False]


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"id,gr\xf6\xdfe", r'not UTF-8 at byte 5; .* Csv\(encoding="..."\)'),
        (b"id,x\0y", "control characters: it is not CSV"),
        (b"\x9c\x02K\x01", "control characters: it is not CSV"),
    ],
)
def test_bytes_that_are_not_text_name_no_column(header: bytes, reason: str, tmp_path: Path) -> None:
    file = open_written(tmp_path, header + b"\n1,2\n")
    with pytest.raises(UnreadableFile, match=f"its first line (is|has) {reason}"):
        CsvReader(Csv()).infer_schema(file)
    with pytest.raises(UnreadableFile, match=f"its first line (is|has) {reason}"):
        list(CsvReader(Csv()).read(file, _ID_T))
    rows, bad = _read(header + b"\n", Csv(header=False), _ID_T, tmp_path)
    assert len(rows) + len(bad) == 1, "the bytes are a record"


def test_a_control_character_is_a_delimiter_as_hive_writes_it(tmp_path: Path) -> None:
    assert _read("id\x01t\n1\x01x,y\n", Csv(delimiter="\x01"), _ID_T, tmp_path) == ([{"id": 1, "t": "x,y"}], [])
    for delimiter in ("\0", "\n", "\r", "\x7f", "é"):
        with pytest.raises(SettingsError, match="delimiter"):
            Csv(delimiter=delimiter)


@pytest.mark.parametrize("thousands", ["\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}", "’", " ", "."])
def test_the_separators_of_spreadsheets_are_thousands(thousands: str, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("t", pa.float64())])
    format = Csv(delimiter=";", decimal=",", thousands=thousands)
    content = f"id;t\n1{thousands}234;-1{thousands}234{thousands}567,5\n"
    assert _read(content, format, schema, tmp_path) == ([{"id": 1234, "t": -1234567.5}], [])
    assert _types(content, format, tmp_path) == ["int64", "double"]
