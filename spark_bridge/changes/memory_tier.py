"""The memory tier of look-ups: rows of sides of joins, and below windows, that are kept in this process within a bound.

The datasets stay the only truth: what is kept is read from them, in a thread, and follows the changes of each epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from threading import Lock
from weakref import WeakSet

import lance

from actors.formats.limits import row_bytes
from spark_bridge.changes.change_set import ChangeLog, ChangeSet, Parent
from spark_bridge.changes.kept_rows import KeptRows
from state.errors import StorageError
from state.tables.stored_rows import FILE_FIELD, JOIN_FIELD

_ORDER_BYTES = 25
"""Of the orders by which a row is found."""
_MOST_DEAD = 0.5


class _Kept:
    """The rows of one view, or the reading of them, see `spark_bridge.changes.change_set.Follower`.

    Attributes:
        nbytes: their size in bytes, estimated until they are read.
        is_lost: whether they cannot be used any longer.
    """

    def __init__(self, key_column: str | None, nbytes: int, read: Future[KeptRows]) -> None:
        self._key_column, self._read = key_column, read
        self._later: list[ChangeSet] = []
        self._is_behind = False
        self.nbytes, self.is_lost = nbytes, False

    def follow(self, changes: ChangeSet | None) -> None:
        """Takes the changes of an epoch, which are applied when the rows are needed next."""
        self._is_behind = True
        if changes is not None:
            self._later.append(changes)

    def rows(self) -> KeptRows | None:
        """The rows before this epoch; None while they are read, and in the epoch that began to read them."""
        if not self._is_behind or not self._read.done():
            return None
        try:
            rows = self._read.result()
        except (StorageError, OSError, ValueError, RuntimeError):
            self.is_lost = True  # the version is vacuumed by now, or the storage fails: look-ups go to the dataset
            return None
        for each in self._later:
            if len(each.keys) and each.gone is None and self._key_column != FILE_FIELD.name:
                self.is_lost = True
                return None
            rows.follow(each.keys, each.gone, each.new)
        self._later = []
        self.nbytes = rows.nbytes
        self.is_lost = rows.dead_share > _MOST_DEAD
        return rows


class MemoryTier:
    """Keeps the rows of each view in which keys are looked up, as long as there is room.

    Args:
        max_bytes: the bound of all kept rows together; 0 keeps none.
        thread: reads the rows; None for a thread of its own.
    """

    def __init__(self, max_bytes: int, thread: Executor | None = None) -> None:
        self._max_bytes = max_bytes
        self._thread = thread or ThreadPoolExecutor(1, thread_name_prefix="memory-tier")
        self._lock = Lock()
        self._logs: WeakSet[ChangeLog] = WeakSet()
        self._too_large: WeakSet[ChangeLog] = WeakSet()

    @property
    def nbytes(self) -> int:
        """Size of the kept rows in bytes, with those that are being read."""
        return sum(kept.nbytes for log in self._logs if isinstance(kept := log.follower, _Kept))

    def rows(self, log: ChangeLog, parent: Parent, snapshot: Callable[[], lance.LanceDataset]) -> KeptRows | None:
        """The rows of a view as they were before this epoch; None if they are not kept.

        Args:
            log: the changes of the view; those of this epoch are taken.
            parent: the view.
            snapshot: gives a handle on its rows as they are now.
        """
        if JOIN_FIELD.name not in parent.plan.schema.names or not self._max_bytes:
            return None
        with self._lock:
            kept = log.follower
            if isinstance(kept, _Kept):
                rows = kept.rows()
                if self.nbytes > self._max_bytes:
                    self._too_large.add(log)
                    log.follower = None
                elif kept.is_lost:
                    log.follower = None
                return rows
            if log not in self._too_large:
                self._read(log, parent, snapshot())
            return None

    def close(self) -> None:
        """Waits for the running reading."""
        self._thread.shutdown()

    def _read(self, log: ChangeLog, parent: Parent, dataset: lance.LanceDataset) -> None:
        key_column = parent.key_column if parent.names_rows else None
        columns = [*parent.plan.schema.names, *([key_column] if key_column else [])]
        nbytes = dataset.count_rows() * (_ORDER_BYTES + row_bytes(dataset.schema.field(each) for each in columns))
        if self.nbytes + nbytes > self._max_bytes:
            self._too_large.add(log)
            return
        read = self._thread.submit(_read, dataset, columns, key_column)
        log.begin_to_follow(_Kept(key_column, nbytes, read))
        self._logs.add(log)


def _read(dataset: lance.LanceDataset, columns: Sequence[str], key_column: str | None) -> KeptRows:
    return KeptRows(dataset.to_table(columns=list(columns)), key_column)
