"""The upkeep of a root between epochs: folds of the store, expiry of epochs, vacuum of their files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from state.allocation import return_memory
from state.clock import Clock
from state.store.store import StagedFold, StateStore
from state.tables.record_rows import expiry_delta
from state.upkeep.retention import RetentionSettings, expired
from state.upkeep.vacuum import Vacuum, Vacuumed, VacuumRoot

_FIRST_VACUUM_S = 60.0
UPKEEP_INTERVAL_S = 600.0


@dataclass(frozen=True)
class StagedUpkeep:
    """The content of the next commits of `Housekeeping.commit`.

    Args:
        fold: a fold of the store; None if no fold is due.
        expired: epochs whose records are deleted, oldest first.
    """

    fold: StagedFold | None
    expired: tuple[int, ...]


class Housekeeping:
    """The upkeep of a root by its owner, in three steps.

    `stage` and `vacuum` may take long, and run in a thread while commits continue.  `commit` runs between two epochs,
    and takes as long as two commits.  The order keeps it safe at any crash: first the records stop naming a version,
    and that is committed; then its files are deleted.

    Args:
        root: the root that the pipeline writes to.
        clock: the clock for the age of an epoch and the time of the next vacuum.
        pinned: a function that returns the epochs with a pin.
        interval_s: seconds between two vacuums.  A vacuum reads the manifest of every retained version, which on an
            object store is one request each.
    """

    def __init__(
        self,
        root: VacuumRoot,
        clock: Clock,
        retention: RetentionSettings,
        pinned: Callable[[], Collection[int]] = frozenset,
        *,
        interval_s: float = UPKEEP_INTERVAL_S,
    ) -> None:
        self._clock = clock
        self._retention = retention
        self._pinned = pinned
        self._interval_s = interval_s
        self._vacuum = Vacuum(root)
        self._fold_from_version = 0
        self._expire_at_s = clock.monotonic() + min(_FIRST_VACUUM_S, interval_s)
        self._expired_at_epoch = 0
        self._num_expired = 0

    def due(self, store: StateStore) -> bool:
        """True if `stage` may find work.  A pipeline without commits needs no upkeep."""
        return store.version >= self._fold_from_version or self._is_expiry_due(store)

    def stage(self, store: StateStore) -> StagedUpkeep | None:
        """Prepares the next upkeep, not visible; None if none is due.

        Args:
            store: the owner's handle; it may commit at the same time.

        Raises:
            StorageError: the root cannot be read or written.
        """
        fold = None
        if store.version >= self._fold_from_version:
            fold = store.stage_fold()
            if fold is None:
                self._fold_from_version = store.version + store.fold_interval
            else:
                return_memory()
        gone = self._expired(store) if self._is_expiry_due(store) else ()
        return StagedUpkeep(fold, gone) if fold is not None or gone else None

    def commit(self, store: StateStore, staged: StagedUpkeep) -> None:
        """Makes the upkeep visible.  After a refusal no row is lost, and the run recovers as from any other commit.

        Args:
            store: the owner's handle, between two epochs.
            staged: the result of `stage` in this term.

        Raises:
            FencedError, CommitRefusedError, CommitUnknownError: as `StateStore.commit`.
        """
        if staged.expired:
            kept = {*store.head.kept_epochs, *self._pinned()}  # an epoch may have a tag since then
            if gone := [epoch for epoch in staged.expired if epoch not in kept]:
                store.amend(expiry_delta(gone))
                self._num_expired += len(gone)
        if staged.fold is not None:
            store.commit_fold(staged.fold)

    def vacuum(self) -> Vacuumed:
        """Deletes the files of expired epochs: call it after `commit`.

        Raises:
            StorageError: the root cannot be read or written; the next call continues.
        """
        num_expired, self._num_expired = self._num_expired, 0
        return replace(self._vacuum.run(), epochs_expired=num_expired)

    def run(self, store: StateStore) -> Vacuumed:
        """All due upkeep at once, for an owner that does nothing else.

        Raises:
            FencedError, CommitRefusedError, CommitUnknownError: as `StateStore.commit`.
            StorageError: the root cannot be read or written.
        """
        if gone := self._expired(store):
            self.commit(store, StagedUpkeep(None, gone))
        while (fold := store.stage_fold()) is not None:
            store.commit_fold(fold)
        return self.vacuum()

    def _is_expiry_due(self, store: StateStore) -> bool:
        return store.head.epoch != self._expired_at_epoch and self._clock.monotonic() >= self._expire_at_s

    def _expired(self, store: StateStore) -> tuple[int, ...]:
        self._expire_at_s = self._clock.monotonic() + self._interval_s
        self._expired_at_epoch = store.head.epoch
        records = store.scan("epoch", fields=["committed_at"])
        epochs = sorted(zip(records["epoch"].to_pylist(), records["committed_at"].to_pylist(), strict=True))
        # A kept epoch without a record of its own shows the same rows as the last record before it.
        before = [bisect_right(epochs, each, key=lambda epoch: int(epoch[0])) for each in store.head.kept_epochs]
        pinned = {*(epochs[count - 1][0] for count in before if count), *self._pinned()}
        return tuple(expired(epochs, now=self._clock.now(), retention=self._retention, pinned=pinned))
