"""A change of a stored format changes the format number."""

from __future__ import annotations

import json
from typing import Any

import pytest

from state.tables.tables import FORMAT_VERSION
from tests.state.stored_formats import recorded_formats, stored_formats

PRESENT: dict[str, Any] = json.loads(json.dumps(stored_formats()))


def test_every_stored_format_has_a_record_for_its_number() -> None:
    assert recorded_formats(FORMAT_VERSION).keys() == PRESENT.keys(), (
        "record them: python -m tests.state.stored_formats"
    )


@pytest.mark.parametrize("stored", PRESENT)
def test_a_stored_format_changes_only_with_the_format_number(stored: str) -> None:
    assert PRESENT[stored] == recorded_formats(FORMAT_VERSION).get(stored), (
        f"the stored format of {stored} differs from format {FORMAT_VERSION}: raise FORMAT_VERSION, unless no "
        "released version has written this number; then run python -m tests.state.stored_formats and "
        "tests/state/lance/write_format_store.py, and describe the change in docs/guide/upgrades.md"
    )
