"""A root in memory as one actor sees it: others act in between, and some answers do not come."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from state.clock import Clock
from state.errors import CommitRefusedError, CommitUnknownError, StorageUnavailableError
from state.store.head_swap import StagedSwap
from state.tables.delta import Delta
from state.tables.records import EpochRecord, ViewVersion
from state.upkeep.vacuum import Vacuumed
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.memory.memory_root import MemoryRoot
from tests.simulation.memory.memory_store import MemoryStateStore
from tests.simulation.world.interruptions import Interruptions
from tests.simulation.world.schedule import Life

if TYPE_CHECKING:
    from tests.simulation.promises.promises import Promises

ViewFate: TypeAlias = Literal["lost", "unanswered"]
CommitFate: TypeAlias = ViewFate | Literal["late"]

LOST: Final = "lost"
UNANSWERED: Final = "unanswered"
LATE: Final = "late"
_CUT = "the connection was cut before the answer came"


@dataclass
class StoreFaults:
    """Faults of the place that holds the root, in the order in which they come.

    Args:
        commits: fate of each of the next commits of the store: it is lost on the way, or its answer is lost, or it
            comes after its sender has given it up.
        views: the same for the next commits of views.
        silences: number of the next readings that are not answered.
    """

    commits: deque[CommitFate] = field(default_factory=deque)
    views: deque[ViewFate] = field(default_factory=deque)
    silences: int = 0

    def fall_silent(self, readings: int) -> None:
        """Leaves some further readings without an answer."""
        self.silences += readings

    def end(self) -> None:
        """Drops all faults."""
        self.commits.clear()
        self.views.clear()
        self.silences = 0


class Access:
    """One actor's way to the root.

    Args:
        life: the actor; after its end it can do nothing more.
        send_late: lets an operation reach the store at some time, whether its sender lives or not.
    """

    def __init__(
        self,
        *,
        life: Life,
        interruptions: Interruptions,
        faults: StoreFaults,
        promises: Promises,
        send_late: Callable[[Callable[[], None]], None],
    ) -> None:
        self.life, self.faults, self.promises, self.send_late = life, faults, promises, send_late
        self._interruptions = interruptions

    def before(self, operation: str) -> None:
        """An operation is on its way; others may be faster."""
        self._interruptions.moment(f"before {operation}", self.life, may_arrive_late=True)

    def after(self, operation: str) -> None:
        """An operation is done; its answer is on its way."""
        self._interruptions.moment(f"after {operation}", self.life)

    def read(self) -> None:
        """Something is read.

        Raises:
            StorageUnavailableError: no answer comes.
        """
        self._interruptions.moment("before read", self.life)
        if self.faults.silences:
            self.faults.silences -= 1
            raise StorageUnavailableError("the root: the store answered 503; try again later")


class SimulatedStore(MemoryStateStore):
    """A handle whose commits can be overtaken, lost, or done without an answer."""

    def __init__(
        self, disk: MemoryDisk, clock: Clock, version: int, *, read_only: bool = False, access: Access
    ) -> None:
        super().__init__(disk, clock, version, read_only=read_only)
        self._access = access

    @classmethod
    def of(cls, store: MemoryStateStore, access: Access) -> SimulatedStore:
        """The same handle, by one actor's way."""
        return cls(store._disk, store._clock, store.version, read_only=store._read_only, access=access)

    def reopen(self, version: int | None = None) -> SimulatedStore:
        self._access.read()
        return self.of(super().reopen(version), self._access)

    def commit(self, **epoch: Any) -> EpochRecord:
        record = super().commit(**epoch)
        self._access.promises.on_acknowledged(record)
        return record

    def _swap(self, staged: StagedSwap) -> None:
        access = self._access
        access.promises.kept.on_commit(staged.head.epoch)
        access.before("commit")
        fault = access.faults.commits.popleft() if access.faults.commits else None
        if fault == LOST:
            raise CommitUnknownError("the connection was cut before the answer came")
        if fault == LATE:
            access.send_late(partial(self._arrive, self._version, staged))
        if fault in (LOST, LATE):
            raise CommitUnknownError(_CUT)
        # Set for this one swap: others have swapped since the last.
        self._disk.fault = partial(self._on_swap, is_answered=fault != UNANSWERED)
        super()._swap(staged)
        access.after("commit")

    def _on_swap(self, when: str, *, is_answered: bool) -> None:
        if when == "after":
            self._access.promises.on_version()
            if not is_answered:
                raise CommitUnknownError(_CUT)

    def _arrive(self, expected: int, staged: StagedSwap) -> None:
        """A commit that was sent long ago, and given up, comes to the store."""
        self._disk.fault = partial(self._on_swap, is_answered=True)
        try:
            self._disk.swap(expected, staged.content)
        except CommitRefusedError:
            pass


@dataclass(frozen=True)
class SimulatedRoot(MemoryRoot):
    """A `MemoryRoot` by one actor's way."""

    store_class: ClassVar[type[SimulatedStore]] = SimulatedStore

    access: Access

    def open(self, *, read_only: bool = False) -> SimulatedStore:
        self.access.read()
        return self.store_class.of(super().open(read_only=read_only), self.access)

    def create_or_open(self) -> SimulatedStore:
        self.access.read()
        return self.store_class.of(super().create_or_open(), self.access)

    def stage(self, delta: Delta, epoch: int) -> Delta:
        self.access.before("stage")
        staged = super().stage(delta, epoch)
        self.access.after("stage")
        return staged

    def stage_rows(self, path: str, rows: Any) -> str:
        self.access.before("stage")
        name = super().stage_rows(path, rows)
        self.access.after("stage")
        return name

    def restore(self, view: ViewVersion, term: int) -> ViewVersion:
        self.access.before("restore")
        restored = super().restore(view, term)
        self.access.after("restore")
        return restored

    def tag_committed(self, view: ViewVersion) -> None:
        self.access.before("tag")
        super().tag_committed(view)
        self.access.promises.on_tag(view.path)
        self.access.after("tag")

    def delete_versions(self, path: str, versions: set[int]) -> Vacuumed:
        self.access.before("vacuum")
        gone = super().delete_versions(path, versions)
        self.access.promises.check_retained()
        self.access.after("vacuum")
        return gone

    def delete_dataset(self, path: str) -> Vacuumed:
        self.access.before("vacuum")
        gone = super().delete_dataset(path)
        self.access.promises.check_retained()
        self.access.after("vacuum")
        return gone

    def commit_view(self, path: str, expected_version: int, rows: Any) -> int:
        self.access.before("view")
        fault = self.access.faults.views.popleft() if self.access.faults.views else None
        if fault == LOST:
            raise CommitUnknownError(f"{path}: {_CUT}")
        version = super().commit_view(path, expected_version, rows)
        if fault == UNANSWERED:
            raise CommitUnknownError(f"{path}: {_CUT}")
        self.access.after("view")
        return version
