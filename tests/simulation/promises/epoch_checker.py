"""Checks of terms, epochs and their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from state.tables.record_rows import read_epochs
from state.tables.records import EpochRecord, Head
from tests.simulation.memory.memory_disk import MemoryVersion
from tests.simulation.promise_broken import PromiseBroken


class EpochChecker:
    """Checks that terms and epochs grow, that each term has one run, and that epoch records stay (G2, G3, G5).

    Args:
        keep_epochs: the number of last epochs whose records must stay; None for all.
    """

    def __init__(self, keep_epochs: int | None) -> None:
        self._keep_epochs = keep_epochs
        self._head: Head | None = None
        self._runs: dict[int, str] = {}
        self._committed: dict[int, EpochRecord] = {}
        self._retained: list[int] = []

    @property
    def count(self) -> int:
        """Number of committed epochs."""
        return len(self._committed)

    def begin(self, version: MemoryVersion) -> None:
        """Begins with the first version of the store of a branch, which has one epoch of the root above it."""
        [record] = read_epochs(version.tables["epoch"].values())
        _check_new(record, version.head, record.state_version)
        self._head, self._committed, self._retained = version.head, {record.epoch: record}, [record.epoch]
        self._runs = {record.term: "", version.head.term: version.head.run}

    def check(self, number: int, version: MemoryVersion, pinned: Set[int] = frozenset()) -> EpochRecord | None:
        """Checks the next version of the store.

        Args:
            number: its number.
            version: its content.
            pinned: the epochs that its owner must keep for readers.

        Returns:
            The record of the epoch that it commits; None if it commits none, as a take-over, a fold or an expiry.
        """
        before, self._head = self._head, version.head
        if before is not None:
            self._check_term(before, version.head)
        records = read_epochs(version.tables.get("epoch", {}).values())
        tagged = frozenset(version.head.tags.values())
        kept = tagged | pinned
        if not tagged <= {record.epoch for record in records}:
            raise PromiseBroken("G3", f"the epochs {sorted(tagged)} have tags, and some of them no record")
        if before is None or version.head.epoch == before.epoch:
            self._check_records(records, None, kept)
            return None
        *earlier, new = records
        _check_new(new, version.head, number)
        self._check_records(earlier, new, kept)
        return new

    def check_acknowledged(self, record: EpochRecord) -> None:
        """Checks that an acknowledged epoch is committed."""
        if self._committed.get(record.epoch) != record:
            raise PromiseBroken("G3", f"epoch {record.epoch} was acknowledged and is not in the store")

    def check_retained(self, versions: Mapping[int, MemoryVersion]) -> list[EpochRecord]:
        """Checks that the store still has the version of each retained epoch.

        Args:
            versions: number → version of the store.

        Returns:
            The records of the retained epochs, the oldest first.
        """
        records = [self._committed[epoch] for epoch in self._retained]
        for record in records:
            version = versions.get(record.state_version)
            if version is None or version.head.epoch != record.epoch:
                raise PromiseBroken(
                    "G2", f"epoch {record.epoch} names version {record.state_version}, which is not its own"
                )
        return records

    def is_committed(self, epoch: int) -> bool:
        """True for every epoch that was ever committed."""
        return epoch in self._committed

    def committed_by(self, run: str) -> list[EpochRecord] | None:
        """The records of a run's epochs; None if any epoch has expired: a run counts only what is retained."""
        if len(self._retained) < len(self._committed):
            return None
        return [record for record in self._committed.values() if self._runs[record.term] == run]

    def state_version_at(self, epoch: int) -> int:
        """The version of the store at an epoch that must be retained.

        Args:
            epoch: a committed epoch, or a number between two; the last committed one up to it counts.
        """
        at = max(each for each in self._committed if each <= epoch)
        if at not in self._retained:
            raise PromiseBroken("G3", f"epoch {at}, which a backfill reads, has expired")
        return self._committed[at].state_version

    def _check_term(self, before: Head, now: Head) -> None:
        if now.term < before.term:
            raise PromiseBroken("G5", f"term {now.term} has committed after term {before.term}")
        if now.epoch < before.epoch:
            raise PromiseBroken("G3", f"epoch {now.epoch} was committed after epoch {before.epoch}")
        owner = self._runs.get(now.term, now.run)
        if owner != now.run:
            raise PromiseBroken("G5", f"the runs {owner} and {now.run} both have term {now.term}")
        if now.run != before.run and now.run in self._runs.values():
            raise PromiseBroken("G5", f"{now.run} lost the root to {before.run}, and has taken it again")
        self._runs[now.term] = now.run

    def _check_records(self, earlier: Sequence[EpochRecord], new: EpochRecord | None, kept: Set[int]) -> None:
        """Checks the records of earlier epochs, and adds the new one; those with a tag or a pin stay."""
        for record in earlier:
            if self._committed.get(record.epoch) != record:
                raise PromiseBroken("G3", f"the record of epoch {record.epoch} has changed")
        epochs = [record.epoch for record in earlier]
        must_stay = self._retained[-(self._keep_epochs or len(self._retained)) :]
        must_stay += [epoch for epoch in self._retained if epoch in kept]
        lost, returned = set(must_stay).difference(epochs), set(epochs).difference(self._retained)
        if lost or returned:
            raise PromiseBroken("G3", f"records are lost: {sorted(lost)}; records are back: {sorted(returned)}")
        if new is not None:
            self._committed[new.epoch] = new
            epochs.append(new.epoch)
        self._retained = epochs


def _check_new(record: EpochRecord, head: Head, number: int) -> None:
    """Checks that a record describes the version of the store that adds it."""
    recorded = record.epoch, record.term, record.state_version, dict(record.views)
    if recorded != (head.epoch, head.term, number, dict(head.views)):
        raise PromiseBroken("G2", f"version {number} has the head {head} and the record {record}")
