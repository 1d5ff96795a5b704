"""Limits on the expansion of a file and on its CPU time, and the size of a row in bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TypeVar

import pyarrow as pa
import pyarrow.types as kinds

from actors.file_errors import UnreadableFile
from actors.settings import MIB, ReadLimits
from state.clock import thread_cpu_s

_FREE_BYTES = 256 * MIB
_Piece = TypeVar("_Piece")


def too_long(most_bytes: int) -> UnreadableFile:
    """The error of a file with a record of more bytes than `ReadLimits.max_record_bytes`."""
    return UnreadableFile(f"a line is longer than {most_bytes} bytes (ReadLimits.max_record_bytes)")


class Expansion:
    """Counts the bytes that one file unfolds to.

    Args:
        stored_bytes: the size of the file, in bytes.
        limits: the limits of the reader; `max_expansion` counts.
        free_bytes: the bytes that any file may unfold to.
    """

    def __init__(self, stored_bytes: int, limits: ReadLimits, free_bytes: int = _FREE_BYTES) -> None:
        self._stored_bytes, self._limit = stored_bytes, limits.max_expansion
        self._left = max(free_bytes, int(stored_bytes * limits.max_expansion))

    def add(self, nbytes: int) -> None:
        """Counts bytes of text or rows.

        Raises:
            UnreadableFile: the file has become too much.
        """
        self._left -= nbytes
        if self._left < 0:
            raise UnreadableFile(
                f"its {self._stored_bytes} bytes become more than {self._limit:g} times as many "
                "(ReadLimits.max_expansion)"
            )


class CpuTime:
    """Counts the CPU seconds of reading one file, from now on.

    A file is read in pieces, each by any thread: the count pauses between them.

    Args:
        stored_bytes: the size of the file, in bytes.
        limits: the limits of the reader; `max_cpu_s_per_mib` counts.
    """

    def __init__(self, stored_bytes: int, limits: ReadLimits) -> None:
        self._per_mib_s = limits.max_cpu_s_per_mib
        self._left_s = limits.max_cpu_s_per_mib * max(1.0, stored_bytes / MIB)
        self._since_s = thread_cpu_s()

    def pause(self) -> None:
        """The thread does other work from now on."""
        now_s = thread_cpu_s()
        self._left_s -= now_s - self._since_s
        self._since_s = now_s

    def resume(self) -> None:
        """The calling thread reads from now on."""
        self._since_s = thread_cpu_s()

    def pausing(self, pieces: Iterable[_Piece]) -> Iterator[_Piece]:
        """Yields pieces of the file; the count pauses while the caller has one."""
        for piece in pieces:
            self.pause()
            yield piece
            self.resume()

    def require(self) -> None:
        """Refuses a file that has taken too long.

        Raises:
            UnreadableFile: its time is used up.
        """
        self.pause()
        if self._left_s < 0:
            raise UnreadableFile(
                f"reading it takes more than {self._per_mib_s:g} CPU seconds for each MiB "
                "(ReadLimits.max_cpu_s_per_mib)"
            )


def row_bytes(fields: Iterable[pa.Field]) -> int:
    """The bytes that Arrow takes for one row of these columns, even if all values are null."""
    return sum(map(_value_bytes, (field.type for field in fields)))


@lru_cache(maxsize=1_000)
def _value_bytes(kind: pa.DataType) -> int:
    if kinds.is_fixed_size_list(kind):
        return int(kind.list_size) * _value_bytes(kind.value_type)
    try:
        own = int(-(-kind.bit_width // 8))
    except ValueError:  # no fixed width: an offset, or nothing but its children
        own = 4
    return max(1, own) + sum(_value_bytes(kind.field(index).type) for index in range(kind.num_fields))
