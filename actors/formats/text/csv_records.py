"""Ends of the records of a CSV text."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from actors.formats.text.lines import Text, last_line_end

_Positions = npt.NDArray[np.int64]
_LINE_FEED, _CARRIAGE_RETURN = 10, 13


class CsvRecords:
    """Finds the ends of records as Arrow's parser does.

    A quote at the start of a field opens it, up to the next quote that is not doubled; elsewhere a quote is a plain
    character.  A line end inside a quoted field does not end a record.

    Args:
        delimiter: the character between fields.
        quote: the character around fields.
    """

    def __init__(self, delimiter: str, quote: str) -> None:
        self._delimiter, self._quote = delimiter.encode(), quote.encode()
        self._around = np.isin(np.arange(256), [self._delimiter[0], _LINE_FEED, _CARRIAGE_RETURN])
        self._marks = re.compile(b"[\r\n" + re.escape(self._quote) + b"]")

    def last_end(self, text: Text) -> int:
        """The position behind the last complete record; 0 without one.

        Args:
            text: text that begins with a record.
        """
        content = np.frombuffer(text, np.uint8)
        quotes = np.flatnonzero(content == self._quote[0])
        end = last_line_end(text)
        if len(quotes) and not self._are_plain(content, quotes):
            end = 0
        while end and np.searchsorted(quotes, end) % 2:
            end = last_line_end(text, end - 1)
        if end:
            return end
        ends = self.ends(text)
        return int(ends[-1]) if len(ends) else 0

    def ends(self, text: Text) -> _Positions:
        """The positions behind each complete record, in order; an empty line counts as a record."""
        content = np.frombuffer(text, np.uint8)
        ends = _line_ends(content)
        quotes = np.flatnonzero(content == self._quote[0])
        if not len(quotes):
            return ends
        if not self._are_plain(content, quotes):
            return np.array(self._walk(text), np.int64)
        outside = np.searchsorted(quotes, ends) % 2 == 0
        kept: _Positions = ends[outside]
        return kept

    def _are_plain(self, content: npt.NDArray[np.uint8], quotes: _Positions) -> bool:
        """True if quotes open and close fields in turns, with only line ends and delimiters around."""
        around = self._around
        opening, closing = quotes[::2], quotes[1::2]
        doubled = np.diff(quotes) == 1
        starts = around[content[opening - 1]] | (opening == 0)
        starts[1:] |= doubled[1::2][: len(starts) - 1]
        follows = around[content[np.minimum(closing + 1, len(content) - 1)]] | (closing + 1 == len(content))
        within = doubled[1::2]
        follows[: len(within)] |= within
        return bool(starts.all() and follows.all())

    def _walk(self, text: Text) -> list[int]:
        """The positions behind each record, by one pass over quotes and line ends."""
        ends = []
        quote = self._quote[0]
        around = (*self._delimiter, _LINE_FEED, _CARRIAGE_RETURN)
        is_quoted = False
        doubled = -1
        for match in self._marks.finditer(text):
            at = match.start()
            mark = text[at]
            if mark != quote:
                is_split = mark == _CARRIAGE_RETURN and text[at + 1 : at + 2] in (b"\n", b"")
                if not is_quoted and not is_split:
                    ends.append(at + 1)
            elif is_quoted:
                if at == doubled:
                    continue
                if text[at + 1 : at + 2] == self._quote:
                    doubled = at + 1
                else:
                    is_quoted = False
            elif at == 0 or text[at - 1] in around:
                is_quoted = True
        return ends


def _line_ends(content: npt.NDArray[np.uint8]) -> _Positions:
    """The positions behind each line feed, and behind each carriage return without a line feed."""
    feeds = np.flatnonzero(content == _LINE_FEED) + 1
    returns = np.flatnonzero(content == _CARRIAGE_RETURN) + 1
    # The character behind the last one is not known yet.
    alone = returns[returns < len(content)]
    alone = alone[content[alone] != _LINE_FEED]
    return np.sort(np.concatenate([feeds, alone])) if len(alone) else feeds
