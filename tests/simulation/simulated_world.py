"""The world of a simulation around one root: its disk, its processes, and all that it shares with its branches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from actors.files import PathKey
from actors.formats.options import Parquet
from actors.settings import BarrierSettings, FetchSettings, RecoverySettings
from actors.sources.discovery import Listing, Notifications
from actors.sources.event_time import EventTime
from actors.sources.pipeline_definition import PipelineDefinition
from actors.sources.source import FilePolicy, SourceDefinition
from slackwater.plugins.after_commit.actions import Move
from state.clock import Clock
from state.location import Location
from state.ownership.command import Command
from state.tables.records import Head
from state.tables.stored_rows import inner_name, stored_rows_name
from state.upkeep.branches import branch_location
from state.upkeep.retention import RetentionSettings
from tests.simulation.branching.branches import Branches
from tests.simulation.hosting.process import SimulatedProcess
from tests.simulation.memory.memory_disk import MemoryDisk
from tests.simulation.model_views.model_view import (
    ClosedWindows,
    CopiedGroups,
    EveryRow,
    GroupedRows,
    JoinOfSources,
    ModelView,
    TemporalFilterRows,
    definitions_of,
    internal_views_of,
    is_grouped,
)
from tests.simulation.promises.backlog import Backlog
from tests.simulation.promises.outside.exit_checker import ExitChecker
from tests.simulation.promises.outside.kept_file_checker import KeptFileChecker
from tests.simulation.promises.outside.place_checker import PlaceChecker
from tests.simulation.promises.outside.publication_checker import PublicationChecker
from tests.simulation.promises.owner_checker import OwnerChecker
from tests.simulation.promises.promises import Promises
from tests.simulation.stories.scenario import Scenario
from tests.simulation.world.command_inbox import SimulatedInbox
from tests.simulation.world.event_queue import POLLERS, VISIBILITY_S, queue_url
from tests.simulation.world.file_rows import ROW_BYTES, SCHEMA
from tests.simulation.world.handled_record import HandledRows
from tests.simulation.world.links import Links
from tests.simulation.world.ownerships import Ownerships, RunOwnership
from tests.simulation.world.pins import Pins
from tests.simulation.world.published_tables import PublishedTables
from tests.simulation.world.schedule import Life
from tests.simulation.world.simulated_root import Access, SimulatedRoot, StoreFaults
from tests.simulation.world.surroundings import Surroundings

if TYPE_CHECKING:
    from tests.simulation.twin.twin_root import TwinDisk

_DEATHS_WITHOUT_ROWS = 2
_NEVER_STAGED_BYTES = 4 << 20
_NEAR_US = (-300, 500)
_PLACE = Location("s3://simulated/root")


class UnrelatedDeaths:
    """Deaths without a file as their reason, in a row without a committed row."""

    def __init__(self) -> None:
        self._rows = self._deaths = 0

    def is_harmless(self, rows: int) -> bool:
        """True if one more, at a number of committed rows, proves no file guilty; it counts."""
        if rows > self._rows:
            self._rows, self._deaths = rows, 0
        self._deaths += 1
        return self._deaths <= _DEATHS_WITHOUT_ROWS


class World:
    """One root, its processes and its users, and all that is around it.

    Args:
        scenario: all settings.
        around: the bucket, the clock and the schedule, which the root shares with its branches.
        branch: the name of a branch; empty for the root of the story.
        disk: of a branch.
    """

    def __init__(
        self, scenario: Scenario, around: Surroundings, branch: str = "", disk: MemoryDisk | None = None
    ) -> None:
        self._scenario, self._around, self._branch = scenario, around, branch
        self.place = branch_location(_PLACE, branch) if branch else _PLACE
        self.random, self.clock, self.schedule = around.random, around.clock, around.schedule
        self.interruptions, self.threads = around.interruptions, around.threads
        self.bucket, self.queues = around.bucket, around.queues
        self.twin_disk = _twin_disk(self.clock) if scenario.on_lance and not branch else None
        self.disk: MemoryDisk = self.twin_disk or disk or MemoryDisk()
        self.ownerships: Ownerships = Ownerships(
            self.place,
            self.clock,
            around.beside,
            self.interruptions,
            around.turn,
            around.background,
            # Few renewals where no story hangs on them: each costs as much as twenty events.
            OwnerChecker(self.clock) if scenario.is_contended else OwnerChecker(self.clock, 60.0, 240.0),
            is_contended=scenario.is_contended,
        )
        self.faults = StoreFaults()
        self.deaths = UnrelatedDeaths()
        self.definition = _definition(scenario, self.place)
        self.recovery = RecoverySettings()
        self.must_settle, self.has_gate = scenario.must_settle, scenario.gate
        self.patience_s = scenario.patience_s
        self.after, self.handled = scenario.after, HandledRows()
        self.tables = PublishedTables(() if branch else scenario.publishes, self.clock)
        self.links: Links = Links(
            self.place,
            scenario.sources,
            self.tables.by_view,
            self.clock,
            moves=isinstance(scenario.after, Move),
            changes_files=scenario.after is not None,
        )
        self.place_checker: PlaceChecker = PlaceChecker(self.links)
        self.staged_from_bytes = 0 if scenario.stages_deltas else _NEVER_STAGED_BYTES
        self.views: tuple[ModelView, ...] = (
            EveryRow("rows", frozenset(scenario.sources)),
            GroupedRows("groups", frozenset(scenario.sources[:1])),
        )
        self.stored_rows: dict[str, ModelView] = {
            source: EveryRow(stored_rows_name(source), frozenset({source}))
            for source in (scenario.sources if scenario.stores_rows else ())
        }
        if scenario.full_view:
            self.views = (*self.views, EveryRow("full", frozenset(scenario.sources), is_full=True))
        if scenario.derived_view:
            self.views = (*self.views, CopiedGroups("copy", frozenset(scenario.sources[:1]), ("groups",)))
        if scenario.nested_view:
            self.views = (*self.views, _nested("nested", scenario.sources[0]))
        left, right = scenario.sources[0], scenario.sources[-1]
        if scenario.join is not None:
            self.views = (*self.views, JoinOfSources("pairs", scenario.join, left, right))
        if scenario.expiring is not None:
            self.views = (*self.views, JoinOfSources("near", scenario.expiring, left, right, within=_NEAR_US))
        if scenario.time_filter is not None:
            self.views = (*self.views, TemporalFilterRows("timed", frozenset({left}), scenario.time_filter))
        if scenario.closing:
            self.views = (*self.views, ClosedWindows("closed", frozenset({left})))
        self.backfill = EveryRow("late", frozenset(scenario.sources)) if scenario.backfill else None
        late = () if self.backfill is None else (self.backfill,)
        # Views that the user may add while a run runs.
        self.all_views: dict[str, ModelView] = {
            view.name: view
            for view in (
                *self.views,
                *late,
                EveryRow("extra", frozenset(scenario.sources)),
                _nested("more", scenario.sources[-1]),
                JoinOfSources("joined", "left", left, right),
            )
        }
        self._added: dict[str, ModelView] = {view.name: view for view in self.views}
        self._ended: set[str] = set()
        published = PublicationChecker(self.disk.datasets, self.tables.by_view)
        self.promises = Promises(
            self.disk,
            self.bucket,
            [
                *self.all_views.values(),
                *(hidden for view in self.all_views.values() for hidden in internal_views_of(view)),
                *self.stored_rows.values(),
                *(
                    each
                    for view in self.all_views.values()
                    for other in definitions_of(view)[1:]
                    for each in (other, *internal_views_of(other))
                ),
            ],
            scenario.keep_epochs,
            scenario.on_change,
            scenario.order,
            kept=KeptFileChecker(
                self.disk,
                self.bucket,
                self.clock,
                None if scenario.after is None or branch else scenario.after.keep_s,
                self.stored_rows,
                self.tables,
                published,
            ),
            published=published,
            exits=ExitChecker(published, self.tables.by_view),
            pauses_removals=scenario.pauses_removals,
            lateness_us=scenario.lateness_us,
            idle_us=_idle_us(scenario),
            time_us=lambda: int(self.clock.now().timestamp() * 1e6),
        )
        self.inbox = SimulatedInbox(self.promises)
        self.pins: Pins = Pins(self, self.place)
        self.promises.pinned = self.pins.kept_at
        self.branches: Branches = Branches(self)
        self.promises.check_branches = self.branches.check
        self.promises.kept.branches = self.branches.disks
        self.backlog = Backlog(self.disk, self.bucket, removes=scenario.on_change == "replace")
        self.processes: list[SimulatedProcess] = []
        self._starts = 0

    @property
    def process(self) -> SimulatedProcess | None:
        """The process that became the owner of the root last."""
        return self.processes[-1] if self.processes else None

    def start_process(self, *, takeover: bool = True) -> None:
        """Starts a process while the others run, unless places overlap.

        From the first process on, the queues get the changes of the bucket.

        Args:
            takeover: whether it takes the root from a living process.
        """
        if not self.links.may_start():
            return
        self.bucket.queues = self.queues
        self._starts += 1
        for model in self.branches.take_merged():
            self.declare(model)
        name = f"run-{self._starts}" if not self._branch else f"{self._branch}-run-{self._starts}"
        self.ownerships.claim(name, self.head, self._begin, takeover=takeover)

    def bucket_time(self) -> datetime:
        """The time of a new object."""
        return self.clock.true_time if self._scenario.bucket_clock else self.clock.now()

    def head(self) -> Head:
        """The head of the store."""
        return self.disk.versions[self.disk.latest].head if self.disk.latest else Head(0, 0)

    def _begin(self, ownership: RunOwnership, replaces: Head) -> None:
        process = SimulatedProcess(self, ownership, replaces)
        self.processes.append(process)
        # Another one may have become the owner before this one heard that it is.
        self.processes.sort(key=lambda each: self.ownerships.checker.owners.index(each.name))
        if self.inbox.unanswered:
            process.poll_commands()

    @property
    def has_timers(self) -> bool:
        """Whether rows of a view come and leave as time passes."""
        return any(isinstance(view, TemporalFilterRows) for view in self._added.values())

    def views_to_declare(self) -> tuple[ModelView, ...]:
        """The views that the user declares with the next process."""
        late = [self.backfill] if self.backfill is not None and self.processes else []
        views = {**self._added, **{view.name: view for view in late}}
        return tuple(view for view in views.values() if view.name not in self._ended)

    def declare(self, model: ModelView) -> None:
        """The user declares a view from the next process on, as another one of its name if there is one."""
        self.all_views[model.name] = self._added[model.name] = model
        self._ended.discard(model.name)

    def change_view(self, name: str, change: Callable[[ModelView], ModelView]) -> None:
        """The user changes the definition of a view, and of those that read it, for later processes."""
        declared = {view.name: view for view in self.views_to_declare()}
        changed = name in declared and is_grouped(declared[name])
        for view in declared.values():
            if changed and name in (view.name, *view.parents):
                self.declare(change(view))

    def at_branch(self, name: str, disk: MemoryDisk) -> World:
        """The world of a branch of this root.

        Args:
            name: of the branch.
            disk: has the first version of its store, and its datasets.
        """
        branch = World(self._scenario, self._around, name, disk)
        branch.definition = replace(branch.definition, sources=self.definition.sources)
        branch.all_views = {**self.all_views}
        branch._added = {view.name: view for view in self.views_to_declare()}
        branch._ended = {*self._ended}
        branch.promises.begin(self.promises)
        return branch

    def add_view(self, name: str) -> None:
        """The user declares a view, in the process that runs and in later ones."""
        self._added[name] = self.all_views[name]
        self._ended.discard(name)
        if self.process is not None and self.process.alive:
            self.process.add_view(self.all_views[name])

    def drop_view(self, name: str) -> None:
        """The user ends a view and those that read it, in the process that runs, and leaves them out of later ones."""
        readers = [each.name for each in self.views if name in each.parents and each.name not in self._ended]
        for each in (*readers, name):
            self._ended.add(each)
            if self.process is not None and self.process.alive:
                self.process.drop_view(each)

    def ask(self, command: Command) -> str | None:
        """A user sends a command to the process that runs.  Returns its id; None if none runs."""
        process = self.process
        if process is None or not process.alive:
            return None
        name = self.inbox.ask(command, process.name)
        for each in self.processes:
            if each.alive:
                each.poll_commands()
        return name

    def accept_changes(self) -> None:
        """The user declares that changed files end no later process."""
        self.promises.on_changes_accepted()
        accepted = tuple(replace(source, policy=FilePolicy()) for source in self.definition.sources)
        self.definition = replace(self.definition, sources=accepted)

    def thaw(self) -> None:
        """Every frozen process continues."""
        for each in self.processes:
            each.frozen = False
        self.schedule.thaw()
        self.ownerships.thaw()

    def access(self, life: Life) -> Access:
        """An actor's way to the root."""
        return Access(
            life=life,
            interruptions=self.interruptions,
            faults=self.faults,
            promises=self.promises,
            send_late=lambda arrival: self.schedule.soon(self._around.network, arrival),
        )

    def check_end(self) -> None:
        """The checks at the end of a story."""
        self.promises.check_retained()
        self.promises.kept.check_archive()
        self.branches.check_end()
        if self.twin_disk is not None:
            self.twin_disk.check_all()

    def close(self) -> None:
        """Deletes what is on a real disk."""
        if self.twin_disk is not None:
            self.twin_disk.twin.close()

    def root(self, life: Life) -> SimulatedRoot:
        """The root by an actor's way."""
        if self.twin_disk is None:
            return SimulatedRoot(self.disk, self.clock, self.access(life))
        from tests.simulation.twin.twin_root import TwinRoot

        return TwinRoot(self.twin_disk, self.clock, self.access(life))

    def path_of(self, path: str) -> PathKey:
        """`source/path` as source and path; a path without a source is of the first source."""
        source, slash, name = path.rpartition("/")
        return (source, name) if slash else (self.definition.sources[0].name, path)


