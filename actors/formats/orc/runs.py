"""Bounds of the lengths in a stream of runs, without decoding the numbers: ORC's first and second run length encoding.

A few bytes can claim lists of billions of elements, and Arrow makes room before it looks for them.
https://orc.apache.org/specification/ORCv1/#run-length-encoding
"""

from __future__ import annotations

from dataclasses import dataclass

from actors.file_errors import UnreadableFile
from actors.formats.compressed import Bytes
from actors.formats.orc.wire import varint

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


def lengths(stream: Bytes, *, is_second: bool, is_signed: bool = False) -> Lengths:
    """The bounds of the lengths in a stream.

    Args:
        stream: the decompressed stream.
        is_second: True for the second version of the encoding.
        is_signed: True for numbers that may be negative; the bounds are those of their size, or of twice it.

    Raises:
        UnreadableFile: the stream ends within a run.
    """
    content, at = memoryview(stream).cast("B"), 0
    total = longest = 0
    read = _second if is_second else _first
    try:
        while at < len(content):
            count, bound, at = read(content, at, is_signed)
            total += count * bound
            longest = max(longest, bound)
    except IndexError:
        at = len(content) + 1
    if at > len(content):
        raise UnreadableFile("damaged ORC file: a stream of lengths ends within a run")
    return Lengths(total, longest)


def _first(content: memoryview, at: int, is_signed: bool) -> tuple[int, int, int]:
    """A run of the first version: how many numbers, none of them above what, and the position behind it."""
    control = content[at]
    if control < 128:
        count = control + 3
        step = content[at + 1] - (content[at + 1] & 0x80) * 2
        step = abs(step) if is_signed else step
        base, at = varint(content, at + 2)
        return count, base + max(0, step) * count, at
    count, bound = 256 - control, 0
    at += 1
    for _ in range(count):
        number, at = varint(content, at)
        bound = max(bound, number)
    return count, bound, at


def _second(content: memoryview, at: int, is_signed: bool) -> tuple[int, int, int]:
    """A run of the second version; see `_first`."""
    head = content[at]
    kind = head >> 6
    if kind == 0:
        nbytes = (head >> 3 & 7) + 1
        return (head & 7) + 3, int.from_bytes(content[at + 1 : at + 1 + nbytes]), at + 1 + nbytes
    code = head >> 1 & 31
    count = ((head & 1) << 8 | content[at + 1]) + 1
    at += 2
    if kind == 3:
        base, at = varint(content, at)
        step, at = varint(content, at)
        step = (step >> 1) ^ -(step & 1)
        step = abs(step) if is_signed else step
        if not code:
            return count, base + max(0, step) * count, at
        width = _WIDTHS[code]
        most = base + max(0, step) + (count * ((1 << width) - 1) if step >= 0 else 0)
        return count, most, at + _bytes(width * max(0, count - 2))
    width = _WIDTHS[code]
    if kind == 1:
        return count, (1 << width) - 1, at + _bytes(width * count)
    base_bytes, patch_width = (content[at] >> 5) + 1, _WIDTHS[content[at] & 31]
    gap_width, num_patches = (content[at + 1] >> 5) + 1, content[at + 1] & 31
    at += 2
    base = int.from_bytes(content[at : at + base_bytes])
    patch = next(each for each in _WIDTHS if each >= min(64, gap_width + patch_width))
    end = at + base_bytes + _bytes(width * count) + _bytes(patch * num_patches)
    return count, base + (1 << (width + patch_width)) - 1, end


def _bytes(bits: int) -> int:
    return -(-bits // 8)
