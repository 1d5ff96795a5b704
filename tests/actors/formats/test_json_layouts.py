"""Objects of a JSON file in each layout: in lines, over lines, side by side, in arrays; resumed at any row."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.file_errors import EmptyFile, UnreadableFile
from actors.formats.json_layout import json_layout
from actors.formats.options import Json
from actors.formats.text.json import JsonReader
from actors.rows import Offset
from actors.settings import ReadLimits
from tests.actors.formats.written_files import bad_of, open_written, rows_of

_SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string()), ("o", pa.struct([("x", pa.int64())]))])
_A = pa.schema([("a", pa.int64())])
_ROWS = [
    {"a": 1, "s": "}{", "o": {"x": 1}},
    {"a": None, "s": '"\\"', "o": None},
    {"a": 3, "s": "],[\n", "o": {"x": None}},
    {"a": 4, "s": "é", "o": {"x": 4}},
]
LAYOUTS: Mapping[str, Callable[[list[Any]], str]] = {
    "lines": lambda rows: "\n".join(map(json.dumps, rows)),
    "lines that end": lambda rows: "".join(json.dumps(row) + "\r\n" for row in rows),
    "several in a line": lambda rows: " ".join(map(json.dumps, rows)),
    "no space between": lambda rows: "".join(map(json.dumps, rows)),
    "pretty": lambda rows: "\n".join(json.dumps(row, indent=2) for row in rows),
    "pretty, side by side": lambda rows: "".join(json.dumps(row, indent=1) for row in rows),
    "array": json.dumps,
    "pretty array": lambda rows: json.dumps(rows, indent=4),
    "array of lines": lambda rows: "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n",
    "commas first": lambda rows: "[" + "\n,".join(map(json.dumps, rows)) + "]",
    "arrays": lambda rows: "\n".join(json.dumps([row]) for row in rows) + "\n[]",
    "byte order mark": lambda rows: "\ufeff" + json.dumps(rows),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_has_the_same_rows_at_every_offset(layout: str, tmp_path: Path) -> None:
    content = LAYOUTS[layout](_ROWS).encode()
    assert JsonReader().infer_schema(open_written(tmp_path, content)) == _SCHEMA
    for block_bytes in (1, 2, 7, 30, 1000):
        pieces = list(JsonReader().read(open_written(tmp_path, content), _SCHEMA, piece_bytes=block_bytes))
        assert rows_of(pieces) == _ROWS
        for anchor in {piece.anchor for piece in pieces}:
            for row in range(anchor.anchor_row, len(_ROWS) + 1):
                resumed = JsonReader().read(open_written(tmp_path, content), _SCHEMA, anchor.at(row), block_bytes)
                assert rows_of(resumed) == _ROWS[row:]


def test_a_large_object_over_lines_is_read_in_blocks_of_any_size(tmp_path: Path) -> None:
    rows = [{"a": 1}, {"a": 2, "b": list(range(5_000))}, {"a": 3}]
    content = "\n".join(json.dumps(row, indent=2) for row in rows).encode()
    for block_bytes in (500, 8_000_000):
        for offset in range(4):
            pieces = JsonReader().read(open_written(tmp_path, content), _A, Offset(offset), block_bytes)
            assert [row["a"] for row in rows_of(pieces)] == [1, 2, 3][offset:]
    limits = ReadLimits(max_record_bytes=10_000)
    with pytest.raises(UnreadableFile, match=r"longer than 10000 bytes .ReadLimits.max_record_bytes"):
        list(JsonReader(limits).read(open_written(tmp_path, content), _A))


@pytest.mark.parametrize(
    ("content", "good", "bad"),
    [
        (b'{"a":1}\n{"a":\n{"a":3}\n{"a":4}', [1, 3, 4], [b'{"a":']),
        (b'{"a":1}\n{"a":[\n{"a":3}\n{"a":4}', [1, 3, 4], [b'{"a":[']),
        (b'{"a":1}\n{"s":"x\n{"a":3}\n', [1, 3], [b'{"s":"x']),
        (b'{"a":1}\n{"a":2,\n{"a":3}', [1, 3], [b'{"a":2,']),
        (b'{"a":1},\n{"a":2},\n{"a":3}', [3], [b'{"a":1},', b'{"a":2},']),
        (b'{"a":1} x\n{"a":2}{"a":3}', [2, 3], [b'{"a":1} x']),
        (b'{"a":1}{"a":}{"a":3}', [1, 3], [b'{"a":}']),
        (b'{\n "a":1\n}\n{\n "a":2\n{\n "a":3\n}', [1, 3], [b'{\n "a":2']),
        (b'{"a":1\n[5]\n6\n{"a":2}', [2], [b'{"a":1', b"[5]", b"6"]),
        (b'{"a":1}\n{\n  "o": {\n    "x": 1\n', [1], [b'{\n  "o": {\n    "x": 1']),
        (b'[{"a":1},{"a":},{"a":3}]', [1, 3], [b'{"a":}']),
        (b'[{"a":1},,{"a":2},]', [1, 2], [b",", b","]),
        (b'[{"a":1}\n{"a":2}]', [2], [b'{"a":1}']),
        (b'[1, "x,]", [{"a":5}], {"a":2}, true]', [2], [b"1", b'"x,]"', b'[{"a":5}]', b"true"]),
        (b'[{"a":1},\n{"a": 2,\n{"a":3}]', [1, 3], [b'{"a": 2,']),
        (b'{"a":1}\n\xff\n{"a":2}\n', [1, 2], [b"\xff"]),
        (b'{"a":1}\n{"a":1,"a":2}\n{"a":3,"z":1,"z":2}\n', [1, 3], [b'{"a":1,"a":2}']),
        (b'{"a":1}\n{"s":"\\ud800"}\n{"b":1e400}\n{"a":2}', [1, 2], [b'{"s":"\\ud800"}', b'{"b":1e400}']),
        (b'{"a":1,}\n{"a":2}', [2], [b'{"a":1,}']),
        (b'{\'a\':1}\n{"a":2}\n{a:3}\n{"a":04}', [2], [b"{'a':1}", b"{a:3}", b'{"a":04}']),
    ],
)
def test_a_bad_record_takes_no_other_with_it(content: bytes, good: list[int], bad: list[bytes], tmp_path: Path) -> None:
    for block_bytes in (1, 10, 1000):
        pieces = list(JsonReader().read(open_written(tmp_path, content), _SCHEMA, piece_bytes=block_bytes))
        assert [row["a"] for row in rows_of(pieces)] == good
        assert [each.raw for each in bad_of(pieces)] == bad


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'[{"a":1}', "its array is not closed"),
        (b'[{"a":1},{"a":', "its array is not closed"),
        (b'[{"a":1}] {"a":2}', "text follows the array"),
        (b'[{"a":1}]\n]', "text follows the array"),
    ],
)
def test_a_damaged_array_ends_the_file_behind_its_elements(content: bytes, reason: str, tmp_path: Path) -> None:
    for block_bytes in (1, 1000):
        read = JsonReader().read(open_written(tmp_path, content), _A, piece_bytes=block_bytes)
        assert rows_of([next(read)]) == [{"a": 1}]
        with pytest.raises(UnreadableFile, match=f"row 2: {reason}"):
            list(read)


@pytest.mark.parametrize("content", [b"[]", b" [ ]\n[]", b"\xef\xbb\xbf[]"])
def test_an_empty_array_is_an_empty_file(content: bytes, tmp_path: Path) -> None:
    assert list(JsonReader().read(open_written(tmp_path, content), _A)) == []
    with pytest.raises(EmptyFile):
        JsonReader().infer_schema(open_written(tmp_path, content))


def test_white_space_between_records_takes_no_memory(tmp_path: Path) -> None:
    limits = ReadLimits(max_record_bytes=10_000)
    for content in (b'{"a":1}' + b"\n" * 100_000 + b'{"a":2}', b'{\n"a":1}' + b"\n" * 100_000 + b'{\n"a":2}'):
        pieces = JsonReader(limits).read(open_written(tmp_path, content), _A, piece_bytes=1000)
        assert rows_of(pieces) == [{"a": 1}, {"a": 2}]


_DAMAGES = (b"{", b"}", b"[", b"]", b",", b'"', b"\n", b"null", b"\\", b"x", b"\xff", b" ", b":", b'{"a":7}', b"//")


def _damaged(rng: random.Random) -> bytes:
    content = bytearray(LAYOUTS[rng.choice(list(LAYOUTS))](_ROWS[: rng.randint(0, 4)]).encode())
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(content) + 1)
        if rng.random() < 0.5:
            del content[at : at + rng.choice([1, 2, 5, 20])]
        else:
            content[at:at] = rng.choice(_DAMAGES)
    return bytes(content)


def _outcome(directory: Path, content: bytes, offset: Offset, block_bytes: int, raw: bool) -> Any:
    """Position → row or bad record; the error, if the file is unreadable; and the anchors."""
    schema = pa.schema([*_SCHEMA, ("raw", pa.string())]) if raw else _SCHEMA
    reader, found, anchors = JsonReader(format=Json(raw="raw" if raw else None)), {}, []
    try:
        for piece in reader.read(open_written(directory, content), schema, offset, block_bytes):
            good: Iterator[Any] = iter(piece.table.to_pylist())
            bad = {each.row: each.raw for each in piece.bad}
            found.update({row: bad[row] if row in bad else next(good) for row in range(piece.first_row, piece.end_row)})
            anchors.append(piece.anchor)
    except UnreadableFile as error:
        return found, error.reason, anchors
    return found, None, anchors


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.more) for seed in range(2, 40))])
def test_damage_has_the_same_outcome_in_blocks_of_any_size_and_at_any_offset(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        content, raw = _damaged(rng), rng.random() < 0.3
        rows, error, _ = _outcome(tmp_path, content, Offset(), 1_000_000, raw)
        assert [*rows] == [*range(len(rows))]
        if error is not None and not any(isinstance(row, dict) for row in rows.values()):
            continue  # the first piece alone may show that no record is good
        for block_bytes in (rng.choice([1, 3, 7, 20]), 100):
            assert _outcome(tmp_path, content, Offset(), block_bytes, raw)[:2] == (rows, error), content
        anchors = _outcome(tmp_path, content, Offset(), rng.choice([1, 3, 7, 20]), raw)[2]
        for anchor in anchors:
            expected = {row: value for row, value in rows.items() if row >= anchor.anchor_row}
            resumed = anchor.at(anchor.anchor_row)
            assert _outcome(tmp_path, content, resumed, rng.choice([1, 30]), raw)[:2] == (expected, error), content


@pytest.mark.parametrize(
    ("head", "layout"),
    [
        (b'{"a": 1}\n{"a": 2}\n', "lines"),
        (b'[{"a": 1}]', "array"),
        (b'{"a":\n1}\n', "objects"),
        (b'{"a": 1} {"a": 2}\n', "objects"),
    ],
)
def test_the_layout_of_a_file_is_found_by_its_first_bytes(head: bytes, layout: str) -> None:
    assert json_layout(head) == layout
