"""How much a file may become when it is read."""

from __future__ import annotations

from actors.file_errors import UnreadableFile
from actors.settings import MIB, ReadLimits

_FREE_BYTES = 256 * MIB


class Expansion:
    """Counts what comes out of one file.

    Args:
        stored_bytes: the size of the file.
        limits: `max_expansion` counts.
        free_bytes: what any file may become.
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
