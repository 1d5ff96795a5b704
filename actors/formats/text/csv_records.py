"""Records of a CSV text, and the quoted fields that are not well formed, in one pass over its bytes."""

from __future__ import annotations

import ctypes
import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from actors.formats.text.lines import Text, last_line_end

_Bytes = npt.NDArray[np.uint8]
_Positions = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]
_LINE_FEED, _CARRIAGE_RETURN = 10, 13
# It fits into the cache of a processor, and bounds the memory for positions.
_WINDOW_BYTES = 1 << 18
# The size of a window behind a fault or a comment: lines with faults come together.
_SMALL_WINDOW_BYTES = 1 << 12
_FIRST_LOOK_BYTES = 1 << 12
# The bytes behind a fault in which records are found one by one, and the records without a fault that end this.
_NEAR_BYTES = 1 << 14
_RECORDS_WITHOUT_FAULT = 64
# As many closing runs are tried from the end of a text, before more of it is looked at.
_CLOSING_RUNS = 8
_NONE: _Positions = np.empty(0, np.int64)
_memchr = ctypes.CDLL(None).memchr
_memchr.argtypes, _memchr.restype = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t), ctypes.c_void_p


@dataclass(frozen=True)
class QuoteFault:
    """A quoted field that is not well formed.

    Args:
        start: the position of its record.
        opening: the position of the quote that opens the field.
        kind: `open` if it is not closed, `text` if text follows its closing quote.
        is_escaped: whether a backslash precedes the quote that closes it.
    """

    start: int
    opening: int
    kind: Literal["open", "text"]
    is_escaped: bool = False


@dataclass(frozen=True)
class _Runs:
    """The runs of quotes in a window.

    Args:
        begins, lengths: the position and the length of each run.
        opens: whether the run begins at the start of a field.
        turns: the indices of the runs of odd length, the only ones that open or close a field for more than their own
            length.
        states: for each turn, True if a quoted field is open behind it.
    """

    begins: _Positions
    lengths: _Positions
    opens: _Flags
    turns: _Positions
    states: _Flags

    def is_quoted(self, positions: _Positions) -> _Flags:
        """For each position outside the runs, True if a quoted field is open there."""
        before = np.searchsorted(self.begins[self.turns], positions)
        found: _Flags = np.concatenate([[False], self.states])[before]
        return found


@dataclass(frozen=True)
class _Window:
    """The records of a part of a text that begins with a record.

    Args:
        ends: the positions behind its complete records, also behind comments and empty lines.
        comments: the positions of the records that are comments.
        fault: the fault of the last record.
        is_cut: True if the window ended early, at a fault or a comment with a quote.
        runs: the quotes; None without quotes.
    """

    ends: _Positions
    comments: _Positions
    fault: QuoteFault | None = None
    is_cut: bool = False
    runs: _Runs | None = None


