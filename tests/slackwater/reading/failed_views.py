"""Changes of views in the catalog, committed by hand: failures, and views that read others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from state.clock import ManualClock
from state.epoch import epoch_time, next_epoch
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.tables.catalog import Catalog, put_view
from state.tables.delta import DeltaBuilder
from state.tables.records import CatalogView, EpochCounts, EpochSeconds, ViewVersion

OVERFLOW = "[ARITHMETIC_OVERFLOW] long overflow"


def fail_view(
    root: Location, view: str, stale_epoch: int | None, *, error: str | None = OVERFLOW, begun: str = "", **version: Any
) -> int:
    """An epoch that records a failure of a view, a second after the last one.

    Args:
        root: the root.
        view: the name of the view.
        stale_epoch: the last epoch whose rows it has; None if it failed in its first epoch, which is then this one.
        error: the reason; None if it is stopped, or rebuilt.
        begun: the recorded name of its backfill, if there is one.
        version: changed fields of the version of the view, such as `reflects_epoch`.

    Returns:
        The epoch.
    """

    def failed(known: CatalogView, epoch: int) -> CatalogView:
        created, stopped = (known.created_epoch, stale_epoch) if stale_epoch is not None else (epoch, 0)
        return replace(known, created_epoch=created, stopped_epoch=stopped, error=error)

    def recorded(views: Mapping[str, ViewVersion], epoch: int) -> Mapping[str, ViewVersion]:
        backfill = {begun: replace(views[view], name=begun, pinned_epoch=epoch)} if begun else {}
        return {**views, view: replace(views[view], **version), **backfill}

    return _commit(root, view, failed, recorded)


def read_view(root: Location, view: str, parent: str) -> int:
    """An epoch after which a view reads another one, and no source by itself.  Returns the epoch."""

    def reading(known: CatalogView, epoch: int) -> CatalogView:
        return replace(known, visible={**known.visible, parent: ("carrier",)})

    return _commit(root, view, reading, lambda views, _: views)


def _commit(
    root: Location,
    view: str,
    changed: Callable[[CatalogView, int], CatalogView],
    recorded: Callable[[Mapping[str, ViewVersion], int], Mapping[str, ViewVersion]],
) -> int:
    """An epoch with another entry of a view in the catalog, a second after the last one."""
    store = LanceStateStore.open(root, ManualClock())
    head = store.head
    clock = ManualClock(epoch_time(head.epoch) + timedelta(seconds=1))
    epoch = next_epoch(clock, head.epoch)
    store.take_over()
    delta = DeltaBuilder()
    put_view(delta, changed(Catalog.of(store.scan("catalog")).views[view], epoch))
    views = recorded(head.views, epoch)
    store.commit(epoch=epoch, delta=delta.build(), views=views, counts=EpochCounts(), seconds=EpochSeconds())
    return epoch