def _twin_disk(clock: Clock) -> TwinDisk:
    # Here and not above: Lance takes a second to import, and few stories need it.
    from tests.simulation.twin.lance_twin import LanceTwin
    from tests.simulation.twin.twin_root import TwinDisk

    return TwinDisk(twin=LanceTwin(clock))


def _nested(name: str, source: str) -> ModelView:
    """`SELECT * FROM (SELECT g, ... FROM source GROUP BY g)`, as a view over an internal view."""
    return CopiedGroups(name, frozenset({source}), (inner_name(name, 1),))


def _definition(scenario: Scenario, place: Location) -> PipelineDefinition:
    return PipelineDefinition(
        name="simulated",
        root=place,
        sources=tuple(
            SourceDefinition(
                name=name,
                location=_PLACE,
                format=Parquet(),
                schema=SCHEMA if scenario.schema_known else None,
                discovery=_discovery(scenario, name),
                policy=_policy(scenario),
                schema_evolution="add_columns" if scenario.adds_columns else "lenient",
                order=scenario.order,
                materialize=scenario.stores_rows,
                event_time=_event_time(scenario),
            )
            for name in scenario.sources
        ),
        views={"rows": frozenset(scenario.sources), "groups": frozenset(scenario.sources[:1])},
        ansi=True,
        # Simulated timers come early, while everything that an epoch waits for is still under way.
        barrier=BarrierSettings(max_epoch_bytes=ROW_BYTES * scenario.epoch_rows, stalled_epoch_s=float("inf")),
        fetch=FetchSettings(
            num_fetchers=scenario.fetchers,
            concurrency=scenario.concurrency,
            max_bytes_in_flight=ROW_BYTES * scenario.credit_rows,
            piece_bytes=ROW_BYTES * scenario.piece_rows,
            max_files_waiting=scenario.files_waiting,
        ),
        retention=_retention(scenario),
    )


