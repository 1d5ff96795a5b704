"""Brackets and other signs of a JSON text outside of its strings, found by numpy.

A string of JSON has no line end in it: quotes are counted from the start of their line, so that a line with an open
string does not hide the signs of the lines behind it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_QUOTE, _NEWLINE, _BACKSLASH = 1, 2, 3
OPEN_OBJECT, OPEN_ARRAY, CLOSE_OBJECT, CLOSE_ARRAY, COMMA, COLON = 4, 5, 6, 7, 8, 9
_FIRST_CLOSER = CLOSE_OBJECT


def _table(signs: str, kinds: tuple[int, ...]) -> bytes:
    table = bytearray(256)
    for sign, kind in zip(signs, kinds, strict=True):
        table[ord(sign)] = kind
    return bytes(table)


_BRACKETS = ("{[}]", (OPEN_OBJECT, OPEN_ARRAY, CLOSE_OBJECT, CLOSE_ARRAY))
_OF_BRACKETS = _table('"\n\\' + _BRACKETS[0], (_QUOTE, _NEWLINE, _BACKSLASH, *_BRACKETS[1]))
_OF_MEMBERS = _table('"\n\\,:' + _BRACKETS[0], (_QUOTE, _NEWLINE, _BACKSLASH, COMMA, COLON, *_BRACKETS[1]))


class Signs(NamedTuple):
    """Signs of a text, in its order.

    Args:
        positions: the position of each.
        kinds: the kind of each: `OPEN_OBJECT` and so on.
        depths: the number of open brackets behind each, from 0 at the start of the text.
    """

    positions: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.uint8]
    depths: npt.NDArray[np.int32]


def brackets(text: bytes) -> Signs:
    """The brackets outside of strings."""
    return _signs(text, _OF_BRACKETS)


def members(text: bytes) -> Signs:
    """The brackets, commas and colons outside of strings."""
    return _signs(text, _OF_MEMBERS)


def _signs(text: bytes, table: bytes) -> Signs:
    codes = np.frombuffer(text.translate(table), np.uint8)
    positions = np.flatnonzero(codes)
    kinds = codes[positions]
    if b"\\" in text:
        positions, kinds = _without_escapes(positions, kinds)
    is_quote = kinds == _QUOTE
    quotes = np.cumsum(is_quote, dtype=np.int32)
    at_line_start = np.maximum.accumulate(np.where(kinds == _NEWLINE, quotes, 0)) if len(quotes) else quotes
    is_sign = ((quotes - at_line_start) & 1 == 0) & (kinds > _BACKSLASH)
    positions, kinds = positions[is_sign], kinds[is_sign]
    steps = np.where(kinds < _FIRST_CLOSER, 1, np.where(kinds <= CLOSE_ARRAY, -1, 0))
    return Signs(positions, kinds, np.cumsum(steps, dtype=np.int32))


def _without_escapes(
    positions: npt.NDArray[np.int64], kinds: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """The signs without backslashes and without the quotes that one of them escapes."""
    is_backslash = kinds == _BACKSLASH
    backslashes = positions[is_backslash]
    is_first = np.ones(len(backslashes), np.bool_)
    is_first[1:] = np.diff(backslashes) != 1
    starts = np.flatnonzero(is_first)
    lengths = np.diff(np.append(starts, len(backslashes)))
    # The sign behind an odd number of backslashes is escaped.
    escaped = (backslashes[starts] + lengths)[lengths % 2 == 1]
    found = np.minimum(np.searchsorted(positions, escaped), len(positions) - 1)
    is_escaped = np.zeros(len(positions), np.bool_)
    is_escaped[found[positions[found] == escaped]] = True
    keep = ~is_backslash & ~(is_escaped & (kinds == _QUOTE))
    return positions[keep], kinds[keep]
