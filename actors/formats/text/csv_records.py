"""Ends of the records of a CSV text, in one pass over its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from actors.formats.text.lines import Text, last_line_end

_Bytes = npt.NDArray[np.uint8]
_Positions = npt.NDArray[np.int64]
_LINE_FEED, _CARRIAGE_RETURN = 10, 13
# It fits into the cache of a processor, and bounds the memory for positions.
_SEGMENT_BYTES = 1 << 18
_FIRST_LOOK_BYTES = 1 << 12


@dataclass(frozen=True)
class _State:
    """The state between two bytes.

    Args:
        is_quoted: whether a quoted field was open before the run of quotes that ends here, if one does.
        run: the number of quotes directly before.
        opens: whether that run stands at the start of a field.
    """

    is_quoted: bool = False
    run: int = 0
    opens: bool = False

    @property
    def after_run(self) -> bool:
        """Whether a quoted field is open if no further quote follows."""
        return (not self.is_quoted and self.opens) if self.run % 2 else self.is_quoted


@dataclass(frozen=True)
class _Segment:
    """A part of a text with the places where quoted fields open and close.

    Args:
        start, stop: the first byte (inclusive) and the last (exclusive).
        is_quoted: whether a quoted field is open at its start.
        turns: positions of runs of quotes, from `start` on, that may open or close a field.
        opens: whether each of them stands at the start of a field; the others close whatever is open.
        states: whether a quoted field is open after each of them.
        after: the state at its end.
    """

    start: int
    stop: int
    is_quoted: bool
    turns: _Positions
    opens: npt.NDArray[np.bool_]
    states: npt.NDArray[np.bool_]
    after: _State


class CsvRecords:
    """Finds the ends of records as Arrow's parser does.

    A quote at the start of a field opens it, up to the next quote that is not doubled; elsewhere a quote is a plain
    character.  A line end inside a quoted field does not end a record.  So a run of quotes opens or closes a field
    only if its length is odd: at the start of a field it turns the state, elsewhere it closes what is open.
    """

    def __init__(self, delimiter: str, quote: str) -> None:
        self._quote = quote.encode()[0]
        self._around = np.isin(np.arange(256), [delimiter.encode()[0], _LINE_FEED, _CARRIAGE_RETURN])

    def last_end(self, text: Text) -> int:
        """The position behind the last complete record; 0 without one.

        Args:
            text: text that begins with a record.
        """
        content = np.frombuffer(text, np.uint8)
        if not self._has_quote(text):
            end = last_line_end(text)
            after = _line_ends(content, end, len(content))
            return int(after[-1]) if len(after) else end
        nbytes = _FIRST_LOOK_BYTES
        while nbytes < min(len(content), _SEGMENT_BYTES):
            if end := self._last_end_behind(content, len(content) - nbytes):
                return end
            nbytes *= 8
        for segment in reversed(list(self._segments(content))):
            if len(ends := self._ends_in(content, segment)):
                return int(ends[-1])
        return 0

    def first_end(self, text: Text) -> int:
        """The position behind the first record; 0 if it is not complete."""
        line = bytes(text[:_FIRST_LOOK_BYTES]).partition(b"\n")[0]
        if len(line) < min(len(text), _FIRST_LOOK_BYTES) and not self._is_special(line.removesuffix(b"\r")):
            return len(line) + 1
        content = np.frombuffer(text, np.uint8)
        for segment in self._segments(content):
            if len(ends := self._ends_in(content, segment)):
                return int(ends[0])
        return 0

    def ends(self, text: Text) -> _Positions:
        """The positions behind each complete record, in order; an empty line counts as a record."""
        content = np.frombuffer(text, np.uint8)
        ends = [self._ends_in(content, segment) for segment in self._segments(content)]
        return np.concatenate(ends) if ends else np.empty(0, np.int64)

    def _is_special(self, line: bytes) -> bool:
        """True if a line feed behind this text may not be the first end of a record."""
        return self._quote in line or _CARRIAGE_RETURN in line

    def _has_quote(self, text: Text) -> bool:
        quote = bytes([self._quote])
        return any(
            quote in bytes(text[start : start + _SEGMENT_BYTES]) for start in range(0, len(text), _SEGMENT_BYTES)
        )

    def _last_end_behind(self, content: _Bytes, start: int) -> int:
        """The position behind the last record that ends behind `start`; 0 if that cannot be told from there.

        A run of quotes that closes whatever is open tells the state without the text before.
        """
        segment = self._segment(content, start, len(content), _State())
        # The first run may have begun before `start`.
        closing = np.flatnonzero(~segment.opens & (segment.turns > start))
        if not len(closing):
            return 0
        ends = self._ends_in(content, segment)
        return int(ends[-1]) if len(ends) and ends[-1] > segment.turns[closing[0]] else 0

    def _segments(self, content: _Bytes) -> Iterator[_Segment]:
        state = _State()
        for start in range(0, len(content), _SEGMENT_BYTES):
            segment = self._segment(content, start, min(start + _SEGMENT_BYTES, len(content)), state)
            yield segment
            state = segment.after

    def _segment(self, content: _Bytes, start: int, stop: int, before: _State) -> _Segment:
        quotes = np.flatnonzero(content[start:stop] == self._quote) + start
        none = np.empty(0, np.int64)
        if not len(quotes):
            is_quoted = before.after_run
            no_turns = np.empty(0, np.bool_)
            return _Segment(start, stop, is_quoted, none, no_turns, no_turns, _State(is_quoted))
        first = np.flatnonzero(np.diff(quotes, prepend=-2) != 1)
        begins, lengths = quotes[first], np.diff(first, append=len(quotes))
        opens = (begins == 0) | self._around[content[begins - 1]]
        is_quoted = before.after_run
        if before.run and begins[0] == start:
            # The run began in the segment before.
            lengths[0] += before.run
            opens[0], is_quoted = before.opens, before.is_quoted
        run = int(lengths[-1]) if quotes[-1] == stop - 1 else 0
        odd = lengths % 2 == 1
        states = _turned(opens[odd], is_quoted)
        before_last = is_quoted if not len(states) else bool(states[-1])
        if run and odd[-1]:
            before_last = is_quoted if len(states) < 2 else bool(states[-2])
        after = _State(before_last, run, bool(opens[-1])) if run else _State(before_last)
        return _Segment(start, stop, is_quoted, begins[odd], opens[odd], states, after)

    def _ends_in(self, content: _Bytes, segment: _Segment) -> _Positions:
        if segment.is_quoted and not len(segment.turns):
            return np.empty(0, np.int64)
        ends = _line_ends(content, segment.start, segment.stop)
        if not len(segment.turns):
            return ends
        turns_before = np.searchsorted(segment.turns, ends)
        is_quoted = np.concatenate([[segment.is_quoted], segment.states])[turns_before]
        outside: _Positions = ends[~is_quoted]
        return outside


def _turned(opens: npt.NDArray[np.bool_], is_quoted: bool) -> npt.NDArray[np.bool_]:
    """Whether a quoted field is open after each run of odd length.

    Args:
        opens: whether a run stands at the start of a field: it turns the state; another run closes what is open.
        is_quoted: whether a quoted field is open before the first run.
    """
    numbers = np.arange(len(opens))
    closed = np.maximum.accumulate(np.where(opens, -1, numbers))
    turns: _Positions = np.cumsum(opens)
    since: _Positions = turns - np.where(closed < 0, 0, turns[closed])
    states: npt.NDArray[np.bool_] = (since % 2 == 1) ^ ((closed < 0) & is_quoted)
    return states


def _line_ends(content: _Bytes, start: int, stop: int) -> _Positions:
    """The positions behind each line feed, and behind each carriage return that no line feed follows."""
    part = content[start:stop]
    feeds = np.flatnonzero(part == _LINE_FEED) + (start + 1)
    returns = np.flatnonzero(part == _CARRIAGE_RETURN) + (start + 1)
    # The character behind the last one is not known yet.
    alone = returns[returns < len(content)]
    alone = alone[content[alone] != _LINE_FEED]
    return np.sort(np.concatenate([feeds, alone])) if len(alone) else feeds
