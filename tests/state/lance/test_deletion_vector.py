"""Deletion files: read as Lance writes them, and written as Lance reads them."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from random import Random

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import LanceOperation, Transaction
from lance.fragment import DeletionFile

from state.errors import NotFoundError, ProtocolError
from state.lance.deletion_vector import bitmap_of, deleted_offsets, read_roaring
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
    assert deleted_offsets(location, dataset, fragment).tolist() == []
    dataset.delete(condition)
    [fragment] = dataset.get_fragments()
    assert fragment.deletion_file().endswith(kind)
    found = deleted_offsets(location, dataset, fragment).tolist()
    assert found == as_lance_knows(fragment) and found
    dataset.delete("n = 10 OR n = 199999")
    [fragment] = dataset.get_fragments()
    assert deleted_offsets(location, dataset, fragment).tolist() == as_lance_knows(fragment)


@pytest.mark.more_after(4)
@pytest.mark.parametrize(
    "deleted",
    [
        pytest.param([7], id="one"),
        pytest.param(sorted(Random(1).sample(range(ROWS), 3_000)), id="arrays"),
        pytest.param(sorted(Random(2).sample(range(ROWS), 150_000)), id="bitmaps"),
        pytest.param([*range(5), *range(65_000, 140_000), ROWS - 1], id="runs"),
        pytest.param([*range(0, 60_000, 2), *range(70_000, 130_000), 140_000], id="all kinds"),
    ],
)
def test_lance_leaves_out_the_rows_of_a_bitmap_that_is_written(tmp_path: Path, deleted: list[int]) -> None:
    location = Location(str(tmp_path / "v.lance"))
    dataset = create_dataset(location, pa.table({"n": list(range(ROWS))}))
    [fragment] = dataset.get_fragments()
    file = DeletionFile(dataset.version, 1, "bitmap", len(deleted), None)
    path = tmp_path / "v.lance" / file.path(fragment.fragment_id)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(bitmap_of(np.array(deleted)).serialize())
    changed = replace(fragment.metadata, deletion_file=file)
    update = LanceOperation.Update(removed_fragment_ids=[], updated_fragments=[changed], new_fragments=[])
    dataset = lance.LanceDataset.commit(dataset, Transaction(dataset.version, update))
    assert sorted(set(range(ROWS)) - set(dataset.to_table()["n"].to_pylist())) == deleted
    [fragment] = dataset.get_fragments()
    assert deleted_offsets(location, dataset, fragment).tolist() == deleted
    dataset.delete("n = 10")
    [fragment] = dataset.get_fragments()
    assert deleted_offsets(location, dataset, fragment).tolist() == sorted({*deleted, 10}), "Lance continues the bitmap"


@pytest.mark.parametrize("content", [b"", b"\x00" * 40, struct.pack("<IIHH", 12346, 1, 0, 9)])
def test_a_file_that_is_not_a_bitmap_is_refused(content: bytes) -> None:
    with pytest.raises(ProtocolError, match="not a valid Roaring bitmap"):
        read_roaring(content)


def test_a_file_that_is_gone_is_not_found(tmp_path: Path) -> None:
    location = Location(str(tmp_path / "v.lance"))
    dataset = create_dataset(location, pa.table({"n": list(range(10))}))
    dataset.delete("n = 3")
    for file in (tmp_path / "v.lance" / "_deletions").iterdir():
        file.unlink()
    with pytest.raises(NotFoundError):
        deleted_offsets(location, dataset, dataset.get_fragments()[0])


@pytest.mark.parametrize("count", [0, 1, 4_096, 4_097, 200_000])
def test_a_written_bitmap_is_read(count: int) -> None:
    numbers = np.array(Random(count).sample(range(1_000_000), count), np.uint64)
    assert [*read_roaring(bitmap_of(numbers).serialize())] == sorted(numbers.tolist())
