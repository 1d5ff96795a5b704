"""Limits of reading: a hostile file is refused with the limit named, and memory stays flat."""

from __future__ import annotations

import gzip
import random
import struct
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.file_errors import EmptyFile, UnreadableFile
from actors.formats.options import Csv, Text
from actors.formats.parquet.parquet_reader import ParquetReader
from actors.formats.text.csv import CsvReader
from actors.formats.text.json import JsonReader
from actors.formats.text.json_records import _Search, records
from actors.formats.text.json_rows import JsonRows
from actors.formats.text.text_reader import TextReader
from actors.rows import Offset
from actors.settings import MIB, ReadLimits
from state.errors import SchemaError
from tests.actors.formats.written_files import bad_of, open_written, rows_of
from tests.cases import few

_INT = pa.schema([("a", pa.int64())])
_TEXT = pa.schema([("a", pa.string())])
_SMALL = ReadLimits(max_batch_bytes=4 * MIB)
_WHOLE, _BLOCKS = 8 * MIB, 1_000


@pytest.fixture
def memory() -> Iterator[None]:
    """What the test takes from Arrow at its worst stays far below what the file asks for."""
    pool = pa.default_memory_pool()
    peak_before = pool.max_memory()
    yield
    # A peak of earlier tests may be higher; then this one has not reached even that.
    assert pool.max_memory() <= max(peak_before, pool.bytes_allocated() + 1_500 * MIB)


def _parquet(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _one_long_text(rows: int, text_bytes: int) -> pa.Table:
    indices = pa.array([0] * rows, pa.int32())
    return pa.table({"a": pa.DictionaryArray.from_arrays(indices, pa.array(["x" * text_bytes]))})


# Parquet


@pytest.mark.parametrize("whole_object_bytes", [_WHOLE, _BLOCKS])
@pytest.mark.parametrize("compression", ["zstd", "gzip", "snappy"])
def test_a_dictionary_that_unfolds_to_100_gb_ends_at_the_limit(
    tmp_path: Path, memory: None, compression: str, whole_object_bytes: int
) -> None:
    content = _parquet(_one_long_text(1_000_000, 100_000), compression=compression)
    assert len(content) < 20_000
    file = open_written(tmp_path, content, whole_object_bytes=whole_object_bytes, block_bytes=_BLOCKS)
    rows = 0
    with pytest.raises(UnreadableFile, match=r"more than 1000 times as many .ReadLimits.max_expansion"):
        for piece in ParquetReader(_SMALL).read(file, _TEXT):
            assert piece.table.nbytes < 20 * MIB
            rows += piece.num_rows
    assert 0 < rows < 10_000


def test_a_long_text_in_few_rows_is_read(tmp_path: Path) -> None:
    table = _one_long_text(20, 100_000)
    file = open_written(tmp_path, _parquet(table))
    assert rows_of(list(ParquetReader(_SMALL).read(file, _TEXT))) == table.to_pylist()


def test_one_text_larger_than_a_batch_is_refused(tmp_path: Path) -> None:
    file = open_written(tmp_path, _parquet(_one_long_text(1_000, 5 * MIB), compression="gzip"))
    with pytest.raises(UnreadableFile, match=r"ReadLimits.max_batch_bytes"):
        list(ParquetReader(_SMALL).read(file, _TEXT))


@pytest.mark.more
@pytest.mark.parametrize("whole_object_bytes", [_WHOLE, _BLOCKS])
def test_incremental_texts_that_unfold_to_500_mb_end_at_the_limit(
    tmp_path: Path, memory: None, whole_object_bytes: int
) -> None:
    texts = pa.array(["x" * 100_000]).take(pa.array([0] * 5_000))
    content = _parquet(
        pa.table({"a": texts}),
        use_dictionary=False,
        column_encoding={"a": "DELTA_BYTE_ARRAY"},
        compression="zstd",
        data_page_size=200_000,
    )
    assert len(content) < 60_000
    file = open_written(tmp_path, content, whole_object_bytes=whole_object_bytes, block_bytes=_BLOCKS)
    with pytest.raises(UnreadableFile, match=r"ReadLimits.max_expansion"):
        for piece in ParquetReader(_SMALL).read(file, _TEXT):
            assert piece.table.nbytes < 40 * MIB


@pytest.mark.more
def test_half_a_gigabyte_of_nulls_in_100_kb_come_in_pieces_and_end_at_the_limit(tmp_path: Path, memory: None) -> None:
    content = _parquet(pa.table({"a": pa.nulls(60_000_000, pa.int64())}), compression="zstd")
    assert len(content) < 200_000
    rows = 0
    with pytest.raises(UnreadableFile, match=r"ReadLimits.max_expansion"):
        for piece in ParquetReader().read(open_written(tmp_path, content), _INT):
            assert piece.table.nbytes <= 20 * MIB
            rows += piece.num_rows
    assert 30_000_000 < rows < 60_000_000


@pytest.mark.parametrize("whole_object_bytes", [_WHOLE, _BLOCKS])
def test_a_page_that_decompresses_to_more_than_the_limit_is_refused_unread(
    tmp_path: Path, memory: None, whole_object_bytes: int
) -> None:
    table = pa.table({"a": pa.array(["x" * 1_000] * 40_000)})
    content = _parquet(table, compression="zstd", use_dictionary=False, data_page_size=1 << 30)
    file = open_written(tmp_path, content, whole_object_bytes=whole_object_bytes, block_bytes=_BLOCKS)
    with pytest.raises(UnreadableFile, match=r"column a: a page takes \d+ bytes .*ReadLimits.max_batch_bytes"):
        list(ParquetReader(ReadLimits(max_batch_bytes=MIB)).read(file, _TEXT))
    assert rows_of(list(ParquetReader().read(file, _TEXT)))[-1] == {"a": "x" * 1_000}


def test_a_row_of_many_elements_is_refused(tmp_path: Path, memory: None) -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 3_000_000], pa.int32()), pa.nulls(3_000_000, pa.int64()))
    content = _parquet(pa.table({"a": lists}), data_page_size=1 << 30, write_batch_size=1 << 30)
    assert len(content) < 10_000
    with pytest.raises(UnreadableFile, match=r"ReadLimits.max_batch_bytes"):
        list(ParquetReader(_SMALL).read(open_written(tmp_path, content), pa.schema([("a", pa.list_(pa.int64()))])))