@dataclass(frozen=True)
class CsvRecords:
    """Finds the ends of records.

    A quote at the start of a field opens it, up to the next quote that is not doubled or escaped; elsewhere a quote is
    a plain character.  A line end inside a quoted field does not end a record.  So a run of quotes opens or closes a
    field only if its length is odd.  At the start of the text, or behind a delimiter or a line end, the run opens a
    field, or closes the open field.  Elsewhere it closes the open field, if any.

    With `finds_faults`, a record ends with the line in which a quoted field opens that is not well formed, and the next
    record begins with the next line.  Such a field

    * is not closed before the end of the text, or within `max_bytes` from the start of its record, or
    * has text behind its closing quote, up to the next delimiter or line end, and the field has several lines, or that
      text has a further quote.  (Arrow joins other text to the value: `"a"b` is ab.)

    The fault of a record depends only on the text from the start of the record on.

    Args:
        delimiter: the character between fields.
        quote: the character around fields; None for text without quoted fields.
        escape: the character that makes a following quote a part of a quoted field.
        comment: the character that begins a line without a row.
        finds_faults: whether records end at a fault.
        max_bytes: the longest record with a quoted field of several lines.
    """

    delimiter: str
    quote: str | None
    escape: str | None = None
    comment: str | None = None
    finds_faults: bool = True
    max_bytes: int = sys.maxsize
    _around: _Flags = field(init=False, repr=False, compare=False)
    _line: re.Pattern[bytes] = field(init=False, repr=False, compare=False)
    """A line whose quoted fields are well formed."""

    def __post_init__(self) -> None:
        around = np.isin(np.arange(256), [ord(self.delimiter), _LINE_FEED, _CARRIAGE_RETURN])
        object.__setattr__(self, "_around", around)
        if self.quote is not None:
            delimiter, quote = re.escape(self.delimiter), re.escape(self.quote)
            field = f"{quote}(?:[^{quote}]|{quote}{quote})*+{quote}|[^{quote}{delimiter}][^{delimiter}]*+|"
            line = re.compile(f"(?:{field})(?:{delimiter}(?:{field}))*+".encode())
            object.__setattr__(self, "_line", line)

    def last_end(self, text: Text) -> int:
        """The position behind the last complete record; 0 without one.

        Args:
            text: text that begins with a record, and may go on.
        """
        content = np.frombuffer(text, np.uint8)
        if not self.has_quote(text):
            end = last_line_end(text)
            after = _line_ends(content, end, len(content))
            return int(after[-1]) if len(after) else end
        if self.comment is None and self.escape is None and len(content) <= self.max_bytes:
            nbytes = _FIRST_LOOK_BYTES
            while nbytes < min(len(content), _WINDOW_BYTES):
                if end := self._last_end_behind(content, len(content) - nbytes):
                    return end
                nbytes *= 8
        last = 0
        for window in self._windows(content, is_end=False):
            last = int(window.ends[-1])
        return last

    def first_end(self, text: Text) -> int:
        """The position behind the first record; 0 if it is not complete."""
        line = bytes(text[:_FIRST_LOOK_BYTES]).partition(b"\n")[0]
        if len(line) < min(len(text), _FIRST_LOOK_BYTES) and self._is_simple(line.removesuffix(b"\r")):
            return len(line) + 1
        for window in self._windows(np.frombuffer(text, np.uint8), is_end=False, size=_SMALL_WINDOW_BYTES):
            return int(window.ends[0])
        return 0

    def ends(self, text: Text) -> _Positions:
        """The positions behind each complete record, in order; an empty line and a comment count as records.

        Args:
            text: whole records; its end ends a quoted field.
        """
        windows = self._windows(np.frombuffer(text, np.uint8), is_end=True)
        ends = [window.ends for window in windows]
        return np.concatenate(ends) if ends else _NONE

    def first_fault(self, text: Text) -> QuoteFault | None:
        """The first fault in whole records."""
        if not self.finds_faults:
            return None
        windows = self._windows(np.frombuffer(text, np.uint8), is_end=True)
        return next((window.fault for window in windows if window.fault is not None), None)

    def has_quote(self, text: Text) -> bool:
        """True if a quote is in the text."""
        return self.quote is not None and has_byte(text, self.quote)

    def is_special(self, text: Text) -> bool:
        """True if Arrow's reader needs `plain` text: it knows no comments, and removes each escape."""
        return any(each is not None and has_byte(text, each) for each in (self.escape, self.comment))

    def is_comment(self, record: bytes) -> bool:
        """True if a record is a comment."""
        return self.comment is not None and record.startswith(self.comment.encode())

    def plain(self, text: Text) -> Text:
        """Whole records as they are without the options `escape` and `comment`; a record with a fault is left out."""
        if not self.is_special(text) and (self._is_simple_line(text) or self.first_fault(text) is None):
            return text
        content = np.frombuffer(text, np.uint8).copy()
        kept = np.ones(len(content), np.bool_)
        start = 0
        for window in self._windows(np.frombuffer(text, np.uint8), is_end=True):
            for comment in window.comments[window.comments < window.ends[-1]].tolist():
                kept[comment : window.ends[np.searchsorted(window.ends, comment, "right")]] = False
            if window.fault is not None:
                kept[window.fault.start : window.ends[-1]] = False
            end = int(window.ends[-1])
            if self.escape is not None and window.runs is not None:
                self._unescape(content, kept, start, end, window.runs)
            start = end
        if start < len(content) and self.is_comment(bytes(content[start : start + 1])):
            kept[start:] = False
        elif start < len(content) and self.escape is not None:
            # The last record has no line end.
            rest = self._runs(content, start, len(content))
            if rest is not None:
                self._unescape(content, kept, start, len(content), rest)
        return content[kept].tobytes()

    def _unescape(self, content: _Bytes, kept: _Flags, start: int, stop: int, runs: _Runs) -> None:
        """Doubles escaped quotes, and removes the escape before another escape, inside quoted fields."""
        assert self.escape is not None and self.quote is not None
        escapes = np.flatnonzero(content[start:stop] == ord(self.escape)) + start
        escapes = escapes[runs.is_quoted(escapes)]
        if not len(escapes):
            return
        _, lengths = _runs(escapes)
        number = np.arange(len(escapes)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        length = np.repeat(lengths, lengths)
        is_last = number == length - 1
        kept[escapes[(number % 2 == 0) & ~is_last]] = False
        last = escapes[is_last & (length % 2 == 1)]
        last = last[last + 1 < len(content)]
        content[last[content[last + 1] == ord(self.quote)]] = ord(self.quote)

    def _is_simple_line(self, text: Text) -> bool:
        """True if a text is one line, with or without its end, that certainly is a record without a fault."""
        if len(text) > _FIRST_LOOK_BYTES:
            return False
        line = bytes(text).removesuffix(b"\n").removesuffix(b"\r")
        return b"\n" not in line and self._is_simple(line)

    def _is_simple(self, line: bytes) -> bool:
        """True if a line feed behind this text is certainly the first end of a record, and the record has no fault."""
        if _CARRIAGE_RETURN in line:
            return False
        if self.quote is None or self.quote.encode() not in line:
            return True
        return self.escape is None and self.comment is None and self._line.fullmatch(line) is not None

    def _last_end_behind(self, content: _Bytes, start: int) -> int:
        """The position behind the last record that ends behind `start`; 0 if the text from `start` on does not show it.

        No quoted field is open behind a run of odd length that is not at the start of a field, with any text before the
        run.  A fault before it may end the record with its line, so that line must end the record anyway.
        """
        runs = self._runs(content, start, len(content))
        if runs is None:
            return 0
        # The first run may have begun before `start`.
        closing = runs.turns[~runs.opens[runs.turns] & (runs.begins[runs.turns] > start)]
        for run in closing[:_CLOSING_RUNS]:
            behind = int(runs.begins[run] + runs.lengths[run])
            line = _line_ends(content, behind, len(content))[:1]
            windows = self._windows(content[behind:], is_end=False)
            first = next(windows, None)
            if first is None or not len(line) or behind + int(first.ends[0]) != line[0]:
                continue
            last = int(first.ends[-1])
            for window in windows:
                last = int(window.ends[-1])
            return behind + last
        return 0

    def fault_of(self, record: bytes) -> QuoteFault | None:
        """The fault of a single record."""
        if not self.finds_faults or self.quote is None or self.quote.encode() not in record:
            return None
        if self.escape is not None or self.comment is not None:
            return self.first_fault(record)
        content = np.frombuffer(record, np.uint8)
        found = _Nearby(self, content, 0, len(content), is_end=True).record(0)
        return self.first_fault(record) if found is None else found[1]

    def _windows(self, content: _Bytes, *, is_end: bool, size: int = _WINDOW_BYTES) -> Iterator[_Window]:
        """Yields windows with at least one end each.

        Args:
            size: the bytes of the first window; the size changes with the faults and the lengths of records.
        """
        start = 0
        while start < len(content):
            stop = min(start + size, len(content))
            window = self._window(content, start, stop, is_end=is_end)
            if not len(window.ends):
                if stop == len(content):
                    return
                size *= 8
                continue
            yield window
            start = int(window.ends[-1])
            if window.fault is not None and self.escape is None and self.comment is None:
                for window in self._near_faults(content, start, is_end=is_end):
                    yield window
                    start = int(window.ends[-1])
            size = _SMALL_WINDOW_BYTES if window.is_cut else min(_WINDOW_BYTES, 4 * size)

    def _near_faults(self, content: _Bytes, start: int, *, is_end: bool) -> Iterator[_Window]:
        """Yields records one by one: behind a fault there are often others, and each would cost a window."""
        stop = min(start + _NEAR_BYTES, len(content))
        nearby = _Nearby(self, content, start, stop, is_end=is_end and stop == len(content))
        ends: list[int] = []
        since = 0
        while start < stop and since < _RECORDS_WITHOUT_FAULT and (found := nearby.record(start)) is not None:
            start, fault = found
            ends.append(start)
            since += 1
            if fault is not None:
                yield _Window(np.array(ends), _NONE, fault, True)
                ends, since = [], 0
        if ends:
            yield _Window(np.array(ends), _NONE, None, True)

    def _window(self, content: _Bytes, start: int, stop: int, *, is_end: bool) -> _Window:
        lines = _line_ends(content, start, stop)
        runs = self._runs_outside_comments(content, start, stop, lines)
        ends = lines if runs is None else lines[~runs.is_quoted(lines)]
        is_last = stop == len(content)
        fault = None
        if runs is not None and self.finds_faults:
            fault = self._fault(content, start, stop, lines, ends, runs, is_end=is_end and is_last)
        comments = _NONE
        if self.comment is not None:
            begins = np.concatenate([[start], ends[ends < stop]])
            if fault is not None:
                begins = begins[begins <= fault.start]
            comments = begins[content[begins] == ord(self.comment)]
        if runs is not None and len(comments):
            # A quote in a comment opens no field.
            behind = np.append(lines, stop)[np.searchsorted(lines, comments, "right")]
            quoted = np.searchsorted(runs.begins, comments) < np.searchsorted(runs.begins, behind)
            if quoted.any():
                first = int(np.argmax(quoted))
                at = int(comments[first])
                comments = comments[: first + 1]
                return self._cut(lines, ends, at, at, runs, is_end=False, stop=stop, comments=comments)
        if fault is not None:
            is_last_line = is_end and is_last
            return self._cut(
                lines,
                ends,
                fault.start,
                fault.opening,
                runs,
                is_end=is_last_line,
                stop=stop,
                comments=comments,
                fault=fault,
            )
        return _Window(ends, comments, runs=runs)

    @staticmethod
    def _cut(
        lines: _Positions,
        ends: _Positions,
        start: int,
        position: int,
        runs: _Runs | None,
        *,
        is_end: bool,
        stop: int,
        comments: _Positions,
        fault: QuoteFault | None = None,
    ) -> _Window:
        """The records before a record that ends with the line of a position, and that record."""
        before = ends[ends <= start]
        behind = lines[np.searchsorted(lines, position, "right") :][:1]
        if not len(behind):
            if not is_end:
                return _Window(before, comments[comments < start], runs=runs)
            behind = np.array([stop])
        return _Window(np.concatenate([before, behind]), comments, fault, True, runs)

    def _runs_outside_comments(self, content: _Bytes, start: int, stop: int, lines: _Positions) -> _Runs | None:
        """The runs of quotes, without the quotes in comments if no comment is a part of a quoted field."""
        if self.comment is None:
            return self._runs(content, start, stop)
        begins = np.concatenate([[start], lines[lines < stop]])
        is_comment = content[begins] == ord(self.comment)
        comments = begins[is_comment]
        if not len(comments):
            return self._runs(content, start, stop)
        runs = self._runs(content, start, stop, (comments, np.append(lines, stop)[: len(begins)][is_comment]))
        if runs is not None and runs.is_quoted(comments).any():
            return self._runs(content, start, stop)
        return runs

    def _runs(
        self, content: _Bytes, start: int, stop: int, without: tuple[_Positions, _Positions] | None = None
    ) -> _Runs | None:
        """The runs of quotes; None without quotes.  No quoted field is open at `start`.

        Args:
            without: the starts and ends of parts whose quotes do not count.
        """
        if self.quote is None:
            return None
        if without is None and self.escape is None:
            # Without a position for each quote: a field may have millions of them.
            begins, lengths = _flag_runs(content[start:stop] == ord(self.quote))
            begins += start
            return self._runs_at(content, start, begins, lengths)
        quotes = np.flatnonzero(content[start:stop] == ord(self.quote)) + start
        if without is not None and len(quotes):
            starts, stops = without
            part = np.searchsorted(starts, quotes, "right") - 1
            quotes = quotes[(part < 0) | (quotes >= stops[part])]
        if self.escape is not None and len(quotes):
            quotes = quotes[~self._is_escaped(content, start, stop, quotes)]
        return self._runs_at(content, start, *_runs(quotes)) if len(quotes) else None

    def _runs_at(self, content: _Bytes, start: int, begins: _Positions, lengths: _Positions) -> _Runs | None:
        if not len(begins):
            return None
        opens = (begins == start) | self._around[content[begins - 1]]
        turns = np.flatnonzero(lengths % 2 == 1)
        return _Runs(begins, lengths, opens, turns, _turned(opens[turns]))

    def _is_escaped(self, content: _Bytes, start: int, stop: int, quotes: _Positions) -> _Flags:
        """For each quote, True if an odd number of escapes precedes it."""
        assert self.escape is not None
        escapes = np.flatnonzero(content[start:stop] == ord(self.escape)) + start
        if not len(escapes):
            return np.zeros(len(quotes), np.bool_)
        begins, lengths = _runs(escapes)
        run = np.searchsorted(begins, quotes) - 1
        ends, is_odd = (begins + lengths)[run], lengths[run] % 2 == 1
        escaped: _Flags = (run >= 0) & (ends == quotes) & is_odd
        return escaped

    def _fault(
        self,
        content: _Bytes,
        start: int,
        stop: int,
        lines: _Positions,
        ends: _Positions,
        runs: _Runs,
        *,
        is_end: bool,
    ) -> QuoteFault | None:
        """The first fault in a window."""
        quoted = np.concatenate([[False], runs.states])
        behind = runs.begins + runs.lengths
        # A run of even length at the start of a field opens and closes it.
        turn = np.searchsorted(runs.turns, np.arange(len(runs.begins)))
        is_turn = runs.lengths % 2 == 1
        is_quoted = quoted[turn]
        closes = np.where(is_turn, is_quoted, runs.opens & ~is_quoted)
        # A run at the end of the window may go on.
        wrong = np.flatnonzero(closes & (behind < stop))
        wrong = wrong[~self._around[content[behind[wrong]]]]
        opening = runs.begins.copy()
        opening[closes & is_turn] = runs.begins[runs.turns[turn[closes & is_turn] - 1]]
        found = None
        for index in wrong:
            if not self._is_joined(content, int(opening[index]), int(behind[index]), stop, lines):
                at = int(opening[index])
                is_escaped = content[behind[index] - 2] == ord("\\")
                found = QuoteFault(_start(ends, at, start), at, "text", bool(is_escaped))
                break
        if stop - start > self.max_bytes:
            long = self._first_long(opening[closes], behind[closes], lines, ends, start)
            if long is not None and (found is None or long <= found.opening):
                found = QuoteFault(_start(ends, long, start), long, "open")
        if found is None and quoted[-1]:
            at = int(runs.begins[runs.turns[-1]])
            record = _start(ends, at, start)
            line = int(np.searchsorted(lines, at, "right"))
            has_line = line < len(lines) and lines[line] - record <= self.max_bytes
            if is_end or (stop - record > self.max_bytes and has_line):
                found = QuoteFault(record, at, "open")
        return found

    def _first_long(
        self, openings: _Positions, behind: _Positions, lines: _Positions, ends: _Positions, start: int
    ) -> int | None:
        """The first quote whose field has several lines, and is closed too far behind the start of its record."""
        for opening, close in zip(openings.tolist(), behind.tolist(), strict=True):
            record = _start(ends, opening, start)
            line = int(np.searchsorted(lines, opening, "right"))
            is_long = close - record > self.max_bytes and line < len(lines)
            if is_long and lines[line] < close and lines[line] - record <= self.max_bytes:
                return int(opening)
        return None

    def _is_joined(self, content: _Bytes, opening: int, behind: int, stop: int, lines: _Positions) -> bool:
        """True if Arrow joins the text behind a closing quote to the value without losing a quote."""
        line = int(np.searchsorted(lines, opening, "right"))
        if line != int(np.searchsorted(lines, behind, "right")):
            return False
        rest = content[behind : int(lines[line]) if line < len(lines) else stop]
        delimiters = np.flatnonzero(rest == ord(self.delimiter))
        field = rest[: delimiters[0]] if len(delimiters) else rest
        return not (field == ord(self.quote or "")).any()


class _Nearby:
    """The records of a part of a text, found one by one, by the rules of `CsvRecords` without escapes and comments.

    Args:
        records: the rules.
        start, stop: the bounds of the part, which begins with a record.
        is_end: True if the text ends with the part.
    """

    def __init__(self, records: CsvRecords, content: _Bytes, start: int, stop: int, *, is_end: bool) -> None:
        self._content, self._stop, self._is_end = content, stop, is_end
        self._around, self._max_bytes, self._delimiter = records._around, records.max_bytes, ord(records.delimiter)
        self._lines = _line_ends(content, start, stop).tolist()
        if is_end and (not self._lines or self._lines[-1] < stop):
            self._lines.append(stop)
        runs = records._runs(content, start, stop)
        self._begins: list[int] = [] if runs is None else runs.begins.tolist()
        self._lengths: list[int] = [] if runs is None else runs.lengths.tolist()
        self._opens: list[bool] = [] if runs is None else runs.opens.tolist()

    def record(self, start: int) -> tuple[int, QuoteFault | None] | None:
        """The position behind a record, and its fault; None if the part does not show it."""
        line, run = bisect_right(self._lines, start), bisect_left(self._begins, start)
        while line < len(self._lines):
            end = self._lines[line]
            while run < len(self._begins) and self._begins[run] < end and not self._opens[run]:
                run += 1
            if run == len(self._begins) or self._begins[run] >= end:
                return end, None
            opening, closing = self._begins[run], self._closing(run)
            if closing is None:
                return (end, QuoteFault(start, opening, "open")) if self._is_end else None
            behind = self._begins[closing] + self._lengths[closing]
            if behind - start > self._max_bytes or (behind == self._stop and not self._is_end):
                return None
            if behind < self._stop and not self._around[self._content[behind]] and not self._is_joined(closing, end):
                is_escaped = bool(self._content[behind - 2] == ord("\\"))
                return end, QuoteFault(start, opening, "text", is_escaped)
            line, run = bisect_right(self._lines, behind), closing + 1
        return (self._stop, None) if self._is_end else None

    def _closing(self, run: int) -> int | None:
        """The index of the run that closes a field; the same run or an earlier run opens it."""
        if self._lengths[run] % 2 == 0:
            return run
        return next((index for index in range(run + 1, len(self._begins)) if self._lengths[index] % 2), None)

    def _is_joined(self, closing: int, line_end: int) -> bool:
        """True if no further quote is in the field on the line in which it opens."""
        behind = self._begins[closing] + self._lengths[closing]
        if behind >= line_end:
            return False
        following = self._begins[closing + 1] if closing + 1 < len(self._begins) else line_end
        return following >= line_end or bool((self._content[behind:following] == self._delimiter).any())


def has_byte(text: Text, character: str) -> bool:
    """True if an ASCII character is in a text."""
    return bool(present(text, character))


def present(text: Text | pa.Buffer, characters: str) -> frozenset[str]:
    """The given ASCII characters that are in a text."""
    # Python searches only in bytes, and a copy takes three times as long as the search.
    buffer = pa.py_buffer(text)
    absent = {*characters}
    for start in range(0, buffer.size, _WINDOW_BYTES):
        address, nbytes = buffer.address + start, min(_WINDOW_BYTES, buffer.size - start)
        found = {each for each in absent if _memchr(address, ord(each), nbytes) is not None}
        absent -= found
        if not absent:
            break
    return frozenset(characters) - absent


def _start(ends: _Positions, position: int, start: int) -> int:
    """The start of the record with a position."""
    index = int(np.searchsorted(ends, position, "right"))
    return int(ends[index - 1]) if index else start


def _runs(positions: _Positions) -> tuple[_Positions, _Positions]:
    """The first positions and the lengths of the runs of consecutive positions."""
    first = np.flatnonzero(np.diff(positions, prepend=-2) != 1)
    return positions[first], np.diff(first, append=len(positions))


def _flag_runs(flags: _Flags) -> tuple[_Positions, _Positions]:
    """The first positions and the lengths of the runs of True."""
    edges = np.flatnonzero(flags[1:] != flags[:-1])
    edges += 1
    first, last = ([0] if len(flags) and flags[0] else []), ([len(flags)] if len(flags) and flags[-1] else [])
    if first or last:
        edges = np.concatenate([first, edges, last]).astype(np.int64)
    return edges[0::2].copy(), edges[1::2] - edges[0::2]


def _turned(opens: _Flags) -> _Flags:
    """For each run of odd length, True if a quoted field is open behind it.

    Args:
        opens: for each run, True if it is at the start of a field: it opens a field, or closes the open field.  A run
            elsewhere closes the open field, if any.
    """
    numbers = np.arange(len(opens))
    closed = np.maximum.accumulate(np.where(opens, -1, numbers))
    turns: _Positions = np.cumsum(opens)
    since: _Positions = turns - np.where(closed < 0, 0, turns[closed])
    states: _Flags = since % 2 == 1
    return states


def _line_ends(content: _Bytes, start: int, stop: int) -> _Positions:
    """The positions behind each line feed, and behind each carriage return that no line feed follows."""
    part = content[start:stop]
    is_end, is_return = part == _LINE_FEED, part == _CARRIAGE_RETURN
    if is_return.any():
        # The character after the last character is not known yet.
        is_return[-1] &= stop < len(content) and content[stop] != _LINE_FEED
        is_return[:-1] &= ~is_end[1:]
        is_end |= is_return
    ends = np.flatnonzero(is_end)
    ends += start + 1
    return ends
