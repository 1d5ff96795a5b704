"""The memory tier of look-ups: rows of sides of joins, and below windows, that are kept in this process within a bound.

The datasets stay the only truth: what is kept is read from them, in a thread, and follows the changes of each epoch.
If not all rows have room, those with the most look-ups for each byte are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from weakref import WeakKeyDictionary

import lance

from actors.formats.limits import row_bytes
from spark_bridge.changes.cached_rows import CachedRows
from spark_bridge.changes.change_set import ChangeLog, ChangeSet, Parent
from spark_bridge.datasets.added_rows import AddedRows
from state.errors import StorageError
from state.tables.stored_rows import FILE_FIELD, JOIN_FIELD

_ORDER_BYTES = 25
"""Of the orders by which a row is found."""
_MOST_DEAD = 0.5
_HALF_LIFE_EPOCHS = 64
_HOTTER = 2
_BYTES_A_LOOK_UP = 2 << 20
"""To read so many bytes into the memory takes as long as a look-up in the dataset."""


@dataclass(frozen=True)
class KeptSize:
    """The size of the rows of one view in memory.

    Args:
        nbytes: their size in bytes, with the orders by which they are found.
    """

    rows: int
    nbytes: int


class _Use:
    """The look-ups in the rows of one view.

    Attributes:
        heat: their number; one of `_HALF_LIFE_EPOCHS` ago counts half.
        missed: those in the dataset since there was no room for the rows; None if there always was.
        size: of the rows in memory, or as much as they would take; estimated until they are read.
        path: of the dataset, below the root.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.heat = 0.0
        self.missed: int | None = None
        self.size = KeptSize(0, 0)
        self._row_bytes = 0.0

    @property
    def heat_per_byte(self) -> float:
        return self.heat / max(1, self.size.nbytes)

    @property
    def has_paid(self) -> bool:
        """Whether the look-ups in the dataset have taken as long as the reading of the rows."""
        return self.missed is None or self.missed * _BYTES_A_LOOK_UP >= self.size.nbytes

    def measure(self, rows: CachedRows) -> None:
        self.size, self._row_bytes = KeptSize(rows.num_rows, rows.nbytes), rows.row_bytes

    def estimate(self, rows: int, least_row_bytes: int) -> None:
        """Estimates the size by the number of rows; rows that were in memory before tell their size."""
        self.size = KeptSize(rows, int(rows * max(least_row_bytes, self._row_bytes)))


class _Kept:
    """The rows of one view, or the reading of them, see `spark_bridge.changes.change_set.Follower`.

    Attributes:
        is_lost: whether they cannot be used any longer.
    """

    def __init__(self, key_column: str | None, read: Future[CachedRows]) -> None:
        self._key_column, self._read = key_column, read
        self._later: list[ChangeSet] = []
        self._expired: tuple[str, int] | None = None
        self._is_behind = False
        self.is_lost = False

    def follow(self, changes: ChangeSet | None) -> None:
        """Takes the changes of an epoch, which are applied when the rows are needed next."""
        self._is_behind = True
        if changes is not None:
            self._later.append(changes)

    def expire(self, column: str, before_us: int) -> None:
        """Lets the rows go whose time is before a bound, when the rows are needed next."""
        self._expired = column, before_us

    def rows(self) -> CachedRows | None:
        """The rows before this epoch; None while they are read, and in the epoch that began to read them."""
        if not self._is_behind or not self._read.done():
            return None
        try:
            rows = self._read.result()
        except (StorageError, OSError, ValueError, RuntimeError):
            self.is_lost = True  # the version is vacuumed by now, or the storage fails: look-ups go to the dataset
            return None
        for each in self._later:
            is_unknown = len(each.keys) and each.gone is None and self._key_column != FILE_FIELD.name
            if is_unknown or isinstance(each.added, AddedRows):
                self.is_lost = True  # many new rows are read with all others, in the thread
                return None
            rows.follow(each.keys, each.gone, each.new)
        self._later = []
        if self._expired is not None:
            rows.expire(*self._expired)
            self._expired = None
        self.is_lost = rows.dead_share > _MOST_DEAD
        return rows


