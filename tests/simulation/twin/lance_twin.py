"""The store in Lance beside a `MemoryDisk`, and the comparison of the two."""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from state.clock import Clock
from state.errors import SlackwaterError
from state.lance.lance_root import LanceRoot
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.store.head_swap import StagedSwap
from state.tables.delta import Delta, StagedRows
from state.tables.ledger_counts import COUNTED, counted
from state.upkeep.fold import FoldSizes
from state.upkeep.vacuum import STORE_PATH
from tests.simulation.memory.memory_disk import MemoryDisk, MemoryVersion, Row
from tests.simulation.memory.memory_store import MemoryStateStore
from tests.simulation.promise_broken import PromiseBroken

_IN_MEMORY = Path("/dev/shm")
_TABLES = ("ledger", "epoch", "queue", "seen", "list_state", "catalog", "quarantine")
_OLD_VERSIONS, _MOST_FOLDS = 6, 20


class SmallFoldsStore(LanceStateStore):
    """`state.lance`, with folds that are due within a story."""

    fold_sizes = FoldSizes(log_fragments=2, log_rows=20, flushed_rows=12, small_rows=1, piece_rows=4)


@dataclass(frozen=True)
class TwinVersion(MemoryVersion):
    """A version of both stores.

    Args:
        lance: the handle on Lance that commits it, and moves to it.
        staged: the commit, for Lance.
    """

    lance: LanceStateStore
    staged: StagedSwap


