"""Keeps a root small while it grows: folds the store, expires epochs, and vacuums what they leave."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection
from dataclasses import dataclass

from state.clock import Clock
from state.store.store import StagedFold, StateStore
from state.tables.record_rows import expiry_delta
from state.upkeep.fold_plan import FOLD_FACTOR
from state.upkeep.retention import RetentionSettings, expired
from state.upkeep.vacuum import Vacuum, Vacuumed, VacuumRoot

_FIRST_VACUUM_S = 60.0
UPKEEP_INTERVAL_S = 600.0


@dataclass(frozen=True)
class StagedUpkeep:
    """What the next commits of `Housekeeping.commit` will do.

    Args:
        fold: of the store; None if none is due.
        expired: epochs whose records go, oldest first.
    """

    fold: StagedFold | None
    expired: tuple[int, ...]


class Housekeeping:
    """What the owner of a root does between epochs, in three steps.

    `stage` and `vacuum` take their time, in a thread beside the commits.  `commit` belongs between two epochs, and
    takes as long as two commits do.  The order is what makes it safe at any crash: first the records stop naming a
    version, and that is committed; then its files go.

    Args:
        root: where the pipeline writes.
        clock: tells how old an epoch is, and when the next vacuum is due.
        retention: which epochs stay.
        pinned: the epochs that readers hold at this moment.
        interval_s: seconds between two vacuums.  Each reads the manifest of every retained version, which on an object
            store is a request apiece.
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

    def due(self, store: StateStore) -> bool:
        """Whether `stage` has something to look at.  A pipeline that commits nothing is left in peace."""
        return store.version >= self._fold_from_version or self._is_expiry_due(store)

    def stage(self, store: StateStore) -> StagedUpkeep | None:
        """Prepares the next upkeep without showing it; None if there is nothing to do.

        Args:
            store: the owner's handle; it may commit meanwhile.

        Raises:
            StorageError: the root cannot be read or written.
        """
        fold = None
        if store.version >= self._fold_from_version:
            fold = store.stage_fold()
            if fold is None:
                self._fold_from_version = store.version + FOLD_FACTOR
        gone = self._expired(store) if self._is_expiry_due(store) else ()
        return StagedUpkeep(fold, gone) if fold is not None or gone else None

    def commit(self, store: StateStore, staged: StagedUpkeep) -> None:
        """Makes the upkeep visible.  If it is refused nothing is lost, and the run recovers as from any other commit.

        Args:
            store: the owner's handle, between two epochs.
            staged: by this object in this term.

        Raises:
            FencedError, CommitRefusedError, CommitUnknownError: as `StateStore.commit`.
        """
        if staged.expired:
            kept = {*store.head.kept_epochs, *self._pinned()}  # an epoch may have got a name since
            if gone := [epoch for epoch in staged.expired if epoch not in kept]:
                store.amend(expiry_delta(gone))
        if staged.fold is not None:
            store.commit_fold(staged.fold)

    def vacuum(self) -> Vacuumed:
        """Deletes what the expired epochs leave: call it when `commit` has shown `StagedUpkeep.expired`.

        Raises:
            StorageError: the root cannot be read or written; the next call goes on.
        """
        return self._vacuum.run()

    def run(self, store: StateStore) -> Vacuumed:
        """Everything that can be done, now: for an owner that does nothing else.

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
        records = store.scan("epoch")
        epochs = sorted(zip(records["epoch"].to_pylist(), records["committed_at"].to_pylist(), strict=True))
        # An epoch without a record shows what the last one before it did.
        before = [bisect_right(epochs, each, key=lambda epoch: int(epoch[0])) for each in store.head.kept_epochs]
        pinned = {*(epochs[count - 1][0] for count in before if count), *self._pinned()}
        return tuple(expired(epochs, now=self._clock.now(), retention=self._retention, pinned=pinned))
