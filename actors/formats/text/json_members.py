"""Members of JSON objects and elements of JSON lists as slices of their text, found by numpy.

The text has been parsed before: it is valid JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from actors.formats.text.json_tokens import (
    CLOSE_OBJECT,
    COLON,
    COMMA,
    OPEN_ARRAY,
    OPEN_OBJECT,
    Signs,
    members,
)

_Positions = npt.NDArray[np.int64]
_IS_SPACE = np.zeros(256, np.bool_)
_IS_SPACE[list(b" \t\r\n")] = True
_SPACES = re.compile(rb"[ \t\r\n]*")
_STEPS = 16
_FEW_NAMES = 16
"""The names that are searched one by one, which is faster than an index of all names."""


class Values(NamedTuple):
    """Values within the values of a text, one behind the other.

    Args:
        owners: the index of the value that each is in.
        texts: the text of each.
    """

    owners: _Positions
    texts: list[bytes]


class Entries(NamedTuple):
    """Members of the objects of a text, with their names; see `Values`."""

    owners: _Positions
    names: list[bytes]
    texts: list[bytes]


class Objects:
    """The members of the objects of a text.

    Args:
        text: objects, with nothing but white space between them.
    """

    def __init__(self, text: bytes) -> None:
        self._text, self._bytes = text, np.frombuffer(text, np.uint8)
        self._signs = signs = members(text)
        self._colons = np.flatnonzero((signs.kinds == COLON) & (signs.depths == 1))
        is_first = (signs.kinds == OPEN_OBJECT) & (signs.depths == 1)
        self.num_objects = int(is_first.sum())
        is_end = ((signs.kinds == COMMA) & (signs.depths == 1)) | ((signs.kinds == CLOSE_OBJECT) & (signs.depths == 0))
        self._value_ends = np.flatnonzero(is_end)
        self._owners = (np.cumsum(is_first) - 1)[self._colons]
        # In front of the colon is the comma or bracket that the name follows.
        self._name_starts = signs.positions[self._colons - 1] + 1
        self._name_ends = _before_spaces(text, self._bytes, signs.positions[self._colons])

    def entries(self) -> Entries:
        """All members."""
        starts = _behind_spaces(self._text, self._bytes, self._name_starts)
        names = [_string(each) for each in _slices(self._text, starts, self._name_ends)]
        return Entries(self._owners, names, self._values(np.arange(len(self._colons))))

    def names(self) -> set[str]:
        """The names of all members."""
        starts = _behind_spaces(self._text, self._bytes, self._name_starts)
        return {_string(each).decode() for each in set(_slices(self._text, starts, self._name_ends))}

    def named(self, names: Collection[str]) -> Mapping[str, Values]:
        """The members with some names."""
        spelled_otherwise = self._spelled_otherwise()
        found = {}
        with_name = self._with_name if len(names) <= _FEW_NAMES else self._indexed()
        for name in names:
            which = with_name(json.dumps(name, ensure_ascii=False).encode("utf-8", "surrogatepass"))
            if others := spelled_otherwise.get(name):
                which = np.union1d(which, others)
            found[name] = Values(self._owners[which], self._values(which))
        return found

    def _with_name(self, spelling: bytes) -> _Positions:
        which = np.flatnonzero(self._name_ends - self._name_starts >= len(spelling))
        starts = self._name_ends[which] - len(spelling)
        # The last letters differ more often than the quotes, and the first ones of names with a common begin.
        for at in range(len(spelling) - 1, -1, -1):
            matches = self._bytes[starts + at] == spelling[at]
            which, starts = which[matches], starts[matches]
        is_escaped = (starts > self._name_starts[which]) & (self._bytes[starts - 1] == ord("\\"))
        wanted: _Positions = which[~is_escaped]
        return wanted

    def _indexed(self) -> Callable[[bytes], _Positions]:
        """As `_with_name`, in constant time for each name."""
        starts = _behind_spaces(self._text, self._bytes, self._name_starts)
        index: dict[bytes, list[int]] = {}
        for at, spelling in enumerate(_slices(self._text, starts, self._name_ends)):
            index.setdefault(spelling, []).append(at)
        return lambda spelling: np.array(index.get(spelling, []), np.int64)

    def _spelled_otherwise(self) -> Mapping[str, list[int]]:
        """The members whose name has an escape in it, by their names."""
        if b"\\" not in self._text:
            return {}
        backslashes = np.flatnonzero(self._bytes == ord("\\"))
        within = np.searchsorted(self._name_starts, backslashes, side="right") - 1
        is_name = (within >= 0) & (backslashes < self._name_ends[within])
        found: dict[str, list[int]] = {}
        for index in np.unique(within[is_name]).tolist():
            text = self._text[int(self._name_starts[index]) : int(self._name_ends[index])]
            found.setdefault(_string(text.strip()).decode(), []).append(index)
        return found

    def _values(self, which: _Positions) -> list[bytes]:
        signs, ends, colons = self._signs, self._value_ends, self._colons[which]
        return _stripped(
            self._text,
            self._bytes,
            signs.positions[colons] + 1,
            signs.positions[ends[np.searchsorted(ends, colons)]] if len(colons) else colons,
        )


def elements(text: bytes) -> Values:
    """The elements of the lists of a text, with nothing but white space between the lists."""
    signs: Signs = members(text)
    positions, kinds, depths = signs
    is_first = (kinds == OPEN_ARRAY) & (depths == 1)
    is_start = is_first | ((kinds == COMMA) & (depths == 1))
    starts = np.flatnonzero(is_start)
    # At the depth of its elements a list has commas, and at last its closing bracket.
    ends = np.flatnonzero(
        ((kinds == COMMA) & (depths == 1)) | ((kinds > CLOSE_OBJECT) & (kinds < COMMA) & (depths == 0))
    )
    texts = _stripped(text, np.frombuffer(text, np.uint8), positions[starts] + 1, positions[ends])
    owners = (np.cumsum(is_first) - 1)[starts]
    is_empty = [not each for each in texts]
    return Values(owners[~np.array(is_empty, np.bool_)], [each for each in texts if each])


def text_of(value: bytes) -> bytes:
    """A JSON value as text: of a string its characters, of another value its JSON."""
    return _string(value) if value[:1] == b'"' else value


def _string(value: bytes) -> bytes:
    return value[1:-1] if b"\\" not in value else json.loads(value).encode()


def _slices(text: bytes, starts: _Positions, ends: _Positions) -> list[bytes]:
    return [text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _stripped(text: bytes, signs: npt.NDArray[np.uint8], starts: _Positions, ends: _Positions) -> list[bytes]:
    return _slices(text, _behind_spaces(text, signs, starts), _before_spaces(text, signs, ends))


def _behind_spaces(text: bytes, signs: npt.NDArray[np.uint8], starts: _Positions) -> _Positions:
    """The positions moved behind white space."""
    starts = starts.copy()
    for _ in range(_STEPS):
        is_space = _IS_SPACE[signs[starts]]
        if not is_space.any():
            return starts
        starts += is_space
    for index in np.flatnonzero(_IS_SPACE[signs[starts]]).tolist():
        starts[index] = _SPACES.match(text, int(starts[index])).end()  # type: ignore[union-attr]
    return starts


def _before_spaces(text: bytes, signs: npt.NDArray[np.uint8], ends: _Positions) -> _Positions:
    """The positions moved before white space."""
    ends = ends.copy()
    for _ in range(_STEPS):
        is_space = _IS_SPACE[signs[ends - 1]]
        if not is_space.any():
            return ends
        ends -= is_space
    for index in np.flatnonzero(_IS_SPACE[signs[ends - 1]]).tolist():
        end = int(ends[index])
        while text[end - 1] in b" \t\r\n":
            end -= 1
        ends[index] = end
    return ends
