"""Every Arrow type becomes a safe one with the same values, or is refused by the name of its column."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from tests.actors.formats.carried_types import has_form, read
from tests.actors.formats.generated_types import columns


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("types")


@pytest.mark.more
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(found=columns(most_columns=12, num_rows=4))
def test_safe_types_hold_the_values_of_all_others(found: dict[str, pa.Array], directory: Path) -> None:
    carried = {name: column for name, column in found.items() if has_form(name, column)}
    if carried:
        read(carried, directory)
