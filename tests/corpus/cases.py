"""The table of cases: a small file of our own for every kind and every option, and what Slackwater makes of it."""

# ruff: noqa: E501  (a reason is compared as a whole, in one line)

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from actors.formats.options import Avro, Csv, Debezium, Json, Orc, Parquet, Text
from tests.actors.formats.foreign_parquet import write_encrypted
from tests.actors.formats.written_files import write_avro, write_orc, write_parquet
from tests.corpus.case import Case, Lines


def _csv(name: str, content: str | bytes, ours: Lines, format: Csv = Csv(), **more: Any) -> Case:
    raw = content.encode() if isinstance(content, str) else content
    return Case(name=name, format=format, content=raw, ours=ours, **more)


def _json(name: str, content: str | bytes, ours: Lines, format: Json = Json(), **more: Any) -> Case:
    raw = content.encode() if isinstance(content, str) else content
    return Case(name=name, format=format, content=raw, ours=ours, **more)


def _parquet(name: str, content: Callable[[], bytes] | bytes, ours: Lines, **more: Any) -> Case:
    return Case(name=name, format=Parquet(), content=content, ours=ours, **more)


def _written(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _column(values: list[Any], kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"v": pa.array(values, kind)})


def _avro(kind: Any, values: list[Any], codec: str = "null") -> Callable[[], bytes]:
    schema = {"type": "record", "name": "r", "fields": [{"name": "v", "type": kind}]}
    return lambda: write_avro([{"v": value} for value in values], schema, codec=codec)


