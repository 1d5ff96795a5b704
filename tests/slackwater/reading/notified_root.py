"""A root written by hand, with the traces of a queue of events."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from actors.listing.epoch_writer import EpochWriter
from actors.names.seen_index import SeenIndex
from actors.notifications.event_feed import PoisonMessage
from actors.notifications.message_tracker import QueueMessage
from actors.objects.listing_page import SkippedName
from state.clock import ManualClock
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.ownership.owner import Ownership
from state.tables.delta import Delta, DeltaBuilder
from state.tables.discovery_progress import DiscoveryProgress, QueueProgress
from state.tables.keys import encode_key
from state.tables.records import EpochCounts, EpochSeconds
from tests.slackwater.reading.written_root import START

QUEUE = "https://sqs.eu-central-1.amazonaws.com/111122223333/raw-events"
OTHER_BUCKET = "it is about the bucket 'other', and the source reads 'raw'"
DAY_S = 86_400.0


def committed(root: Location, delta: Delta) -> int:
    """One more epoch."""
    store = LanceStateStore.open(root, ManualClock())
    epoch = store.head.epoch + 1
    counts, seconds = EpochCounts(), EpochSeconds()
    store.commit(epoch=epoch, delta=delta, views=store.head.views, counts=counts, seconds=seconds)
    return epoch


def poisoned(root: Location, *messages: tuple[str, str], source: str = "flights", reason: str = OTHER_BUCKET) -> int:
    """An epoch in which these messages (id, body) are found to be none."""
    delta = DeltaBuilder()
    for message_id, body in messages:
        PoisonMessage(QueueMessage(message_id, "receipt", body, 0.0), QUEUE, reason).quarantine(delta, source)
    return committed(root, delta.build())


def skipped(root: Location, url: str, path: str, reason: str) -> int:
    """An epoch in which a listing of the source at this URL skips a name."""
    writer = EpochWriter("flights", url, SeenIndex(), None)
    writer.quarantine_name(SkippedName(path, reason))
    return committed(root, writer.seal(None))


def handed_on(root: Location, **fields: Any) -> int:
    """An epoch in which the source hands something on, and notes how its files are found."""
    known: dict[str, Any] = {
        "listed_at": START,
        "requests_last_hour": 3,
        "period_s": DAY_S,
        "found": 2,
        "queue": QUEUE,
        "messages": 40,
        "redelivered": 5,
        "poison": 7,
        "tracked": 12,
        "oldest_sent_at": START - timedelta(seconds=30),
    }
    delta = DeltaBuilder()
    delta.put("list_state", encode_key("flights"), 0, source="flights", **{**known, **fields})
    return committed(root, delta.build())


def said(in_flight: int = 3, **changes: Any) -> DiscoveryProgress:
    """What a run says of the source: it was listed two hours later, and its queue has gone on."""
    sent_at = START + timedelta(hours=2) if in_flight else None
    queue = QueueProgress(QUEUE, in_flight, sent_at, received=90, redelivered=6)
    known: dict[str, Any] = {"listed_at": START + timedelta(hours=2), "found": 0, "period_s": DAY_S, "queue": queue}
    return DiscoveryProgress(**{**known, **changes})


class RunningRun:
    """`owner.json` of a run that says how the files of the source are found.  A context manager."""

    def __init__(self, root: Location, progress: DiscoveryProgress) -> None:
        self.ownership = Ownership(root, ManualClock(START), run_id="r", pipeline="flights", interval_s=3600)
        self._progress = progress

    def __enter__(self) -> Ownership:
        self.ownership.acquire()
        self.ownership.update(phase="running", sources={"flights": self._progress})
        self.ownership.renew()
        return self.ownership

    def __exit__(self, *_: object) -> None:
        self.ownership.release()
