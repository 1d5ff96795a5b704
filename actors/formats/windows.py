"""Windows over chunks of a file that are too large to be held: they are fetched as the decoder reaches them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from actors.objects.object_file import Fetched, ObjectFile
from actors.objects.ranges import Range, seekable
from actors.settings import MIB

_LEAST_WINDOW_BYTES = MIB // 4
_MOST_WINDOW_BYTES = 8 * MIB


class ChunkWindows:
    """The content of chunks.  Of each chunk, the current window and the next one are held.

    Args:
        chunks: the ranges of the chunks in the file.
        held_bytes: the approximate limit for all held windows, in bytes.
        on_bytes: a check of each part of a chunk before its use: (stream, start of the part, end of the part).
    """

    def __init__(
        self,
        file: ObjectFile,
        chunks: Sequence[Range],
        held_bytes: int,
        on_bytes: Callable[[pa.NativeFile, int, int], None],
    ) -> None:
        self._file, self._on_bytes = file, on_bytes
        nbytes = held_bytes // (2 * max(1, len(chunks)))
        self.window_bytes = min(max(nbytes, _LEAST_WINDOW_BYTES), _MOST_WINDOW_BYTES)
        self._chunks = [_ChunkWindows(file, each, self.window_bytes) for each in sorted(chunks)]

    @property
    def num_windows(self) -> int:
        """The number of requests for all chunks."""
        return sum(-(-(each.end - each.start) // self.window_bytes) for each in self._chunks)

    def stream(self) -> pa.NativeFile:
        """A seekable stream over the whole content.  Errors as `ObjectFile.stream` and `on_bytes`."""
        return seekable(self._file.size, self.read_at)

    def read_at(self, start: int, nbytes: int) -> bytes | memoryview:
        """`nbytes` of the content from `start` on.  Errors as `stream`."""
        for chunk in self._chunks:
            if chunk.start <= start < chunk.end:
                content = chunk.read_at(start, min(start + nbytes, chunk.end), self._on_bytes)
                if start + nbytes <= chunk.end:
                    return content
                return bytes(content) + bytes(self.read_at(chunk.end, start + nbytes - chunk.end))
        return self._file.fetch([(start, start + nbytes)]).joined()


class _ChunkWindows:
    """The windows of one chunk, which is read mostly from start to end."""

    def __init__(self, file: ObjectFile, chunk: Range, window_bytes: int) -> None:
        self._file, self._window_bytes = file, window_bytes
        self.start, self.end = chunk
        self._seen = self.start
        self._windows: dict[int, Fetched] = {}

    def read_at(self, start: int, end: int, on_bytes: Callable[[pa.NativeFile, int, int], None]) -> bytes | memoryview:
        first, last = (self._number(at) for at in (start, end - 1))
        for number in range(first, last + 2):
            if number not in self._windows and self._bounds(number)[0] < self.end:
                self._windows[number] = self._file.fetch([self._bounds(number)])
        self._windows = {number: each for number, each in self._windows.items() if number >= first - 1}
        parts = [self._part(number, start, end) for number in range(first, last + 1)]
        if end > self._seen:
            seen_to = self._bounds(last)[1]
            on_bytes(seekable(self._file.size, self._held), self.start, seen_to)
            self._seen = seen_to
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _held(self, start: int, nbytes: int) -> bytes | memoryview:
        """The held bytes of a part; they may end early."""
        number = self._number(start)
        end = min(start + nbytes, self.end)
        parts: list[memoryview] = []
        while number in self._windows and start < end:
            parts.append(self._part(number, start, end))
            start += len(parts[-1])
            number += 1
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _part(self, number: int, start: int, end: int) -> memoryview:
        first, last = self._bounds(number)
        content = self._windows[number].joined()
        return content[max(start, first) - first : min(end, last) - first]

    def _number(self, at: int) -> int:
        return (at - self.start) // self._window_bytes

    def _bounds(self, number: int) -> Range:
        first = self.start + number * self._window_bytes
        return first, min(first + self._window_bytes, self.end)
