"""The ends of CSV records are those that Arrow's parser sees, wherever the text is cut."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest

from actors.formats.text import csv_records
from actors.formats.text.csv_records import CsvRecords
from tests.cases import few

_ALPHABET = b'"",;\n\ra'


def _ends(text: bytes, delimiter: bytes, quote: int) -> list[int]:
    """The ends, byte by byte."""
    ends, is_quoted, skipped = [], False, -1
    for at, byte in enumerate(text):
        following = text[at + 1 : at + 2]
        if byte == quote and is_quoted and at != skipped:
            if following == bytes([quote]):
                skipped = at + 1
            else:
                is_quoted = False
        elif byte == quote and not is_quoted:
            is_quoted = at == 0 or text[at - 1] in (*delimiter, *b"\r\n")
        elif not is_quoted and (byte == ord("\n") or (byte == ord("\r") and following not in (b"\n", b""))):
            ends.append(at + 1)
    return ends


@pytest.mark.more
@pytest.mark.parametrize("segment_bytes", few([1, 2, 3, 7, 1 << 18], 3))
def test_ends_are_found_in_segments_of_any_size(monkeypatch: pytest.MonkeyPatch, segment_bytes: int) -> None:
    monkeypatch.setattr(csv_records, "_SEGMENT_BYTES", segment_bytes)
    monkeypatch.setattr(csv_records, "_FIRST_LOOK_BYTES", min(segment_bytes, 5))
    chance = random.Random(segment_bytes)
    records = CsvRecords(";", '"')
    for _ in range(3_000):
        text = bytes(chance.choices(_ALPHABET, k=chance.randrange(40)))
        ends = _ends(text, b";", ord('"'))
        assert records.ends(text).tolist() == ends, text
        assert records.first_end(text) == (ends[0] if ends else 0), text
        assert records.last_end(text) == (ends[-1] if ends else 0), text


@pytest.mark.more_after(1)
@pytest.mark.parametrize("look_bytes", [2, 5, 1 << 12])
def test_the_last_end_is_told_from_the_end_of_the_text(monkeypatch: pytest.MonkeyPatch, look_bytes: int) -> None:
    monkeypatch.setattr(csv_records, "_FIRST_LOOK_BYTES", look_bytes)
    chance = random.Random(look_bytes)
    records = CsvRecords(",", '"')
    fields = (b"a", b'"b"', b'"c""d"', b'"e\nf"', b'""', b'"g,h"', b'i"j', b'"k"l"')
    for _ in range(2_000):
        lines = [b",".join(chance.choices(fields, k=3)) for _ in range(chance.randrange(1, 8))]
        text = chance.choice((b"\n", b"\r\n")).join(lines)
        ends = _ends(text, b",", ord('"'))
        assert records.last_end(text) == (ends[-1] if ends else 0), text


def test_arrow_sees_as_many_records() -> None:
    chance = random.Random(0)
    records = CsvRecords(",", '"')
    options = arrow_csv.ParseOptions(newlines_in_values=True)
    for _ in range(500):
        lines = [b",".join(chance.choices((b"a", b'"b"', b'"c""d"', b'"e\nf"', b'i"j'), k=2)) for _ in range(5)]
        text = b"".join(line + chance.choice((b"\n", b"\r\n", b"\r")) for line in lines) + b"x,y\n"
        table = arrow_csv.read_csv(
            pa.BufferReader(text), arrow_csv.ReadOptions(column_names=["a", "b"]), parse_options=options
        )
        assert len(records.ends(text)) == table.num_rows == 6, text
