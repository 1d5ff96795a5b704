"""Content of another format than the declared one is refused by its first bytes."""

from __future__ import annotations

import codecs
import gzip
import io
import sqlite3
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pytest

from actors.file_errors import UnreadableFile
from actors.formats.options import Avro, Csv, Debezium, Json, Orc, Parquet, Text
from actors.formats.registry import Format, reader_for
from tests.actors.formats.written_files import (
    COMPRESSIONS,
    open_written,
    rows_of,
    write_avro,
    write_orc,
    write_parquet,
)

_ROWS = b"id,n\n1,10\n2,20\n"
_TABLE = pa.table({"id": [1, 2], "n": [10, 20]})
_SCHEMA = _TABLE.schema
_FLIGHT = {"id": 1, "carrier": "x", "delay": 1.0, "at": 0}


def _zip(*names: str) -> bytes:
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w") as archive:
        for name in names:
            archive.writestr(name, "<x/>")
    return box.getvalue()


def _tar() -> bytes:
    box = io.BytesIO()
    with tarfile.open(fileobj=box, mode="w") as archive:
        info = tarfile.TarInfo("a.csv")
        info.size = len(_ROWS)
        archive.addfile(info, io.BytesIO(_ROWS))
    return box.getvalue()


def _feather() -> bytes:
    sink = pa.BufferOutputStream()
    pa.feather.write_feather(_TABLE, sink, compression="uncompressed")
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _sqlite(directory: Path) -> bytes:
    database = sqlite3.connect(directory / "made.db")
    database.execute("CREATE TABLE t (a)")
    database.commit()
    database.close()
    return (directory / "made.db").read_bytes()


_BINARY = {
    "an Excel workbook, not {}: Excel is not read: save each sheet as CSV": _zip("[Content_Types].xml", "xl/a.xml"),
    "an empty zip archive": _zip(),
    "compressed by lz4": COMPRESSIONS["lz4"](_ROWS),
    "a 7z archive": b"7z\xbc\xaf\x27\x1c\x00\x04" + bytes(range(200)),
    "a RAR archive": b"Rar!\x1a\x07\x01\x00" + bytes(range(200)),
    "a PDF document": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n",
    "a PNG image": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(50),
    "a JPEG image": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(50),
    "a GIF image": b"GIF89a\x01\x00\x01\x00",
    "an old Office document": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504),
    "a Hadoop sequence file": b"SEQ\x06\x19org.apache.hadoop.io.Text",
    "an Arrow (Feather) file": _feather(),
    "a tar archive": _tar(),
    "Parquet": write_parquet(_TABLE),
    "ORC": write_orc(_TABLE),
    "Avro": write_avro([_FLIGHT]),
}
_MARKUP = {
    "an HTML page": b"\n<!DOCTYPE html>\n<html><body>403 Forbidden, try again</body></html>\n",
    "an HTML page, not {}: it may be an error page of a download": b"<html lang='en'><head>",
    "XML": b'<?xml version="1.0"?>\n<rows><row id="1"/></rows>',
    "XML, not {}: XML is not read: convert": codecs.BOM_UTF8 + b"<rows>\n<row id='1' n='2'></row></rows>",
}
_FORMATS: dict[str, Format] = {
    "CSV": Csv(), "JSON": Json(), "text": Text(), "Parquet": Parquet(), "ORC": Orc(), "Avro": Avro(),
}  # fmt: skip
_OF_TEXT = ("CSV", "JSON", "text")


def refused(directory: Path, content: bytes, format: Format, *, declared: str, found: str) -> None:
    """Asserts that inference and reading refuse a content as `found`."""
    file = open_written(directory, content)
    schema = pa.schema([("value", pa.string())]) if format == Text() else _SCHEMA
    words = found.format(declared) if ", not" in found else f"{found}, not {declared}: "
    reader = reader_for(format)
    with pytest.raises(UnreadableFile) as raised:
        list(reader.read(file, schema))
    assert str(raised.value).startswith(f"it is {words}"), raised.value
    if format != Text():  # its schema is always the same
        with pytest.raises(UnreadableFile) as raised:
            reader.infer_schema(file)
        assert str(raised.value).startswith(f"it is {words}"), raised.value


@pytest.mark.parametrize(
    ("found", "declared"),
    [
        (found, declared)
        for found in _BINARY
        for declared in _FORMATS
        if found != declared and not (found.startswith("compressed by") and declared in _OF_TEXT)
    ],
)
def test_binary_content_is_named(tmp_path: Path, found: str, declared: str) -> None:
    refused(tmp_path, _BINARY[found], _FORMATS[declared], declared=declared, found=found)


@pytest.mark.parametrize("declared", [name for name in _FORMATS if name != "text"])
@pytest.mark.parametrize("found", _MARKUP)
def test_markup_is_named(tmp_path: Path, found: str, declared: str) -> None:
    refused(tmp_path, _MARKUP[found], _FORMATS[declared], declared=declared, found=found)


