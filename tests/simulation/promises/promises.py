"""Checks of every version of a simulated store, and of every report of its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from actors.files import FileKey, FileVersion, PathKey, ReadingOrder
from actors.protocol.run_state import RunState
from actors.sources.source import OnChange
from slackwater.commands.operations import AllowRemovalsCommand, ReleaseCommand
from slackwater.status.run_status import RunReport
from state.errors import BadInputError
from state.ownership.command import Answer, Command
from state.tables.expectations import Gate
from state.tables.records import EpochRecord, ViewVersion
from tests.simulation.memory.file_tables import FileTables
from tests.simulation.memory.memory_disk import MemoryDisk, MemoryVersion
from tests.simulation.model_views.model_view import ModelView
from tests.simulation.promises.change_checker import ChangeChecker
from tests.simulation.promises.closing_checker import ClosingChecker, LateRowChecker
from tests.simulation.promises.command_checker import CommandChecker
from tests.simulation.promises.epoch_checker import EpochChecker
from tests.simulation.promises.expiry_checker import ExpiryChecker
from tests.simulation.promises.file_checker import FileChecker
from tests.simulation.promises.gate_checker import GateChecker
from tests.simulation.promises.outside.delivery_checker import DeliveryChecker
from tests.simulation.promises.outside.exit_checker import ExitChecker
from tests.simulation.promises.outside.kept_file_checker import KeptFileChecker
from tests.simulation.promises.outside.publication_checker import PublicationChecker
from tests.simulation.promises.quarantine_checker import QuarantineChecker, check_lacked_columns
from tests.simulation.promises.reading_order_checker import ReadingOrderChecker
from tests.simulation.promises.removal_checker import RemovalChecker
from tests.simulation.promises.run_checker import RunChecker
from tests.simulation.promises.transition_checker import TransitionChecker
from tests.simulation.promises.view_checker import ViewChecker
from tests.simulation.promises.watermark_checker import WatermarkChecker
from tests.simulation.world.bucket import Bucket
from tests.simulation.world.published_tables import ModelTable

if TYPE_CHECKING:
    from slackwater.plugins.publish.publication_loop import PublicationReport


class Promises:
    """Hands each version of the store, and each report of a run, to its checkers.

    Every method raises `PromiseBroken` if a promise does not hold.

    Attributes:
        rows: number of committed rows.
        pinned: number of a version → the epochs that its owner must keep for readers.
        check_branches: checks that the root has all that its branches refer to.
        kept, published, exits: see below.

    Args:
        disk: the disk of the store and of the views.
        bucket: the files and their contents.
        views: the models of the views; the first of them reads every source.
        keep_epochs: the number of last epochs that must stay readable; None for all.
        on_change: the `on_change` of every source.
        order: the `order` of every source; None without one.
        kept: checks the removal of files after the commit.
        published: checks the tables that follow views.
        exits: checks the exit codes of runs whose views are published.
        pauses_removals: whether every removal pauses until the user allows it.
        lateness_us: the lateness of the event times of every source; None without event times.
        idle_us: their idle time; None for sources that are never idle.
        time_us: the time, in microseconds since 1970.
    """

    def __init__(
        self,
        disk: MemoryDisk,
        bucket: Bucket,
        views: Sequence[ModelView],
        keep_epochs: int | None = None,
        on_change: OnChange = "ignore",
        order: ReadingOrder | None = None,
        *,
        kept: KeptFileChecker,
        published: PublicationChecker,
        exits: ExitChecker,
        pauses_removals: bool = False,
        lateness_us: int | None = None,
        idle_us: int | None = None,
        time_us: Callable[[], int] = lambda: 0,
    ) -> None:
        self._disk = disk
        self._epochs = EpochChecker(keep_epochs)
        self._quarantine = QuarantineChecker(bucket.contents)
        self._commands = CommandChecker()
        self._transitions = TransitionChecker(on_change, self._commands)
        self._removals = RemovalChecker(bucket, needs_approval=pauses_removals)
        self._changes = ChangeChecker(bucket, fails=on_change == "fail")
        self._files = FileChecker(bucket, self._commands)
        self._deliveries = DeliveryChecker(bucket)
        self._order = ReadingOrderChecker(order)
        self._watermarks = WatermarkChecker(bucket, lateness_us, idle_us, time_us)
        self._views = ViewChecker(disk.datasets, bucket.contents, views)
        self._late = LateRowChecker(bucket, lateness_us, idle_us)
        self._closing = ClosingChecker(disk.datasets, self._late, views)
        self._expiry = ExpiryChecker(disk.datasets, self._late, views)
        self._gate = GateChecker(disk.datasets)
        self.kept, self.published, self.exits = kept, published, exits
        self._runs = RunChecker(bucket, on_change)
        self._checked = 0
        self.pinned: Callable[[int], frozenset[int]] = lambda number: frozenset()
        self.check_branches: Callable[[], None] = lambda: None
        self.rows = 0

    def begin(self, above: Promises) -> None:
        """Begins with the first version of the store of a branch: all that it has is from the root above it."""
        self._checked = self._disk.latest
        version = self._disk.versions[self._checked]
        tables, head = FileTables.of(version), version.head
        self._epochs.begin(version)
        self._quarantine.begin(above._quarantine)
        self._commands.begin(tables, head, above._commands)
        self._transitions.begin(tables)
        self._removals.begin(tables, above._removals)
        self._changes.is_accepted = above._changes.is_accepted
        self._files.begin(tables)
        self._watermarks.begin(above._watermarks)
        self._views.begin(above._views, head.epoch)
        self._gate.begin(tables, head, above._gate)
        self._check(self._checked, version)

    @property
    def epochs(self) -> int:
        """Number of committed epochs."""
        return self._epochs.count

    @property
    def late_rows(self) -> tuple[tuple[FileKey, int], ...]:
        """The file and the position of each row that came too late for a view."""
        return self._closing.late_rows + self._expiry.late_rows

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The states of the gate, one after the other."""
        return tuple(self._gate.gates)

    def on_version(self) -> None:
        """Checks every version of the store that was committed since the last call."""
        while self._checked < self._disk.latest:
            self._checked += 1
            self._check(self._checked, self._disk.versions[self._checked])

    def on_acknowledged(self, record: EpochRecord) -> None:
        """Checks the answer to a commit."""
        self._epochs.check_acknowledged(record)

    def on_state(self, run: str, state: RunState) -> None:
        """Checks the reported state of a run."""
        self._order.on_state(state)
        self._runs.check_state(run, state, is_committed=self._epochs.is_committed(state.epoch))

    def on_stopped(self, run: str, state: RunState, views: Mapping[str, ViewVersion]) -> None:
        """Checks the last reports of a run that has stopped gracefully.

        Args:
            run: the name of the run.
            state: its last state.
            views: the views of its materializer's last report that have changed since its recovery.
        """
        head = self._disk.versions[self._disk.latest].head
        if head.run == run:
            self._runs.check_views(run, views, head.views)
        records = self._epochs.committed_by(run)
        if records is not None:
            self._runs.check_totals(run, state, records)

    def on_mark(self) -> None:
        """A run gets a new mark for `on_caught_up`."""
        self.on_version()
        self._commands.on_mark()

    def on_caught_up(
        self,
        objects: Mapping[PathKey, FileVersion],
        views: Iterable[str],
        dropped: Iterable[str] = (),
        *,
        expecting: Iterable[str] = (),
        is_settled: bool = False,
    ) -> None:
        """Checks a run that reports that it has caught up.

        Args:
            objects: the objects that have been in the bucket since the mark.
            views: the names of the declared views.
            dropped: the names of the views that were dropped.
            expecting: the names of the declared views that expect something of their rows.
            is_settled: True if the bucket has not changed for long, so that no object counts as vanished by mistake.
        """
        latest = self._disk.versions[self._disk.latest].head.views
        tables = FileTables.latest(self._disk)
        self._views.check_declared(views, dropped, latest)
        self._gate.check_expected(expecting)
        files = [(*path, each.version) for path, each in objects.items()]
        stopped = tables.stopped_views()
        maintained = [view for name, view in latest.items() if name not in stopped]
        self._views.check_caught_up(maintained, files)
        self._runs.check_caught_up(objects, tables, self._commands.retried_since_mark, is_settled=is_settled)

    def is_current(self, time_us: int) -> bool:
        """Whether the views with filters by the time have the rows of a time, in microseconds since 1970."""
        latest, stopped = (
            self._disk.versions[self._disk.latest].head.views,
            FileTables.latest(self._disk).stopped_views(),
        )
        return self._views.is_current([view for name, view in latest.items() if name not in stopped], time_us)

    def is_published(self, table: ModelTable) -> bool:
        """Whether a table has the rows of the last epoch that nothing holds back, or the view is not maintained."""
        return self.published.is_current(table, self._disk.versions[self._disk.latest].head, self._gate.gates[-1])

    def on_exit(self, report: RunReport, last: Mapping[str, PublicationReport]) -> None:
        """Checks the exit code of a run that ends without an error; see `ExitChecker.check`."""
        self.exits.check(report, last, self._disk.versions[self._disk.latest].head, self._gate.gates[-1])

    @property
    def has_open_windows(self) -> bool:
        """Whether a window is open of a view that shows each when it closes."""
        latest, stopped = (
            self._disk.versions[self._disk.latest].head.views,
            FileTables.latest(self._disk).stopped_views(),
        )
        return self._closing.has_open([view for name, view in latest.items() if name not in stopped])

    def on_message_deleted(self, queue: str, message_id: str, change: tuple[PathKey, int] | None) -> None:
        """Checks that the store knows the change behind a deleted message.

        Args:
            queue: the URL of the queue.
            message_id: the id of the message.
            change: the path and the number of the change; None for a message that is not an event.
        """
        if f"{queue}#{message_id}" not in self._quarantine.messages:  # else a user may have cleared it
            self._runs.check_message_deleted(queue, message_id, change, FileTables.latest(self._disk))

    def on_asked(self, name: str, command: Command) -> None:
        """A user sends a command."""
        if isinstance(command, AllowRemovalsCommand):
            self.on_removals_allowed()
        if isinstance(command, ReleaseCommand):
            self._gate.on_asked()
        self._commands.on_asked(name, command)

    def on_answered(self, name: str, answer: Answer, *, is_of_its_run: bool, has_stopped: bool) -> None:
        """Checks the answer to a command.

        Args:
            name: the id of the command.
            answer: the answer.
            is_of_its_run: whether the run answers that was asked.
            has_stopped: whether that run has stopped gracefully.
        """
        self.on_version()
        self._commands.on_answered(name, answer, is_of_its_run=is_of_its_run, has_stopped=has_stopped)

    def on_resumed(self) -> None:
        """The process itself lets the flow continue."""
        self._commands.on_resumed()

    def on_bad_input(self, error: BadInputError) -> None:
        """Checks the error of a run that has ended because of a file."""
        self._changes.check_error(error)

    def on_changes_accepted(self) -> None:
        """The user accepts that files change."""
        self._changes.is_accepted = True

    def on_removals_allowed(self) -> None:
        """The user lets files go."""
        self._removals.is_allowed = True

    def on_tag(self, path: str) -> None:
        """Checks the tag `committed` of a dataset, after a move."""
        self._views.check_tag(path)

    def check_retained(self) -> None:
        """Checks that every retained epoch can be read and is unchanged: after a vacuum, and at the end."""
        self.on_version()
        self._views.check_unchanged(self._epochs.check_retained(self._disk.versions))
        self.check_branches()

    def _check(self, number: int, version: MemoryVersion) -> None:
        record = self._epochs.check(number, version, self.pinned(number))
        tables = FileTables.of(version)
        self._quarantine.check(tables)
        check_lacked_columns(tables)
        self._commands.check(tables, version.head, record)
        self._transitions.check(tables)
        self._removals.check(tables)
        self._changes.check(tables)
        new_rows = 0 if record is None else record.counts.rows
        ingested = self._files.check(tables, new_rows)
        self.rows += new_rows
        self._order.check(tables)
        self.kept.check(tables)
        self._deliveries.check(tables)
        self._watermarks.check(tables, version.head.epoch)
        views = version.head.views.values()
        self._views.check(
            version.head.epoch, views, ingested, self._tables_at, tables.stopped_views(), tables.identities()
        )
        self._gate.check(tables, version.head, record)
        self.published.on_version(version.head, self._gate.gates[-1])
        late = self._late.take(tables)
        self._closing.check(tables, views, ingested, late)
        self._expiry.check(tables, version.head.views, ingested, late)
        self._late.on_checked(tables)

    def _tables_at(self, epoch: int) -> FileTables:
        """The rows about files at an epoch that a backfill reads."""
        return FileTables.of(self._disk.versions[self._epochs.state_version_at(epoch)])
