from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.record import Archive
from tests.benchmarks.results import contest, count, failure, record


def test_a_record_comes_back_from_the_archive(tmp_path: Path) -> None:
    stored = Archive(tmp_path).put(record("reading", count(603)))
    assert Archive(tmp_path).get("reading") == stored == record("reading", count(603))


def test_a_benchmark_that_never_ran_has_no_record(tmp_path: Path) -> None:
    assert Archive(tmp_path / "nowhere").get("reading") is None


def test_a_new_result_replaces_only_that_of_its_benchmark(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    archive.put(record("reading", count(603)))
    archive.put(record("freshness", count(7)))
    archive.put(record("reading", count(1), day="2026-11-24"))
    assert archive.get("reading") == record("reading", count(1), day="2026-11-24")
    assert archive.get("freshness") == record("freshness", count(7))


def test_a_failure_leaves_the_result_that_was_there(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    archive.put(record("reading", contest()))
    before = archive.get("reading")
    archive.put(failure("reading", "exit code 1"))
    found = archive.put(failure("reading", "exit code 2", day="2026-11-25"))
    assert found == archive.get("reading")
    assert before is not None
    assert (found.run, found.result) == (before.run, before.result)
    assert found.failed is not None
    assert (found.failed.day, found.reason) == ("2026-11-25", "exit code 2")


def test_a_result_ends_a_failure(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    archive.put(failure("reading", "exit code 1"))
    assert archive.put(record("reading", count(1))).failed is None


def test_a_file_that_is_no_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "reading.json").write_text('{"name": "reading"}')
    with pytest.raises(ValueError, match=r"reading\.json is no record of a benchmark .*; remove it and measure again"):
        Archive(tmp_path).get("reading")
