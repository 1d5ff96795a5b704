from __future__ import annotations

import io
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.contenders import contest
from benchmarks.contenders.answer import Answer
from benchmarks.contenders.arrivals import arrivals
from benchmarks.contenders.contest import Contest
from benchmarks.events import as_csv, event_files

ROWS = 50


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Two warm files and five cold ones."""
    for name, count in (("warm", 2), ("cold", 5)):
        (tmp_path / name).mkdir()
        for number, content in enumerate(event_files(count, ROWS)):
            (tmp_path / name / f"{number}.parquet").write_bytes(content)
    return tmp_path


def counted(files: list[bytes]) -> Answer:
    """By hand."""
    groups: dict[int, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for content in files:
        for row in pq.read_table(io.BytesIO(content)).to_pylist():
            count, total = groups[row["user"]]
            groups[row["user"]] = (count + 1, total + row["amount"])
    return Answer(0.0, (1.0,), [(user, count, total) for user, (count, total) in groups.items()])


def test_a_contender_that_finds_the_same_takes_part(directory: Path) -> None:
    found = Contest(counted(list(event_files(5, ROWS))))
    found.enter("DuckDB", "duckdb_batch", "all", str(directory))
    assert found.remarks == []
    assert sum(count for _, count, _ in found.answers["DuckDB"].groups) == 5 * ROWS
    assert found.answers["DuckDB"].seconds[0] > 0


def test_a_contender_that_finds_something_else_ends_the_contest(directory: Path) -> None:
    found = Contest(counted(list(event_files(4, ROWS))))
    with pytest.raises(AssertionError, match="DuckDB counts other rows"):
        found.enter("DuckDB", "duckdb_batch", "all", str(directory))


def test_sums_may_differ_in_the_last_digits_only() -> None:
    answer = Answer(0.0, (), [(1, 2, 3.0)])
    answer.check(Answer(0.0, (), [(1, 2, 3.0 + 1e-12)]), "it")
    with pytest.raises(AssertionError, match="it has"):
        answer.check(Answer(0.0, (), [(1, 2, 3.001)]), "it")


def test_a_contender_that_fails_is_remarked_upon(directory: Path) -> None:
    found = Contest(counted(list(event_files(5, ROWS))))
    found.enter("DuckDB", "duckdb_batch", "all", str(directory / "nowhere"))
    assert found.remarks == ["DuckDB ended with exit code 1."]
    assert found.answers == {}


def test_without_pathway_it_is_said_how_to_get_it(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contest, "PATHWAY", tmp_path / "nowhere" / "python")
    found = Contest(counted([]))
    found.enter("Pathway, local CSV", "pathway_stream", "all", str(directory))
    assert found.remarks == ["Pathway, local CSV took no part: `make pathway` installs it."]


def test_csv_has_the_rows_of_its_file() -> None:
    (content,) = event_files(1, ROWS)
    head, *lines = as_csv(content).decode().splitlines()
    first = pq.read_table(io.BytesIO(content)).slice(0, 1).to_pylist()[0]
    assert head == '"user","amount","kind"'
    assert len(lines) == ROWS
    assert lines[0] == f'{first["user"]},{first["amount"]!r},"{first["kind"]}"'


def test_a_file_comes_when_the_one_before_is_in_the_result(tmp_path: Path) -> None:
    for name in ("ready", "in"):
        (tmp_path / name).mkdir()
    for number in range(3):
        (tmp_path / "ready" / f"{number}").touch()
    seen: list[int] = []

    def rows_taken() -> int:
        """A file is taken at the second look."""
        seen.append(len(list((tmp_path / "in").iterdir())))
        return ROWS * seen[-1] if seen.count(seen[-1]) > 1 else 0

    assert len(arrivals(tmp_path, ROWS, rows_taken)) == 3
    assert seen == [1, 1, 2, 2, 3, 3]
