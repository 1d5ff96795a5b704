"""The schedule of the barriers: the time of each, and its load.  No barrier while there is nothing to commit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from actors.coordination.autoscaler import Workload
from actors.coordination.company import Company
from actors.files import FileKey, Vanished
from actors.protocol.barrier import Barrier, BarrierKind, FlowCommand, Mutation, Stop
from actors.protocol.reports import CollectReport, FetchProgress, ListProgress, Progress
from actors.settings import BarrierSettings
from actors.sources.pipeline_definition import MATERIALIZER
from state.epoch import EpochPair
from state.errors import ProtocolError

_PATIENCE = 0.5
"""The share of the work on an epoch for which a barrier waits for files that are on their way."""
_BEFORE_END = 0.75
"""The share of the work on an epoch after which the next barrier comes: it reaches Spark when Spark is free."""


class BarrierScheduler:
    """Decides on the next barrier: its time and its load.

    Files that are read, or expected, belong in the same epoch as the files that were listed with them, because every
    epoch has its cost.  The delay for that is at most `interval_s`, and at most half of the time that Spark worked on
    the last epochs (or `idle_interval_s`, if that is longer).  While Spark works on an epoch, an earlier barrier would
    only wait.

    The `activity` of an actor counts everything it ever did.  Activity after the last barrier is something to commit.
    Fetch actors that have left are kept as one, `retired`, as their counts stay in the totals.  Sources that are
    `closed` get no list budget.

    Args:
        max_files_waiting: the most files that wait at the fetch actors; the list actors send no more.
        lists: name of each list actor → its source.
        fetchers: names of the fetch actors at the start.
    """

    def __init__(
        self,
        *,
        settings: BarrierSettings,
        max_files_waiting: int,
        committed: int,
        lists: Mapping[str, str],
        fetchers: Iterable[str],
    ) -> None:
        self._settings, self._max_files_waiting = settings, max_files_waiting
        self._epoch = committed
        self._lists = {actor: ListProgress(actor, source) for actor, source in lists.items()}
        self._fetchers = {actor: FetchProgress(actor) for actor in fetchers}
        self._retired = FetchProgress("retired")
        self._covered = dict.fromkeys([*self._lists, *self._fetchers], 0)
        self._reports = dict.fromkeys(self._covered, 0)
        self._vanished: list[Vanished] = []
        self._mutations: deque[Mutation] = deque()
        self._in_flight: deque[int] = deque()
        self._company = Company(self._lists.values())
        self._last_injection_s = float("-inf")
        # The time of the first news that no barrier covers; the last epoch that Spark has done, and the time of that.
        self._news_s: float | None = None
        self._materialized, self._work_s = committed, 0.0
        self._declared = False
        self.stopping = False
        self.closed: frozenset[str] = frozenset()

    @property
    def lists(self) -> tuple[ListProgress, ...]:
        return tuple(self._lists.values())

    @property
    def fetchers(self) -> tuple[FetchProgress, ...]:
        return (*self._fetchers.values(), self._retired)

    @property
    def epoch(self) -> int:
        """The open epoch: the next barrier ends it."""
        return self._epoch

    @property
    def last_in_flight(self) -> int:
        """The last epoch whose barrier is sent and that is not over; 0 without one."""
        return self._in_flight[-1] if self._in_flight else 0

    def on_progress(self, progress: Progress, number: int, now_s: float) -> None:
        """An actor reports its progress.  Its reports are numbered from 1, and may come out of order."""
        if number <= self._reports.get(progress.actor, number):
            return
        self._reports[progress.actor] = number
        match progress:
            case ListProgress():
                self._lists[progress.actor] = progress
                self._company.on_progress(progress, now_s)
            case FetchProgress():
                self._fetchers[progress.actor] = progress
        if progress.activity > self._covered.get(progress.actor, 0):
            self._note_news(now_s)

    def on_collect(self, report: CollectReport) -> None:
        """An actor has sealed an epoch, which covers its activity until then."""
        # Reports come in any order: an earlier report may arrive after the last report of an actor that left.
        self._vanished += report.vanished
        if report.actor == MATERIALIZER:
            # The duration of a long epoch counts for some epochs, because a short epoch may have had few files.
            self._materialized, self._work_s = report.epoch, max(report.work_s, self._work_s / 2)
        if report.actor in self._covered:
            self._covered[report.actor] = max(self._covered[report.actor], report.activity)
            if report.last_progress is not None:
                self._retire(report.last_progress)

    def _retire(self, last: FetchProgress) -> None:
        """A fetch actor has left.  Later reports of it bring nothing new."""
        for known in (self._fetchers, self._covered, self._reports):
            del known[last.actor]
        self._retired = self._retired.with_counts_of(last)

    def add_fetchers(self, names: Iterable[str]) -> None:
        """Fetch actors begin with the last barrier."""
        for name in names:
            self._fetchers[name] = FetchProgress(name)
            self._covered[name] = self._reports[name] = 0

    def on_declared(self) -> None:
        """The catalog has changed, or a view is new: that is something to commit, once."""
        self._declared = True

    def on_epoch_over(self, epoch: int) -> None:
        """The oldest epoch in flight was committed, or had nothing to commit.

        Raises:
            ProtocolError: an older epoch is still in flight.
        """
        oldest = self._in_flight.popleft()
        if oldest != epoch:
            raise ProtocolError(f"epoch {epoch} is over before epoch {oldest}")

    def request(self, mutation: Mutation) -> None:
        """Puts a mutation on the next barrier."""
        self._mutations.append(mutation)

    @property
    def has_requests(self) -> bool:
        """True if a mutation waits for a barrier."""
        return bool(self._mutations)

    @property
    def is_quiet(self) -> bool:
        """True if everything that was listed has been read and emitted, without the files of closed sources."""
        sent = sum(each.sent for each in self._lists.values())
        received = sum(each.received for each in self.fetchers)
        backlog = any(each.backlog_without(self.closed) for each in self.fetchers)
        return sent == received and not self._in_transit and not backlog

    @property
    def _in_transit(self) -> int:
        """Files that one fetch actor has handed over, and that their new owner has not reported."""
        return -sum(each.moved for each in self.fetchers)

    @property
    def is_dirty(self) -> bool:
        """True if there is something that no barrier covers yet."""
        news = self._declared or bool(self._vanished)
        return news or any(each.activity > self._covered[each.actor] for each in self._latest())

    def workload(self, num_fetchers: int, *, is_held_back: bool) -> Workload:
        """The work of the fetch actors.

        Args:
            num_fetchers: the number of fetch actors.
            is_held_back: whether something else than the fetch actors is known to limit them.
        """
        sources = [source for each in self.fetchers for source in each.sources.values()]
        return Workload(
            num_fetchers=num_fetchers,
            waiting=sum(each.waiting for each in sources) + sum(each.held for each in self._lists.values()),
            finished=sum(each.done + each.quarantined + each.vanished for each in sources),
            is_held_back=is_held_back or any(each.is_held_back for each in self.fetchers),
        )

    def next_barrier(
        self,
        now_s: float,
        epoch: int,
        admitted: frozenset[FileKey] | None = None,
        watermarks: Mapping[str, int] = MappingProxyType({}),
    ) -> Barrier | None:
        """The barrier to inject now, if it is time.

        Args:
            now_s: time of the monotonic clock.
            epoch: the epoch that the barrier begins.
            admitted: see `Barrier`.
            watermarks: see `Barrier`.
        """
        if self.stopping or self.wait_s(now_s) > 0:
            return None
        initial = self._last_injection_s == float("-inf")
        due = self._mutations[0] if self._mutations else None
        mutation = None if initial and not isinstance(due, FlowCommand) else due
        if mutation is not None:
            self._mutations.popleft()
        self.stopping = isinstance(mutation, Stop)
        pair = EpochPair(prev=self._epoch, curr=epoch)
        self._epoch, self._last_injection_s, self._declared = epoch, now_s, self._declared and initial
        self._news_s = None
        self._company.on_barrier(now_s)
        self._in_flight.append(pair.prev)
        for each in self._latest():
            self._covered[each.actor] = max(self._covered[each.actor], each.activity)
        kind = BarrierKind.INITIAL if initial else BarrierKind.CHECKPOINT
        vanished, self._vanished = tuple(self._vanished), []
        return Barrier(pair, kind, mutation, self._list_budget(), self._backlog(), vanished, admitted, watermarks)

    def wait_s(self, now_s: float) -> float:
        """Seconds until the next barrier; infinity if something has to happen first.

        Args:
            now_s: time of the monotonic clock.
        """
        if self._last_injection_s == float("-inf"):
            return 0.0
        if len(self._in_flight) >= self._settings.max_in_flight:
            return float("inf")
        if self._mutations or self._is_full():
            return 0.0
        held = [each.source for each in self._lists.values() if each.held]
        held_back = bool(held) and any(map(self._list_budget().get, held))
        if not self.is_dirty and not held_back:
            self._news_s = None
            return float("inf")
        news_s = self._note_news(now_s)
        if held_back:
            due_s = self._last_injection_s + self._settings.idle_interval_s
        else:
            due_s = self._due_s(news_s + self._clamped(_PATIENCE * self._work_s))
        return max(0.0, due_s - now_s)

    def _note_news(self, now_s: float) -> float:
        """There is something that no barrier covers; returns the time of the first news."""
        if self._news_s is None:
            self._news_s = now_s
            self._company.begin(now_s)
        return self._news_s

    def _due_s(self, patient_s: float) -> float:
        """The time of the next barrier.

        Args:
            patient_s: the latest time of it for the sake of files that are on their way.
        """
        if not self.is_quiet or len(self._in_flight) > 1:
            return max(self._last_injection_s + self._settings.interval_s, patient_s)
        is_working = self.last_in_flight > self._materialized
        interval_s = self._clamped(_BEFORE_END * self._work_s) if is_working else self._settings.idle_interval_s
        due_s = self._last_injection_s + interval_s
        return max(due_s, patient_s) if self._company.is_expected(patient_s, self.closed) else due_s

    def _clamped(self, seconds: float) -> float:
        """A time between the two intervals of the settings."""
        return min(self._settings.interval_s, max(self._settings.idle_interval_s, seconds))

    def _latest(self) -> tuple[Progress, ...]:
        return (*self._lists.values(), *self._fetchers.values())

    def _is_full(self) -> bool:
        """True if the open epoch has its limit of bytes emitted or of files ended.

        The latest report may be older than the last barrier; one barrier too early costs a small epoch, no more.
        """
        fresh = [each for each in self._fetchers.values() if each.activity > self._covered[each.actor]]
        unsealed_bytes = sum(each.unsealed_bytes for each in fresh)
        return unsealed_bytes >= self._settings.max_epoch_bytes or any(each.is_full for each in fresh)

    def _list_budget(self) -> dict[str, int]:
        # Rounded up: a share of nothing while there is room would never become more.
        share = -(-max(0, self._max_files_waiting - self._backlog()) // max(1, len(self._lists)))
        return {each.source: 0 if each.source in self.closed else share for each in self._lists.values()}

    def _backlog(self) -> int:
        # The files of closed sources wait for a file that is still to be sent.
        return sum(each.backlog_without(self.closed) for each in self.fetchers) + self._in_transit
