"""Bytes that change on the way: a file is read, or read up to a row, or refused; nothing else, whatever they are."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from actors.file_errors import EmptyFile, UnreadableFile
from actors.formats.registry import reader_for
from actors.rows import Offset
from actors.settings import ReadLimits
from state.errors import SchemaError
from tests.actors.formats.written_files import KINDS, FileKind, flights, open_written
from tests.cases import few

_ROWS = 60
# What a few KiB may become; a damaged length asks for gigabytes.
SHORT = ("parquet", "parquet-zstd", "csv", "avro-null", "avro-deflate", "orc-uncompressed", "orc-zstd")
_LIMITS = ReadLimits(max_batch_bytes=1 << 20, max_record_bytes=1 << 20, max_columns=100)


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The content with one to four damages."""
    damage = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(damage)) if damage else 0
        # Headers and footers decide more than what is between.
        if chance.random() < 0.4 and damage:
            at = chance.choice([chance.randrange(min(64, len(damage))), -1 - chance.randrange(min(600, len(damage)))])
        how = chance.randrange(5)
        if how == 0 and damage:
            damage[at] ^= 1 << chance.randrange(8)
        elif how == 1 and damage:
            damage[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
        elif how == 2:
            del damage[at:]
        elif how == 3:
            damage[at:at] = chance.randbytes(chance.randint(1, 9))
        else:
            damage[at : at + chance.randint(1, 9)] = b""
    return bytes(damage)


def read_damaged(directory: Path, kind: FileKind, content: bytes, whole_object_bytes: int) -> None:
    """Reads a damaged file, from its start and from a later row."""
    reader = reader_for(kind.format, _LIMITS)
    schema = flights(0).schema
    file = open_written(directory, content, whole_object_bytes=whole_object_bytes, block_bytes=700)
    try:
        reader.infer_schema(file)
    except (UnreadableFile, EmptyFile, SchemaError):
        pass
    for offset_rows in (0, 23):
        try:
            for piece in reader.read(file, schema, Offset(offset_rows), 500):
                assert piece.table.schema.equals(schema) and piece.num_rows > 0
                piece.table.validate(full=True)
        except UnreadableFile as error:
            assert "\n" not in str(error) and len(str(error)) < 1_000


@pytest.mark.more_after(1)
@pytest.mark.parametrize("kind", few(KINDS, *SHORT), ids=lambda kind: kind.name)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.more) for seed in range(1, 6))])
def test_no_damage_does_more_than_make_a_file_unreadable(tmp_path: Path, kind: FileKind, seed: int) -> None:
    chance = random.Random(seed)
    content = kind.write(flights(_ROWS))
    for _ in range(60):
        damage = damaged(content, chance)
        (tmp_path / "kept").write_bytes(damage)  # for whoever has to look at a crash
        read_damaged(tmp_path, kind, damage, chance.choice([1, 1 << 20]))


@pytest.mark.more_after(2)
@pytest.mark.parametrize("kind", few(KINDS, *SHORT), ids=lambda kind: kind.name)
def test_every_prefix_of_a_file_is_its_first_rows_or_refused(tmp_path: Path, kind: FileKind) -> None:
    table = flights(_ROWS)
    content = kind.write(table)
    rows = table.to_pylist()
    for size in range(1, len(content), max(1, len(content) // 150)):
        read: list[object] = []
        try:
            for piece in reader_for(kind.format, _LIMITS).read(open_written(tmp_path, content[:size]), table.schema):
                read += piece.table.to_pylist()
        except UnreadableFile:
            pass
        # A text that is cut within its last line may end in a shorter value of it.
        assert read[:-1] == rows[: max(0, len(read) - 1)]
