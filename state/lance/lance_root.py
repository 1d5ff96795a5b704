"""A root on a disk or in an object store, with its store and its views in Lance."""

from __future__ import annotations

from dataclasses import dataclass

import obstore
from lance.fragment import write_fragments
from obstore.exceptions import BaseError

from state.clock import Clock
from state.lance import view_dataset
from state.lance.dataset_files import DatasetFiles
from state.lance.fragment_stager import staged_json
from state.lance.lance_access import open_dataset
from state.lance.lance_store import LanceStateStore, dataset_location
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.removal.datasets import UnnamedVersions, delete_listed, delete_versions
from state.removal.evidence import UnnamedDataset
from state.tables.delta import Delta, StagedRows
from state.tables.records import ViewVersion
from state.tables.tables import state_rows
from state.upkeep.vacuum import Vacuumed


@dataclass(frozen=True)
class LanceRoot:
    """`<root>/state.lance` and the datasets of the views; it can be pickled."""

    location: Location
    clock: Clock

    def open(self, *, read_only: bool = False) -> LanceStateStore:
        return LanceStateStore.open(self.location, self.clock, read_only=read_only)

    def create_or_open(self) -> LanceStateStore:
        return LanceStateStore.create_or_open(self.location, self.clock)

    def stage(self, delta: Delta, epoch: int) -> Delta:
        dataset = open_dataset(dataset_location(self.location))
        rows = state_rows(delta.tables.items(), epoch)
        try:
            fragments = write_fragments(rows, dataset, mode="append")
        except (OSError, ValueError, RuntimeError) as error:
            raise storage_error(error, self.location) from None
        DatasetFiles(dataset_location(self.location)).sync_fragments(fragments)  # the commit finds them synced
        staged = [StagedRows(epoch, each.num_rows, staged_json(each, self.clock)) for each in fragments]
        return Delta(staged=(*delta.staged, *staged))

    def restore(self, view: ViewVersion, term: int) -> ViewVersion:
        return view_dataset.restore(self.location, view, term)

    def datasets(self) -> list[str]:
        try:
            client = object_client(self.location)
            listed = [obstore.list_with_delimiter(client, place) for place in ("views", "view_state")]
        except (BaseError, OSError) as error:
            raise storage_error(error, self.location) from None
        return [path for each in listed for path in each["common_prefixes"]]

    def versions(self, path: str) -> set[int]:
        location = self.location.child(path)
        try:
            return {int(each["version"]) for each in open_dataset(location).versions()}
        except (OSError, ValueError, RuntimeError) as error:
            raise storage_error(error, location) from None

    def delete_versions(self, path: str, versions: set[int]) -> Vacuumed:
        location = self.location.child(path)
        dataset = open_dataset(location)
        try:
            gone = delete_versions(dataset, UnnamedVersions(self.location, path, frozenset(versions), dataset.version))
        except (OSError, ValueError, RuntimeError) as error:
            raise storage_error(error, location) from None
        return Vacuumed(versions=gone.objects, bytes=gone.bytes)

    def delete_dataset(self, path: str) -> Vacuumed:
        evidence = UnnamedDataset(self.location, path)
        try:
            gone = delete_listed(evidence)
        except (BaseError, OSError) as error:
            raise storage_error(error, evidence.place) from None
        # Some stores list a prefix for a while after the deletion of its last object.
        return Vacuumed(
            datasets=1 if gone.objects else 0, bytes=gone.bytes, left=tuple(f"{path}/{name}" for name in gone.left)
        )

    def tag_committed(self, view: ViewVersion) -> None:
        view_dataset.tag_committed(self.location, view)
