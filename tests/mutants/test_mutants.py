"""The simulator finds each deliberate fault within 5,000 seeds, or a test of its room does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mutants.faulty_copy import fails_with, seeds_to_find
from tests.mutants.mutant import Mutant
from tests.mutants.mutants import MUTANTS
from tests.repository import REPOSITORY

SEEDS = 5_000
_QUICK = ("alignment does not block",)


def _by_name(mutant: Mutant) -> str:
    return mutant.name


@pytest.mark.fault
@pytest.mark.parametrize(
    "mutant",
    [pytest.param(each, marks=pytest.mark.xdist_group(each.name)) for each in MUTANTS if not each.shown_by],
    ids=_by_name,
)
def test_a_fault_is_found(mutant: Mutant, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    seeds = seeds_to_find(mutant, tmp_path, SEEDS)
    record_property("seeds", seeds)
    assert seeds is not None, (
        f"{mutant.name}: not found within {SEEDS} seeds from {mutant.start} on, or four minutes; if stories have "
        "changed, name the `start` that shows it, or a test of its room in `shown_by`"
    )


@pytest.mark.fault
@pytest.mark.parametrize("mutant", [each for each in MUTANTS if each.shown_by], ids=_by_name)
def test_a_fault_that_stories_show_seldom_fails_a_test_of_its_room(mutant: Mutant, tmp_path: Path) -> None:
    assert fails_with(mutant, tmp_path)


@pytest.mark.parametrize("mutant", [each for each in MUTANTS if each.name in _QUICK], ids=_by_name)
def test_a_fault_is_found_quickly(mutant: Mutant, tmp_path: Path) -> None:
    assert seeds_to_find(mutant, tmp_path, 100) is not None


@pytest.mark.more
def test_without_a_fault_nothing_is_found(tmp_path: Path) -> None:
    assert seeds_to_find(Mutant("none", "state/epoch.py", ()), tmp_path, 100) is None


def test_every_fault_can_be_put_in() -> None:
    for mutant in MUTANTS:
        source = (REPOSITORY / mutant.file).read_text()
        faulty = mutant.applied(source)
        assert faulty != source
        if mutant.file.endswith(".py"):
            compile(faulty, mutant.file, "exec")
