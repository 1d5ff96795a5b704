"""`Store.diff`: the rows of a view that only one of two roots has, as bags."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.reading.changes.root_difference import view_difference
from slackwater.reading.view_reader import ViewReader
from state.lance.lance_access import create_dataset, lance_options, open_dataset
from state.location import Location
from state.tables.records import ViewVersion
from tests.slackwater.branching.branched_root import Writer, branched, opened
from tests.slackwater.reading.written_root import WrittenRoot, by_carrier, late


def compared(tmp_path: Path, left: pa.Table, right: pa.Table, limit: int = 20) -> Any:
    """The difference of two datasets that have nothing in common."""
    readers = []
    for name, rows in (("left", left), ("right", right)):
        create_dataset(Location(str(tmp_path / name / "v.lance")), rows)
        readers.append(ViewReader(Location(str(tmp_path / name)), ViewVersion("v", "v.lance", 1)))
    return view_difference(readers[0], readers[1], (1, 2), limit)


def bag(rows: pa.Table) -> Counter[str]:
    return Counter(map(repr, rows.to_pylist()))


@pytest.mark.parametrize("nested", [False, True])
def test_rows_are_compared_as_bags(tmp_path: Path, nested: bool) -> None:
    chance = Random(7)

    def rows(count: int) -> pa.Table:
        values = [chance.choice([None, 0.0, -0.0, 1.5, math.nan]) for _ in range(count)]
        texts = [chance.choice([None, "", "a"]) for _ in range(count)]
        lists = [chance.choice([None, [], [1, None]]) for _ in range(count)]
        table = pa.table({"x": pa.array(values, pa.float64()), "t": pa.array(texts, pa.string())})
        return table.append_column("l", pa.array(lists, pa.list_(pa.int64()))) if nested else table

    left, right = rows(60), rows(50)
    found = compared(tmp_path, left, right, limit=1_000)
    assert bag(found.rows_here) == bag(left) - bag(right)
    assert bag(found.rows_there) == bag(right) - bag(left)
    assert (found.rows, found.other_rows) == (60, 50)
    assert found.only_here == found.rows_here.num_rows and not found.is_equal


def test_equal_rows_in_another_order_are_equal_and_the_limit_bounds_the_examples(tmp_path: Path) -> None:
    numbers = pa.table({"n": [1, 2, 2, 3]})
    assert compared(tmp_path / "a", numbers, numbers.take([3, 1, 0, 2])).is_equal
    found = compared(tmp_path / "b", numbers, pa.table({"n": [2]}), limit=2)
    assert (found.only_here, found.only_there, found.rows_here.num_rows) == (3, 0, 2)


def test_a_column_that_only_one_side_may_lack_is_compared(tmp_path: Path) -> None:
    """A count has no nulls; the same column of another query may have some."""
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    left, right = pa.table({"n": [1, 2, 2]}, schema), pa.table({"n": [2, 3, None]})
    for at, (one, other) in enumerate([(left, right), (right, left)]):
        found = compared(tmp_path / str(at), one, other)
        assert (bag(found.rows_here), bag(found.rows_there)) == (bag(one) - bag(other), bag(other) - bag(one))
        assert not found.columns_here and not found.columns_there


def test_columns_of_one_side_are_named_and_not_compared(tmp_path: Path) -> None:
    left, right = pa.table({"k": [1], "n": [2], "t": ["a"]}), pa.table({"k": [1], "n": [2.0], "u": ["b"]})
    found = compared(tmp_path / "a", left, right)
    assert found.columns_here == ("n int64", "t string") and found.columns_there == ("n double", "u string")
    assert (found.only_here, found.only_there) == (0, 0) and not found.is_equal
    with pytest.raises(sw.errors.UsageError, match="no column in both roots"):
        compared(tmp_path / "b", left.select(["t"]), right.select(["n"]))


def test_a_branch_is_compared_by_what_was_written_since(written: WrittenRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    branch = branched(written.root)
    here, there = opened(written.root), opened(branch)
    read = _rows_read(monkeypatch)
    assert here.diff("late", there).is_equal
    assert read == [0, 0], "the branch names the same files"
    below = Writer(branch)
    below.append("late", late(1, 8))
    below.delete("by_carrier", "carrier = 'AA'")
    below.append("by_carrier", by_carrier({"BB": 1}))
    below.commit()
    above = Writer(written.root)
    above.append("late", late(9))
    above.delete("by_carrier", "carrier IS NULL")
    above.commit()
    read.clear()
    found = here.diff("late", there)
    assert (found.only_here, found.only_there) == (1, 2) and read == [1, 2]
    assert found.rows_there.to_pylist() == late(1, 8).to_pylist()
    found = here.diff("by_carrier", there)
    assert found.rows_here.to_pylist() == [{"carrier": "AA", "n": 903}]
    assert sorted(map(repr, found.rows_there.to_pylist())) == sorted(
        map(repr, [{"carrier": None, "n": 1}, {"carrier": "BB", "n": 1}])
    )
    assert here.diff("late", there, epoch=written.epochs[-1], other_epoch=written.epochs[-1]).is_equal
    with pytest.raises(sw.errors.ViewNotFoundError):
        here.diff("nothing", there)
    with pytest.raises(sw.errors.UsageError, match="limit=-1"):
        here.diff("late", there, limit=-1)


def _rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows that each side of a comparison has read, from now on."""
    from slackwater.reading.changes import view_difference as module

    counts: list[int] = []
    read = module._Side.read

    def counted(*arguments: Any) -> pa.Table:
        rows = read(*arguments)
        counts.append(rows.num_rows)
        return rows

    monkeypatch.setattr(module._Side, "read", counted)
    return counts


def test_deletions_that_a_branch_took_over_are_read_where_they_are(tmp_path: Path) -> None:
    """A clone names the file of deleted rows of the other dataset."""
    place, clone = (Location(str(tmp_path / name / "v.lance")) for name in ("a root%", "b"))
    dataset = create_dataset(place, pa.table({"n": list(range(1_000))}))
    dataset.delete("n < 10")
    dataset.shallow_clone(clone.lance_uri, dataset.version, lance_options(place))
    first = int(dataset.version)
    cloned = open_dataset(clone)
    cloned.delete("n = 500")
    readers = [
        ViewReader(Location(str(tmp_path / name)), ViewVersion("v", "v.lance", version))
        for name, version in (("a root%", first), ("b", int(cloned.version)))
    ]
    found = view_difference(readers[0], readers[1], (1, 2), 20)
    assert (found.rows_here.to_pylist(), found.only_there) == ([{"n": 500}], 0)
