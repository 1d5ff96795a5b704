from __future__ import annotations

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
        ("**", ".staging/a.csv", None),
        ("**", "", "hidden"),
        ("**/*", "a/b", None),
        ("**/*.parquet", "a.parquet", None),
        ("**/*.parquet", "y=1/m=2/a.parquet", None),
        ("**/*.parquet", "y=1/_temporary.parquet", "hidden"),
        ("**/*.parquet", "_y=1/a.parquet", None),
        ("**/*.parquet", "a.parquet.tmp", "pattern"),
        ("*.csv", "day/a.csv", "pattern"),
        ("**/*.{csv,csv.gz}", "d/a.csv.gz", None),
        ("**/*.{csv,csv.gz}", "d/a.csv.zst", "pattern"),
        ("day=[12]/?.csv", "day=2/a.csv", None),
        ("day=[12]/?.csv", "day=3/a.csv", "pattern"),
        ("**/*.CSV", "a.csv", "pattern"),
        ("**/*.{csv,gz}", ".staging/a.csv", None),
        ("*/a.csv", ".staging/a.csv", None),
        ("**/_*.csv", "d/_a.csv", None),
        ("**/.*", ".env", None),
        ("**/_*.csv", "d/a.csv", "pattern"),
    ],
)
def test_names_are_taken_by_pattern_and_hidden_names_are_not(pattern: str, path: str, reason: str | None) -> None:
    assert PathFilter(pattern).reason(path) == reason
    assert PathFilter(pattern).accepts(path) is (reason is None)


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
    ],
)
def test_a_directory_may_have_files_of_the_source_or_not(pattern: str, directory: str, may: bool) -> None:
    assert PathFilter(pattern).may_accept_below(directory) == may
