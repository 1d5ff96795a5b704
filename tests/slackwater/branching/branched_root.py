"""Roots with branches, and further epochs of both, committed by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import slackwater as sw
from slackwater.commands.maintenance import run_as_owner, vacuum
from slackwater.reading.store import Store
from state.clock import SystemClock
from state.epoch import next_epoch
from state.lance.lance_access import open_dataset
from state.lance.lance_store import LanceStateStore
from state.lance.view_dataset import create, restore
from state.location import Location
from state.tables.catalog import put_view
from state.tables.delta import DeltaBuilder
from state.tables.records import CatalogView, EpochCounts, EpochRecord, EpochSeconds, ViewVersion
from state.upkeep.retention import RetentionSettings

LAST = RetentionSettings(keep_s=0, keep_epochs=1)


def opened(root: Location) -> Store:
    return sw.open(root.url, root.storage_options)


def branched(root: Location, name: str = "trial", epoch: int | None = None) -> Location:
    """Makes a branch, and returns its place."""
    made = sw.branch(root.url, name, epoch=epoch, storage_options=root.storage_options)
    return Location(made.root, root.storage_options)


def vacuum_now(root: Location) -> None:
    """Lets all epochs but the last and the kept ones expire, and deletes their files."""
    run_as_owner(root.url, root.storage_options, lambda store, place: vacuum(store, place, LAST))


def contents(root: Location, epoch: int | None = None) -> dict[str, Any]:
    """All that a reader sees of an epoch: the rows of every view, the files, the bad records."""
    snapshot = opened(root).snapshot(epoch)
    views = {name: sorted(map(repr, snapshot.view(name).to_arrow().to_pylist())) for name in snapshot.views}
    return {**views, "files": snapshot.files().to_pylist(), "bad": snapshot.quarantine().to_pylist()}


class Writer:
    """The owner of a root, which commits epochs by hand."""

    def __init__(self, root: Location) -> None:
        self.root = root
        self.store = LanceStateStore.open(root, SystemClock())
        head = self.store.take_over()
        self.views: dict[str, ViewVersion] = {name: restore(root, view, head.term) for name, view in head.views.items()}
        self.delta = DeltaBuilder()
        self.epoch = next_epoch(SystemClock(), head.epoch)

    def commit(self) -> EpochRecord:
        record = self.store.commit(
            epoch=self.epoch,
            delta=self.delta.build(),
            views=self.views,
            counts=EpochCounts(),
            seconds=EpochSeconds(),
        )
        self.delta = DeltaBuilder()
        self.epoch = next_epoch(SystemClock(), self.epoch)
        return record

    def append(self, name: str, rows: pa.Table) -> None:
        view = self.views[name]
        dataset = open_dataset(self.root.child(view.path))
        dataset.insert(rows)
        self.views[name] = view.at({view.path: int(dataset.version)})

    def delete(self, name: str, condition: str) -> None:
        view = self.views[name]
        dataset = open_dataset(self.root.child(view.path))
        dataset.delete(condition)
        self.views[name] = view.at({view.path: int(dataset.version)})

    def add(self, name: str, rows: pa.Table, **definition: Any) -> None:
        """A view with these rows; its internal views have names with dots."""
        path = f"views/{name}-{self.epoch}.lance"
        self.views[name] = ViewVersion(name, path, int(create(self.root.child(path), rows).version))
        known: dict[str, Any] = {"view_class": "append", "definition": "SELECT ...", "identity": f"plan of {name}"}
        known |= {"sources": ("flights",), "key": (), "created_epoch": self.epoch}
        put_view(self.delta, CatalogView(name, **{**known, **definition}))
