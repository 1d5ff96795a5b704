"""Ends of lines, and the check for UTF-8."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from actors.file_errors import UnreadableFile

Text = bytes | memoryview

_STEP_BYTES = 4096
_SEARCHED_BYTES = 1 << 20
_COUNTED_BYTES = 1 << 16
_LINE_FEED, _CARRIAGE_RETURN = 10, 13


def last_line_end(text: Text) -> int:
    """The position behind the last line feed; 0 without one."""
    end = len(text)
    while end > 0:
        start = max(0, end - _STEP_BYTES)
        if (at := bytes(text[start:end]).rfind(b"\n")) >= 0:
            return start + at + 1
        end = start
    return 0


def first_line_end(text: Text) -> int:
    """The position behind the first line feed; 0 without one."""
    for start in range(0, len(text), _SEARCHED_BYTES):
        if (at := bytes(text[start : start + _SEARCHED_BYTES]).find(b"\n")) >= 0:
            return start + at + 1
    return 0


def line_ends(text: Text) -> npt.NDArray[np.int64]:
    """The positions behind each line feed."""
    return np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1


def most_line_ends(text: Text) -> int:
    """The number of line feeds and carriage returns: at least the number of line ends."""
    # Pieces of this size fit into the cache.
    content = np.frombuffer(text, np.uint8)
    pieces = (content[start : start + _COUNTED_BYTES] for start in range(0, len(content), _COUNTED_BYTES))
    return sum(int(np.count_nonzero((piece == _LINE_FEED) | (piece == _CARRIAGE_RETURN))) for piece in pieces)


def require_utf8(text: Text) -> None:
    """Refuses text that is not UTF-8.  Arrow's check is eight times as fast as Python's.

    Raises:
        UnreadableFile: the text is not UTF-8.
    """
    offsets = pa.py_buffer(struct.pack("=2i", 0, len(text)))
    try:
        pa.StringArray.from_buffers(1, offsets, pa.py_buffer(text)).validate(full=True)
    except pa.ArrowInvalid:
        pass
    else:
        return
    try:
        bytes(text).decode()
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8: byte {error.object[error.start]:#04x} at position {error.start}"
    raise UnreadableFile(reason)
