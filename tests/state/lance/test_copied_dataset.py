"""Copies of datasets: the same rows in the same order, in fragments of a limited size."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from state.lance.lance_access import copy_dataset, create_dataset, open_dataset
from state.location import Location


def test_rows_with_structs_are_copied_across_the_ends_of_fragments(tmp_path: Path) -> None:
    """Lance refuses to slice a struct with nulls and a boolean."""
    rows = 12_000
    structs = [None if each % 3 == 0 else {"is": None if each % 5 == 0 else each % 2 == 0} for each in range(rows)]
    table = pa.table(
        {"n": list(range(rows)), "s": structs, "l": [[each] * (at % 3) for at, each in enumerate(structs)]}
    )
    source, target = Location(str(tmp_path / "a.lance")), Location(str(tmp_path / "b.lance"))
    dataset = create_dataset(source, table)
    dataset.delete("n % 7 = 0")
    version, _ = copy_dataset(source, dataset.version, target, fragment_rows=5_000)
    copy = open_dataset(target, version)
    assert copy.to_table().equals(dataset.to_table())
    assert [each.count_rows() for each in copy.get_fragments()] == [5_000, 5_000, copy.count_rows() - 10_000]
