"""Release of the gate on a root without a run."""

from __future__ import annotations

from state.clock import Clock
from state.epoch import next_epoch
from state.errors import CommandRefusedError
from state.store.store import StateStore
from state.tables.catalog import Catalog, put_expectations
from state.tables.delta import DeltaBuilder
from state.tables.expectations import gate_of, published_after
from state.tables.records import EpochCounts, EpochSeconds

NOTHING_HELD = "no view is held back: there is nothing to release"


def release(store: StateStore, clock: Clock) -> None:
    """Accepts the rows that violate expectations now, in an epoch of its own.

    Args:
        clock: makes the epoch.

    Raises:
        CommandRefusedError: no view is held.
        FencedError, CommitRefusedError, CommitUnknownError: as `StateStore.commit`.
    """
    catalog = Catalog.of(store.scan("catalog"))
    if catalog.gate != "closed":
        raise CommandRefusedError(NOTHING_HELD)
    epoch, last = next_epoch(clock, store.head.epoch, store.head.term), store.head.epoch
    after = [each.released(epoch) for each in catalog.expectations.values()]
    delta = DeltaBuilder()
    for each in after:
        put_expectations(delta, each)
    store.commit(
        epoch=epoch,
        delta=delta.build(),
        views=store.head.views,
        counts=EpochCounts(),
        seconds=EpochSeconds(),
        published=published_after(catalog.gate, gate_of(after), last=last, epoch=epoch),
    )
