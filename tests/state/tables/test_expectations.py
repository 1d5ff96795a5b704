"""The gate, and the epoch that the tag `published` names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from state.tables.expectations import Expectation, Gate, ViewExpectations, gate_of, published_after

POSITIVE = Expectation("amount > 0", rows=3, came=5)
VIEW = ViewExpectations("v", "hold", {"positive": POSITIVE}, held_since=7, epochs=(7, 9), files={"0a": 2})


def test_they_are_read_as_they_were_written() -> None:
    assert ViewExpectations.of_json("v", VIEW.to_json()) == VIEW


@pytest.mark.parametrize(
    ("views", "gate"),
    [
        ([], "none"),
        ([replace(VIEW, on_violation="count")], "none"),
        ([VIEW], "closed"),
        ([replace(VIEW, expectations={"positive": replace(POSITIVE, accepted=3)})], "open"),
        ([replace(VIEW, expectations={"positive": replace(POSITIVE, accepted=2)})], "closed"),
        ([replace(VIEW, expectations={"positive": replace(POSITIVE, accepted=3, error="overflow")})], "closed"),
        ([replace(VIEW, expectations={"positive": Expectation("amount > 0")}), VIEW], "closed"),
    ],
)
def test_the_gate_is_closed_by_one_view(views: list[ViewExpectations], gate: Gate) -> None:
    assert gate_of(views) == gate


@pytest.mark.parametrize(
    ("before", "after", "published"),
    [
        ("none", "none", None),
        ("none", "open", 12),
        ("none", "closed", 11),
        ("open", "open", 12),
        ("open", "closed", 11),
        ("closed", "closed", None),
        ("closed", "open", 12),
        ("closed", "none", 0),
        ("open", "none", 0),
    ],
)
def test_the_tag_stays_at_the_last_epoch_that_held(before: Gate, after: Gate, published: int | None) -> None:
    assert published_after(before, after, last=11, epoch=12) == published


def test_at_most_a_hundred_files_and_epochs_are_kept() -> None:
    many = replace(VIEW, epochs=tuple(range(100)), files={f"{number:03x}": number for number in range(1, 200)})
    settled = many.settled(101, came_in=101)
    assert (settled.epochs[0], settled.epochs[-1], len(settled.epochs)) == (1, 101, 100)
    assert (len(settled.files), min(settled.files.values())) == (100, 100)
    assert settled.held_since == 7
