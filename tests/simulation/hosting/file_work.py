"""The work on the files of a process after the commit: production's `FileWork`, over the simulated bucket."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from actors.file_errors import ObjectChanged, ObjectVanished
from actors.files import FileVersion
from slackwater.plugins.after_commit.actions import Move
from slackwater.plugins.after_commit.declaration import declared
from slackwater.plugins.after_commit.due_files import DueFile
from slackwater.plugins.after_commit.file_access import FileAccess, FileResult
from slackwater.plugins.after_commit.file_work import FileWork
from slackwater.status.run_status import RunStatus
from state.errors import SlackwaterError, StorageUnavailableError, StoreNotFoundError, UsageError
from state.location import Location
from state.tables.records import ViewVersion
from state.tables.stored_rows import version_number
from tests.simulation.hosting.simulated_runtime import SimulatedRuntime, judge
from tests.simulation.memory.file_tables import FileTables
from tests.simulation.world.bucket import is_version
from tests.simulation.world.handled_record import SimulatedRecord
from tests.simulation.world.interruptions import Killed
from tests.simulation.world.schedule import Life
from tests.simulation.world.simulated_root import SimulatedRoot, SimulatedStore

if TYPE_CHECKING:
    from tests.simulation.hosting.process import SimulatedProcess

_LOOK_EVERY_S = 10.0


class SimulatedFileWork(Life):
    """Looks at the files of a process after each epoch, and each ten seconds.

    Args:
        process: the process.
        status: returns the status of its run.
        require_owner: see `FileWork`.
    """

    def __init__(
        self, process: SimulatedProcess, status: Callable[[], RunStatus], require_owner: Callable[[], None]
    ) -> None:
        super().__init__("files", process)
        world = self._world = process.world
        self._status, self._paused, self._looked = status, frozenset[str](), FileTables.of(None)
        self._is_looking = self._is_due = self._is_over = False
        self._on_end: Callable[[], None] | None = None
        self._root = SimulatedRoot(world.disk, world.clock, world.access(self))
        self._changes = SimulatedChanges(process, self)
        assert world.after is not None
        after = [declared(source, world.after) for source in process.definition.sources]
        access = FileAccess(
            open=self._open,
            record=SimulatedRecord(world.handled, self._root.access),
            changes=lambda _: self._changes,
            together=self._one_after_the_other,
            stored_rows=self._stored_rows,
            log=SimulatedRuntime(self, world).log,
        )
        needs = process.declared.needs
        places = {each.source.name: world.links.watch_of_files(each.source.name) for each in after}
        self._work = FileWork(world.place, after, require_owner, world.clock, needs, access, places)
        self._look_later()

    def look_soon(self) -> None:
        """Looks at some moment: there may be a new epoch."""
        if not (self._is_due or self._is_over):
            self._is_due = True
            self._world.schedule.soon(self, self._look)

    def finish(self, on_end: Callable[[], None]) -> None:
        """Does what is due at the end of the run, after the look that is under way.

        Args:
            on_end: called after it.
        """
        self._on_end = on_end
        if not self._is_looking:
            self._world.schedule.soon(self, self._finish)

    def _look(self) -> None:
        self._is_due = False
        if not self._is_looking and self._on_end is None:
            self._do(lambda: self._work.look(self._told()))

    def _finish(self) -> None:
        assert self._on_end is not None
        on_end, self._on_end = self._on_end, None
        if not self._is_over:
            self._do(lambda: self._work.end(self._told(), None))
        self._is_over = True
        on_end()

    def _do(self, work: Callable[[], object]) -> None:
        """An error ends the work, and not the run; one that shows a bug ends the simulation."""
        self._is_looking = True
        try:
            work()
        except Killed:
            return
        except SlackwaterError as error:
            judge(error, self.name)
            self._is_over = True
        self._is_looking = False
        if self._on_end is not None:
            self._world.schedule.soon(self, self._finish)

    def _look_later(self) -> None:
        if not self._is_over and self._on_end is None:
            self.look_soon()
            due_s = self._world.clock.monotonic() + _LOOK_EVERY_S
            self._world.schedule.at(due_s, self, self._look_later)

    def _told(self) -> RunStatus:
        status, self._looked = self._status(), FileTables.latest(self._world.disk)
        self._paused = frozenset(name for name, each in status.sources.items() if each.paused is not None)
        return status

    def _open(self, location: Location) -> SimulatedStore:
        world, disk = self._world, self._world.disk
        if location != world.place:
            branch = world.branches.disk_at(location)
            if branch is None:
                raise StoreNotFoundError(f"{location} has no store")
            disk = branch
        return SimulatedRoot(disk, world.clock, self._root.access).open(read_only=True)

    def _stored_rows(self, version: ViewVersion, paths: Sequence[str]) -> dict[tuple[str, int], int]:
        counts = Counter[tuple[str, int]]()
        for span in self._root.view_rows(version.path, version.version):
            _, path, number = span.file
            if path in paths:
                counts[path, version_number(number)] += span.end - span.start
        return counts

    def _one_after_the_other(
        self, handle: Callable[[DueFile], FileResult | None], files: Sequence[DueFile], /
    ) -> Iterable[FileResult | None]:
        self._changes.begin(files[0].file.source, self._paused, self._looked)
        return [handle(each) for each in files]


class SimulatedChanges:
    """See `ObjectChanges`: deletions and moves are conditional on the version, and each request can die, be late, or
    stay without an answer.

    Args:
        process: of the work.
        life: the work.
    """

    def __init__(self, process: SimulatedProcess, life: Life) -> None:
        self._process, self._world, self._life = process, process.world, life

    def begin(self, source: str, paused: frozenset[str], looked: FileTables) -> None:
        """Some files of a source are next.

        Args:
            source: the source.
            paused: the paused sources at the beginning of the look.
            looked: the rows of the store at that time.
        """
        process = self._process
        self._world.promises.kept.on_begin(process.name, source, paused, looked, has_lost=process.has_lost_root)

    def delete(self, file: FileVersion) -> None:
        self._require(file)
        self._remove(file)

    def copy(self, file: FileVersion, target: Location) -> None:
        bucket = self._world.bucket
        self._require(file)
        self._world.place_checker.on_file(file.source, file.path, is_moved=True)
        self._moment("before copy", may_arrive_late=True)
        content = bucket.read(file)
        if not bucket.archive(file, content):
            raise UsageError(f"{target}/{file.path} has other content than {file.path}, which stays")
        self._moment("after copy")
        bucket.moved[file.source, file.path] = file.version, content

    def tag(self, file: FileVersion, tags: Mapping[str, str]) -> None:
        raise NotImplementedError("objects of the simulated bucket have no tags")

    def _require(self, file: FileVersion) -> None:
        found = self._world.bucket.find(file.source, file.path)
        if found is None:
            raise ObjectVanished(f"{file.path} is no longer there")
        if not is_version(found, file):
            raise ObjectChanged(f"{file.path} has changed since it was listed")

    def _remove(self, file: FileVersion) -> None:
        world, process = self._world, self._process
        # What holds when the request is sent counts: nobody can call it back.
        world.ownerships.checker.on_removal(process.name, file.path)
        world.place_checker.on_file(file.source, file.path, is_moved=isinstance(world.after, Move))
        world.promises.kept.on_sent(
            file,
            process.declared_models,
            world.promises.gates[-1],
            knows_root=not process.has_lost_root,
            ahead_at_start_s=process.ahead_at_start_s,
        )
        self._moment("before delete", may_arrive_late=True)
        self._require(file)
        world.promises.kept.on_removed(file)
        world.bucket.remove(file)
        if world.bucket.is_faulty("cut"):
            raise StorageUnavailableError(f"{file.path}: the connection was cut before the answer came")
        self._moment("after delete")

    def _moment(self, name: str, *, may_arrive_late: bool = False) -> None:
        self._world.interruptions.moment(name, self._life, may_arrive_late=may_arrive_late)
