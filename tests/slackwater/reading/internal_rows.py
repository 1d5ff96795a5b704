"""An internal view in a root that is written by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from state.clock import ManualClock
from state.epoch import epoch_time, next_epoch
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.catalog import put_view
from state.tables.delta import DeltaBuilder
from state.tables.records import CatalogView, EpochCounts, EpochSeconds


def store_internal_rows(root: Location) -> str:
    """An epoch with the internal view `by_carrier.1`: with the rows of `late`.  Returns its dataset path."""
    store = LanceStateStore.open(root, ManualClock())
    store.take_over()
    clock = ManualClock(epoch_time(store.head.epoch) + timedelta(seconds=1))
    epoch = next_epoch(clock, store.head.epoch)
    delta = DeltaBuilder()
    put_view(delta, CatalogView("by_carrier.1", "append", "SELECT 1", "plan", ("flights",), (), epoch))
    internal = replace(store.head.views["late"], name="by_carrier.1")
    views = {**store.head.views, internal.name: internal}
    store.commit(epoch=epoch, delta=delta.build(), views=views, counts=EpochCounts(), seconds=EpochSeconds())
    return internal.path
