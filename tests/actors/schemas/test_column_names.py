from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.file_errors import UnreadableFile
from actors.schemas.column_names import RESERVED_PREFIX, names_text, renamed_columns, source_names, unique_names
from actors.schemas.safe_types import can_be_stored


@pytest.mark.parametrize(
    ("names", "unique"),
    [
        (["id", "Name"], ["id", "Name"]),
        (["", "a", "b"], ["_c0", "a", "b"]),  # an index that pandas wrote
        (["a", "b", ""], ["a", "b", "_c2"]),  # a comma at the end of the line
        (["", " ", ""], ["_c0", "_c1", "_c2"]),
        (["", "_c0"], ["_c0_1", "_c0"]),
        (["v", "v", "v"], ["v", "v_1", "v_2"]),
        (["v", "V"], ["v", "V_1"]),
        (["v", "v", "v_1"], ["v", "v_2", "v_1"]),
        (["v", "v_1", "V"], ["v", "v_1", "V_2"]),
        (["a.b", "a_b"], ["a_b_1", "a_b"]),
        (["`", "\0"], ["_", "__1"]),
        (["__sw_key", "__SW_key"], ["___sw_key", "___SW_key_1"]),
        ([], []),
    ],
)
def test_a_column_without_a_usable_name_gets_one(names: list[str], unique: list[str]) -> None:
    assert unique_names(names) == unique
    assert unique_names(unique) == unique


@given(st.lists(st.text("aA_1.`\0 ", max_size=4) | st.sampled_from(["__sw_", "_c0", "v_1"]), max_size=8))
def test_names_are_unique_without_case_and_can_be_stored(names: list[str]) -> None:
    unique = unique_names(names)
    assert len({name.lower() for name in unique}) == len(unique) == len(names)
    assert all(can_be_stored(name) and not name.lower().startswith(RESERVED_PREFIX) for name in unique)
    assert unique_names(unique) == unique


def test_the_cost_is_linear() -> None:
    """With a search from 1 for each of these names, the test would take an hour."""
    assert unique_names(["v"] * 200_000)[-1] == "v_199999"


@pytest.mark.parametrize(
    ("names", "columns", "found"),
    [
        (["id", "name"], ["id", "Name"], ["id", "Name"]),
        (["ID", "extra"], ["id", "name"], ["id", "extra"]),
        (["Name", "x"], ["name", "NAME", "Name"], ["Name", "x"]),  # an equal name wins
        (["", "a.b", "__sw_x"], ["_c0", "a_b", "___sw_x"], ["_c0", "a_b", "___sw_x"]),
        (["A.B"], ["a_b"], ["a_b"]),
        (["a.b"], ["a.b"], ["a.b"]),  # a declared name with a dot
        (["a.b", "a_b"], ["a_b"], ["a_b_1", "a_b"]),
        (["v", "v"], ["v", "v_1"], ["v", "v_1"]),
        (["v", "v"], ["x"], ["v", "v_1"]),
        (["v", "v"], ["v_1"], ["v", "v_1"]),
        (["a", "A"], ["A", "a"], ["a", "A"]),
        (["id", "Name", "name"], ["id", "Name", "name_1"], ["id", "Name", "name_1"]),
    ],
)
def test_a_column_has_the_name_of_the_matching_column_of_its_source(
    names: list[str], columns: list[str], found: list[str]
) -> None:
    assert source_names(names, columns) == found


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (["v", "v"], ["v"]),
        (["v", "V"], ["v"]),
        (["id", "name", "Name"], ["id", "Name", "name_1"]),  # the other order than in the first file
    ],
)
def test_several_columns_that_match_one_are_refused(names: list[str], columns: list[str]) -> None:
    with pytest.raises(UnreadableFile, match=r"the columns \w+, \w+ of the file match column \w+ of the source"):
        source_names(names, columns)


def test_a_spelling_that_matches_two_declared_columns_is_refused() -> None:
    with pytest.raises(UnreadableFile, match="column NAME of the file matches the columns name, Name of the source"):
        source_names(["NAME"], ["name", "Name"])


def test_an_earlier_source_matches_by_equal_names() -> None:
    assert source_names(["id", "NAME", ""], ["id", "name", "_c2"], "exact") == ["id", "NAME", "_c2"]
    assert source_names(["a", "A"], ["a"], "exact") == ["a", "A_1"]
    with pytest.raises(UnreadableFile, match="the columns a, a of the file match column a of"):
        source_names(["a", "a"], ["a"], "exact")


@given(
    st.lists(st.text("aA_1. ", max_size=3), max_size=6), st.lists(st.text("aA_1.", min_size=1, max_size=3), unique=True)
)
def test_each_column_of_a_source_has_one_column_of_a_file(names: list[str], columns: list[str]) -> None:
    try:
        found = source_names(names, columns)
    except UnreadableFile:
        return
    assert len(set(found)) == len(names)
    for name, new in zip(names, found, strict=True):
        assert new == name or new not in columns or new.lower() in {name.lower(), *map(str.lower, unique_names(names))}


def test_the_columns_of_a_file_find_the_schema_that_they_suggest() -> None:
    for names in (["", "a.b", "v", "V", "v_1"], ["a", "A", ""]):
        assert source_names(names, unique_names(names)) == unique_names(names)


def test_only_a_name_that_is_another_one_without_case_is_reported() -> None:
    names = ["", "Name", "v", "v"]
    assert renamed_columns(names, source_names(names, ["name", "v", "v_1"])) == (("", "_c0"), ("v", "v_1"))


def test_a_message_has_the_first_names_in_one_short_line() -> None:
    assert names_text(["a", " qty", ""]) == "a, ' qty', ''"
    with pytest.raises(UnreadableFile) as raised:
        source_names(["v\n" * 100_000] * 1_000, ["V\n" * 100_000])
    assert len(str(raised.value)) < 1_000 and "\n" not in str(raised.value)
