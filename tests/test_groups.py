"""Groups of tests when several processes run them."""

from __future__ import annotations

import os
import re

import pytest

from tests.repository import REPOSITORY


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="the tests run in one process")
def test_a_test_runs_in_the_process_of_its_group(request: pytest.FixtureRequest) -> None:
    assert request.node.nodeid.endswith("@tests/test_groups.py"), "pytest and xdist do not fit together"


@pytest.mark.parametrize("case", [pytest.param(each) for each in range(3)])
@pytest.mark.more_after(2)
def test_the_cases_after_the_first_ones_are_more(request: pytest.FixtureRequest, case: int) -> None:
    assert (request.node.get_closest_marker("more") is not None) == (case >= 2)


def test_make_looks_for_tests_on_ray_where_they_are() -> None:
    found = re.search(r"^ON_RAY := ((?:.*\\\n)*.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert found is not None
    places = found[1].replace("\\", "").split()
    for file in (REPOSITORY / "tests").rglob("test_*.py"):
        marks = re.findall(r"((?:^@.*\n)*)^def test_", file.read_text(), re.MULTILINE)
        quick = [each for each in marks if "mark.ray" in each and not re.search(r"mark\.(more|long)\b", each)]
        if quick:
            assert any(str(file.relative_to(REPOSITORY)).startswith(f"{place}/") for place in places), file
