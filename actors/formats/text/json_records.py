"""Records of a JSON text: its objects, with or without line breaks, or the elements of its arrays.

    {"a": 1}                    one object a line; several in a line; objects over many lines
    {"a": 2} {"a": 3}
    {
      "a": 4
    }
    [{"a": 5}, {"a": 6}]        a text that begins with an array has arrays only, and their elements are its records

A record is an object, or `null`.  Behind it comes the end of its line, or another record; in an array a comma, or the
end of the array.  The rest is bad records:

* Text that begins no record is bad up to the end of its line, in an array up to the end of the element.
* An object whose brackets close within its line is one record, good or bad.
* An object over several lines is broken if a bracket opens where JSON allows none, or if it has no end in the file.  It
  ends before the next line that is not indented further and begins with neither a closing bracket nor a comma.  So the
  search finds the records behind a line that was cut off.

The records depend on the text from their begin on, and on nothing before: blocks of any size have the same records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from actors.file_errors import UnreadableFile
from actors.formats.text.json_tokens import CLOSE_OBJECT, OPEN_ARRAY, OPEN_OBJECT, Signs, brackets

_SPACES = re.compile(rb"[ \t\r\n]*")
_BLANKS = re.compile(rb"[ \t\r]*")
_SCALAR = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[^,\]\s"\[{]+')
_NULL = b"null"
_SPACE = np.zeros(256, np.bool_)
_SPACE[list(b" \t\r\n")] = True
_MOST_LEVELS = 8
_STEPS = 256
"""The records between two looks at the time."""
_MOST_STEPS = 1 << 16
"""The brackets between two looks at the time."""

NOT_CLOSED = "its array is not closed: the file was cut off, or a bracket is missing"
_TOO_MANY_BAD = "too many of its records are bad (ReadLimits.max_bad_records)"
_BEHIND_THE_ARRAY = "text follows the array; a file that begins with an array has arrays only"
_NO_ELEMENT = "a comma of the array lacks an element before or behind it"
_NO_COMMA = "no comma follows the element of the array"


class Records(NamedTuple):
    """The records of a text.

    Args:
        starts, ends: the bounds of each record.
        faults: index → the reason why it is bad, for records that might be good by themselves.
        end: the position behind the last record; the text behind it does not hold a whole record.
        error: the end of the file as JSON, if it is damaged there.
    """

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    faults: dict[int, str]
    end: int
    error: UnreadableFile | None = None


def begins_with_array(text: bytes) -> bool | None:
    """True if the first value of a text is an array; None for a text of white space."""
    start = _SPACES.match(text).end()  # type: ignore[union-attr]
    return text[start : start + 1] == b"[" if start < len(text) else None


def records(
    text: bytes,
    *,
    is_start: bool,
    is_last: bool,
    of_array: bool,
    require_time: Callable[[], None],
    are_good: bool = False,
    most_bad: int = 1000,
) -> Records:
    """Finds the records of a text.

    Args:
        text: the text from the start of the file, or from the end of a record.
        is_start: True for the text from the start of the file.
        is_last: True if the file ends with the text.
        of_array: True for a file that begins with an array.
        require_time: ends a search that takes too long, see `CpuTime.require`.
        are_good: True for the records of a text without a bad record, which are found faster; the caller parses them,
            and asks again if one is bad.
        most_bad: if the search finds more records that are bad in any case, it ends with an error.
    """
    search = (_ArraySearch if of_array else _Search)(text, is_start, is_last, are_good, most_bad, require_time)
    search.run()
    return search.found()


@dataclass
class _Run:
    """Records at one depth, one behind the other, with nothing but a comma or white space between them.

    Args:
        starts, ends: the bounds of each record.
        stops: the indices of records behind which there is something else; the last record is one.
    """

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]

    def from_start(self, position: int) -> slice | None:
        """The records from the one at a position, up to the next stop; None without one."""
        first = int(np.searchsorted(self.starts, position))
        if first >= len(self.starts) or self.starts[first] != position:
            return None
        last = int(self.stops[np.searchsorted(self.stops, first)])
        return slice(first, last) if last > first else None


@dataclass
class _Search:
    """The search for the records of a text of objects."""

    text: bytes
    is_start: bool
    is_last: bool
    are_good: bool
    most_bad: int
    require_time: Callable[[], None]
    end: int = 0
    error: UnreadableFile | None = None
    _signs: Signs = field(init=False)
    _parts: list[tuple[Sequence[int] | npt.NDArray[np.int64], Sequence[int] | npt.NDArray[np.int64]]] = field(
        default_factory=list
    )
    _starts: list[int] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)
    _faults: dict[int, str] = field(default_factory=dict)
    _count: int = 0
    _runs: dict[int, _Run] = field(default_factory=dict)
    _steps: int = 0
    _open: frozenset[int] = frozenset()
    """The brackets that were open where the search for the end of an object stopped."""
    _stop: int | None = None
    """The bracket that JSON does not allow within them; None if the text ended."""

    between: bytes = b""

    def __post_init__(self) -> None:
        self._signs = brackets(self.text)

    def found(self) -> Records:
        """The records that `run` has found."""
        self._flush()
        starts, ends = (
            np.concatenate([np.asarray(part[side], np.int64) for part in self._parts] or [np.empty(0, np.int64)])
            for side in (0, 1)
        )
        return Records(starts, ends, self._faults, self.end, self.error)

    def run(self) -> None:
        """Finds the records up to the end of the text, or to the begin of one that is not complete."""
        position: int | None = 0
        while position is not None:
            position = self._spaces(position)
            if position >= len(self.text):
                return
            self._step()
            position = self._next(position)

    def _step(self) -> None:
        self._steps += 1
        if self._steps % _STEPS == 0:
            self.require_time()

    def _next(self, start: int) -> int | None:
        """Adds the record at a position; the position behind it, or None if it is not complete."""
        if (position := self._clean_run(start)) is not None:
            return position
        line_end = self._line_end(start)
        end: int | None
        if self.text[start] == ord("{"):
            end, is_broken = self._object_end(start)
            if is_broken:
                return self._add_broken(start)
        elif self.text.startswith(_NULL, start):
            end = start + len(_NULL)
        else:
            return None if line_end is None else self._add_bad(start, self._stripped(start, line_end))
        if end is None:
            return self._add_broken(start) if self.is_last else None
        follows = _BLANKS.match(self.text, end).end()  # type: ignore[union-attr]
        if follows >= len(self.text):
            return self._add(start, end) if self.is_last else None
        if self.text[follows] in b"\n{" or self.text.startswith(_NULL, follows):
            return self._add(start, end)
        if not self.is_last and _NULL.startswith(self.text[follows:]):
            return None
        rest = self._line_end(follows)
        return None if rest is None else self._add_bad(start, self._stripped(start, rest))

    def _add(self, start: int, end: int) -> int:
        self._starts.append(start)
        self._ends.append(end)
        self._count += 1
        self.end = end
        return end

    def _add_bad(self, start: int, end: int, fault: str | None = None) -> int | None:
        """Adds a record that is bad in any case; None if there are too many."""
        if fault is not None:
            self._faults[self._count] = fault
        self._add(start, end)
        self.most_bad -= 1
        if self.most_bad >= 0:
            return end
        self.error = UnreadableFile(_TOO_MANY_BAD)
        return None

    def _add_broken(self, start: int) -> int | None:
        """Adds an object that cannot go on, up to the next line of its indent, see above."""
        line = self.text.rfind(b"\n", 0, start) + 1
        begins_line = (line or self.is_start) and not self.text[line:start].strip()
        indent = start - line if begins_line else 0
        found = re.compile(rb"\n[ \t]{0,%d}(?=[^ \t\r\n}\],])" % min(indent, 1000)).search(self.text, start)
        if found is not None:
            return self._add_bad(start, self._stripped(start, found.start()))
        if self.is_last:
            self._add_bad(start, self._stripped(start, len(self.text)))
        return None

    def _flush(self) -> None:
        if self._starts:
            self._parts.append((self._starts, self._ends))
            self._starts, self._ends = [], []

    def _spaces(self, position: int) -> int:
        return _SPACES.match(self.text, position).end()  # type: ignore[union-attr]

    def _stripped(self, start: int, end: int) -> int:
        """The end of a text without the white space at its end."""
        return start + max(1, len(self.text[start:end].rstrip(b" \t\r\n")))

    def _line_end(self, position: int) -> int | None:
        """The position of the next line end; None if it has not come yet."""
        end = self.text.find(b"\n", position)
        return end if end >= 0 else len(self.text) if self.is_last else None

    def _clean_run(self, start: int) -> int | None:
        """Adds the records from a position that have nothing between them; the position behind them."""
        index = int(np.searchsorted(self._signs.positions, start))
        if index >= len(self._signs.positions) or self._signs.positions[index] != start:
            return None
        depth = int(self._signs.depths[index])
        if depth not in self._runs:
            if len(self._runs) >= _MOST_LEVELS:
                return None
            self._runs[depth] = self._run_at(depth)
        run = self._runs[depth]
        part = run.from_start(start)
        if part is None:
            return None
        self._flush()
        self._parts.append((run.starts[part], run.ends[part]))
        self._count += part.stop - part.start
        self.end = int(run.ends[part.stop - 1])
        return int(run.starts[part.stop])

    def _run_at(self, depth: int) -> _Run:
        """The objects that open at a depth, and close."""
        positions, kinds, depths = self._signs
        is_closer = kinds >= CLOSE_OBJECT
        opens = np.flatnonzero(~is_closer & (depths == depth))
        closes = np.flatnonzero(is_closer & (depths == depth - 1))
        # They alternate; a text may begin within a value.
        closes = closes[np.searchsorted(closes, opens[0]) :] if len(opens) else closes[:0]
        opens = opens[: len(closes)]
        starts, ends = positions[opens], positions[closes] + 1
        is_stop = (kinds[opens] != OPEN_OBJECT) | (kinds[closes] != CLOSE_OBJECT)
        is_stop[:-1] |= is_stop[1:] | ~self._are_clean(ends[:-1], starts[1:])
        if not self.are_good:
            line_ends = np.flatnonzero(np.frombuffer(self.text, np.uint8) == ord("\n"))
            is_stop |= np.searchsorted(line_ends, starts) != np.searchsorted(line_ends, ends)
        is_stop[-1:] = True
        return _Run(starts, ends, np.flatnonzero(is_stop))

    def _are_clean(self, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """For each gap between two records whether it has only white space, and the sign that separates them once."""
        signs = np.frombuffer(self.text, np.uint8)
        is_clean: npt.NDArray[np.bool_]
        if not len(starts) or (ends - starts == 1).all():
            only = signs[starts]
            is_clean = only == ord(self.between) if self.between else _SPACE[only]
            return is_clean
        bounds, is_empty = np.column_stack([starts, ends]).ravel(), starts == ends
        # For a range without any byte `reduceat` returns the first one behind it.
        num_signs = np.add.reduceat(~_SPACE[signs], bounds, dtype=np.int32)[::2]
        num_signs[is_empty] = 0
        is_clean = num_signs == len(self.between)
        if self.between:
            num_between = np.add.reduceat(signs == ord(self.between), bounds, dtype=np.int32)[::2]
            is_clean &= (num_between == 1) & ~is_empty
        return is_clean

    def _object_end(self, start: int) -> tuple[int | None, bool]:
        """The end of the object or array at a position, None if it has not come yet; and True if it cannot go on.

        Brackets that close within the line of the start close the value, even if the text between them is not JSON.  A
        bracket that was open where an earlier search stopped has the same outcome: together, the searches take linear
        time.
        """
        positions, kinds, _ = self._signs
        index = int(np.searchsorted(positions, start))
        line_end = self.text.find(b"\n", start)
        line_end = len(self.text) if line_end < 0 else line_end
        if start in self._open and (self._stop is None or self._stop > line_end):
            return None, self._stop is not None
        stack: list[int] = []
        opened: list[int] = []
        step, last = 64, start
        while index < len(positions):
            self.require_time()
            upper = min(len(positions), index + step)
            for position, kind in zip(positions[index:upper].tolist(), kinds[index:upper].tolist(), strict=True):
                if kind in (OPEN_OBJECT, OPEN_ARRAY):
                    if position > line_end and stack and self._cannot_open(stack[-1], kind, last, position):
                        self._open, self._stop = frozenset(opened), position
                        return None, True
                    stack.append(kind)
                    opened.append(position)
                else:
                    if stack:
                        stack.pop()
                        opened.pop()
                    if not stack:
                        return position + 1, False
                last = position
            index, step = upper, min(step * 8, _MOST_STEPS)
        self._open, self._stop = frozenset(opened), None
        return None, False

    def _cannot_open(self, within: int, kind: int, last: int, position: int) -> bool:
        """True if JSON allows no bracket at a position.

        Args:
            within: the kind of the bracket around it.
            kind: the kind of the bracket.
            last: the position of the bracket before it.
        """
        before = self.text[last + 1 : position].rstrip(b" \t\r\n")[-1:]
        if not before:
            return within != OPEN_ARRAY or self.text[last] != ord("[")
        return before != b":" if within == OPEN_OBJECT else before != b","


@dataclass
class _ArraySearch(_Search):
    """The search for the elements of arrays.  Behind a bad element a comma may be missing, never behind a good one."""

    between: bytes = b","
    _is_behind_element: bool = True
    _comma: int | None = None
    """The comma whose element is still missing."""

    def run(self) -> None:
        position: int | None = 0
        is_inside = not self.is_start
        while position is not None:
            position = self._spaces(position)
            if position >= len(self.text):
                break
            self._step()
            sign = self.text[position : position + 1]
            if not is_inside:
                if sign != b"[":
                    self.error = UnreadableFile(_BEHIND_THE_ARRAY)
                    return
                is_inside, self._is_behind_element, position = True, False, position + 1
            elif sign in b",]":
                missing, self._comma = self._comma, None
                if sign == b"]":
                    is_inside = False
                elif self._is_behind_element:
                    self._comma = position
                else:
                    missing = position
                self._is_behind_element, position = True, position + 1
                if missing is not None and self._add_bad(missing, missing + 1, _NO_ELEMENT) is None:
                    return
            else:
                self._comma, self._is_behind_element = None, True
                position = self._next(position)
        if self.is_last and is_inside and self.error is None:
            self.error = UnreadableFile(NOT_CLOSED)

    def _next(self, start: int) -> int | None:
        if (position := self._clean_run(start)) is not None:
            return position
        end, is_broken = self._value_end(start)
        if is_broken:
            return self._add_broken(start)
        if end is None:
            return None
        follows = self._spaces(end)
        if follows >= len(self.text):
            return self._add(start, end) if self.is_last else None
        if self.text[follows] in b",]":
            is_good = self.text[start] == ord("{") or self.text.startswith(_NULL, start)
            return self._add(start, end) if is_good else self._add_bad(start, end)
        if b"\n" in self.text[end:follows]:
            return self._add_bad(start, end, _NO_COMMA)
        rest = self._line_end(follows)
        return None if rest is None else self._add_bad(start, self._stripped(start, rest), _NO_COMMA)

    def _value_end(self, start: int) -> tuple[int | None, bool]:
        """As `_object_end`, for any value."""
        if self.text[start] in b"{[":
            return self._object_end(start)
        found = _SCALAR.match(self.text, start)
        if found is None:
            line_end = self._line_end(start)
            return None if line_end is None else self._stripped(start, line_end), False
        is_whole = found.end() < len(self.text) or self.is_last
        return found.end() if is_whole else None, False
