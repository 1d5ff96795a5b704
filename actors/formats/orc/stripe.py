"""A stripe of an ORC file: its streams, and the memory that its rows take."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from actors.file_errors import UnreadableFile, one_line
from actors.formats.orc.runs import Lengths, lengths, signed_range
from actors.formats.orc.tail import OrcTail, StripeInfo
from actors.formats.orc.wire import fields
from actors.objects.ranges import Range
from actors.settings import ReadLimits

_LENGTH, _SCALE = 2, 5
_DICTIONARIES, _SECOND = (1, 3), (2, 3)
_VALUE_BYTES = 32  # of a number in ORC's batch and in Arrow's
_TEXT_BYTES = 24  # of the place of a text in both
_ENTRY_BYTES = 8
# The decoder multiplies by ten as often as a scale says; one that is negative counts as four billion.
_MOST_SCALE = 1_000


class Stripe:
    """The streams of a stripe.

    Args:
        tail: the tail of its file.
        info: what the footer of the file tells of it.
        footer: its own footer, as it is stored.
        limits: the limits of the reader.

    Raises:
        UnreadableFile: its footer is damaged.
    """

    def __init__(self, tail: OrcTail, info: StripeInfo, footer: bytes | memoryview, limits: ReadLimits) -> None:
        self._tail, self.info, self._limits = tail, info, limits
        self._streams: dict[tuple[int, int], Range] = {}
        self._encodings: list[tuple[int, int]] = []
        start = info.start
        for each in fields(tail.plain(footer, limits.max_record_bytes)):
            if each.number == 1:
                found = {part.number: part.integer for part in fields(each.message)}
                end = start + found.get(3, 0)
                self._streams.setdefault((found.get(2, 0), found.get(1, 0)), (start, end))
                start = end
            elif each.number == 2:
                found = {part.number: part.integer for part in fields(each.message)}
                self._encodings.append((found.get(1, 0), found.get(2, 0)))
        if start > info.end - info.footer_bytes:
            raise UnreadableFile("damaged ORC file: a stream lies outside of its stripe")

    def columns(self, names: Collection[str]) -> list[int]:
        """The numbers of the columns of these names, with the columns within them."""
        root = self._tail.types[0]
        numbers = [child for child, name in zip(root.children, root.names, strict=True) if name in names]
        for number in numbers:
            numbers += self._tail.types[number].children
        return [0, *numbers]

    def ranges(self, columns: Collection[int]) -> list[Range]:
        """The places of the data of columns in the file, and of the stripe's footer."""
        data_start = self.info.start + self.info.index_bytes
        wanted = [each for (column, _), each in self._streams.items() if column in columns and each[0] >= data_start]
        return [*wanted, self.info.footer]

    def most_rows(self, columns: Sequence[int], stream: pa.NativeFile, piece_bytes: int) -> int:
        """The number of rows that may be decoded at once.

        Args:
            columns: the numbers of the columns.
            stream: a stream over the file.
            piece_bytes: the wanted size of a piece, in bytes.

        Raises:
            UnreadableFile: one row may take more memory than `max_batch_bytes`.
        """
        for number in columns:
            if self._tail.types[number].is_decimal:
                self._check_scales(number, stream)
        found = {number: self._lengths(number, stream) for number in columns if self._has_lengths(number)}
        num_rows = max(1, self.info.num_rows)
        all_bytes = self._bytes(0, num_rows, frozenset(columns), found)
        if all_bytes <= 2 * piece_bytes:
            return num_rows
        rows = max(1, min(num_rows, num_rows * piece_bytes // all_bytes))
        while (nbytes := self._bytes(0, rows, frozenset(columns), found)) > self._limits.max_batch_bytes:
            if rows == 1:
                raise UnreadableFile(
                    f"damaged ORC file: a row may take {nbytes} bytes of memory, more than "
                    f"{self._limits.max_batch_bytes} (ReadLimits.max_batch_bytes)"
                )
            rows = -(-rows // 2)
        return rows

    def _has_lengths(self, number: int) -> bool:
        kind = self._tail.types[number]
        return kind.is_text or kind.is_repeated

    def _check_scales(self, number: int, stream: pa.NativeFile) -> None:
        low, high = signed_range(self._plain(number, _SCALE, stream), is_second=self._encoding(number) in _SECOND)
        if low < 0 or high > _MOST_SCALE:
            raise UnreadableFile("damaged ORC file: a column of decimals has scales without sense")

    def _lengths(self, number: int, stream: pa.NativeFile) -> Lengths:
        return lengths(self._plain(number, _LENGTH, stream), is_second=self._encoding(number) in _SECOND)

    def _plain(self, number: int, part: int, stream: pa.NativeFile) -> bytes | memoryview:
        """One of the streams of a column, decompressed; empty if it has none."""
        start, end = self._streams.get((number, part), (0, 0))
        try:
            stream.seek(start)
            stored = stream.read(end - start)
        except pa.ArrowMemoryError:
            raise  # not an error of the file
        except (pa.ArrowException, OSError) as error:
            reason = one_line(error)
        else:
            return self._tail.plain(stored, self._limits.max_batch_bytes)
        raise UnreadableFile(reason)

    def _encoding(self, number: int) -> int:
        return self._encodings[number][0] if number < len(self._encodings) else 0

    def _bytes(self, number: int, rows: int, columns: frozenset[int], found: Mapping[int, Lengths]) -> int:
        """The most bytes that so many rows of a column take in ORC's batch and in Arrow's."""
        kind = self._tail.types[number]
        if kind.is_text:
            own = found[number]
            if self._encoding(number) in _DICTIONARIES:
                entries = self._encodings[number][1]
                return rows * (_TEXT_BYTES + own.longest) + own.total + entries * _ENTRY_BYTES
            return rows * _TEXT_BYTES + 2 * own.of(rows)
        within = found[number].of(rows) if kind.is_repeated else rows
        children = sum(self._bytes(child, within, columns, found) for child in kind.children if child in columns)
        return rows * _VALUE_BYTES + children