def test_too_many_columns_in_parquet_are_refused(tmp_path: Path) -> None:
    file = open_written(tmp_path, _parquet(pa.table({f"c{number}": [1] for number in range(101)})))
    reader = ParquetReader(ReadLimits(max_columns=100))
    with pytest.raises(UnreadableFile, match=r"101 columns, more than 100 .ReadLimits.max_columns"):
        reader.infer_schema(file)
    with pytest.raises(UnreadableFile, match=r"ReadLimits.max_columns"):
        list(reader.read(file, pa.schema([("c1", pa.int64())])))


def test_a_schema_that_is_too_deep_is_refused(tmp_path: Path) -> None:
    kind = pa.int64()
    for _ in range(70):
        kind = pa.struct([("f", kind)])
    file = open_written(tmp_path, _parquet(pa.table({"a": pa.nulls(1, kind)})))
    with pytest.raises(UnreadableFile):
        ParquetReader().infer_schema(file)
    assert ParquetReader(ReadLimits(max_nesting=80)).infer_schema(file).names == ["a"]


def test_what_arrow_cannot_say_in_python_is_refused(tmp_path: Path) -> None:
    content = _parquet(pa.table({"columnname": [1]}), store_schema=False)
    # Not UTF-8; a codec that nobody knows, for which to ask Arrow ends the process.
    for damage in (
        content.replace(b"columnname", b"column\xff\xff\xff\xff"),
        content.replace(b"\x15\x02\x16", b"\x15\x42\x16"),
    ):
        assert damage != content
        with pytest.raises(UnreadableFile):
            list(ParquetReader().read(open_written(tmp_path, damage), pa.schema([("columnname", pa.int64())])))


@pytest.mark.parametrize("footer_bytes", [0, 2**31, 2**32 - 1])
def test_a_footer_of_absurd_size_is_refused(tmp_path: Path, memory: None, footer_bytes: int) -> None:
    content = _parquet(pa.table({"a": [1]}))[:-8] + struct.pack("<I", footer_bytes) + b"PAR1"
    with pytest.raises(UnreadableFile, match="not a Parquet file"):
        list(ParquetReader().read(open_written(tmp_path, content), _INT))


# Text


