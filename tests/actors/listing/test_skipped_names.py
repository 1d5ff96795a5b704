"""A name that listings skip is one warning and one row in the quarantine."""

from __future__ import annotations

from dataclasses import replace

from actors.listing.instructions import ListInstruction, WarnOf
from actors.listing.list_executor import ListExecutor
from actors.objects.listing_page import SkippedName
from actors.sources.path_filter import PathFilter
from tests.actors.flow import AT, INITIAL, barrier, delta_rows, lister, of, page

_REASON = "it is a symbolic link"


def _listed(executor: ListExecutor, *skipped: str) -> list[ListInstruction]:
    executor.on_time(1e6)
    names = tuple(SkippedName(path, _REASON) for path in skipped)
    return [*executor.on_page(replace(page("a"), skipped=names), 0.0), *executor.on_listing_end(0.0, AT)]


def _told(instructions: list[ListInstruction]) -> list[str]:
    return [warning.name.path for warning in of(WarnOf, instructions)]


def test_each_name_is_told_once_however_often_it_is_listed() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    assert _told(_listed(executor, "x", "d/y")) == ["x", "d/y"]
    assert _told(_listed(executor, "x", "d/y", "z")) == ["z"]


def test_each_name_is_a_row_without_a_position_in_the_quarantine() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    activity = executor.progress().activity
    _listed(executor, "d/y")
    assert executor.progress().activity > activity, "the epoch is committed"
    (row,) = delta_rows(executor.on_barrier(barrier(1), 0.0), "quarantine")
    assert (row["source"], row["path"], row["row"], row["raw"]) == ("s", "s3://raw/d/y", None, b"")
    assert row["reason"] == _REASON
    _listed(executor, "d/y")
    assert delta_rows(executor.on_barrier(barrier(2), 0.0), "quarantine") == []


def test_a_name_that_keeps_no_file_from_the_source_is_not_told() -> None:
    executor = lister(path_filter=PathFilter("day=*/*.csv"))
    executor.on_barrier(INITIAL, 0.0)
    assert _told(_listed(executor, "x", "day=1", "day=1/a.csv", "day=1/b.json", "day=1/deep/a.csv")) == [
        "day=1",
        "day=1/a.csv",
    ]


def test_a_thousand_names_are_told_at_most_and_the_last_one_says_so() -> None:
    executor = lister()
    executor.on_barrier(INITIAL, 0.0)
    instructions = _listed(executor, *(f"{number:04}" for number in range(1_500)))
    assert len(_told(instructions)) == 1_000
    assert of(WarnOf, instructions)[-1].name.reason == f"{_REASON} (further names are skipped untold)"
    assert len(delta_rows(executor.on_barrier(barrier(1), 0.0), "quarantine")) == 1_000