class MemoryTier:
    """Keeps the rows of views in which keys are looked up.

    Rows come as long as there is room.  Then rows that are twice as hot for each byte take the place of the coldest
    ones, but only if their look-ups in the dataset have taken as long as their reading will.

    Args:
        max_bytes: the bound of all cached rows together; 0 caches no rows.
        thread: reads the rows; None for a thread of its own.
    """

    def __init__(self, max_bytes: int, thread: Executor | None = None) -> None:
        self._max_bytes = max_bytes
        self._thread = thread or ThreadPoolExecutor(1, thread_name_prefix="memory-tier")
        self._lock = Lock()
        self._uses: WeakKeyDictionary[ChangeLog, _Use] = WeakKeyDictionary()

    @property
    def nbytes(self) -> int:
        """Size of the cached rows in bytes, with rows that are being read."""
        return sum(use.size.nbytes for use in self._kept.values())

    @property
    def sizes(self) -> dict[str, KeptSize]:
        """Path of a dataset → the size of its cached rows, with rows that are being read."""
        with self._lock:
            return {use.path: use.size for use in self._kept.values()}

    def begin_epoch(self) -> None:
        """Lets the look-ups of earlier epochs count less."""
        with self._lock:
            for use in self._uses.values():
                use.heat *= 0.5 ** (1 / _HALF_LIFE_EPOCHS)

    def rows(self, log: ChangeLog, parent: Parent, snapshot: Callable[[], lance.LanceDataset]) -> CachedRows | None:
        """The rows of a view as they were before this epoch; None if they are not kept.

        Args:
            log: the changes of the view; those of this epoch are taken.
            snapshot: gives a handle on its rows as they are now.
        """
        if JOIN_FIELD.name not in parent.plan.schema.names or not self._max_bytes:
            return None
        with self._lock:
            use = self._uses.setdefault(log, _Use(parent.version.path))
            use.heat += 1
            kept = log.follower
            if not isinstance(kept, _Kept):
                self._consider(log, use, parent, snapshot)
                return None
            rows = kept.rows()
            if rows is not None:
                use.measure(rows)
            if kept.is_lost:
                log.follower = None
            while self.nbytes > self._max_bytes:
                self._leave(self._coldest_first[0])
            return rows

    def close(self) -> None:
        """Waits for the running reading."""
        self._thread.shutdown()

    @property
    def _kept(self) -> dict[ChangeLog, _Use]:
        return {log: use for log, use in self._uses.items() if isinstance(log.follower, _Kept)}

    @property
    def _coldest_first(self) -> list[ChangeLog]:
        return sorted(self._kept, key=lambda log: self._uses[log].heat_per_byte)

    def _consider(self, log: ChangeLog, use: _Use, parent: Parent, snapshot: Callable[[], lance.LanceDataset]) -> None:
        """Reads the rows of a view, if there is room, or others leave for them."""
        if use.missed is not None:
            use.missed += 1
        if not use.has_paid:
            return
        dataset = snapshot()
        key_column = parent.key_column if parent.names_rows else None
        columns = [*parent.plan.schema.names, *([key_column] if key_column else [])]
        fields = (dataset.schema.field(each) for each in columns)
        use.estimate(dataset.count_rows(), _ORDER_BYTES + row_bytes(fields))
        leaving = self._leaving_for(use)
        if leaving is None:
            use.missed = 0
            return
        for each in leaving:
            self._leave(each)
        log.begin_to_follow(_Kept(key_column, self._thread.submit(_read, dataset, columns, key_column)))

    def _leaving_for(self, use: _Use) -> list[ChangeLog] | None:
        """The views whose rows make room for others; None if these must not come."""
        room, leaving = self._max_bytes - self.nbytes, list[ChangeLog]()
        for log in self._coldest_first:
            if room >= use.size.nbytes:
                break
            coldest = self._uses[log]
            if use.missed is None or use.heat_per_byte < _HOTTER * coldest.heat_per_byte:
                return None
            leaving.append(log)
            room += coldest.size.nbytes
        return leaving if room >= use.size.nbytes else None

    def _leave(self, log: ChangeLog) -> None:
        log.follower, self._uses[log].missed = None, 0


def _read(dataset: lance.LanceDataset, columns: Sequence[str], key_column: str | None) -> CachedRows:
    return CachedRows(dataset.to_table(columns=list(columns)), key_column)