@pytest.mark.parametrize(
    "reader", [JsonReader(), pytest.param(CsvReader(Csv()), marks=pytest.mark.more)], ids=["json", "csv"]
)
@pytest.mark.parametrize("codec", few(["gzip", "zstd"], "zstd"))
def test_a_compressed_file_that_becomes_too_much_is_refused(
    tmp_path: Path, memory: None, reader: Any, codec: str
) -> None:
    text = b"a\n1\n" if isinstance(reader, CsvReader) else b'{"a": "1"}\n'
    text += b"\n" * (270 * MIB)
    content = gzip.compress(text, 1) if codec == "gzip" else pa.Codec("zstd").compress(text, asbytes=True)
    assert len(content) < 3 * MIB
    limits = ReadLimits(max_expansion=50)
    reader = JsonReader(limits) if isinstance(reader, JsonReader) else CsvReader(Csv(), limits)
    with pytest.raises(UnreadableFile, match=r"more than 50 times as many .ReadLimits.max_expansion"):
        list(reader.read(open_written(tmp_path, content), _TEXT))


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("kind", ["json", "csv"])
def test_a_line_without_end_is_refused(tmp_path: Path, memory: None, kind: str, compress: bool) -> None:
    limits = ReadLimits(max_record_bytes=100_000)
    if kind == "json":
        text = b'{"a": "1"}\n' * 20 + b'{"a": "' + b"x" * 500_000 + b'"}\n'
    else:
        text = b"a\n" + b"1\n" * 20 + b"x" * 500_000 + b"\n"
    reader = JsonReader(limits) if kind == "json" else CsvReader(Csv(), limits)
    file = open_written(tmp_path, gzip.compress(text) if compress else text)
    for piece_bytes in (64, 10_000, 8 * MIB):
        rows = []
        with pytest.raises(UnreadableFile, match=r"a line is longer than 100000 bytes .ReadLimits.max_record_bytes"):
            for piece in reader.read(file, _TEXT, Offset(), piece_bytes):
                rows += piece.table.to_pylist()
        assert rows == [{"a": "1"}] * len(rows)
    assert len(list((JsonReader() if kind == "json" else CsvReader(Csv())).read(file, _TEXT))) == 1


def test_a_header_without_end_or_with_too_many_columns_is_refused(tmp_path: Path) -> None:
    reader = CsvReader(Csv(), ReadLimits(max_columns=1_000, max_record_bytes=200_000))
    for content, limit in [
        (b",".join(b"c%d" % number for number in range(1_001)) + b"\n1\n", "it has more than 1000 columns"),
        (b"c" * 300_000, "a line is longer than 200000 bytes"),
        (b"\n" * 300_000 + b"a\n", "a line is longer than 200000 bytes"),
    ]:
        file = open_written(tmp_path, content)
        with pytest.raises(UnreadableFile, match=limit):
            reader.infer_schema(file)
        with pytest.raises(UnreadableFile, match=limit):
            list(reader.read(file, _TEXT))


@pytest.mark.parametrize("levels", [65, 20_000, 1_000_000])
@pytest.mark.parametrize("brackets", [("[", "]"), ('{"x":', "}")], ids=["lists", "objects"])
def test_deep_json_is_refused_and_does_not_overflow_the_stack(
    tmp_path: Path, brackets: tuple[str, str], levels: int
) -> None:
    deep = brackets[0] * levels + "1" + brackets[1] * levels
    file = open_written(tmp_path, f'{{"a": 1}}\n{{"a": 2, "b": {deep}}}\n'.encode())
    limit = r"more than 64 levels .ReadLimits.max_nesting|of memory to find its columns .ReadLimits.max_batch_bytes"
    with pytest.raises(UnreadableFile, match=rf"row 2: .*({limit})"):
        JsonReader().infer_schema(file)
    # With a schema, the column is left out as any other extra one, however deep it is.
    assert rows_of(list(JsonReader().read(file, _INT))) == [{"a": 1}, {"a": 2}]
    # A line that only looks like JSON, and is deep where it does not.
    file = open_written(tmp_path, f"{{'a': {deep}\n".encode())
    with pytest.raises(UnreadableFile):
        JsonReader().infer_schema(file)


@pytest.mark.parametrize("separator", [",", "}\n{"], ids=["in one line", "one a line"])
def test_too_many_json_columns_are_refused_before_they_are_built(tmp_path: Path, memory: None, separator: str) -> None:
    text = "{" + separator.join(f'"c{number}": 1' for number in range(200_000)) + "}\n"
    with pytest.raises(UnreadableFile, match=r"more than 10000 columns .ReadLimits.max_columns"):
        JsonReader().infer_schema(open_written(tmp_path, text.encode()))


