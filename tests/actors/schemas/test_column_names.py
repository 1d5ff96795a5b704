from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.schemas.column_names import RESERVED_PREFIX, unique_names
from actors.schemas.safe_types import can_be_stored


@pytest.mark.parametrize(
    ("names", "unique"),
    [
        (["id", "Name"], ["id", "Name"]),
        (["", "a", "b"], ["_c0", "a", "b"]),  # an index that pandas wrote
        (["a", "b", ""], ["a", "b", "_c2"]),  # a comma at the end of the line
        (["", " ", ""], ["_c0", "_c1", "_c2"]),
        (["", "_c0"], ["_c0", "_c0_1"]),
        (["v", "v", "v"], ["v", "v_1", "v_2"]),
        (["v", "V"], ["v", "V_1"]),
        (["v", "v", "v_1"], ["v", "v_2", "v_1"]),
        (["v", "v_1", "V"], ["v", "v_1", "V_2"]),
        (["a.b", "a_b"], ["a_b", "a_b_1"]),
        (["`", "\0"], ["_", "__1"]),
        (["__sw_key"], ["___sw_key"]),
        ([], []),
    ],
)
def test_a_column_without_a_usable_name_gets_one(names: list[str], unique: list[str]) -> None:
    assert unique_names(names) == unique
    assert unique_names(unique) == unique


def test_no_column_gets_a_taken_name() -> None:
    assert unique_names(["_PATH", "x"], taken=("_path",)) == ["_PATH_1", "x"]


@given(st.lists(st.text("aA_1.`\0 ", max_size=4) | st.sampled_from(["__sw_", "_c0", "v_1"]), max_size=8))
def test_names_are_unique_without_case_and_can_be_stored(names: list[str]) -> None:
    unique = unique_names(names)
    assert len({name.lower() for name in unique}) == len(unique) == len(names)
    assert all(can_be_stored(name) and not name.startswith(RESERVED_PREFIX) for name in unique)
    assert unique_names(unique) == unique


def test_the_cost_is_linear() -> None:
    """With a search from 1 for each of these names, the test would take an hour."""
    assert unique_names(["v"] * 200_000)[-1] == "v_199999"
