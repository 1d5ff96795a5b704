from __future__ import annotations

from pathlib import Path

import benchmarks.page
from benchmarks.catalogue import CATALOGUE, Entry
from benchmarks.page import rendered, write_page
from benchmarks.record import Archive
from tests.benchmarks.results import contest, count, failure, record

ENTRIES = (Entry("reading", full=("--size", "7")), Entry("freshness"))
PROJECT = Path(benchmarks.page.__file__).parents[1]


def section(page: str, heading: str) -> str:
    return page.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def test_a_table_has_its_ratios_targets_and_notes() -> None:
    page = rendered({"freshness": record("freshness", contest())}, ENTRIES)
    found = section(page, "Freshness")
    heads = "| | seconds | to be ready before | of Slackwater's time | target | |"
    assert f"{heads}\n| --- | --- | --- | --- | --- | --- |" in found
    assert "| Slackwater | 3.57 s | 12.0 s | | ≤ 4 s: met | |" in found
    assert "| Spark \\| stream | 8.70 s | | 2.44 × | ≥ 10 ×: missed | in memory |" in found
    assert "2,000 files:" in found
    assert "Pathway took no part." in found


def test_a_column_that_no_row_needs_is_left_out() -> None:
    page = rendered({"freshness": record("freshness", count(3))}, ENTRIES)
    assert "| | requests |\n| --- | --- |\n| a file | 3 |" in section(page, "Freshness")


def test_every_number_stands_beside_its_command_day_and_machine() -> None:
    page = rendered({"freshness": record("freshness", count(3), day="2026-11-20")}, ENTRIES)
    assert "`python -m benchmarks.freshness`, 2026-11-20, 42 s in all, on 2 cores:" in section(page, "Freshness")


def test_the_text_of_a_section_stays_around_its_numbers() -> None:
    found = section(rendered({"freshness": record("freshness", count(3))}, ENTRIES), "Freshness")
    before, after = "Files arrive one at a time", "A barrier waits up to 0.1 s for company."
    assert found.index(before) < found.index("| a file | 3 |") < found.index(after)


def test_the_summary_has_every_target_and_leads_to_its_section() -> None:
    found = section(rendered({"reading": record("reading", contest())}, ENTRIES), "Targets")
    assert "| [Requests and parsing](#requests-and-parsing): Slackwater | ≤ 4 s | 3.57 s | met |" in found
    assert "Spark \\| stream | ≥ 10 × | 2.44 × | missed |" in found


def test_a_benchmark_that_was_not_measured_says_how_to() -> None:
    page = rendered({}, ENTRIES)
    assert section(page, "Targets").strip() == "None was measured yet."
    assert "Not measured yet: `python -m benchmarks.reading --size 7`." in section(page, "Requests and parsing")
    assert "Not measured yet: `python -m benchmarks.freshness`." in section(page, "Freshness")


def test_a_failure_is_said_beside_the_earlier_result(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    archive.put(record("reading", count(3)))
    archive.put(failure("reading", "exit code 1: a | b"))
    archive.put(failure("freshness", "it took longer than 5 s, and was ended"))
    page = rendered({name: found for name in ("reading", "freshness") if (found := archive.get(name))}, ENTRIES)
    assert "**The last run failed**" in section(page, "Requests and parsing")
    assert "exit code 1: a \\| b." in section(page, "Requests and parsing")
    assert "| a file | 3 |" in section(page, "Requests and parsing")
    assert "it took longer than 5 s, and was ended." in section(page, "Freshness")


def test_plots_lie_beside_the_page_that_shows_them(tmp_path: Path) -> None:
    write_page({"reading": record("reading", contest())}, tmp_path / "benchmarks.md", ENTRIES)
    page = (tmp_path / "benchmarks.md").read_text()
    for name in ("bars", "lines"):
        assert f"(images/{name}.svg)" in page
        assert (tmp_path / "images" / f"{name}.svg").read_text().startswith("<svg")


def test_the_published_page_is_made_of_the_published_results() -> None:
    archive = Archive(PROJECT / "benchmarks" / "results")
    records = {entry.name: found for entry in CATALOGUE if (found := archive.get(entry.name))}
    assert (PROJECT / "docs" / "benchmarks.md").read_text(encoding="utf-8") == rendered(records), (
        "run `python -m benchmarks --page-only --write`"
    )
