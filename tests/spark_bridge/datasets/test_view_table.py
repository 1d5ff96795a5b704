"""The dataset of one view: look-ups by key at any size, small upkeep tasks, a single writer."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from slackwater.testing.servers.s3_server import S3Server
from spark_bridge.datasets import dataset_upkeep
from spark_bridge.datasets.stored_rows import in_condition
from spark_bridge.datasets.view_table import ViewTable
from state.errors import CommitRefusedError, CommitUnknownError
from state.location import Location
from state.tables.group_key import KEY_COLUMN
from state.tables.stored_rows import FILE_FIELD, JOIN_FIELD, PATH_COLUMN

SCHEMA = pa.schema([pa.field(KEY_COLUMN, pa.string(), nullable=False), ("n", pa.int64())])


def groups(*numbers: int, n: int = 0) -> pa.Table:
    return pa.table({KEY_COLUMN: [f"it's {number}" for number in numbers], "n": [n] * len(numbers)}, schema=SCHEMA)


def keys(*numbers: int) -> pa.Array:
    return groups(*numbers).column(KEY_COLUMN).combine_chunks()


def found(table: ViewTable, *numbers: int) -> dict[str, int]:
    rows = table.rows_of(keys(*numbers), ["n"])
    return dict(zip(rows.column(KEY_COLUMN).to_pylist(), rows.column("n").to_pylist(), strict=True))


@pytest.mark.parametrize("size", [3, 12_000], ids=["read whole", "looked up"])
def test_rows_are_found_by_key(tmp_path: Path, size: int) -> None:
    table = ViewTable.create(Location(str(tmp_path / "v.lance")), groups(*range(size)))
    table.upsert(groups(1, size, n=7))
    table.delete(keys(2))
    assert found(table, 1, 2, size, size + 1) == {"it's 1": 7, f"it's {size}": 7}
    assert table.version == 3


@pytest.mark.more_after(1)
@pytest.mark.parametrize(("piece", "unindexed"), [(32, range(32 + 32)), (1_000, range(70, 141))])
def test_large_view_gets_an_index_that_many_new_rows_are_found_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int, unindexed: range
) -> None:
    monkeypatch.setattr(dataset_upkeep, "_INDEX_PIECE", piece)
    location = Location(str(tmp_path / "v.lance"))
    table = ViewTable.create(location, groups(*range(12_000)))
    for epoch in range(70):
        table.upsert(groups(epoch, 12_000 + epoch, n=epoch + 1))
        table.tidy()
    assert found(table, 0, 69, 12_069) == {"it's 0": 1, "it's 69": 70, "it's 12069": 70}
    dataset = lance.dataset(location.lance_uri)
    assert [index.field_names for index in dataset.describe_indices()] == [[KEY_COLUMN]]
    [index] = dataset.describe_indices()
    assert dataset.stats.index_stats(index.name)["num_unindexed_rows"] in unindexed
    plan = dataset.scanner(columns=["n"], filter=f"{KEY_COLUMN} = 'x'").explain_plan()
    assert "ScalarIndexQuery" in plan
    reopened = ViewTable.open(location, table.version)
    assert found(reopened, 12_069) == {"it's 12069": 70}


def test_a_small_view_whose_rows_are_replaced_for_long_is_tidied_seldom(tmp_path: Path) -> None:
    table = ViewTable.create(Location(str(tmp_path / "v.lance")), groups(*range(1_000)))
    tidied = 0
    for epoch in range(40):
        table.upsert(groups(*range(1_000), n=epoch))
        tidied += table.tidy()
    assert tidied <= 6, "each time, other views wait for their turn"


@pytest.mark.parametrize(
    ("error", "ends"),
    [
        (RuntimeError("LanceError(Index): unsupported type"), None),
        (ValueError("LanceError(Schema): no such field"), None),
        (OSError("LanceError(IO): connection reset"), CommitUnknownError),
        (RuntimeError("Commit conflict for version 9: another commit"), CommitRefusedError),
    ],
    ids=lambda each: str(each)[:30],
)
def test_a_dataset_that_cannot_be_compacted_is_followed_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, ends: type[Exception] | None
) -> None:
    table = ViewTable.create(Location(str(tmp_path / "v.lance")), groups(*range(100)))

    def failing(_: object) -> None:
        raise error

    monkeypatch.setattr(dataset_upkeep, "_compact", failing)
    for epoch in range(20):
        table.append(groups(1_000 + epoch))
    if ends is not None:
        with pytest.raises(ends):
            table.tidy()
        return
    assert table.tidy(), "the attempt is a task"
    for epoch in range(20):
        table.append(groups(2_000 + epoch, n=1))
    assert not table.tidy(), "the same attempt would fail again"
    assert found(table, 1_019, 2_019) == {"it's 1019": 0, "it's 2019": 1}


def test_an_index_is_due_at_once_after_a_large_write(tmp_path: Path) -> None:
    location = Location(str(tmp_path / "v.lance"))
    table = ViewTable.create(location, groups(*range(9_000)))
    assert not table.tidy()
    table.append(groups(*range(9_000, 12_000)))
    assert table.tidy() and not table.tidy()
    table.append(groups(*range(20_000, 120_000)))
    assert table.tidy() and not table.tidy()
    [index] = lance.dataset(location.lance_uri).describe_indices()
    assert lance.dataset(location.lance_uri).stats.index_stats(index.name)["num_unindexed_rows"] == 0
    assert not ViewTable.open(location, lance.dataset(location.lance_uri).version).tidy()


@pytest.mark.parametrize(
    ("column", "files"),
    [(PATH_COLUMN, ["it's 7", "it's 8"]), (FILE_FIELD.name, [b"\x07\xff", b"\x08\xff"])],
    ids=["stored rows", "a view"],
)
def test_rows_of_a_file_are_found_by_an_index(tmp_path: Path, column: str, files: list[str | bytes]) -> None:
    """Those that came after the index are found, too."""
    first, second = files
    location = Location(str(tmp_path / "v.lance"))

    def rows(file: str | bytes, count: int) -> pa.Table:
        return pa.table({column: [file] * count, "n": range(count)})

    table = ViewTable.create(location, pa.concat_tables([rows(first, 11_000), rows(second, 1_000)]))
    assert table.tidy()
    table.append(rows(second, 5))
    condition = in_condition(column, [second])
    assert "ScalarIndexQuery" in lance.dataset(location.lance_uri).scanner(filter=condition).explain_plan()
    table.exchange_where([condition], rows(second, 3))
    assert table.num_rows == 11_003
    table.delete_where(condition)
    table.delete_where(in_condition(column, files))
    assert table.num_rows == 0


def test_an_index_of_files_is_added_to_a_dataset_that_has_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = Location(str(tmp_path / "v.lance"))
    schema = pa.schema([JOIN_FIELD, FILE_FIELD])
    rows = pa.table([range(12_000), [b"a"] * 12_000], schema=schema)
    with monkeypatch.context() as before:
        before.setattr(dataset_upkeep, "_KEYS", (JOIN_FIELD.name,))
        assert ViewTable.create(location, rows).tidy()
    table = ViewTable.open(location, lance.dataset(location.lance_uri).version)
    assert table.tidy() and not table.tidy()
    indices = lance.dataset(location.lance_uri).describe_indices()
    assert sorted(name for each in indices for name in each.field_names) == [FILE_FIELD.name, JOIN_FIELD.name]


@pytest.mark.more
def test_upserts_replace_exactly_the_rows_with_the_keys(tmp_path: Path) -> None:
    """In several fragments, repeatedly, and with a whole fragment at once."""
    chance = random.Random(5)
    location = Location(str(tmp_path / "v.lance"))
    table = ViewTable.create(location, groups(*range(9_000)))
    table.append(groups(*range(9_000, 80_000)))
    expected = dict.fromkeys(range(80_000), 0)
    for n in range(1, 12):
        changed = (
            list(range(9_000)) if n == 7 else chance.sample(range(80_500), 3_000 * (1 + n % 2) * (1 + 4 * (n == 9)))
        )
        if n % 3:
            table.rows_of(keys(*changed), ["n"])
        table.upsert(groups(*changed, n=n))
        expected.update(dict.fromkeys(changed, n))
        taken = chance.sample(sorted(expected), 100)
        table.delete(keys(*taken))
        for number in taken:
            del expected[number]
        stored = lance.dataset(location.lance_uri, version=table.version).to_table()
        assert stored.num_rows == len(expected)
        assert dict(zip(stored.column(KEY_COLUMN).to_pylist(), stored.column("n").to_pylist(), strict=True)) == {
            f"it's {number}": value for number, value in expected.items()
        }
        if n % 4 == 0:
            table = ViewTable.open(location, table.version)
        elif n % 4 == 1:
            table.tidy()
    lance.dataset(location.lance_uri).validate()


def test_upserts_on_s3(s3: S3Server, bucket: str) -> None:
    location = s3.location(bucket, "views/v.lance")
    table = ViewTable.create(location, groups(*range(100)))
    table.append(groups(*range(100, 200)))
    table.upsert(groups(7, 107, n=1))
    table.upsert(groups(7, 8, n=2))
    again = ViewTable.open(location, table.version)
    assert found(again, 7, 8, 9, 107) == {"it's 7": 2, "it's 8": 2, "it's 9": 0, "it's 107": 1}


@pytest.mark.parametrize("by", ["upsert", "delete"])
def test_upsert_after_another_commit_is_refused(tmp_path: Path, by: str) -> None:
    location = Location(str(tmp_path / "v.lance"))
    ViewTable.create(location, groups(*range(100)))
    stale, writer = ViewTable.open(location, 1), ViewTable.open(location, 1)
    stale.rows_of(keys(7), ["n"])
    writer.upsert(groups(9, n=2))
    with pytest.raises(CommitRefusedError):
        stale.upsert(groups(7, n=1)) if by == "upsert" else stale.delete(keys(7))
    assert found(ViewTable.open(location, 2), 7, 9) == {"it's 7": 0, "it's 9": 2}


@pytest.mark.more
def test_small_pieces_are_merged_without_another_version_of_the_rows(tmp_path: Path) -> None:
    location = Location(str(tmp_path / "v.lance"))
    table = ViewTable.create(location, groups(0))
    tidied = 0
    for number in range(1, 200):
        table.append(groups(number))
        before = table.version
        tidied += table.tidy()
        assert table.version == before
        assert lance.dataset(location.lance_uri, version=before).count_rows() == number + 1
    dataset = lance.dataset(location.lance_uri)
    assert dataset.count_rows() == 200
    assert tidied == 12 and dataset.version > 200, "tidying makes versions of its own"
    assert len(dataset.get_fragments()) < 3 * 8 + 16


@pytest.mark.more
def test_a_view_that_changes_for_long_has_few_fragments_and_a_short_index(tmp_path: Path) -> None:
    table = ViewTable.create(Location(str(tmp_path / "v.lance")), groups(*range(10_000)))
    for epoch in range(16 * 20):
        table.upsert(groups(*range(epoch * 7 % 10_000, epoch * 7 % 10_000 + 20), n=epoch))
        table.tidy()
    dataset = lance.dataset(str(tmp_path / "v.lance"))
    [index] = dataset.describe_indices()
    assert len(index.segments) <= 2 * 3 + 2
    assert len(dataset.get_fragments()) <= 2 * 8 + 16
    assert dataset.count_rows() == 10_000
    last = found(table, *range(319 * 7, 319 * 7 + 20))
    assert set(last.values()) == {319}


@pytest.mark.more
def test_a_view_whose_rows_all_change_again_and_again_has_few_dead_rows(tmp_path: Path) -> None:
    table = ViewTable.create(Location(str(tmp_path / "v.lance")), groups(*range(20_000)))
    chance = random.Random(1)
    for epoch in range(320):
        table.upsert(groups(*chance.sample(range(20_000), 500), n=epoch))
        table.tidy()
    dataset = lance.dataset(str(tmp_path / "v.lance"))
    [index] = dataset.describe_indices()
    fragments = dataset.get_fragments()
    assert sum(each.metadata.num_deletions for each in fragments) < 2 * 20_000
    assert len(fragments) <= 2 * 8 + 16
    assert len(index.segments) <= 6
    assert dataset.count_rows() == 20_000


def test_a_task_takes_only_the_fragments_that_it_chose(tmp_path: Path) -> None:
    table = ViewTable.create(Location(str(tmp_path / "v.lance")), pa.table({"n": list(range(20_000))}))
    for number in range(16):
        table.append(pa.table({"n": [number]}))
    assert table.tidy()
    fragments = lance.dataset(str(tmp_path / "v.lance")).get_fragments()
    assert [each.count_rows() for each in fragments] == [20_000, 16]
    assert fragments[0].fragment_id == 0


def test_large_fragments_are_not_written_again(tmp_path: Path) -> None:
    table = ViewTable.create(Location(str(tmp_path / "v.lance")), groups(*range(110_000)))
    for number in range(64):
        table.append(groups(200_000 + number))
        table.tidy()
    fragments = lance.dataset(str(tmp_path / "v.lance")).get_fragments()
    assert (fragments[0].fragment_id, fragments[0].count_rows()) == (0, 110_000)
    assert len(fragments) < 20


@pytest.mark.parametrize(("size", "commits"), [(1, 70), (12_000, 20)], ids=["by compaction", "by an index"])
def test_tidying_after_a_take_over_is_refused(tmp_path: Path, size: int, commits: int) -> None:
    location = Location(str(tmp_path / "v.lance"))
    table = ViewTable.create(location, groups(*range(size)))
    for number in range(commits):
        table.append(groups(size + number))
    taker = lance.dataset(location.lance_uri, version=table.version)
    taker.restore()
    with pytest.raises(CommitRefusedError, match="another process"):
        table.tidy()
    assert lance.dataset(location.lance_uri).version == taker.version


def test_dataset_is_created_once(tmp_path: Path) -> None:
    location = Location(str(tmp_path / "v.lance"))
    ViewTable.create(location, groups(1))
    with pytest.raises(CommitRefusedError):
        ViewTable.create(location, groups(2))
    assert found(ViewTable.open(location, 1), 1, 2) == {"it's 1": 0}


@pytest.mark.more
def test_deletions_of_rows_side_by_side_are_small_and_every_reader_sees_them(tmp_path: Path) -> None:
    location = Location(str(tmp_path / "v.lance"))
    table = ViewTable.create(location, groups(*range(200_000)))
    for start in range(0, 100_000, 1_000):
        table.delete_where(f"n = 0 AND {KEY_COLUMN} IN ({', '.join(_text(start + at) for at in range(50))})")
    sizes = [each.stat().st_size for each in (tmp_path / "v.lance" / "_deletions").iterdir()]
    assert len(sizes) == 100 and max(sizes) < 4_000, "50 rows of a run take no more than their first and their number"
    left = lance.dataset(location.lance_uri).to_table(columns=[KEY_COLUMN]).column(KEY_COLUMN).to_pylist()
    assert {*left} == {f"it's {at}" for at in range(200_000) if at >= 100_000 or at % 1_000 >= 50}
    assert table.num_rows == 195_000 and found(table, 1_049, 1_050) == {"it's 1050": 0}
    version = table.version
    table.delete_where("n = 5")
    assert table.version == version, "no such row makes no new version"


def _text(number: int) -> str:
    return f"'it''s {number}'"
