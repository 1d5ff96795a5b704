"""The rows that were taken out of a fragment, as Lance knows them too."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

import lance
import numpy as np
import pyarrow as pa
import pytest

from state.errors import NotFoundError, ProtocolError
from state.lance.deletion_vector import deleted_offsets, read_roaring, write_roaring
from state.lance.lance_access import create_dataset
from state.location import Location

ROWS = 200_000


def as_lance_knows(fragment: lance.LanceFragment) -> list[int]:
    live = fragment.scanner(columns=[], with_row_address=True).to_table()["_rowaddr"].to_numpy() & 0xFFFFFFFF
    return sorted(set(range(ROWS)) - set(live.tolist()))


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("n = 3 OR n = 70000", ".arrow"),
        ("n % 97 = 0", ".arrow"),
        ("n % 20 = 0", ".bin"),
        ("n % 3 < 2", ".bin"),
        ("n < 100000 AND n > 7", ".bin"),
        ("n % 2 = 0 AND n < 65536 OR n > 150000 OR n = 66000", ".bin"),
    ],
)
def test_deleted_rows_are_those_that_lance_leaves_out(tmp_path: Path, condition: str, kind: str) -> None:
    location = Location(str(tmp_path / "v.lance"))
    dataset = create_dataset(location, pa.table({"n": list(range(ROWS))}))
    [fragment] = dataset.get_fragments()
    assert deleted_offsets(location, fragment).tolist() == []
    dataset.delete(condition)
    [fragment] = dataset.get_fragments()
    assert fragment.deletion_file().endswith(kind)
    found = deleted_offsets(location, fragment).tolist()
    assert found == as_lance_knows(fragment) and found
    dataset.delete("n = 10 OR n = 199999")
    [fragment] = dataset.get_fragments()
    assert deleted_offsets(location, fragment).tolist() == as_lance_knows(fragment)


def test_every_kind_of_container_is_read() -> None:
    few = sorted(Random(1).sample(range(65_536), 100))
    many = sorted(Random(2).sample(range(65_536), 30_000))
    runs = [(5, 3), (100, 0), (65_000, 535)]
    in_runs = [number for first, more in runs for number in range(first, first + more + 1)]
    bits = np.zeros(65_536, np.uint8)
    bits[many] = 1
    bodies = [
        struct.pack("<100H", *few),
        np.packbits(bits, bitorder="little").tobytes(),
        struct.pack("<H", len(runs)) + b"".join(struct.pack("<HH", *run) for run in runs),
        struct.pack("<H", 7),
    ]
    heads = [(0, 99), (1, 29_999), (7, len(in_runs) - 1), (40_000, 0)]
    head = b"".join(struct.pack("<HH", *each) for each in heads)
    expected = [*few, *(65_536 + n for n in many), *((7 << 16) + n for n in in_runs), (40_000 << 16) + 7]
    cookie = struct.pack("<I", 12347 | (len(heads) - 1) << 16) + bytes([0b0100])
    content = cookie + head + bytes(4 * len(heads)) + b"".join(bodies)
    assert read_roaring(content).tolist() == expected

    three = struct.pack("<I", 12347 | 2 << 16) + bytes([0b0100]) + head[:12] + b"".join(bodies[:3])
    assert read_roaring(three).tolist() == expected[:-1], "without the places of the containers, when they are few"
    assert read_roaring(struct.pack("<II", 12346, 0)).tolist() == []


@pytest.mark.parametrize("content", [b"", b"\x00" * 40, struct.pack("<IIHH", 12346, 1, 0, 9)])
def test_what_is_no_bitmap_is_told(content: bytes) -> None:
    with pytest.raises(ProtocolError, match="file of deleted rows"):
        read_roaring(content)


def test_a_file_that_is_gone_is_not_found(tmp_path: Path) -> None:
    location = Location(str(tmp_path / "v.lance"))
    dataset = create_dataset(location, pa.table({"n": list(range(10))}))
    dataset.delete("n = 3")
    for file in (tmp_path / "v.lance" / "_deletions").iterdir():
        file.unlink()
    with pytest.raises(NotFoundError):
        deleted_offsets(location, dataset.get_fragments()[0])


@pytest.mark.parametrize("count", [0, 1, 4_096, 4_097, 200_000])
def test_what_is_written_is_read(count: int) -> None:
    numbers = np.array(sorted(Random(count).sample(range(1_000_000), count)), np.uint32)
    assert read_roaring(write_roaring(numbers)).tolist() == numbers.tolist()