@pytest.mark.more
def test_many_columns_over_many_lines_are_inferred_from_the_first_lines(tmp_path: Path, memory: None) -> None:
    lines = [f'{{"c{number}": 1}}' for number in range(3_000)] + ["{}"] * 1_000_000
    schema = JsonReader().infer_schema(open_written(tmp_path, "\n".join(lines).encode()))
    assert schema.names == [f"c{number}" for number in range(3_000)]


@pytest.mark.more
@pytest.mark.parametrize("kind", ["json", "csv"])
def test_short_lines_do_not_fill_a_wide_schema_without_bound(tmp_path: Path, memory: None, kind: str) -> None:
    schema = pa.schema([("a", pa.int64()), *((f"c{number}", pa.int64()) for number in range(2_000))])
    rows = 10_000
    if kind == "json":
        file, reader = open_written(tmp_path, b'{"a":1}\n' * rows), JsonReader(_SMALL)
    else:
        file, reader = open_written(tmp_path, b"a\n" + b"1\n" * rows), CsvReader(Csv(), _SMALL)  # type: ignore[assignment]
    read = 0
    for piece in reader.read(file, schema):
        assert piece.table.nbytes < 64 * MIB
        read += piece.num_rows
    assert read == rows


_PARTS = [*'{}[]1:,"\0\n \ufeff', "\r\n", "null", "NaN", '"a"', '{"a":', '{"a":1}\n']


@pytest.mark.more
@pytest.mark.parametrize("kind", ["json", "csv"])
def test_nothing_that_looks_like_text_ends_its_reader(tmp_path: Path, kind: str) -> None:
    chance = random.Random(kind)
    reader = JsonReader() if kind == "json" else CsvReader(Csv())
    for _ in range(600):
        text = "".join(chance.choices(_PARTS, k=chance.randrange(1, 20)))
        file = open_written(tmp_path, text.encode())
        with suppress(UnreadableFile, EmptyFile, SchemaError):
            reader.infer_schema(file)
        for every_column in (False, True):
            with suppress(UnreadableFile):
                list(reader.read(file, _INT, piece_bytes=chance.choice((10, MIB)), every_column=every_column))


# Time