def _event_time(scenario: Scenario) -> EventTime | None:
    if scenario.lateness_us is None:
        return None
    idle = None if scenario.idle_s is None else timedelta(seconds=scenario.idle_s)
    return EventTime("x", lateness=timedelta(microseconds=scenario.lateness_us), idle=idle)


def _idle_us(scenario: Scenario) -> int | None:
    return None if scenario.idle_s is None else int(scenario.idle_s * 1e6)


def _policy(scenario: Scenario) -> FilePolicy:
    if scenario.on_change != "replace":
        return FilePolicy(on_change=scenario.on_change)
    return FilePolicy(
        on_change=scenario.on_change,
        max_removed_share=scenario.max_removed_share,
        max_removed_files=scenario.max_removed_files,
    )


def _retention(scenario: Scenario) -> RetentionSettings:
    if scenario.keep_epochs is None:
        return RetentionSettings(keep_s=10**9)
    return RetentionSettings(keep_s=0, keep_epochs=scenario.keep_epochs)


def _discovery(scenario: Scenario, source: str) -> Listing | Notifications:
    if not scenario.notifications:
        return Listing(interval_s=scenario.listing_s, name_actors=scenario.name_actors)
    return Notifications(
        queue_url=queue_url(source),
        relist_interval_s=scenario.listing_s,
        visibility_s=VISIBILITY_S,
        pollers=POLLERS,
        name_actors=scenario.name_actors,
    )
