"""Rows are stored with the file, its version and their position, and nothing of them is lost."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from actors.fetching.file_progress import FileProgress
from actors.fetching.read_buffers import Piece
from actors.hosting.row_stager import RowStager
from actors.protocol.blocks import StoredBlock
from actors.rows import BadRecord, Rows
from actors.schemas.metadata_columns import row_positions
from state.lance.fragment_stager import staged_fragments
from state.lance.lance_access import create_of_fragments
from state.location import Location
from state.tables.stored_rows import LINEAGE, version_number
from tests.actors.flow import file, rows


def stored(root: Path, block: StoredBlock) -> pa.Table:
    location = Location(str(root)).child(block.path)
    return create_of_fragments(location, block.schema, staged_fragments(block.fragments)).to_table()


def piece(path: str, read: Rows, etag: str = "1") -> Piece:
    return Piece(FileProgress(file(path, etag), listed_epoch=1), read)


def joined(pieces: list[Piece]) -> pa.Table:
    return pa.concat_tables([each.rows.table for each in pieces if each.rows is not None])


def test_each_row_tells_its_file_and_its_position_in_it(tmp_path: Path) -> None:
    bad = tuple(BadRecord(row, b"?", "no number") for row in (4, 6))
    pieces = [
        piece("a", rows(2)),
        piece("b/ü.csv", Rows(rows(3).table, first_row=3, bad=bad)),
        piece("a", rows(1, first_row=2), etag="2"),
    ]
    found = stored(tmp_path, RowStager(Location(str(tmp_path)), "views/s.rows-1.lance").stage(joined(pieces), pieces))
    assert found.schema == pa.schema([*LINEAGE, ("x", pa.int64())])
    first, second = version_number(file("a").version), version_number(file("a", "2").version)
    assert first != second
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("a", first, 0, 0),
        ("a", first, 1, 1),
        ("b/ü.csv", first, 3, 0),
        ("b/ü.csv", first, 5, 1),
        ("b/ü.csv", first, 7, 2),
        ("a", second, 2, 0),
    ]
    assert pieces[1].rows is not None
    assert row_positions(pieces[1].rows).to_pylist() == [3, 5, 7], "the same as the metadata column _row"


@pytest.mark.more
def test_a_block_of_more_than_a_hundred_megabytes_is_stored(tmp_path: Path) -> None:
    count = 15 << 20
    table = pa.table({"x": pa.array(range(count), pa.int64())})
    assert table.nbytes > 100 << 20
    pieces = [piece("a", Rows(table, 0))]
    block = RowStager(Location(str(tmp_path)), "views/s.rows-1.lance").stage(table, pieces)
    location = Location(str(tmp_path)).child(block.path)
    dataset = create_of_fragments(location, block.schema, staged_fragments(block.fragments))
    assert dataset.count_rows() == count
    assert dataset.count_rows("x = __sw_row") == count


@pytest.mark.parametrize("number", [0, 1, -1, 2**63 - 1, -(2**63)])
def test_a_version_is_a_number_that_stands_for_its_bytes(number: int) -> None:
    assert version_number(number.to_bytes(8, "big", signed=True)) == number
