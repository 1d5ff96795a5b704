"""A root with a run, as its store and its `owner.json` tell it; neither Ray nor Spark is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from random import Random

import lance

from slackwater.status.run_status import EdgeStatus, EpochStatus, RunStatus, SourceStatus, ViewStatus
from state.clock import ManualClock, SystemClock
from state.epoch import next_epoch
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.ownership.owner import Ownership
from state.tables.delta import DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds
from tests.slackwater.reading.written_root import by_carrier

USUAL_S = {"fetch": 0.35, "align": 0.04, "spark": 0.28, "collect": 0.02}
MIB = 2**20


def commit_epochs(root: Location, count: int, random: Random, *, changing: bool = True) -> list[int]:
    """So many epochs one second apart, the last of them now; each changes a view or none.  Returns them."""
    clock = ManualClock(SystemClock().now() - timedelta(seconds=count - 1))
    store = LanceStateStore.open(root, clock)
    store.take_over()
    views, epochs = dict(store.head.views), []
    for _ in range(count):
        files = random.randrange(1, 60)
        if changing:
            rows = by_carrier({"AA": random.randrange(1000), "UA": random.randrange(900), "o'hare|1": 4, None: 4})
            dataset = lance.write_dataset(rows, root.child(views["by_carrier"].path).lance_uri, mode="overwrite")
            views["by_carrier"] = replace(views["by_carrier"], version=dataset.version)
        record = store.commit(
            epoch=next_epoch(clock, store.head.epoch),
            delta=DeltaBuilder().build(),
            views=views,
            counts=EpochCounts(files, files * 500, files * 20_000, files + 1),
            seconds=EpochSeconds(**{name: mean * random.uniform(0.5, 1.6) for name, mean in USUAL_S.items()}),
        )
        epochs.append(record.epoch)
        clock.advance(1)
    return epochs


def busy_status(epoch: int) -> RunStatus:
    """A run in which Spark is the slowest, and the mergers wait for it."""
    flights = SourceStatus(
        waiting=3_172,
        reading=16,
        done=18_204,
        quarantined=1,
        rows=9_102_000,
        rows_bad=1,
        bytes=410 * MIB,
        requests=18_300,
        listed=21_393,
        listings=41,
        listed_at=SystemClock().now(),
        files_per_s=182.4,
        rows_per_s=91_210.0,
        bytes_per_s=4.1 * MIB,
        requests_per_s=183.0,
        freshness_s=0.84,
    )
    return RunStatus(
        phase="running",
        epoch=epoch,
        epochs=80,
        sources={"flights": flights},
        views={"by_carrier": ViewStatus("aggregate", 4), "late": ViewStatus("append", 3)},
        spark="ready",
        fetchers=2,
        in_flight=(EpochStatus(epoch + (1 << 16), "spark", 0.31), EpochStatus(epoch + (2 << 16), "align", 0.02)),
        edges=(
            EdgeStatus("list", "dispatcher", "files", 210.0, 0),
            EdgeStatus("dispatcher", "fetch", "files", 190.0, 3_188, 8_192),
            EdgeStatus("fetch", "merger", "bytes", 4.1 * MIB, 96 * MIB, 256 * MIB),
            EdgeStatus("merger", "materializer", "epochs", 1.4, 4, 4),
            EdgeStatus("materializer", "views", "rows", 91_210.0, 0),
        ),
        seconds=57.0,
    )


@contextmanager
def running(root: Location, status: RunStatus, last_error: str = "") -> Iterator[Ownership]:
    """Holds the root as a run does, and tells this status."""
    ownership = Ownership(root, SystemClock(), run_id="a run of a test", pipeline="flights")
    ownership.acquire(takeover=True)
    ownership.notify(status.to_json)
    ownership.update(phase=status.phase, term=2, fetchers=status.fetchers, last_error=last_error)
    ownership.renew()
    try:
        yield ownership
    finally:
        ownership.release()
