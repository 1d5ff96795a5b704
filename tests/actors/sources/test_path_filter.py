from __future__ import annotations

import pyarrow as pa
import pytest

from actors.sources.path_filter import PathFilter


@pytest.mark.parametrize(
    ("pattern", "path", "reason"),
    [
        ("**", "a.csv", None),
        ("**", "deep/er/a.csv", None),
        ("**", "_SUCCESS", "hidden"),
        ("**", "day=1/.a.csv.crc", "hidden"),
        ("**", "_x=1/a.csv", None),
        ("**", "_x=1/b/a.csv", None),
        ("**", ".x=1/a.csv", "hidden"),
        ("**", ".staging/a.csv", "hidden"),
        ("**", "_temporary/0/task/part-0.csv", "hidden"),
        ("**", "day=1/_spark_metadata/0", "hidden"),
        ("**", "day=1/_delta_log/x/00.json", "hidden"),
        ("**", "a_b/c.d/e_f.csv", None),
        ("**", "a.csv.tmp", "hidden"),
        ("**", "day=1/A.TMP", "hidden"),
        ("**", "a.csv._COPYING_", "hidden"),
        ("**", "part-0.inprogress.5e-1", "hidden"),
        ("**", "a.csv.crswap", "hidden"),
        ("**", "~$book.csv", "hidden"),
        ("**", "d/Thumbs.db", "hidden"),
        ("**", "tmp", None),
        ("**", "a.tmp/b.csv", None),
        ("**", "my_thumbs.db", None),
        ("**", "~home/a$.csv", None),
        ("**", "", "hidden"),
        ("**/*", "a/b", None),
        ("**/*.parquet", "a.parquet", None),
        ("**/*.parquet", "y=1/m=2/a.parquet", None),
        ("**/*.parquet", "y=1/_temporary.parquet", "hidden"),
        ("**/*.parquet", "_y=1/a.parquet", None),
        ("**/*.parquet", "a.parquet.tmp", "hidden"),
        ("**/*.tmp", "a.tmp", None),
        ("**/*.{csv,tmp}", "a.tmp", None),
        ("**/*.tmp", ".a.tmp", "hidden"),
        ("_staging/*.csv", "_staging/a.csv", None),
        ("_staging/*.csv", "_staging/b/a.csv", "pattern"),
        ("_staging/**", "_staging/_temporary/a.csv", "hidden"),
        ("**/{_a,b}/*.csv", "x/_a/a.csv", None),
        ("**/_*/*.csv", "x/_a/a.csv", None),
        ("**/_*/*.csv", "x/.a/a.csv", "hidden"),
        ("*.csv", "day/a.csv", "pattern"),
        ("**/*.{csv,csv.gz}", "d/a.csv.gz", None),
        ("**/*.{csv,csv.gz}", "d/a.csv.zst", "pattern"),
        ("day=[12]/?.csv", "day=2/a.csv", None),
        ("day=[12]/?.csv", "day=3/a.csv", "pattern"),
        ("**/*.CSV", "a.csv", "pattern"),
        ("**/*.{csv,gz}", ".staging/a.csv", "hidden"),
        ("*/a.csv", ".staging/a.csv", "hidden"),
        ("**/_*.csv", "d/_a.csv", None),
        ("**/.*", ".env", None),
        ("**/_*.csv", "d/a.csv", "pattern"),
    ],
)
def test_names_are_taken_by_pattern_and_hidden_names_are_not(pattern: str, path: str, reason: str | None) -> None:
    assert PathFilter(pattern).reason(path) == reason
    assert PathFilter(pattern).accepts(path) is (reason is None)
    for around in ([], ["a.csv"], ["", "x/y.csv"]):
        rows = pa.record_batch({"path": pa.array([*around, path, *around], pa.string())})
        assert (path in PathFilter(pattern).taken(rows)["path"].to_pylist()) is (reason is None)


@pytest.mark.parametrize(
    ("pattern", "directory", "may"),
    [
        ("**", "a/b/c", True),
        ("**/*.csv", "a", True),
        ("*.csv", "a", False),
        ("day=*/*.csv", "day=1", True),
        ("day=*/*.csv", "month=1", False),
        ("day=*/*.csv", "day=1/deeper", False),
        ("raw/**/x.csv", "raw/any/thing", True),
        ("raw/**/x.csv", "other", False),
        ("{a,b/c}/x.csv", "b/c", True),
        ("**", "a/_temporary/b", False),
        ("**", "_x=1", True),
        ("**/_a/*.csv", "x/_a", True),
    ],
)
def test_a_directory_may_have_files_of_the_source_or_not(pattern: str, directory: str, may: bool) -> None:
    assert PathFilter(pattern).may_accept_below(directory) == may


@pytest.mark.parametrize(
    ("path", "is_accepted"),
    [
        (".staging/a.csv", True),
        ("_temporary/0/a.csv", True),
        ("a.csv.tmp", True),
        ("d/Thumbs.db", True),
        ("d/_a.csv", False),
        ("d/", False),
    ],
)
def test_an_older_source_hides_only_names(path: str, is_accepted: bool) -> None:
    older = PathFilter("**", hides_directories=False)
    assert older.accepts(path) is is_accepted
    assert older.reason(path) == (None if is_accepted else "hidden")
    rows = pa.record_batch({"path": pa.array([path], pa.string())})
    assert older.taken(rows).num_rows == is_accepted
    assert older.may_accept_below("a/_temporary/b")


def test_a_page_that_is_a_slice_hides_the_same_names() -> None:
    paths = pa.array(["_a", "b/_c/d", "e", "f/g.csv", ".h/i", "j.tmp"], pa.string())
    for start in range(len(paths)):
        rows = pa.record_batch({"path": paths.slice(start)})
        wanted = [path for path in paths.to_pylist()[start:] if path in ("e", "f/g.csv")]
        assert PathFilter().taken(rows)["path"].to_pylist() == wanted
