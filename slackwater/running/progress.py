"""The progress of a run: the counts of the ledger and of what the present attempt adds, for each source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from actors.protocol.counters import ListingCounts, MessageCounts, SourceProgress
from actors.protocol.reports import ListProgress, MessageProgress
from actors.protocol.run_state import Recovered, RunState
from actors.telemetry.counted import counters_of, values_of
from slackwater.status.run_status import MessageStatus, SourceStatus
from state.clock import Clock
from state.epoch import epoch_time
from state.tables.discovery_progress import DiscoveryProgress, QueueProgress

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DiscoveryTotals:
    """Sums the messages of event queues over all attempts.

    Messages of a failed attempt are received again, and count again.

    Args:
        queues: source → URL of its event queue, if it has one.
    """

    def __init__(self, queues: Mapping[str, str]) -> None:
        self._queues = dict(queues)
        self._before: dict[str, ListProgress] = {}

    def begin(self, last: RunState) -> None:
        """An attempt begins; `last` is the last state of the attempt before it."""
        self._before |= {lister.source: self.of(lister) for lister in last.lists}

    def of(self, lister: ListProgress) -> ListProgress:
        """The progress of a list actor, with the messages of all attempts and the last listing of any attempt."""
        before = self._before.get(lister.source)
        if before is None:
            return lister
        listed = lister if _is_later(lister.listed_at, before.listed_at) else before
        messages = _sum(before.messages, lister.messages)
        # A new attempt needs two listings to find the missing files again.
        removals = lister.paused_removals if lister.listings > 1 else before.paused_removals
        paused = lister.paused or (before.paused if not lister.listings else None)
        return replace(
            lister,
            messages=messages,
            listed_at=listed.listed_at,
            found=listed.found,
            paused_removals=removals,
            paused=paused,
        )

    def progress(self, state: RunState) -> dict[str, DiscoveryProgress]:
        """Source → progress of its discovery, in a state of the present attempt."""
        # A list actor without a report has no period.
        return {each.source: self._progress(self.of(each)) for each in state.lists if each.period_s}

    def queue(self, source: str) -> str | None:
        """The URL of the queue of a source; None without a queue."""
        return self._queues.get(source)

    def _progress(self, lister: ListProgress) -> DiscoveryProgress:
        queue, messages = None, lister.messages
        if messages is not None:
            queue = QueueProgress(
                url=self.queue(lister.source),
                in_flight=messages.tracked,
                oldest_sent_at=_time(messages.oldest_sent_s),
                received=messages.received,
                redelivered=messages.redelivered,
            )
        return DiscoveryProgress(
            lister.listed_at, lister.found, lister.period_s, queue, lister.paused_removals, lister.paused
        )


def _sum(before: MessageProgress | None, now: MessageProgress | None) -> MessageProgress | None:
    if before is None:
        return now
    now = now or MessageProgress()
    return replace(now, **now.plus(before))


def _is_later(time: datetime | None, other: datetime | None) -> bool:
    return other is None or (time is not None and time >= other)


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


# The ledger does not have them: the run adds up those of its attempts.
_OF_RUN = tuple(
    name for name, each in counters_of(SourceProgress).items() if each.kind == "counter" and not each.in_ledger
)


class RunProgress:
    """Sums the counts of the ledger and of the present attempt.

    A failed attempt loses the counts that it had not committed: the next one begins with the ledger.  Counts that the
    ledger does not have, such as requests, are those of all attempts of this run.

    Args:
        sources: the names of all sources.
        clock: gives the age of an epoch.
        queues: source → URL of its event queue, if it has one.
    """

    def __init__(self, sources: Iterable[str], clock: Clock, queues: Mapping[str, str]) -> None:
        self._sources, self._clock = tuple(sources), clock
        self._discovery = DiscoveryTotals(queues)
        self._at_start: Mapping[str, SourceProgress] | None = None
        self._of_run: dict[str, SourceProgress] = {}
        self._before_attempt: dict[str, SourceProgress] = {}

    def begin(self, recovered: Recovered, last: RunState) -> None:
        """An attempt begins; `last` is the last state of the attempt before it."""
        for source, counts in _sums(last).items():
            added = SourceProgress(**{name: getattr(counts, name) for name in _OF_RUN})
            self._of_run[source] = self._of_run.get(source, SourceProgress()).plus(added)
        self._discovery.begin(last)
        self._before_attempt = {
            source: recovered.finished.get(source, SourceProgress()).plus(self._of_run.get(source, SourceProgress()))
            for source in {*self._sources, *recovered.finished, *self._of_run}
        }
        if self._at_start is None:
            self._at_start = recovered.finished

    def counts(self, state: RunState) -> dict[str, SourceProgress]:
        """The counts of every source, as of the state of the attempt that runs: `sources` without the rest."""
        counts = {name: self._before_attempt.get(name, SourceProgress()) for name in self._sources}
        for source, added in _sums(state).items():
            before = self._before_attempt.get(source)
            counts[source] = added if before is None else before.plus(added)
        return counts

    def sources(self, state: RunState) -> dict[str, SourceStatus]:
        """Every source, as of the state of the attempt that runs."""
        counts = self.counts(state)
        listed = {lister.source for lister in state.lists}
        statuses = {
            name: SourceStatus(**values_of(SourceProgress, counts[name]), before=self._before(name))
            for name in self._sources
            if name not in listed
        }
        for lister in state.lists:
            unfinished, found = state.unfinished.get(lister.source), self._discovery.of(lister)
            statuses[lister.source] = SourceStatus(
                **values_of(ListingCounts, found),
                requests_per_hour=sum(lister.spent),
                listing_period_s=lister.period_s,
                oldest_unfinished_s=0.0 if unfinished is None else self._seconds_since(unfinished.listed_epoch),
                oldest_unfinished_epochs=0 if unfinished is None else unfinished.epochs,
                watermark=(watermark := _time_of(state.watermarks.get(lister.source))),
                watermark_lag_s=None if watermark is None else (self._clock.now() - watermark).total_seconds(),
                messages=self._messages(found),
                filled_columns=state.filled.get(lister.source, ()),
                before=self._before(lister.source),
                **values_of(SourceProgress, counts[lister.source]),
            )
        return statuses

    def discovery(self, state: RunState) -> dict[str, DiscoveryProgress]:
        """The discovery of files, for each source whose list actor has reported."""
        return self._discovery.progress(state)

    def _messages(self, lister: ListProgress) -> MessageStatus | None:
        messages, queue = lister.messages, self._discovery.queue(lister.source)
        if messages is None or queue is None:
            return None
        oldest_s = messages.oldest_sent_s
        return MessageStatus(
            queue=queue,
            in_flight=messages.tracked,
            oldest_s=0.0 if oldest_s is None else max(0.0, self._clock.now().timestamp() - oldest_s),
            **values_of(MessageCounts, messages),
        )

    def _seconds_since(self, epoch: int) -> float:
        return max(0.0, (self._clock.now() - epoch_time(epoch)).total_seconds())

    def _before(self, source: str) -> SourceProgress:
        return (self._at_start or {}).get(source, SourceProgress())


def _time_of(micros: int | None) -> datetime | None:
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)


def _sums(state: RunState) -> dict[str, SourceProgress]:
    """Source → the counts of its list actor and of all fetch actors together."""
    sums = {}
    for lister in state.lists:
        counts = SourceProgress(waiting=lister.held + lister.unsettled, requests=lister.requests)
        for fetcher in state.fetchers:
            if lister.source in fetcher.sources:
                counts = counts.plus(fetcher.sources[lister.source])
        sums[lister.source] = counts
    return sums