@pytest.mark.parametrize("codec", COMPRESSIONS)
def test_content_inside_of_a_compression_is_named(tmp_path: Path, codec: str) -> None:
    refused(tmp_path, COMPRESSIONS[codec](_tar()), Csv(), declared="CSV", found="a tar archive")
    twice = COMPRESSIONS[codec](gzip.compress(_ROWS))
    refused(tmp_path, twice, Csv(), declared="CSV", found="compressed by gzip, not CSV: decompress it")
    refused(tmp_path, COMPRESSIONS[codec](_ROWS), Parquet(), declared="Parquet", found=f"compressed by {codec}")


def test_a_database_is_named(tmp_path: Path) -> None:
    refused(tmp_path, _sqlite(tmp_path), Csv(), declared="CSV", found="a SQLite database")


@pytest.mark.parametrize(
    "content", [b'{"a": 1, "b": 2}\n{"a": 3}\n', b'[{"a": 1},\n{"a": 2}]', b'{\n  "a": 1\n}\n', b'\n[\n {"a,b": 1}]']
)
def test_json_in_a_csv_source_is_named(tmp_path: Path, content: bytes) -> None:
    what = 'JSON, not CSV: declare the source with format="json"'
    refused(tmp_path, content, Csv(), declared="CSV", found=what)


@pytest.mark.parametrize("format", [Json(), Debezium()])
@pytest.mark.parametrize("content", [_ROWS, b"name;age\nann;7\n", b'"a"\t"b"\n1\t2\n', gzip.compress(_ROWS, mtime=0)])
def test_csv_in_a_json_source_is_named(tmp_path: Path, content: bytes, format: Format) -> None:
    what = 'CSV, not JSON: declare the source with format="csv"'
    refused(tmp_path, content, format, declared="JSON", found=what)


def test_one_bad_line_does_not_make_a_file_of_json_csv(tmp_path: Path) -> None:
    file = open_written(tmp_path, b'a,b\n{"id": 1}\n')
    pieces = list(reader_for(Json()).read(file, _SCHEMA))
    assert rows_of(pieces) == [{"id": 1, "n": None}]


@pytest.mark.parametrize(
    ("content", "format", "rows"),
    [
        (b'{"a":1}\t5\n', Csv(header=False, delimiter="\t"), [{"f0": '{"a":1}', "f1": 5}]),
        (b"ORC,PK\n1,2\n", Csv(), [{"ORC": 1, "PK": 2}]),
        (b"<5,>5\n1,2\n", Csv(), [{"<5": 1, ">5": 2}]),
        (b"[id],{n}\n1,2\n", Csv(), [{"[id]": 1, "{n}": 2}]),
        (b"GIF,%PDF\n1,2\n", Csv(), [{"GIF": 1, "%PDF": 2}]),
        (b"BZh9,a\n1,2\n", Csv(), [{"BZh9": 1, "a": 2}]),
        (b"<b>bold</b>, text\n", Text(), [{"value": "<b>bold</b>, text"}]),
        (b'{"a": 1}\n', Text(), [{"value": '{"a": 1}'}]),
    ],
)  # fmt: skip
def test_text_that_only_resembles_another_format_is_read(
    tmp_path: Path, content: bytes, format: Format, rows: list[dict[str, object]]
) -> None:
    file = open_written(tmp_path, content)
    reader = reader_for(format)
    assert rows_of(reader.read(file, reader.infer_schema(file))) == rows


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_text_without_its_encoding_is_named(tmp_path: Path, encoding: str) -> None:
    text = "id,n\r\n1,Específica\r\n" * 20
    file = open_written(tmp_path, text.encode(encoding))
    if encoding == "utf-32":
        with pytest.raises(UnreadableFile, match='its text is UTF-32: declare the format with encoding="utf-32"'):
            reader_for(Csv()).infer_schema(file)
    else:
        with pytest.raises(UnreadableFile, match=f'its text is UTF-16.*encoding="{encoding}"'):
            reader_for(Csv()).infer_schema(file)
    reader = reader_for(Csv(encoding=encoding))
    assert rows_of(reader.read(file, reader.infer_schema(file)))[0]["n"] == "Específica"
    for format in (Json(), Debezium()):
        with pytest.raises(UnreadableFile, match="JSON is UTF-8: write it again as UTF-8"):
            reader_for(format).infer_schema(file)


@pytest.mark.parametrize("format", [Parquet(), Avro(), Orc()], ids=lambda format: format.name)
@pytest.mark.parametrize("content", [b"id,n\n1,2\n", b"\xef\xbb\xbfid;n\r\n1;2\r\n", b"id\tn\n1\t2\n"])
def test_csv_in_a_binary_source_is_named(tmp_path: Path, content: bytes, format: Format) -> None:
    with pytest.raises(UnreadableFile, match=r'it is CSV, not .*format="csv"'):
        reader_for(format).infer_schema(open_written(tmp_path, content))