class LanceTwin:
    """A store in Lance that gets each commit of a `MemoryDisk`.

    Args:
        clock: the simulated clock.
    """

    def __init__(self, clock: Clock) -> None:
        self._directory = TemporaryDirectory(prefix="slackwater-twin-", dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None)
        self._clock = clock
        self.root = LanceRoot(Location(self._directory.name, durability="process"), clock)
        self._staged: dict[str, tuple[StagedRows, ...]] = {}
        self._names: dict[str, str] = {}

    def close(self) -> None:
        """Deletes the directory."""
        self._directory.cleanup()

    def create_or_open(self) -> None:
        """Creates the store if it does not exist."""
        SmallFoldsStore.create_or_open(self.root.location, self._clock)

    def at(self, disk: MemoryDisk, version: int) -> LanceStateStore:
        """A handle at a version, as an owner opens it."""
        store = SmallFoldsStore.open(self.root.location, self._clock)
        if store.version != disk.latest:
            raise PromiseBroken("twin", f"the last version is {disk.latest}, and {store.version} in Lance")
        return store if version == store.version else store.reopen(version)

    def stage(self, name: str, delta: Delta, epoch: int) -> None:
        """Stages the rows that the simulated store has staged under a name."""
        self._staged[name] = self.root.stage(Delta(delta.parts), epoch).staged

    def stage_commit(self, handle: LanceStateStore, delta: Delta | None, version: MemoryVersion) -> TwinVersion:
        """Stages a commit of the simulated store; `handle` stays where it is."""
        if delta is not None:
            delta = Delta(delta.parts, tuple(rows for each in delta.staged for rows in self._staged[each.content]))
        mover = copy(handle)
        return self.staged(version, mover, mover._stage(delta, version.head))

    def staged(self, version: MemoryVersion, mover: LanceStateStore, staged: StagedSwap) -> TwinVersion:
        """A staged commit of both stores."""
        self._names[staged.name] = version.swap_name
        return TwinVersion(version.swap_name, version.head, version.tables, mover, staged)

    def check_name(self, handle: LanceStateStore, version: int, expected: str | None) -> None:
        """Checks the name of the commit that made a version: it decides about a commit with an unknown outcome."""
        found = handle._swap_name(version)
        name = None if found is None else self._names.get(found, "create")
        if name != expected:
            raise PromiseBroken("twin", f"version {version} was made by {expected}, and by {name} in Lance")

    def check_last(self, disk: MemoryDisk, made: TwinVersion) -> None:
        """Compares the version that was committed just now: its number, its head, and the rows of one table."""
        if (made.lance.version, made.lance.head) != (disk.latest, made.head):
            raise PromiseBroken(
                "twin",
                f"version {disk.latest} has the head {made.head}; in Lance {made.lance.version} {made.lance.head}",
            )
        self._check_rows(disk, made.lance, _TABLES[disk.latest % len(_TABLES)], disk.latest)

    def check_versions(self, disk: MemoryDisk) -> None:
        """Compares the versions that exist, after a vacuum."""
        there = self.root.versions(STORE_PATH)
        if there != {*disk.versions}:
            raise PromiseBroken("twin", f"the versions are {sorted(disk.versions)}, and {sorted(there)} in Lance")

    def check_all(self, disk: MemoryDisk) -> None:
        """Compares everything: at the end of a story.  Then it folds all that is due, and compares again."""
        if not disk.latest:
            return
        self.check_versions(disk)
        store = SmallFoldsStore.open(self.root.location, self._clock)
        old = sorted(disk.versions)[:-1]
        for at, version in enumerate(old[:: -(-len(old) // _OLD_VERSIONS) or 1]):
            self._check_rows(disk, store, _TABLES[at % len(_TABLES)], version)
        self._check_counts(disk, store)
        self._fold_all(disk, store)
        self._check_tables(disk, store)
        self._check_counts(disk, store)
        self._check_size(disk, store)

    def _fold_all(self, disk: MemoryDisk, store: LanceStateStore) -> None:
        """Does all folds that are due; they end, since each leaves less to fold."""
        for _ in range(disk.latest + _MOST_FOLDS):
            fold = store.stage_fold()
            if fold is None:
                return
            store.commit_fold(fold)
        raise PromiseBroken("twin", f"after {disk.latest + _MOST_FOLDS} folds another one is due")

    def _check_tables(self, disk: MemoryDisk, store: LanceStateStore) -> None:
        """Compares all rows of the last version: those behind some keys, and those of a range."""
        for table in _TABLES:
            expected = self._rows(disk, table, disk.latest)
            keys = [row["key"] for row in expected]
            looked_up = store.scan(table, keys={*keys[::2]}).to_pylist() if keys else []
            self._compare(table, expected[::2], looked_up)
            start = keys[len(keys) // 3] if keys else None
            later = [row for part in store.slices(table, start=start) for row in part.to_pylist()]
            self._compare(table, expected[len(keys) // 3 :], later)

    def _check_counts(self, disk: MemoryDisk, store: LanceStateStore) -> None:
        """Compares the counts of the ledger, of which a part is kept with the folds."""
        rows = MemoryStateStore(disk, self._clock, disk.latest, read_only=True).scan("ledger", fields=COUNTED)
        counts, found = (sorted(map(repr, each.to_pylist())) for each in (counted(rows), store.count_ledger()))
        if counts != found:
            raise PromiseBroken("twin", f"the ledger counts {counts}, and {found} in Lance")

    def _check_rows(self, disk: MemoryDisk, store: LanceStateStore, table: str, version: int) -> None:
        """Compares the rows of a table at a version."""
        try:
            found = store.scan(table, state_version=version)
        except SlackwaterError as error:
            raise PromiseBroken("twin", f"{table} at version {version} is not readable in Lance: {error}") from error
        self._compare(f"{table} at version {version}", self._rows(disk, table, version), found.to_pylist())

    def _rows(self, disk: MemoryDisk, table: str, version: int) -> list[Row]:
        """The rows of the simulated store, in the order of their keys."""
        memory = MemoryStateStore(disk, self._clock, version, read_only=True)
        rows: list[Row] = memory.scan(table).sort_by("key").to_pylist()
        return rows

    def _compare(self, name: str, expected: list[Row], found: list[Row]) -> None:
        found = sorted(found, key=lambda row: bytes(row["key"]))
        if found != expected:
            lost = [row for row in expected if row not in found]
            added = [row for row in found if row not in expected]
            raise PromiseBroken("twin", f"{name} lacks in Lance {lost[:2]}, and has besides {added[:2]}")

    def _check_size(self, disk: MemoryDisk, store: LanceStateStore) -> None:
        """Checks that dead rows are few: all folds that were due are done."""
        sizes, epoch = store.fold_sizes, store.head.epoch
        _, directory = store._directory_of(store._dataset)
        log = [fragment.to_table(columns=["table", "epoch"]) for fragment in store._log_of(store._dataset, directory)]
        logged = Counter(table for rows in log for table in rows["table"].to_pylist())
        # The rows of the last epoch stay in the log: it may be amended.
        settled = sum(max(rows["epoch"].to_pylist()) < epoch for rows in log)
        if settled >= sizes.log_fragments:
            raise PromiseBroken("twin", f"{settled} fragments of the log are not folded")
        for table in directory.tables:
            live = len(disk.versions[disk.latest].tables.get(table, {}))
            stored = sum(run.rows for run in directory.runs(table))
            if stored > 1.5 * (live + logged[table]) + sizes.small_rows:
                raise PromiseBroken(
                    "twin", f"{table} has {live} rows, {logged[table]} are in the log, and {stored} are folded"
                )
