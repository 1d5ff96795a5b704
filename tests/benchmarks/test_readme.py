from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.readme import NAME, OURS, ROW, SPARK, speed_sentence, write_speed
from benchmarks.record import Archive, Record
from benchmarks.result import Number, Result, Row, Table
from tests.benchmarks.results import contest, record

PROJECT = Path(__file__).parents[2]
TEXT = "before\n<!-- speed -->\nold\n<!-- /speed -->\nafter\n"


def measured() -> Record:
    rows = (
        Row("demo, 500 rows", (Number(1.0, "s"), Number(2.0, "s"), Number(3.0, "s"))),
        Row(ROW, (Number(0.351, "s"), Number(0.9, "s"), Number(2.11, "s"))),
    )
    return record(NAME, Result((Table((OURS, "cold", SPARK), rows),)))


def test_the_sentence_has_the_numbers_of_the_realistic_pipeline(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(TEXT, encoding="utf-8")
    write_speed(measured(), readme)
    text = readme.read_text(encoding="utf-8")
    assert "0.351 s after they appear" in text
    assert "over these six files takes 2.11 s" in text
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")


def test_a_result_without_that_row_leaves_the_sentence(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(TEXT, encoding="utf-8")
    write_speed(record(NAME, contest()), readme)
    assert readme.read_text(encoding="utf-8") == TEXT


def test_a_readme_without_a_place_for_it_is_an_error(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("nothing", encoding="utf-8")
    with pytest.raises(ValueError, match="lacks"):
        write_speed(measured(), readme)


def test_the_readme_has_the_sentence_of_the_stored_result() -> None:
    stored = Archive(PROJECT / "benchmarks" / "results").get(NAME)
    sentence = speed_sentence(stored) if stored else ""
    assert f"<!-- speed -->\n{sentence}" in (PROJECT / "README.md").read_text(encoding="utf-8")
