from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state.errors import ProtocolError
from state.keys import decode_key, encode_key

INTEGERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\x00\x01\xff"))
BYTES = st.binary() | st.lists(st.sampled_from([b"\x00", b"\xff", b"\x01"])).map(b"".join)
# Tuples that Python itself can sort: one type per position.
ROWS = st.lists(st.tuples(TEXTS, BYTES, INTEGERS, TEXTS), min_size=2)


@settings(deadline=None)
@given(ROWS)
def test_sorting_the_bytes_sorts_the_tuples(rows: list[tuple[str, bytes, int, str]]) -> None:
    assert sorted(rows) == sorted(rows, key=lambda row: encode_key(*row))


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_a_prefix_sorts_before_what_it_begins(first: str, second: str) -> None:
    assert encode_key(first) < encode_key(first, second)
    assert encode_key(first) < encode_key(first + "\x00")


@settings(deadline=None)
@given(BYTES | TEXTS | INTEGERS)
def test_none_sorts_before_everything(part: bytes | str | int) -> None:
    assert encode_key("s", None) < encode_key("s", part)


@settings(deadline=None)
@given(st.lists(st.none() | TEXTS | BYTES | INTEGERS))
def test_a_key_gives_its_parts_back(parts: list[str | bytes | int | None]) -> None:
    assert decode_key(encode_key(*parts)) == tuple(parts)


@pytest.mark.parametrize("part", [True, 2**63, -(2**63) - 1, 1.5])
def test_what_has_no_order_in_bytes_is_refused(part: object) -> None:
    with pytest.raises(ProtocolError, match="cannot be part of a key"):
        encode_key(part)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [b"\x09", b"\x04abc", b"\x03\x00"])
def test_bytes_that_are_no_key_are_refused(key: bytes) -> None:
    with pytest.raises(ProtocolError, match="is not a key"):
        decode_key(key)
