"""Groups of tests when several processes run them."""

from __future__ import annotations

import os

import pytest


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="the tests run in one process")
def test_a_test_runs_in_the_process_of_its_group(request: pytest.FixtureRequest) -> None:
    assert request.node.nodeid.endswith("@tests/test_groups.py"), "pytest and xdist do not fit together"