_BOMB_BYTES = 20 * MIB
_BOMBS = {
    "line feeds in quotes": b'a\n"' + b"\n" * _BOMB_BYTES + b'"\n',
    "line feeds in many quotes": b"a\n" + b'"\n"' * (_BOMB_BYTES // 3) + b"\n",
    "doubled quotes": b'a\n"' + b'""' * (_BOMB_BYTES // 2) + b'"\n',
    "a stray quote": b'a\nx"y\n"' + b"\n" * _BOMB_BYTES + b'"\n',
    "quotes that open": b"a\n" + b'"\n",' * (_BOMB_BYTES // 4) + b"\n",
    "empty lines before the header": b"\n" * _BOMB_BYTES + b"a\n1\n",
    "a header without end": b"a" * _BOMB_BYTES,
}


@pytest.mark.more_after(1)
@pytest.mark.parametrize("bomb", few(_BOMBS, "line feeds in quotes", "a stray quote"))
@pytest.mark.parametrize("piece_bytes", few([8 * MIB, 64 * 1024], 64 * 1024))
def test_csv_takes_time_in_proportion_to_its_length(tmp_path: Path, bomb: str, piece_bytes: int) -> None:
    file = open_written(tmp_path, gzip.compress(_BOMBS[bomb], 6))
    assert file.size < 100_000
    reader = CsvReader(Csv(), ReadLimits(max_cpu_s_per_mib=10.0))
    try:
        for piece in reader.read(file, _TEXT, piece_bytes=piece_bytes):
            assert piece.num_rows
    except UnreadableFile as error:
        assert "max_cpu_s_per_mib" not in str(error)


@pytest.mark.more
@pytest.mark.parametrize("content", [b'{"b":[' + b"{}," * 4_000_000 + b"{}]}\n", b'["' + b'a","' * 4_000_000 + b'"]\n'])
def test_python_parses_no_json_that_would_fill_its_memory(tmp_path: Path, content: bytes) -> None:
    file = open_written(tmp_path, gzip.compress(content))
    limits = ReadLimits(max_batch_bytes=64 * MIB)
    tracemalloc.start()
    with pytest.raises(UnreadableFile, match=r"row 1: its \d+ bytes of JSON .*max_batch_bytes.; declare a schema"):
        JsonReader(limits).infer_schema(file)
    for every_column in (False, True):
        rows = list(JsonReader(limits).read(file, _TEXT, every_column=every_column))
        assert sum(piece.num_rows for piece in rows) == 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 256 * MIB


@pytest.mark.parametrize("content", [b"a\n1\n", gzip.compress(b"a\n" + b"1\n" * 1_000)], ids=["csv", "csv.gz"])
def test_a_file_that_takes_more_cpu_time_than_allowed_is_refused(tmp_path: Path, content: bytes) -> None:
    limits = ReadLimits(max_cpu_s_per_mib=1e-9)
    for reader in (CsvReader(Csv(), limits), JsonReader(limits), TextReader(Text(), limits)):
        with pytest.raises(UnreadableFile, match=r"more than 1e-09 CPU seconds for each MiB .*max_cpu_s_per_mib"):
            list(reader.read(open_written(tmp_path, content), _TEXT))


@pytest.mark.more
def test_the_time_between_two_pieces_does_not_count(tmp_path: Path) -> None:
    file = open_written(tmp_path, b"a\n" + b"1\n" * 100_000)
    pieces = CsvReader(Csv(), ReadLimits(max_cpu_s_per_mib=0.5)).read(file, _TEXT, piece_bytes=1_000)
    next(pieces)
    until_s = time.thread_time() + 1.0
    while time.thread_time() < until_s:
        pass
    assert sum(piece.num_rows for piece in pieces) > 0


# Time and memory of JSON


class _TimeIsUp(Exception):
    pass


def _time_is_up() -> None:
    raise _TimeIsUp


_MANY = 2_000
_SEARCHES = {
    "commas": b"[" + b"," * _MANY,
    "nulls": b"null " * _MANY,
    "nulls of an array": b"[" + b"null," * _MANY,
    "quotes": b'"\n' * _MANY,
    "texts of an array": b'["a"' + b',"a"' * _MANY,
    "backslashes": b"\\\n" * _MANY,
    "lines that open objects": b'{"a":\n' * _MANY,
    "lines that open lists": b'{"a":[\n' + b"[\n" * _MANY,
    "text between objects": b'{"a":1} x\n' * _MANY,
    "a key": b'{"' + b"k" * _MANY + b'": 1}\n',
}


@pytest.mark.parametrize("search", _SEARCHES)
def test_every_search_for_records_looks_at_the_time(search: str) -> None:
    text = _SEARCHES[search]
    with pytest.raises(_TimeIsUp):
        records(
            text,
            is_start=True,
            is_last=True,
            of_array=text.startswith(b"["),
            require_time=_time_is_up,
            most_bad=10 * _MANY,
        )


@pytest.mark.parametrize("line", [b'{"a":\n', b"[\n"], ids=["objects", "lists"])
@pytest.mark.parametrize("end", [b"", b"1 {\n"], ids=["no end", "a bracket that JSON does not allow"])
def test_lines_that_open_brackets_are_searched_in_linear_time(
    monkeypatch: pytest.MonkeyPatch, line: bytes, end: bytes
) -> None:
    cannot_open, steps = _Search._cannot_open, 0

    def counted(self: _Search, within: int, kind: int, last: int, position: int) -> bool:
        nonlocal steps
        steps += 1
        return cannot_open(self, within, kind, last, position)

    monkeypatch.setattr(_Search, "_cannot_open", counted)
    for lines in (500, 1_000):
        steps = 0
        text = b'{"a":\n' + line * lines + end + b"]" * lines + b"\n"
        text = text if end else text.rstrip(b"]\n")
        found = records(
            text, is_start=True, is_last=True, of_array=False, require_time=lambda: None, most_bad=10 * lines
        )
        assert len(found.starts) >= lines
        assert lines <= steps <= 3 * lines


@pytest.mark.parametrize("lines", [4_000, 8_000])
def test_an_object_over_many_pieces_is_copied_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    is_decided, copied = JsonRows._is_decided, 0

    def counted(self: JsonRows, text: memoryview, is_last: bool) -> bool:
        nonlocal copied
        copied += len(text)
        return is_decided(self, text, is_last)

    monkeypatch.setattr(JsonRows, "_is_decided", counted)
    content = b'{"a": 1, "b": [\n' + b"1,\n" * lines + b"1]}\n"
    piece_bytes = len(content) // 4
    file = open_written(tmp_path, content)
    assert rows_of(list(JsonReader().read(file, _INT, piece_bytes=piece_bytes))) == [{"a": 1}]
    assert copied <= 5 * len(content)


@pytest.mark.parametrize("levels", [199, 300, 5_000])
@pytest.mark.parametrize("bad", [b"", b"bad\n"], ids=["alone", "with a bad record"])
def test_an_object_over_lines_is_read_at_any_depth(tmp_path: Path, levels: int, bad: bytes) -> None:
    deep = b'{"a": 1, "b":\n' + b'{"b":\n' * levels + b"2" + b"\n}" * (levels + 1) + b"\n"
    pieces = list(JsonReader().read(open_written(tmp_path, deep + bad + b'{"a": 3}\n'), _INT))
    assert rows_of(pieces) == [{"a": 1}, {"a": 3}]
    assert len(bad_of(pieces)) == (1 if bad else 0)


def test_missing_elements_of_an_array_count_as_bad_records(tmp_path: Path) -> None:
    file = open_written(tmp_path, b'[{"a": 1}' + b"," * 12 + b'{"a": 2}]')
    assert len(bad_of(list(JsonReader(ReadLimits(max_bad_records=11)).read(file, _INT)))) == 11
    with pytest.raises(
        UnreadableFile, match=r"row 12: more than 10 of its records are bad .ReadLimits.max_bad_records"
    ):
        list(JsonReader(ReadLimits(max_bad_records=10)).read(file, _INT))


@pytest.mark.parametrize("blank", [b" \n", b"\n", b"  \r\n"])
def test_blank_lines_before_the_first_record_take_no_memory(tmp_path: Path, blank: bytes) -> None:
    file = open_written(tmp_path, gzip.compress(blank * 1_000_000 + b'{"a": 1}\n'))
    tracemalloc.start()
    assert rows_of(list(JsonReader().read(file, _INT, piece_bytes=64 * 1024))) == [{"a": 1}]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MIB
    assert JsonReader().infer_schema(file).names == ["a"]


def test_a_blank_line_without_end_is_refused(tmp_path: Path) -> None:
    limits = ReadLimits(max_record_bytes=100_000)
    file = open_written(tmp_path, gzip.compress(b" " * 300_000))
    for read in (lambda: list(JsonReader(limits).read(file, _INT)), lambda: JsonReader(limits).infer_schema(file)):
        with pytest.raises(UnreadableFile, match=r"a line is longer than 100000 bytes .ReadLimits.max_record_bytes"):
            read()


_MAP = pa.schema([("a", pa.int64()), ("m", pa.map_(pa.string(), pa.int64()))])
_WIDE = pa.schema([("a", pa.int64()), *((f"c{number}", pa.int64()) for number in range(5_000))])


@pytest.mark.parametrize(
    ("record", "schema"),
    [(b'{"a": 1, "m": {"x": %s}}\n', _MAP), (b'{"a": %s}\n', _WIDE)],
    ids=["a map", "5,000 columns"],
)
def test_a_file_whose_every_second_record_is_bad_ends_at_the_limit(
    tmp_path: Path, record: bytes, schema: pa.Schema
) -> None:
    file = open_written(tmp_path, (record % b"1" + record % b'"x"') * 5_000)
    started_s = time.thread_time()
    with pytest.raises(UnreadableFile, match="max_cpu_s_per_mib"):
        list(JsonReader(ReadLimits(max_cpu_s_per_mib=0.2)).read(file, schema))
    assert time.thread_time() - started_s < 10


def test_a_header_of_csv_has_limits(tmp_path: Path) -> None:
    reader = CsvReader(Csv(), ReadLimits(max_columns=100, max_record_bytes=200_000))
    with pytest.raises(UnreadableFile, match=r"more than 100 columns \(ReadLimits.max_columns\)"):
        reader.infer_schema(open_written(tmp_path, b"," * 100 + b"\n"))
    with pytest.raises(UnreadableFile, match=r"longer than 200000 bytes \(ReadLimits.max_record_bytes\)"):
        reader.infer_schema(open_written(tmp_path, b"x" * 1_000_000 + b"\n1\n"))
