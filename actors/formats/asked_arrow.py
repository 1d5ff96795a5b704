"""Calls of Arrow's readers, whose errors are those of the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from actors.file_errors import UnreadableFile, one_line

_Answer = TypeVar("_Answer")


def ask_arrow(call: Callable[[], _Answer], place: str) -> _Answer:
    """The result of a call of Arrow.

    Args:
        place: the part of the file that it reads, for messages.

    Raises:
        UnreadableFile: the content of the file is at fault.
    """
    try:
        return call()
    except pa.ArrowMemoryError:
        raise  # not an error of the file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = f"{place}: {one_line(error)}"
    raise UnreadableFile(reason)
