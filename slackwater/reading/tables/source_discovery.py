"""How the files of a source are found, as far as whoever reads a root can know."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from state.ownership.owner import Owner
from state.store.store import StateStore
from state.tables.discovery_progress import DiscoveryProgress, QueueProgress
from state.tables.keys import encode_key
from state.upkeep.quarantine import poison_messages


@dataclass(frozen=True)
class SourceDiscovery:
    """What the run says of a source, or, where it has said nothing, the last epoch that handed a file on.

    Args:
        progress: how its files are found.
        poison: messages in the quarantine that were not cleared.
        is_running: whether a pipeline runs.
    """

    progress: DiscoveryProgress
    poison: int
    is_running: bool

    @classmethod
    def read(cls, source: str, store: StateStore, owner: Owner | None) -> SourceDiscovery:
        """Puts together what the owner of the root and the store say.

        Args:
            source: which.
            store: a handle on the store.
            owner: who runs on the root, or ran last.
        """
        is_running = owner is not None and not owner.released and not owner.is_dead()
        row = store.get("list_state", encode_key(source))
        kept = DiscoveryProgress() if row is None else DiscoveryProgress.of_row(row)
        said = None if owner is None else owner.sources.get(source)
        progress = kept if said is None or _is_later(kept.listed_at, said.listed_at) else said
        messages = poison_messages(store, source).num_rows
        return cls(progress if is_running else progress.at_rest(), messages, is_running)

    def text(self, now: datetime) -> str:
        """For people, without a stop: when the source was listed last and will be next, and what its queue holds.

        Args:
            now: the time of the wall clock.
        """
        listed_at, period_s, queue = self.progress.listed_at, self.progress.period_s, self.progress.queue
        parts = ["nothing was listed yet" if listed_at is None else f"the last listing ended at {_at(listed_at)}"]
        if queue is not None and listed_at is not None and period_s:
            parts.append(f"the next one {self._when(listed_at + timedelta(seconds=period_s), now)}")
        if not self.is_running:
            parts.append("no pipeline runs on this root now")
        last = parts.pop()
        text = f"{', '.join(parts)}, and {last}" if parts else last
        return text if queue is None else f"{text}; {self._messages(queue, now)}"

    def _when(self, due: datetime, now: datetime) -> str:
        if due > now:
            return f"begins at {_at(due)} at the latest" if self.is_running else f"is due at {_at(due)}"
        return "is due now" if self.is_running else "begins with the next run"

    def _messages(self, queue: QueueProgress, now: datetime) -> str:
        are = "1 message of its queue is" if queue.in_flight == 1 else f"{queue.in_flight:,} messages of its queue are"
        parts = [f"{are} in flight"]
        if queue.oldest_sent_at is not None:
            parts.append(f"the oldest was sent {seconds_since(queue.oldest_sent_at, now):,.0f} s ago")
        if queue.redelivered:
            parts.append(f"{queue.redelivered:,} came again")
        if self.poison:
            parts.append(f"{self.poison:,} {'is' if self.poison == 1 else 'are'} in quarantine as poison")
        return ", ".join(parts)


def seconds_since(time: datetime, now: datetime) -> float:
    """How old something is; of two clocks one may be late."""
    return max(0.0, (now - time).total_seconds())


def _is_later(time: datetime | None, other: datetime | None) -> bool:
    return time is not None and (other is None or time > other)


def _at(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"