_WALL_TIME = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001
_ROWS = b"id,n\n1,10\n2,20\n"
_FAR = [datetime(9999, 12, 31), datetime(2026, 1, 2, 3, 4, 5, 678901), datetime(1600, 1, 1)]  # noqa: DTZ001
_NESTED = pa.table(
    {
        "l": pa.array([[1, None], None], pa.list_(pa.int64())),
        "s": pa.array([{"a": "x", "b": 1.5}, None]),
        "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    }
)

CSV_CASES = (
    _csv(
        "header, commas, quotes",
        'id,name\n1,"a, ""b"""\n2,é\n',
        ("id bigint, name string", '[1, "a, \\"b\\""]', '[2, "é"]'),
    ),
    _csv(
        "line ends CRLF, no line end at the end",
        "id,name\r\n1,a\r\n2,b",
        ("id bigint, name string", '[1, "a"]', '[2, "b"]'),
    ),
    _csv("line ends CR", "id,name\r1,a\r2,b\r", ("id bigint, name string", '[1, "a"]', '[2, "b"]')),
    _csv("byte order mark", b"\xef\xbb\xbfid,name\n1,a\n", ("id bigint, name string", '[1, "a"]')),
    _csv(
        "several lines in a quoted field", 'id,t\n1,"a\nb"\n2,c\n', ("id bigint, t string", '[1, "a\\nb"]', '[2, "c"]')
    ),
    _csv("empty lines", "id,t\n\n1,a\n\n2,b\n\n", ("id bigint, t string", '[1, "a"]', '[2, "b"]')),
    _csv("semicolons", "id;name\n1;a\n2;b\n", ("id bigint, name string", '[1, "a"]', '[2, "b"]'), Csv(delimiter=";")),
    _csv("tabs", "id\tname\n1\ta\n2\tb\n", ("id bigint, name string", '[1, "a"]', '[2, "b"]'), Csv(delimiter="\t")),
    _csv("semicolons, not declared", "id;name\n1;a\n2;b\n", ("`id;name` string", '["1;a"]', '["2;b"]')),
    _csv(
        "first line sep= of Excel", "sep=;\nid;name\n1;a\n", ("id bigint, name string", '[1, "a"]'), Csv(delimiter=";")
    ),
    _csv(
        "no header",
        "1,a\n2,b\n",
        ("id bigint, name string", '[1, "a"]', '[2, "b"]'),
        Csv(header=False),
        schema="id bigint, name string",
    ),
    _csv(
        "no header, though one is declared",
        "1,a\n2,b\n",
        (
            "refused: its first line is not a header of this source: none of the source's columns (id, name) is in the file, which has 1, a",
        ),
        schema="id bigint, name string",
    ),
    _csv(
        "header in other case",
        "ID,Name\n1,a\n",
        ("id bigint, name string", '[1, "a"]'),
        schema="id bigint, name string",
    ),
    _csv(
        "header in other order, with one more column",
        "name,x,id\na,9,1\n",
        ("id bigint, name string", '[1, "a"]'),
        schema="id bigint, name string",
    ),
    _csv(
        "header lacks a declared column",
        "id,nam\n1,a\n",
        ("id bigint, name string", "[1, null]"),
        schema="id bigint, name string",
    ),
    _csv("empty name of a column", ",a,b\n0,1,2\n", ("_c0 bigint, a bigint, b bigint", "[0, 1, 2]")),
    _csv("trailing comma in each line", "a,b,\n1,2,\n", ("a bigint, b bigint, _c2 string", "[1, 2, null]")),
    _csv("a name twice", "v,v\n1,2\n", ("v bigint, v_1 bigint", "[1, 2]")),
    _csv(
        "lines before the header", "Report of May\n\nid,n\n1,2\n", ("id bigint, n bigint", "[1, 2]"), Csv(skip_rows=2)
    ),
    _csv("comments", "# made by x\nid,n\n1,2\n# end\n", ("id bigint, n bigint", "[1, 2]"), Csv(comment="#")),
    _csv(
        "comments, not declared",
        "# made by x\nid,n\n1,2\n",
        (
            'refused: CSV parse error: Expected 1 columns, got 2: id,n; for lines that begin with "#" and are not rows, '
            'declare Csv(comment="#")',
        ),
    ),
    _csv(
        "a delimiter at the end of each row",
        "id,n\n1,2,\n3,4,\n",
        (
            "refused: CSV parse error: Expected 2 columns, got 3: 1,2,; the line ends with a delimiter, and the header does "
            "not: correct one of them",
        ),
    ),
    _csv(
        "fields between control characters",
        "id\x01n\n1\x01a,b\n",
        ("id bigint, n string", '[1, "a,b"]'),
        Csv(delimiter="\x01"),
    ),
    _csv(
        "a header of another encoding",
        "id,größe\n1,2\n".encode("cp1252"),
        (
            'refused: its first line is not UTF-8 at byte 5; for a file of another encoding, declare Csv(encoding="...")',
        ),
    ),
    _csv(
        "backslash escapes",
        'id,t\n1,"say \\"hi\\", now"\n2,b\n',
        ("id bigint, t string", '[1, "say \\"hi\\", now"]', '[2, "b"]'),
        Csv(escape="\\"),
    ),
    _csv(
        "backslash escapes, not declared",
        'id,t\n1,"say \\"hi\\", now"\n2,b\n',
        (
            "id bigint, t string",
            'bad: a quoted field has text behind its closing quote; for quotes behind a backslash, declare Csv(escape="\\\\")',
            '[2, "b"]',
        ),
    ),
    _csv(
        "quotes as plain characters",
        'id,t\n1,5" pipe\n2,6" "x" pipe\n',
        ("id bigint, t string", '[1, "5\\" pipe"]', '[2, "6\\" \\"x\\" pipe"]'),
        Csv(quote=None),
    ),
    _csv("single quotes", "id,t\n1,'a,b'\n", ("id bigint, t string", '[1, "a,b"]'), Csv(quote="'")),
    _csv(
        "a quote that is not closed",
        'id,t\n1,"open\n2,b\n3,c\n',
        (
            "id bigint, t string",
            "bad: a quoted field is not closed; for quotes as plain characters, declare Csv(quote=None)",
            '[2, "b"]',
            '[3, "c"]',
        ),
        schema="id bigint, t string",
    ),
    _csv("text behind the closing quote", 'id,t\n1,"a"b\n2,c\n', ("id bigint, t string", '[1, "ab"]', '[2, "c"]')),
    _csv(
        "a row with fewer fields",
        "id,t,u\n1,a,b\n2,c\n3,d,e\n",
        (
            "id bigint, t string, u string",
            '[1, "a", "b"]',
            "bad: CSV parse error: Expected 3 columns, got 2: 2,c",
            '[3, "d", "e"]',
        ),
        schema="id bigint, t string, u string",
    ),
    _csv(
        "a row with more fields",
        "id,t\n1,a\n2,b,c\n3,d\n",
        ("id bigint, t string", '[1, "a"]', "bad: CSV parse error: Expected 2 columns, got 3: 2,b,c", '[3, "d"]'),
        schema="id bigint, t string",
    ),
    _csv(
        "NA, null, NaN as texts",
        'id,t\n1,NA\n2,null\n3,"NA"\n4,NaN\n5,b\n',
        ("id bigint, t string", '[1, "NA"]', '[2, "null"]', '[3, "NA"]', '[4, "NaN"]', '[5, "b"]'),
    ),
    _csv(
        "empty, and quoted empty field",
        'id,t\n1,\n2,""\n3,b\n',
        ("id bigint, t string", "[1, null]", '[2, ""]', '[3, "b"]'),
    ),
    _csv(
        "null markers",
        'id,t\n1,NA\n2,"NA"\n3,\n',
        ("id bigint, t string", "[1, null]", '[2, "NA"]', '[3, ""]'),
        Csv(null_values=("NA",)),
    ),
    _csv(
        "quoted null in a column of numbers",
        '"id","n"\n"1","2"\n"2",""\n',
        ("id bigint, n bigint", "[1, 2]", "[2, null]"),
        schema="id bigint, n bigint",
    ),
    _csv("leading zeros", "zip\n01234\n99999\n", ("zip string", '["01234"]', '["99999"]')),
    _csv(
        "quoted leading zeros",
        'zip,n\n"01234",1\n"00501",2\n',
        ("zip string, n bigint", '["01234", 1]', '["00501", 2]'),
    ),
    _csv("sign of a phone number", "phone\n+49\n+1\n", ("phone string", '["+49"]', '["+1"]')),
    _csv("hexadecimal text", "v\n0xFF\n0xFFFFFFFFFFFFFFFF\n", ("v string", '["0xFF"]', '["0xFFFFFFFFFFFFFFFF"]')),
    _csv(
        "hexadecimal text in a bigint",
        "v\n255\n0xFF\n",
        ("v bigint", "[255]", "bad: column v: '0xFF' is hexadecimal text, not an integer; declare a string"),
        schema="v bigint",
    ),
    _csv(
        "integers of 2^63 and above",
        "id\n12345678901234567890\n12345678901234567891\n",
        ("id decimal(20,0)", "[12345678901234567890]", "[12345678901234567891]"),
    ),
    _csv(
        "integers of 39 digits",
        f"id\n{'1' * 38}2\n{'1' * 38}3\n",
        ("id string", '["111111111111111111111111111111111111112"]', '["111111111111111111111111111111111111113"]'),
    ),
    _csv("fractions", "v\n1.5\n-0.25\n1e5\n", ("v double", "[1.5]", "[-0.25]", "[100000.0]")),
    _csv("fractions as decimal", "v\n1.10\n2.2\n", ("v decimal(9,2)", "[1.10]", "[2.20]"), schema="v decimal(9, 2)"),
    _csv(
        "digits beyond a decimal",
        "v\n1.10\n2.345\n",
        ("v decimal(9,2)", "[1.10]", "bad: column v: Rescaling Decimal value would cause data loss"),
        schema="v decimal(9, 2)",
    ),
    _csv("NaN and infinity among numbers", "v\n1.5\nNaN\ninf\n", ("v double", "[1.5]", "[NaN]", "[Infinity]")),
    _csv(
        "decimal comma and thousands",
        'v\n"1.234,50"\n"0,25"\n',
        ("v double", "[1234.5]", "[0.25]"),
        Csv(decimal=",", thousands="."),
        schema="v double",
    ),
    _csv("thousands", 'v\n"1,234"\n5\n', ("v bigint", "[1234]", "[5]"), Csv(thousands=","), schema="v bigint"),
    _csv("booleans", "v\ntrue\nFALSE\n", ("v boolean", "[true]", "[false]")),
    _csv(
        "yes and no",
        "v\nyes\nno\n",
        ("v boolean", "[true]", "[false]"),
        Csv(true_values=("yes",), false_values=("no",)),
    ),
    _csv("dates", "v\n2026-12-27\n9999-12-31\n", ("v date", "[2026-12-27]", "[9999-12-31]")),
    _csv(
        "dates of a form",
        "v\n27.12.2026\n01.02.2026\n",
        ("v date", "[2026-12-27]", "[2026-02-01]"),
        Csv(date_format="%d.%m.%Y"),
        schema="v date",
    ),
    _csv(
        "dates of another form, not declared",
        "v\n27.12.2026\n01.02.2026\n",
        ("v string", '["27.12.2026"]', '["01.02.2026"]'),
    ),
    _csv(
        "times",
        "v\n2026-12-27 18:30:00\n2026-12-27T18:30:00.5\n",
        ("v timestamp_ntz", "[2026-12-27 18:30:00]", "[2026-12-27 18:30:00.500000]"),
    ),
    _csv(
        "times with a zone",
        "v\n2026-12-27T18:30:00Z\n2026-12-27T18:30:00+02:00\n",
        ("v timestamp", "[2026-12-27 18:30:00Z]", "[2026-12-27 16:30:00Z]"),
    ),
    _csv(
        "times of a form",
        "v\n27.12.2026 18:30\n",
        ("v timestamp_ntz", "[2026-12-27 18:30:00]"),
        Csv(timestamp_format="%d.%m.%Y %H:%M"),
        schema="v timestamp_ntz",
    ),
    _csv(
        "seven fractional digits, the last is zero",
        "v\n2026-12-27 18:30:00.1234560\n",
        ("v timestamp_ntz", "[2026-12-27 18:30:00.123456]"),
        schema="v timestamp_ntz",
    ),
    _csv(
        "seven fractional digits",
        "v\n2026-12-27 18:30:00.1234567\n",
        (
            "v timestamp_ntz",
            "bad: column v: CSV conversion error to timestamp[us]: invalid value '2026-12-27 18:30:00.1234567'; declare the source with Schema(timestamps=\"truncate\") to leave out the digits below microseconds",
        ),
        schema="v timestamp_ntz",
    ),
    _csv(
        "seven fractional digits, truncated",
        "v\n2026-12-27 18:30:00.1234567\n",
        ("v timestamp_ntz", "[2026-12-27 18:30:00.123456]"),
        schema="v timestamp_ntz",
        timestamps="truncate",
        converted=True,
    ),
    _csv(
        "a value that does not fit its column",
        "id,n\n1,2\nx,3\n4,5\n",
        ("id bigint, n bigint", "[1, 2]", "bad: column id: CSV conversion error to int64: invalid value 'x'", "[4, 5]"),
        schema="id bigint, n bigint",
    ),
    _csv(
        "an integer beyond its column",
        "v\n1\n300\n",
        (
            "v tinyint",
            "[1]",
            "bad: column v: CSV conversion error to int8: invalid value '300'; for larger numbers, declare a source of another name with Schema(evolution=\"widen\")",
        ),
        schema="v tinyint",
    ),
    _csv(
        "Latin text",
        "id,t\n1,Müller\n".encode("cp1252"),
        ("id bigint, t string", '[1, "Müller"]'),
        Csv(encoding="cp1252"),
    ),
    _csv(
        "Latin text, not declared",
        "id,t\n1,Müller\n2,b\n".encode("cp1252"),
        (
            "id bigint, t string",
            'bad: column t: CSV conversion error to string: invalid UTF8 data; for a file of another encoding, declare Csv(encoding="...")',
            '[2, "b"]',
        ),
        schema="id bigint, t string",
    ),
    _csv("UTF-16", "id,t\n1,é\n".encode("utf-16"), ("id bigint, t string", '[1, "é"]'), Csv(encoding="utf-16")),
    _csv(
        "UTF-16, not declared",
        "id,t\n1,é\n".encode("utf-16"),
        ('refused: its text is UTF-16: declare the format with encoding="utf-16"',),
    ),
    _csv("gzip", gzip.compress(_ROWS, mtime=0), ("id bigint, n bigint", "[1, 10]", "[2, 20]")),
    _csv("gzip with padding", gzip.compress(_ROWS, mtime=0) + bytes(64), ("id bigint, n bigint", "[1, 10]", "[2, 20]")),
    _csv(
        "gzip, cut off",
        gzip.compress(_ROWS, mtime=0)[:-9],
        ("refused: Truncated compressed stream",),
        schema="id bigint, n bigint",
    ),
    _csv("bzip2", bz2.compress(_ROWS), ("id bigint, n bigint", "[1, 10]", "[2, 20]")),
    _csv("xz", lzma.compress(_ROWS), ("id bigint, n bigint", "[1, 10]", "[2, 20]")),
    _csv("zstd", pa.compress(_ROWS, "zstd", asbytes=True), ("id bigint, n bigint", "[1, 10]", "[2, 20]")),
    _csv("lz4", pa.compress(_ROWS, "lz4", asbytes=True), ("id bigint, n bigint", "[1, 10]", "[2, 20]")),
    _csv("an empty file", b"", ("refused: the file is empty and has no schema",)),
    _csv("a header alone", "id,t\n", ("id string, t string",)),
    _csv("a column without a value", "id,t\n1,\n2,\n", ("id bigint, t string", "[1, null]", "[2, null]")),
    _csv(
        "JSON in a CSV source",
        '{"id": 1}\n{"id": 2}\n',
        (
            'refused: it is JSON, not CSV: declare the source with format="json", or leave the file out with pattern=...',
        ),
    ),
    _csv(
        "HTML in a CSV source",
        "<!DOCTYPE html>\n<html><body>Not found</body></html>\n",
        ("refused: it is an HTML page, not CSV: it may be an error page of a download; leave it out with pattern=...",),
    ),
)

JSON_CASES = (
    _json(
        "an object a line",
        '{"id": 1, "t": "a"}\n{"id": 2, "t": null}\n',
        ("id bigint, t string", '[1, "a"]', "[2, null]"),
    ),
    _json("several objects in a line", '{"id": 1} {"id": 2}{"id": 3}\n', ("id bigint", "[1]", "[2]", "[3]")),
    _json("an array of objects", '[{"id": 1},\n {"id": 2}]\n', ("id bigint", "[1]", "[2]"), over_lines=True),
    _json(
        "objects over several lines", '{\n  "id": 1\n}\n{\n  "id": 2\n}\n', ("id bigint", "[1]", "[2]"), over_lines=True
    ),
    _json(
        "an array that is not closed",
        '[{"id": 1},\n {"id": 2}',
        (
            "id bigint",
            "[1]",
            "[2]",
            "refused: row 3: its array is not closed: the file was cut off, or a bracket is missing",
        ),
        over_lines=True,
        schema="id bigint",
    ),
    _json(
        "a line that was cut off",
        '{"id": 1}\n{"id": \n{"id": 3}\n',
        ("id bigint", "[1]", "bad: JSON parse error: Invalid value", "[3]"),
        schema="id bigint",
    ),
    _json(
        "a comma behind the last field",
        '{"id": 1,}\n{"id": 2}\n',
        ("id bigint", "bad: JSON parse error: Missing a name for object member", "[2]"),
        schema="id bigint",
    ),
    _json(
        "single quotes",
        "{'id': 1}\n{\"id\": 2}\n",
        ("id bigint", "bad: JSON parse error: Missing a name for object member", "[2]"),
        schema="id bigint",
    ),
    _json("null as a record", 'null\n{"id": 2}\n', ("id bigint", "[null]", "[2]"), schema="id bigint"),
    _json(
        "a number as a record",
        '5\n{"id": 2}\n',
        (
            "id bigint",
            "bad: it is a number, not an object",
            "[2]",
        ),
        schema="id bigint",
    ),
    _json(
        "integers of 2^63 and above",
        '{"id": 12345678901234567890}\n{"id": 12345678901234567891}\n',
        ("id decimal(20,0)", "[12345678901234567890]", "[12345678901234567891]"),
    ),
    _json("integers and fractions", '{"v": 1}\n{"v": 2.5}\n', ("v double", "[1.0]", "[2.5]")),
    _json(
        "an integer that no double holds, with fractions",
        '{"v": 9007199254740993}\n{"v": 2.5}\n',
        ("v string", '["9007199254740993"]', '["2.5"]'),
    ),
    _json(
        "a fraction in a bigint",
        '{"v": 1}\n{"v": 2.5}\n',
        (
            "v bigint",
            "[1]",
            "bad: Failed to convert JSON to int64, couldn't parse:2.5; declare the column as double or decimal",
        ),
        schema="v bigint",
    ),
    _json(
        "numbers and texts in one field",
        '{"v": 1}\n{"v": "x"}\n{"v": {"a": [1, 2.50]}}\n',
        ("v string", '["1"]', '["x"]', '["{\\"a\\": [1, 2.50]}"]'),
    ),
    _json(
        "an object as text",
        '{"v": {"a": 1.10}}\n{"v": [1, 2]}\n',
        ("v string", '["{\\"a\\": 1.10}"]', '["[1, 2]"]'),
        schema="v string",
    ),
    _json("a number as text", '{"v": 1.10}\n{"v": "b"}\n', ("v string", '["1.10"]', '["b"]'), schema="v string"),
    _json(
        "a map",
        '{"m": {"a": 1, "b": 2}}\n{"m": {}}\n',
        ("m map<string,bigint>", "[{a: 1, b: 2}]", "[{}]"),
        schema="m map<string, bigint>",
    ),
    _json(
        "nested objects and lists",
        '{"s": {"a": 1, "l": [1, null]}}\n{"s": null}\n',
        ("s struct<a:bigint,l:array<bigint>>", "[{a: 1, l: [1, null]}]", "[null]"),
    ),
    _json(
        "an object that is always empty",
        '{"id": 1, "tags": {}}\n{"id": 2, "tags": {}}\n',
        ("id bigint, tags string", '[1, "{}"]', '[2, "{}"]'),
    ),
    _json(
        "the JSON text of each record",
        '{"a": 1.10}\n{"b": [1,  2]}\n',
        ("record string", '["{\\"a\\": 1.10}"]', '["{\\"b\\": [1,  2]}"]'),
        Json(raw="record"),
        schema="record string",
    ),
    _json(
        "fields of structs in other case",
        '{"s": {"ID": 1}}\n{"s": {"ID": 2}}\n',
        ("s struct<id:bigint>", "[{id: 1}]", "[{id: 2}]"),
        schema="s struct<id: bigint>",
    ),
    _json("names in other case", '{"ID": 1}\n', ("id bigint", "[1]"), schema="id bigint"),
    _json(
        "a key twice",
        '{"id": 1, "id": 2}\n{"id": 3}\n',
        ("id bigint", "bad: JSON parse error: Column(/id) was specified twice", "[3]"),
        schema="id bigint",
    ),
    _json(
        "a field that is missing", '{"id": 1}\n{"id": 2, "t": "b"}\n', ("id bigint, t string", "[1, null]", '[2, "b"]')
    ),
    _json("a time with a zone", '{"at": "2026-01-02T03:04:05Z"}\n', ("at timestamp", "[2026-01-02 03:04:05Z]")),
    _json("a time without a zone", '{"at": "2026-01-02T03:04:05"}\n', ("at timestamp_ntz", "[2026-01-02 03:04:05]")),
    _json("a date", '{"at": "2026-01-02"}\n', ("at timestamp_ntz", "[2026-01-02 00:00:00]")),
    _json(
        "seven fractional digits, the last is zero",
        '{"at": "2026-01-02T03:04:05.1234560Z"}\n',
        ("at timestamp", "[2026-01-02 03:04:05.123456Z]"),
        schema="at timestamp",
    ),
    _json("NaN", '{"v": 1.5}\n{"v": NaN}\n', ("v double", "[1.5]", "[NaN]"), schema="v double"),
    _json(
        "an overflow",
        '{"v": 1.5}\n{"v": 1e400}\n',
        ("v double", "[1.5]", "bad: JSON parse error: Number too big to be stored in double"),
        schema="v double",
    ),
    _json(
        "decimals",
        '{"v": 1.10}\n{"v": 12345678901234567890.12}\n',
        ("v decimal(22,2)", "[1.10]", "[12345678901234567890.12]"),
        schema="v decimal(22, 2)",
    ),
    _json(
        "leading zeros",
        '{"v": 01}\n{"v": 2}\n',
        ("v bigint", "bad: JSON parse error: Missing a comma or '}' after an object member", "[2]"),
        schema="v bigint",
    ),
    _json(
        "bytes that are not UTF-8",
        b'{"t": "M\xfcller"}\n{"t": "b"}\n',
        ("t string", "bad: it is not UTF-8: byte 0xfc at position 8", '["b"]'),
        schema="t string",
    ),
    _json(
        "half of a surrogate pair",
        '{"t": "\\ud800"}\n{"t": "b"}\n',
        ("t string", "bad: JSON parse error: The surrogate pair in string is invalid", '["b"]'),
        schema="t string",
    ),
    _json("a byte order mark", b'\xef\xbb\xbf{"id": 1}\n', ("id bigint", "[1]")),
    _json("gzip", gzip.compress(b'{"id": 1}\n', mtime=0), ("id bigint", "[1]")),
    _json("an empty file", b"", ("refused: the file is empty and has no schema",)),
    _json(
        "CSV in a JSON source",
        _ROWS,
        ('refused: it is CSV, not JSON: declare the source with format="csv", or leave the file out with pattern=...',),
    ),
)

PARQUET_CASES = (
    _parquet(
        "integers of each width",
        lambda: _written(pa.table({"a": pa.array([-128], pa.int8()), "b": pa.array([2**63 - 1])})),
        ("a tinyint, b bigint", "[-128, 9223372036854775807]"),
    ),
    _parquet(
        "unsigned integers of 64 bits",
        lambda: _written(_column([2**64 - 1], pa.uint64())),
        ("v decimal(20,0)", "[18446744073709551615]"),
    ),
    _parquet(
        "INT96 times",
        lambda: _written(_column(_FAR[1:2], pa.timestamp("us")), use_deprecated_int96_timestamps=True),
        ("v timestamp_ntz", "[2026-01-02 03:04:05.678901]"),
    ),
    _parquet(
        "INT96 times outside 1677 to 2262",
        lambda: _written(_column(_FAR, pa.timestamp("us")), use_deprecated_int96_timestamps=True),
        ("v timestamp_ntz", "[9999-12-31 00:00:00]", "[2026-01-02 03:04:05.678901]", "[1600-01-01 00:00:00]"),
    ),
    _parquet(
        "times in milliseconds",
        lambda: _written(_column(_FAR[:1], pa.timestamp("ms", "UTC"))),
        ("v timestamp", "[9999-12-31 00:00:00Z]"),
    ),
    _parquet(
        "times in nanoseconds, whole microseconds",
        lambda: _written(_column([1_000], pa.timestamp("ns"))),
        ("v timestamp_ntz", "[1970-01-01 00:00:00.000001]"),
    ),
    _parquet(
        "times in nanoseconds",
        lambda: _written(_column([1_001], pa.timestamp("ns"))),
        (
            "v timestamp_ntz",
            'bad: column v: Casting from timestamp[ns] to timestamp[us] would lose data: 1001; declare the source with Schema(timestamps="truncate") to leave out the digits below microseconds',
        ),
    ),
    _parquet(
        "times in nanoseconds, truncated",
        lambda: _written(_column([1_001], pa.timestamp("ns"))),
        ("v timestamp_ntz", "[1970-01-01 00:00:00.000001]"),
        timestamps="truncate",
        converted=True,
    ),
    _parquet(
        "decimals", lambda: _written(_column([Decimal("-1.50")], pa.decimal128(38, 2))), ("v decimal(38,2)", "[-1.50]")
    ),
    _parquet(
        "dates",
        lambda: _written(_column([date(1, 1, 1), date(9999, 12, 31)])),
        ("v date", "[0001-01-01]", "[9999-12-31]"),
    ),
    _parquet("bytes", lambda: _written(_column([b"\0\xff", None])), ("v binary", "[0x00ff]", "[null]")),
    _parquet(
        "a dictionary",
        lambda: _written(_column(["a", "b", "a"]).set_column(0, "v", pa.array(["a", "b", "a"]).dictionary_encode())),
        ("v string", '["a"]', '["b"]', '["a"]'),
    ),
    _parquet(
        "lists, structs and maps",
        lambda: _written(_NESTED),
        (
            "l array<bigint>, s struct<a:string,b:double>, m map<string,bigint>",
            '[[1, null], {a: "x", b: 1.5}, {k: 1}]',
            "[null, null, null]",
        ),
    ),
    _parquet("a column of nulls", lambda: _written(_column([None, None], pa.null())), ("v string", "[null]", "[null]")),
    _parquet(
        "times of day",
        lambda: _written(_column([1_000], pa.time64("us"))),
        (
            "refused: column v: time64[us] has no form in Spark; declare a schema that leaves the column out, or write it as a number or a string, or give the source a schema",
        ),
    ),
    _parquet("half floats", lambda: _written(_column([1.5], pa.float16())), ("v float", "[1.5]")),
    _parquet("brotli", lambda: write_parquet(_column([1, 2]), codec="brotli"), ("v bigint", "[1]", "[2]")),
    _parquet("zstd", lambda: write_parquet(_column([1, 2]), codec="zstd"), ("v bigint", "[1]", "[2]")),
    _parquet(
        "integers in a declared text",
        lambda: _written(_column([1, 2])),
        (
            "refused: column v: the source has string, the file has int64; write the file again with the type of the source",
        ),
        schema="v string",
    ),
    _parquet(
        "bigint in a declared int",
        lambda: _written(_column([1, 2**40])),
        (
            'refused: column v: the source has int32, the file has int64; write the file again with the type of the source, or declare a source of another name with Schema(evolution="widen")',
        ),
        schema="v int",
    ),
    _parquet(
        "an encrypted column",
        lambda: write_encrypted(
            pa.table({"id": [1], "secret": ["a"]}), plaintext_footer=True, column_keys={"k": ["secret"]}
        ),
        ("refused: its columns are encrypted; encrypted Parquet files are not read: decrypt it, and write it again",),
    ),
    _parquet(
        "cut off",
        lambda: _written(_column([1, 2]))[:-20],
        (
            "refused: not a Parquet file: Parquet magic bytes not found in footer. Either the file is corrupted or this is not a parquet file.",
        ),
    ),
    _parquet("an empty file", b"", ("refused: the file is empty; a Parquet file has at least a footer",)),
    _parquet(
        "CSV in a Parquet source",
        _ROWS,
        (
            'refused: it is CSV, not Parquet: declare the source with format="csv", or leave the file out with pattern=...',
        ),
    ),
)


def _orc(name: str, content: Callable[[], bytes], ours: Lines, **more: Any) -> Case:
    return Case(name=name, format=Orc(), content=content, ours=ours, **more)


ORC_CASES = (
    _orc(
        "numbers and texts",
        lambda: write_orc(pa.table({"id": [1, 2], "t": ["a", None]})),
        ("id bigint, t string", '[1, "a"]', "[2, null]"),
    ),
    _orc(
        "times",
        lambda: write_orc(_column([_WALL_TIME], pa.timestamp("us"))),
        ("v timestamp_ntz", "[2026-01-02 03:04:05]"),
    ),
    _orc(
        "instants",
        lambda: write_orc(_column([datetime(2026, 1, 2, tzinfo=UTC)], pa.timestamp("us", "UTC"))),
        ("v timestamp", "[2026-01-02 00:00:00Z]"),
    ),
    _orc(
        "decimals", lambda: write_orc(_column([Decimal("-1.50")], pa.decimal128(38, 2))), ("v decimal(38,2)", "[-1.50]")
    ),
    _orc(
        "lists, structs and maps",
        lambda: write_orc(_NESTED),
        (
            "l array<bigint>, s struct<a:string,b:double>, m map<string,bigint>",
            '[[1, null], {a: "x", b: 1.5}, {k: 1}]',
            "[null, null, null]",
        ),
    ),
    _orc("zstd", lambda: write_orc(_column([1, 2]), codec="zstd"), ("v bigint", "[1]", "[2]")),
    _orc("Hive 0.11", lambda: write_orc(_column([1, 2]), file_version="0.11"), ("v bigint", "[1]", "[2]")),
    _orc(
        "cut off", lambda: write_orc(_column([1, 2]))[:-20], ("refused: not an ORC file: its end is not that of one",)
    ),
)


def _avro_case(name: str, content: Callable[[], bytes], ours: Lines, **more: Any) -> Case:
    return Case(name=name, format=Avro(), content=content, ours=ours, **more)


AVRO_CASES = (
    _avro_case("numbers", _avro("long", [1, -(2**63)]), ("v bigint", "[1]", "[-9223372036854775808]")),
    _avro_case("a union of null and one type", _avro(["null", "string"], ["a", None]), ("v string", '["a"]', "[null]")),
    _avro_case(
        "a union of several types",
        _avro(["null", "string", "long"], ["a", 2, None]),
        (
            "v struct<member0:string,member1:bigint>",
            '[{member0: "a", member1: null}]',
            "[{member0: null, member1: 2}]",
            "[null]",
        ),
    ),
    _avro_case(
        "an enumeration",
        _avro({"type": "enum", "name": "e", "symbols": ["A", "B"]}, ["A", "B"]),
        ("v string", '["A"]', '["B"]'),
    ),
    _avro_case(
        "a decimal",
        _avro({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, [Decimal("1.50")]),
        ("v decimal(9,2)", "[1.50]"),
    ),
    _avro_case(
        "an instant",
        _avro({"type": "long", "logicalType": "timestamp-micros"}, [datetime(2026, 1, 2, tzinfo=UTC)]),
        ("v timestamp", "[2026-01-02 00:00:00Z]"),
    ),
    _avro_case(
        "a map and a list",
        _avro({"type": "map", "values": {"type": "array", "items": "int"}}, [{"k": [1, 2]}]),
        ("v map<string,array<int>>", "[{k: [1, 2]}]"),
    ),
    *(
        _avro_case(codec, _avro("long", [1, 2], codec), ("v bigint", "[1]", "[2]"))
        for codec in ("deflate", "snappy", "zstandard", "bzip2", "xz")
    ),
    _avro_case(
        "cut off",
        lambda: _avro("long", [1, 2])()[:-5],
        ("refused: damaged Avro file, in the block at byte 126: the file ends within it",),
    ),
)

TEXT_CASES = (
    Case(
        name="lines",
        format=Text(),
        content="é\n\nb\r\nc".encode(),
        ours=("value string", '["é"]', '[""]', '["b"]', '["c"]'),
    ),
    Case(
        name="UTF-16",
        format=Text(encoding="utf-16"),
        content="é\nb\n".encode("utf-16"),
        ours=("value string", '["é"]', '["b"]'),
    ),
    Case(
        name="bytes that are not UTF-8",
        format=Text(),
        content=b"a\nM\xfcller\nb\n",
        ours=("value string", '["a"]', "bad: it is not UTF-8: byte 0xfc at position 1", '["b"]'),
    ),
    Case(
        name="gzip", format=Text(), content=gzip.compress(b"a\nb\n", mtime=0), ours=("value string", '["a"]', '["b"]')
    ),
    Case(
        name="JSON in a text source", format=Text(), content=b'{"id": 1}\n', ours=("value string", '["{\\"id\\": 1}"]')
    ),
)

DEBEZIUM_CASES = (
    Case(
        name="an insert, an update and a deletion",
        format=Debezium(),
        content=b'{"op": "c", "before": null, "after": {"id": 1, "t": "a"}}\n'
        b'{"op": "u", "before": {"id": 1}, "after": {"id": 1, "t": "b"}}\n'
        b'{"op": "d", "before": {"id": 1, "t": "b"}, "after": null}\n',
        schema="id bigint, t string, __op string",
        ours=("id bigint, t string, __op string", '[1, "a", "c"]', '[1, "b", "u"]', '[1, "b", "d"]'),
    ),
    Case(
        name="a record without an envelope",
        format=Debezium(),
        content=b'{"id": 1}\n',
        schema="id bigint, __op string",
        ours=(
            'refused: no line has Debezium\'s envelope, an object in `before` or `after`; if the lines are the rows themselves, read them with format="json"',
        ),
    ),
)

CASES = (*CSV_CASES, *JSON_CASES, *PARQUET_CASES, *ORC_CASES, *AVRO_CASES, *TEXT_CASES, *DEBEZIUM_CASES)
