"""Changes of views in the catalog, committed by hand: failures, and views that read others."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from state.clock import ManualClock
from state.epoch import epoch_time, next_epoch
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.catalog import Catalog, put_view
from state.tables.delta import DeltaBuilder
from state.tables.records import EpochCounts, EpochSeconds, ViewVersion

OVERFLOW = "[ARITHMETIC_OVERFLOW] long overflow"


def fail_view(
    root: Location, view: str, stands_at: int | None, *, error: str | None = OVERFLOW, begun: str = "", **version: Any
) -> int:
    """An epoch that records a failure of a view, a second after the last one.

    Args:
        root: the root.
        view: the name of the view.
        stands_at: the last epoch whose rows it has; None if it failed in its first epoch, which is then this one.
        error: the reason; None if it is frozen, or built anew.
        begun: the recorded name of its backfill, if there is one.
        version: changed fields of the version of the view, such as `reflects_epoch`.

    Returns:
        The epoch.
    """
    store = LanceStateStore.open(root, ManualClock())
    head = store.head
    clock = ManualClock(epoch_time(head.epoch) + timedelta(seconds=1))
    epoch = next_epoch(clock, head.epoch)
    store.take_over()
    known = Catalog.of(store.scan("catalog")).views[view]
    created, frozen = (known.created_epoch, stands_at) if stands_at is not None else (epoch, 0)
    delta = DeltaBuilder()
    put_view(delta, replace(known, created_epoch=created, frozen_epoch=frozen, error=error))
    views: dict[str, ViewVersion] = {**head.views, view: replace(head.views[view], **version)}
    if begun:
        views[begun] = replace(head.views[view], name=begun, pinned_epoch=epoch)
    store.commit(epoch=epoch, delta=delta.build(), views=views, counts=EpochCounts(), seconds=EpochSeconds())
    return epoch


def read_view(root: Location, view: str, parent: str) -> None:
    """An epoch after which a view reads another one, and no source by itself."""
    store = LanceStateStore.open(root, ManualClock())
    head, views = store.head, Catalog.of(store.scan("catalog")).views
    clock = ManualClock(epoch_time(head.epoch) + timedelta(seconds=1))
    store.take_over()
    delta, known = DeltaBuilder(), views[view]
    put_view(delta, replace(known, visible={**known.visible, parent: ("carrier",)}))
    store.commit(
        epoch=next_epoch(clock, head.epoch),
        delta=delta.build(),
        views=head.views,
        counts=EpochCounts(),
        seconds=EpochSeconds(),
    )
