"""The ends of CSV records equal the ends that Arrow's parser sees, at any cut of the text, except at faults."""

from __future__ import annotations

import random
import re

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
@pytest.mark.parametrize("window_bytes", few([1, 2, 3, 7, 1 << 18], 3))
def test_ends_are_found_in_windows_of_any_size(monkeypatch: pytest.MonkeyPatch, window_bytes: int) -> None:
    monkeypatch.setattr(csv_records, "_WINDOW_BYTES", window_bytes)
    monkeypatch.setattr(csv_records, "_SMALL_WINDOW_BYTES", window_bytes)
    monkeypatch.setattr(csv_records, "_FIRST_LOOK_BYTES", min(window_bytes, 5))
    chance = random.Random(window_bytes)
    records = CsvRecords(";", '"', finds_faults=False)
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
    records = CsvRecords(",", '"', finds_faults=False)
    fields = (b"a", b'"b"', b'"c""d"', b'"e\nf"', b'""', b'"g,h"', b'i"j', b'"k"l"')
    for _ in range(2_000):
        lines = [b",".join(chance.choices(fields, k=3)) for _ in range(chance.randrange(1, 8))]
        text = chance.choice((b"\n", b"\r\n")).join(lines)
        ends = _ends(text, b",", ord('"'))
        assert records.last_end(text) == (ends[-1] if ends else 0), text


def test_arrow_sees_as_many_records() -> None:
    chance = random.Random(0)
    records = CsvRecords(",", '"', finds_faults=False)
    options = arrow_csv.ParseOptions(newlines_in_values=True)
    for _ in range(500):
        lines = [b",".join(chance.choices((b"a", b'"b"', b'"c""d"', b'"e\nf"', b'i"j'), k=2)) for _ in range(5)]
        text = b"".join(line + chance.choice((b"\n", b"\r\n", b"\r")) for line in lines) + b"x,y\n"
        table = arrow_csv.read_csv(
            pa.BufferReader(text), arrow_csv.ReadOptions(column_names=["a", "b"]), parse_options=options
        )
        assert len(records.ends(text)) == table.num_rows == 6, text


_Record = tuple[int, int, str | None]


def _line_end(text: bytes, start: int, *, is_end: bool) -> int | None:
    for at in range(start, len(text)):
        if text[at] == 10:
            return at + 1
        if text[at] == 13:
            if at + 1 == len(text):
                return len(text) if is_end else None
            return at + 2 if text[at + 1] == 10 else at + 1
    return len(text) if is_end else None


def _closing(text: bytes, opening: int, escape: int | None) -> int | None:
    """The quote that closes a field."""
    at = opening + 1
    while at < len(text):
        if text[at] == escape:
            run = len(text) - at - len(text[at:].lstrip(bytes([escape])))
            at += run
            at += run % 2 == 1 and text[at : at + 1] == b'"'
        elif text[at : at + 2] == b'""':
            at += 2
        elif text[at] == ord('"'):
            return at
        else:
            at += 1
    return None


def _record(text: bytes, start: int, escape: int | None, most: int, *, is_end: bool) -> _Record | None:
    """The record at a position with its fault, field by field; None if it is not complete."""
    at, begins = start, True
    while at < len(text):
        if begins and text[at] == ord('"'):
            opening, line = at, _line_end(text, at, is_end=is_end)
            closing = _closing(text, opening, escape)
            reached = len(text) if closing is None else closing + 1
            has_lines = line is not None and line < reached + (closing is None and is_end)
            is_long = has_lines and reached - start > most and line is not None and line - start <= most
            if closing is None and not is_end and not is_long:
                return None
            if closing is None or is_long:
                return None if line is None else (start, line, "open")
            at, begins = closing + 1, False
            rest = re.match(rb"[^;\r\n]*", text[at:])
            assert rest is not None
            if rest[0] and (has_lines or b'"' in rest[0]):
                return None if line is None else (start, line, "text")
        elif text[at] in b"\r\n":
            end = _line_end(text, at, is_end=False)
            return None if end is None else (start, end, None)
        else:
            begins = text[at] == ord(";")
            at += 1
    return None


def _records(text: bytes, escape: int | None, comment: int | None, most: int, *, is_end: bool) -> list[_Record]:
    found: list[_Record] = []
    at = 0
    while at < len(text):
        if text[at] == comment:
            line = _line_end(text, at, is_end=False)
            record: _Record | None = None if line is None else (at, line, None)
        else:
            record = _record(text, at, escape, most, is_end=is_end)
        if record is None:
            break
        found.append(record)
        at = record[1]
    return found


@pytest.mark.parametrize("seed", few(range(24), 6))
def test_faults_end_with_their_line_wherever_the_text_is_cut(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(csv_records, "_WINDOW_BYTES", chance.choice([1, 2, 3, 7, 64, 1 << 18]))
    monkeypatch.setattr(csv_records, "_SMALL_WINDOW_BYTES", chance.choice([1, 5, 1 << 12]))
    monkeypatch.setattr(csv_records, "_FIRST_LOOK_BYTES", chance.choice([1, 2, 5, 1 << 12]))
    escape, comment = chance.choice([None, "\\"]), chance.choice([None, "#"])
    most = chance.choice([1_000, 1_000, 12, 20])
    records = CsvRecords(";", '"', escape, comment, max_bytes=most)
    options = ord(escape) if escape else None, ord(comment) if comment else None, most
    for _ in range(100):
        text = bytes(chance.choices(b'"";\n\ra' + chance.choice((b"", b"\\", b"#", b"#\\")), k=chance.randrange(60)))
        whole, begun = (_records(text, *options, is_end=is_end) for is_end in (True, False))
        assert records.ends(text).tolist() == [end for _, end, _ in whole], text
        fault = records.first_fault(text)
        faults = [(start, kind) for start, _, kind in whole if kind]
        assert [(fault.start, fault.kind)] == faults[:1] if fault else not faults, text
        assert records.last_end(text) == (begun[-1][1] if begun else 0), text
        assert records.first_end(text) == (begun[0][1] if begun else 0), text
        if escape is None:
            rest = text[whole[-1][1] if whole else 0 :]
            rest = b"" if rest[:1] == b"#" and comment else rest
            rows = [text[start:end] for start, end, kind in whole if kind is None and text[start] != options[1]]
            assert bytes(records.plain(text)) == b"".join([*rows, rest]), text


def test_a_fault_before_the_end_of_a_text_is_seen_from_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "_FIRST_LOOK_BYTES", 13)
    text = b'"#"a"aa;"a\n"\n#\r\r'
    assert CsvRecords(";", '"').last_end(b"x\n" + text) == 2 + text.index(b"\n") + 1
