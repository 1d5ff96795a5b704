"""The open epoch of one fetch actor: its number, its limits, and its rows so far."""

from __future__ import annotations

from actors.fetching.limits import FetchLimits
from actors.files import FileKey, PathKey
from actors.protocol.barrier import Barrier
from state.errors import ProtocolError
from state.tables.records import EpochCounts


class OpenEpoch:
    """Counts and rules that hold from one barrier to the next.

    Attributes:
        files: files that ended in this epoch.
        rows: rows that came in it and fit the schema.
        unsealed_bytes: Arrow bytes emitted in it.
        activity: things done since the start of the actor.
        admitted: versions that may be read in it; None for all.
        corrected: objects that it corrects.  No other row of them comes in it: a view takes the rows of an epoch before
            its corrections.

    Args:
        limits: the limits of one epoch.
    """

    def __init__(self, limits: FetchLimits) -> None:
        self._limits = limits
        self._number: int | None = None
        self.files = self.rows = self.unsealed_bytes = self.activity = 0
        self._bytes = self._requests = 0
        self.admitted: frozenset[FileKey] | None = frozenset()
        self.corrected: set[PathKey] = set()

    @property
    def is_open(self) -> bool:
        """True once the initial barrier has come."""
        return self._number is not None

    @property
    def number(self) -> int:
        """The epoch.

        Raises:
            ProtocolError: the initial barrier has not come.
        """
        if self._number is None:
            raise ProtocolError("no epoch is open before the initial barrier")
        return self._number

    def begin(self, barrier: Barrier) -> None:
        """Opens the epoch behind a barrier."""
        self._number, self.admitted = barrier.epoch.curr, barrier.admitted
        self.corrected.clear()

    def add_cost(self, requests: int, bytes_read: int) -> None:
        """Counts the cost of one read."""
        self._requests += requests
        self._bytes += bytes_read

    def files_left(self) -> int:
        """Number of files that may still end in this epoch; 0 when a command has ended more than may."""
        return max(0, self._limits.most_files - self.files)

    def seal(self) -> EpochCounts:
        """Counts of the epoch; those of the next one begin at 0."""
        counts = EpochCounts(self.files, self.rows, self._bytes, self._requests)
        self.files = self.rows = self._bytes = self._requests = self.unsealed_bytes = 0
        return counts
