"""Compressed text: padding, several streams in one file, and damage."""

from __future__ import annotations

import gzip
import lzma
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from actors.file_errors import UnreadableFile
from actors.formats.options import Csv
from actors.formats.text.csv import CsvReader
from actors.rows import Offset
from actors.settings import MIB
from tests.actors.formats.written_files import open_written, table_of

_SCHEMA = pa.schema([("id", pa.int64()), ("word", pa.string())])
_WORDS = random.Random(5)
_TABLE = pa.table({"id": range(20_000), "word": [f"{_WORDS.random()}" for _ in range(20_000)]}, schema=_SCHEMA)
_LINES = [f"{row['id']},{row['word']}\n".encode() for row in _TABLE.to_pylist()]
_TEXT = b"id,word\n" + b"".join(_LINES)
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "xz": lzma.compress}


@pytest.mark.parametrize("block_bytes", [1_000, 8 * MIB])
@pytest.mark.parametrize("padding", [b"", b"\0", bytes(511), bytes(200_000)], ids=len)
@pytest.mark.parametrize("codec", _COMPRESS)
def test_streams_one_behind_the_other_with_zeros_between_and_behind_them_are_read(
    tmp_path: Path, codec: str, padding: bytes, block_bytes: int
) -> None:
    middle = len(_TEXT) // 2
    parts = [_COMPRESS[codec](part) for part in (_TEXT[:middle], _TEXT[middle:])]
    file = open_written(
        tmp_path, parts[0] + padding + parts[1] + padding, whole_object_bytes=block_bytes, block_bytes=10 * block_bytes
    )
    for start in (0, 13_333):
        pieces = list(CsvReader(Csv()).read(file, _SCHEMA, Offset(start), piece_bytes=50_000))
        assert table_of(pieces) == _TABLE.slice(start)


@pytest.mark.parametrize("codec", _COMPRESS)
@pytest.mark.parametrize("end", [b"x", bytes(3) + b"x", b"\x1f\x8b\x08\x00", b"\xfd7zXZ\x00\x00"])
def test_other_bytes_behind_the_last_stream_are_damage(tmp_path: Path, codec: str, end: bytes) -> None:
    file = open_written(tmp_path, _COMPRESS[codec](_TEXT) + end)
    with pytest.raises(UnreadableFile):
        list(CsvReader(Csv()).read(file, _SCHEMA))


@pytest.mark.parametrize("codec", _COMPRESS)
def test_a_stream_that_ends_early_is_damage_behind_its_rows(tmp_path: Path, codec: str) -> None:
    content = _COMPRESS[codec](_TEXT)
    file = open_written(tmp_path, content[: len(content) // 2])
    rows = 0
    with pytest.raises(UnreadableFile):
        for piece in CsvReader(Csv()).read(file, _SCHEMA, piece_bytes=10_000):
            rows += piece.table.num_rows
    assert rows > 5_000


def test_a_decoder_that_takes_much_memory_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    file = open_written(tmp_path, lzma.compress(_TEXT, filters=filters))
    with pytest.raises(UnreadableFile, match=r"[Mm]emory usage limit"):
        CsvReader(Csv()).infer_schema(file)
