from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state.errors import ProtocolError
from state.tables.keys import KeyPart, decode_key, encode_key

INTEGERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\x00\x01\xff"))
BYTES = st.binary() | st.lists(st.sampled_from([b"\x00", b"\xff", b"\x01"])).map(b"".join)
NUMBERS = st.floats(allow_nan=False)
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5)), timezone(-timedelta(hours=11, minutes=30))])
NOON = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
TIMES = st.builds(
    lambda microseconds, zone: (NOON + timedelta(microseconds=microseconds)).astimezone(zone),
    st.integers(-6 * 10**16, 2 * 10**17),
    ZONES,
)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "integers": INTEGERS,
    "texts": TEXTS,
    "bytes": BYTES,
    "floats": NUMBERS,
    "times": TIMES,
    "bools": st.booleans(),
}
PARTS = st.none() | INTEGERS | TEXTS | BYTES | NUMBERS | TIMES | st.booleans()


def in_order(row: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    """The sort key of a part in Python; None comes first."""
    return tuple((part is not None, part if part is not None else 0) for part in row)


@settings(deadline=None)
@given(st.data(), st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
def test_sorting_the_bytes_sorts_the_tuples(data: st.DataObject, kinds: list[str]) -> None:
    columns = [st.none() | KINDS[kind] for kind in kinds]
    rows = data.draw(st.lists(st.tuples(*columns), min_size=2))
    # Python's sort is stable: rows that are equal, such as 0.0 and -0.0, must have equal bytes.
    assert sorted(rows, key=in_order) == sorted(rows, key=lambda row: encode_key(*row))


@pytest.mark.more_after(1)
@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(data=st.data())
def test_two_values_and_their_bytes_compare_alike(kind: str, data: st.DataObject) -> None:
    first, second = data.draw(KINDS[kind]), data.draw(KINDS[kind])
    assert (first < second) == (encode_key(first) < encode_key(second))
    assert (first == second) == (encode_key(first) == encode_key(second))


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_a_prefix_sorts_before_what_it_begins(first: str, second: str) -> None:
    assert encode_key(first) < encode_key(first, second)
    assert encode_key(first) < encode_key(first + "\x00")


@settings(deadline=None)
@given(PARTS.filter(lambda part: part is not None))
def test_none_sorts_before_everything(part: KeyPart) -> None:
    assert encode_key("s", None) < encode_key("s", part)


@settings(deadline=None)
@given(st.lists(PARTS))
def test_a_key_gives_its_parts_back(parts: list[KeyPart]) -> None:
    found = decode_key(encode_key(*parts))
    assert found == tuple(parts)
    assert [type(part) for part in found] == [type(part) for part in parts]


def test_zero_has_one_key() -> None:
    assert encode_key(-0.0) == encode_key(0.0)
    assert math.copysign(1, decode_key(encode_key(-0.0))[0]) == 1  # type: ignore[arg-type]


@settings(deadline=None)
@given(NUMBERS)
def test_every_nan_has_one_key_after_all_numbers(number: float) -> None:
    assert encode_key(number) < encode_key(math.nan) == encode_key(-math.nan) == encode_key(float("inf") * 0)
    (back,) = decode_key(encode_key(math.nan))
    assert isinstance(back, float)
    assert math.isnan(back)


def test_a_time_is_a_moment_whatever_the_zone() -> None:
    assert encode_key(NOON) == encode_key(NOON.astimezone(timezone(timedelta(hours=5))))
    assert encode_key(NOON) < encode_key(NOON + timedelta(microseconds=1))


@pytest.mark.parametrize("part", [2**63, -(2**63) - 1, NOON.replace(tzinfo=None), [1], 1j])
def test_what_has_no_order_in_bytes_is_refused(part: object) -> None:
    with pytest.raises(ProtocolError, match="is not a valid part of a key"):
        encode_key(part)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [b"\x09", b"\x04abc", b"\x03\x00", b"\x05\x00", b"\x06\x00"])
def test_bytes_that_are_no_key_are_refused(key: bytes) -> None:
    with pytest.raises(ProtocolError, match="is not a valid key"):
        decode_key(key)


def test_keys_are_the_same_for_ever() -> None:
    # They are in every store that was ever written: these values must not change.
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    key = encode_key(None, b"a\x00b", -1, "é", 1.5, moment, False, True)
    assert key.hex() == ("01026100ff6200037fffffffffffffff04c3a90005bff800000000000006800649add44930000708")
