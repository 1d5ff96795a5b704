"""A small dataset in memory: the same answers as from its files, whatever has changed, without reading them again."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from spark_bridge.datasets import small_rows
from spark_bridge.datasets.dataset_upkeep import _compact
from spark_bridge.datasets.later_commits import LaterCommits
from spark_bridge.datasets.look_ups import look_up
from spark_bridge.datasets.view_table import ViewTable
from state.errors import CommitRefusedError
from state.location import Location
from state.tables.group_key import KEY_COLUMN

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("share", pa.decimal128(28, 4)),
        ("seen", pa.timestamp("us", "UTC")),
        pa.field(KEY_COLUMN, pa.string(), nullable=False),
    ]
)
COLUMNS = SCHEMA.names


def groups(numbers: list[int], n: int = 0) -> pa.Table:
    seen = [None if number % 5 == 0 else number * 1_000 + n for number in numbers]
    values = {
        "n": [n] * len(numbers),
        "share": pa.array(numbers).cast(SCHEMA.field("share").type),
        "seen": pa.array(seen, pa.int64()).cast(SCHEMA.field("seen").type),
        KEY_COLUMN: [f"it's {number}" for number in numbers],
    }
    return pa.table(values, schema=SCHEMA)


def keys(numbers: list[int]) -> pa.Array:
    return groups(numbers).column(KEY_COLUMN).combine_chunks()


def by_key(rows: pa.Table) -> list[dict[str, object]]:
    return sorted(rows.select(COLUMNS).to_pylist(), key=lambda row: str(row[KEY_COLUMN]))


@pytest.mark.more_after(1)
@pytest.mark.parametrize("is_later", [False, True], ids=["at once", "later"])
def test_look_ups_have_the_rows_of_the_files_after_any_change(tmp_path: Path, is_later: bool) -> None:
    chance = random.Random(3)
    location = Location(str(tmp_path / "v.lance"))
    table, commits = ViewTable.create(location, groups([*range(60)])), LaterCommits()
    numbers = range(80)

    def some() -> list[int]:
        return chance.sample(numbers, chance.choice((1, 5, 40)))

    def change(n: int) -> None:
        taken = some()
        match chance.choice(("upsert", "upsert", "exchange", "delete", "where", "append", "replace", "tidy", "open")):
            case "upsert":
                table.upsert(groups(taken, n))
            case "exchange":
                table.exchange(keys(taken), groups(taken[::2], n))
            case "delete":
                table.delete(keys(taken))
            case "where":
                table.exchange_where([f"n < {n - 6}"], groups([number for number in taken if number < 3], n))
            case "append":
                new = table.rows_of(keys(taken), [])
                known = new.column(KEY_COLUMN).to_pylist()
                table.append(groups([number for number in taken if f"it's {number}" not in known], n))
            case "replace":
                if n % 4 == 0:
                    table.replace(groups(taken, n))
            case "tidy":
                _compact(table._dataset)  # else due after 16 commits
            case "open":
                commits.wait_for_all()

    for n in range(1, 120):
        work: dict[str, Callable[[], None]] = {"v": lambda n=n: change(n)}  # type: ignore[misc]
        (commits.of(work) if is_later else work)["v"]()
        wanted = some()
        found = table.rows_of(keys(wanted), COLUMNS)
        commits.wait_for_all()
        stored = look_up(lance.dataset(location.lance_uri), KEY_COLUMN, keys(wanted), COLUMNS)
        assert by_key(found) == by_key(stored)
        assert found.select(COLUMNS).schema == stored.select(COLUMNS).schema
        if n % 3 == 0:
            table.upsert(groups(wanted, n))  # by the addresses that were found
    commits.close()
    dataset = lance.dataset(location.lance_uri)
    dataset.validate()
    assert len({*dataset.to_table().column(KEY_COLUMN).to_pylist()}) == dataset.count_rows()


def test_its_files_are_read_once(tmp_path: Path) -> None:
    table = ViewTable.create(Location(str(tmp_path / "v.lance")), groups([*range(100)]))
    table.rows_of(keys([1]), ["n"])
    table.upsert(groups([1, 2], n=7))
    shutil.rmtree(tmp_path / "v.lance" / "data")
    assert table.rows_of(keys([0, 1]), ["n"]).column("n").to_pylist() == [0, 7]
    assert table.count_of(keys([2, 3, 500])) == 2


def test_changes_of_several_fragments_are_written_with_the_rest(tmp_path: Path) -> None:
    location = Location(str(tmp_path / "v.lance"))
    table = ViewTable.create(location, groups([*range(100)]))
    for n in range(1, 12):
        table.upsert(groups([*range(3 * n, 3 * n + 40)], n))  # they begin in the fragment of the last ones
        fragments = lance.dataset(location.lance_uri).get_fragments()
        assert len(fragments) == (2 if n % 2 else 1)
        assert sum(each.num_deletions for each in fragments) <= 50


def test_rows_that_stay_are_not_written_over_another_commit(tmp_path: Path) -> None:
    location = Location(str(tmp_path / "v.lance"))
    table = ViewTable.create(location, groups([*range(100)]))
    table.upsert(groups([1, 2], n=1))
    ViewTable.open(location, table.version).append(groups([100]))
    table.rows_of(keys([2, 3]), COLUMNS)
    with pytest.raises(CommitRefusedError):
        table.upsert(groups([2, 3], n=2))
    assert lance.dataset(location.lance_uri).count_rows() == 101


@pytest.mark.parametrize("bound", ["_MOST_ROWS", "_MOST_BYTES"])
def test_a_dataset_that_grows_leaves_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(small_rows, bound, {"_MOST_ROWS": 150, "_MOST_BYTES": 8_000}[bound])
    location = Location(str(tmp_path / "v.lance"))
    table = ViewTable.create(location, groups([*range(100)]))
    for n in range(1, 6):
        table.rows_of(keys([1]), ["n"])
        table.upsert(groups([*range(50 * n, 50 * n + 100)], n))
        assert (table._look_ups._small.read(table._dataset) is None) == (n > 1)
        assert table.rows_of(keys([50 * n]), ["n"]).column("n").to_pylist() == [n]
    assert lance.dataset(location.lance_uri).count_rows() == 350


def test_a_large_rest_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_rows, "_BYTES_A_DELETION", 0)
    location = Location(str(tmp_path / "v.lance"))
    table = ViewTable.create(location, groups([*range(100)]))
    for n in range(1, 4):
        table.upsert(groups([1, 2, 3], n))
    assert [each.fragment_id for each in lance.dataset(location.lance_uri).get_fragments()] == [0, 3]


def test_nested_values_are_read_from_the_files(tmp_path: Path) -> None:
    rows = pa.table({"parts": [[1], None], KEY_COLUMN: ["a", "b"]})
    table = ViewTable.create(Location(str(tmp_path / "v.lance")), rows)
    assert table._look_ups._small.read(table._dataset) is None
    assert table.rows_of(pa.array(["b"]), ["parts"]).column("parts").to_pylist() == [None]


def test_wide_rows_are_read_from_the_files_and_by_key_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_rows, "_MOST_BYTES", 1_000)
    table = ViewTable.create(Location(str(tmp_path / "v.lance")), groups([*range(100)]))
    assert table._look_ups._small.read(table._dataset) is None
    monkeypatch.setattr(small_rows, "_MOST_BYTES", 1_000_000)
    assert table._look_ups._small.read(table._dataset) is None, "each time they would be read for nothing"
    monkeypatch.setattr(small_rows, "_MOST_FILE_BYTES", 100)
    again = ViewTable.open(table.location, table.version)
    assert again._look_ups._small.read(again._dataset) is None
    assert not again._look_ups._small._is_wide
