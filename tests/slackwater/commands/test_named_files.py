"""Tests of the files that a user names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from slackwater.commands.named_files import NamedFiles
from state.location import Location
from state.store.store import StateStore
from tests.slackwater.commands.bad_files import BAD, DONE, RAW, BadFiles, progress

URLS = {"s": f"{RAW}/s", "t": f"{RAW}/t"}


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    files = BadFiles(Location(str(tmp_path / "root")))
    files.ended(DONE, progress("a.csv"), progress("day=1/a.csv"), progress("day=1/ä.csv"), progress("b[1].csv"))
    files.ended(BAD, progress("a.csv", source="t"), progress("day=1/_hidden.csv"))
    files.queued(progress("day=2/a.csv"), progress("day=1/a.csv.gz"))
    return files.root.open(read_only=True)


@pytest.mark.more_after(8)
@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("a.csv", ["s a.csv", "t a.csv"]),
        ("b[1].csv", ["s b[1].csv"]),
        ("b[0-9]*", []),
        ("b*", ["s b[1].csv"]),
        ("day=1/*", ["s day=1/a.csv", "s day=1/a.csv.gz", "s day=1/ä.csv"]),
        ("day=1/_hidden.csv", ["s day=1/_hidden.csv"]),
        ("day={1,2}/a.csv", ["s day=1/a.csv", "s day=2/a.csv"]),
        ("**/ä.csv", ["s day=1/ä.csv"]),
        (f"{RAW}/s/day=1/a.csv", ["s day=1/a.csv"]),
        (f"{RAW}/t/a.csv", ["t a.csv"]),
        (f"{RAW}/s/day=1/", []),
        ("/elsewhere/a.csv", []),
    ],
)
def test_a_name_is_a_url_a_path_or_a_glob(store: StateStore, file: str, expected: list[str]) -> None:
    named = NamedFiles(file, URLS)
    listed = named.listed(store)
    assert sorted(f"{source} {path}" for source, path in listed) == expected
    assert all(named.has(*key) for key in listed)


@pytest.mark.parametrize(("file", "most"), [(f"{RAW}/s/day=1/a.csv", 2), ("day=2/*", 1), ("x*", 0)])
def test_only_rows_that_begin_as_the_name_does_are_read(
    store: StateStore, file: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    slices = store.slices

    def counted(table: str, **selection: Any) -> Iterator[pa.Table]:
        for rows in slices(table, **selection):
            read.append(rows.num_rows)
            yield rows

    monkeypatch.setattr(store, "slices", counted)
    NamedFiles(file, URLS).listed(store)
    assert sum(read) <= most
