"""Bounds of the lengths in a stream of runs, ORC's first and second run length encoding, mostly without decoding it.

A few bytes can claim lists of billions of elements, and Arrow makes room before it looks for them.
https://orc.apache.org/specification/ORCv1/#run-length-encoding
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.file_errors import UnreadableFile
from actors.formats.compressed import Bytes
from actors.formats.orc.wire import varint

_SMALL_WIDTH = 8
_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)


@dataclass(frozen=True)
class Lengths:
    """Bounds of the lengths of a stream.

    Args:
        total: no less than their sum.
        longest: no less than the largest of them.
    """

    total: int = 0
    longest: int = 0

    def of(self, rows: int) -> int:
        """No less than the sum of so many of them."""
        return min(self.total, rows * self.longest)


def lengths(stream: Bytes, *, is_second: bool) -> Lengths:
    """The bounds of the lengths in a stream.

    Args:
        stream: the decompressed stream.
        is_second: True for the second version of the encoding.

    Raises:
        UnreadableFile: the stream ends within a run.
    """
    content, at = memoryview(stream).cast("B"), 0
    total = longest = 0
    read = _second if is_second else _first
    try:
        while at < len(content):
            run_total, run_longest, at = read(content, at)
            total += run_total
            longest = max(longest, run_longest)
    except IndexError:
        at = len(content) + 1
    if at > len(content):
        raise UnreadableFile("damaged ORC file: a stream of lengths ends within a run")
    return Lengths(total, longest)


def _first(content: memoryview, at: int) -> tuple[int, int, int]:
    """A run of the first version: no less than its sum, than its largest number, and the position behind it."""
    control = content[at]
    if control < 128:
        count = control + 3
        step = max(0, _signed_byte(content[at + 1]))
        base, at = varint(content, at + 2)
        longest = base + step * count
        return count * longest, longest, at
    total = longest = 0
    at += 1
    for _ in range(256 - control):
        number, at = varint(content, at)
        total, longest = total + number, max(longest, number)
    return total, longest, at


def _second(content: memoryview, at: int) -> tuple[int, int, int]:
    """A run of the second version; see `_first`."""
    head = content[at]
    kind = head >> 6
    if kind == 0:
        nbytes = (head >> 3 & 7) + 1
        value = int.from_bytes(content[at + 1 : at + 1 + nbytes])
        return ((head & 7) + 3) * value, value, at + 1 + nbytes
    code = head >> 1 & 31
    count = ((head & 1) << 8 | content[at + 1]) + 1
    at += 2
    if kind == 1:
        return _packed(content, at, count, _WIDTHS[code])
    if kind == 3:
        base, at = varint(content, at)
        step, at = varint(content, at)
        longest = base + max(0, _signed(step)) * (1 if code else count)
        if code:
            rises, _, at = _packed(content, at, max(0, count - 2), _WIDTHS[code])
            # The first step tells whether the numbers rise or fall.
            longest += 0 if step & 1 else rises
        return count * longest, longest, at
    base_bytes, patch_width = (content[at] >> 5) + 1, _WIDTHS[content[at] & 31]
    gap_width, num_patches = (content[at + 1] >> 5) + 1, content[at + 1] & 31
    at += 2
    base = int.from_bytes(content[at : at + base_bytes])
    total, longest, at = _packed(content, at + base_bytes, count, _WIDTHS[code])
    patched = base + (1 << _WIDTHS[code] + patch_width)
    patch = next(each for each in _WIDTHS if each >= min(64, gap_width + patch_width))
    end = at + _bytes(patch * num_patches)
    return total + count * base + num_patches * patched, max(longest + base, patched), end


def signed_range(stream: Bytes, *, is_second: bool) -> tuple[int, int]:
    """No more than the smallest, and no less than the largest number of a stream of signed numbers.

    Args:
        stream: the decompressed stream.
        is_second: True for the second version of the encoding.

    Raises:
        UnreadableFile: the stream ends within a run.
    """
    content, at = memoryview(stream).cast("B"), 0
    low = high = 0
    read = _second_signed if is_second else _first_signed
    try:
        while at < len(content):
            run_low, run_high, at = read(content, at)
            low, high = min(low, run_low), max(high, run_high)
    except IndexError:
        at = len(content) + 1
    if at > len(content):
        raise UnreadableFile("damaged ORC file: a stream of numbers ends within a run")
    return low, high


def _first_signed(content: memoryview, at: int) -> tuple[int, int, int]:
    """A run of the first version: its range, and the position behind it."""
    control = content[at]
    if control < 128:
        base, end = varint(content, at + 2)
        return *_from(_signed(base), _signed_byte(content[at + 1]) * (control + 2)), end
    low = high = 0
    at += 1
    for _ in range(256 - control):
        number, at = varint(content, at)
        low, high = min(low, _signed(number)), max(high, _signed(number))
    return low, high, at


def _second_signed(content: memoryview, at: int) -> tuple[int, int, int]:
    """A run of the second version; see `_first_signed`."""
    if content[at] >> 6 != 3:
        # The encoded number n is half of it, negative if it is odd.  A longest even one may hide a shorter odd one.
        _, longest, end = _second(content, at)
        return (0 if _all_even(content, at) else -longest), longest, end
    code, count = content[at] >> 1 & 31, ((content[at] & 1) << 8 | content[at + 1]) + 1
    base, end = varint(content, at + 2)
    step, end = varint(content, end)
    change = _signed(step) * (1 if code else count - 1)
    if code:
        changes, _, end = _packed(content, end, max(0, count - 2), _WIDTHS[code])
        change += -changes if step & 1 else changes
    return *_from(_signed(base), change), end


def _all_even(content: memoryview, at: int) -> bool:
    """True if all numbers of a run, repeated or of the same width, are even."""
    head = content[at]
    if head >> 6 == 0:
        return not content[at + (head >> 3 & 7) + 1] & 1
    if head >> 6 == 2:
        return False
    count, width = ((head & 1) << 8 | content[at + 1]) + 1, _WIDTHS[head >> 1 & 31]
    stored = np.frombuffer(content[at + 2 : at + 2 + _bytes(width * count)], np.uint8)
    return not np.unpackbits(stored)[: width * count][width - 1 :: width].any()


def _from(base: int, change: int) -> tuple[int, int]:
    return min(base, base + change), max(base, base + change)


def _signed(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _signed_byte(number: int) -> int:
    return number - (number & 0x80) * 2


def _packed(content: memoryview, at: int, count: int, width: int) -> tuple[int, int, int]:
    """Numbers of the same width; see `_first`."""
    end = at + _bytes(width * count)
    if width <= _SMALL_WIDTH or not count or end > len(content):
        most = (1 << width) - 1
        return count * most, most, end
    bits = np.unpackbits(np.frombuffer(content[at:end], np.uint8), count=width * count).reshape(count, width)
    numbers = bits @ np.ldexp(1.0, np.arange(width - 1, -1, -1))
    return int(numbers.sum()), int(numbers.max()), end


def _bytes(bits: int) -> int:
    return -(-bits // 8)
