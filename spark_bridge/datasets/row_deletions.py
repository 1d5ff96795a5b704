"""Deletion of rows of a Lance dataset by their addresses, without a second look-up by key."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import UUID

import lance
import numpy as np
import numpy.typing as npt
from lance import FragmentMetadata
from lance.fragment import DeletionFile
from obstore.exceptions import BaseError
from obstore.store import ObjectStore
from pyroaring import BitMap

from state.lance.deletion_vector import bitmap_of, deleted_rows
from state.lance.row_address import fragments_of
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.removal.objects import create_same

_AT_ONCE = 16


class RowDeletions:
    """Stages deletion files; each lists all deleted rows of one fragment.

    Lance's own `merge_insert` finds the rows by a join of keys, which took most of an upsert's time.  The format is
    Lance's (https://lance.org/format/table/); `state.lance.deletion_vector` reads it.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._client: ObjectStore | None = None
        self._known: dict[int, tuple[str, BitMap]] = {}

    def stage(
        self, dataset: lance.LanceDataset, addresses: npt.NDArray[np.uint64], identity: UUID
    ) -> tuple[list[FragmentMetadata], list[int]]:
        """Writes the deletion files.  Returns the changed fragments, and the numbers of the fragments without rows.

        The deletions take effect with a commit that names the fragments.

        Args:
            dataset: at the version before the commit.
            addresses: of present rows, as in Lance's `_rowaddr`.
            identity: of the commit, unique.

        Raises:
            StorageError: the store cannot be written.
        """
        fragments = fragments_of(addresses)
        changed: list[FragmentMetadata] = []
        removed: list[int] = []
        files: list[tuple[str, bytes]] = []
        known: dict[int, tuple[str, BitMap]] = {}
        for number in np.unique(fragments).tolist():
            fragment = dataset.get_fragment(number)
            assert fragment is not None, "the address is one of the dataset"
            gone = bitmap_of(addresses[fragments == number] & np.uint64(0xFFFFFFFF))
            deleted = self._deleted(dataset, fragment) | gone
            metadata = fragment.metadata
            if len(deleted) == metadata.physical_rows:
                removed.append(number)
                continue
            file = DeletionFile(dataset.version, identity.int >> 64, "bitmap", len(deleted), None)
            path = file.path(number)
            files.append((path, deleted.serialize()))
            known[number] = (path, deleted)
            changed.append(replace(metadata, deletion_file=file))
        self._write(files)
        self._known.update(known)
        return changed, removed

    def forget(self) -> None:
        """Forgets the deletions that it has written: their fragments may be gone."""
        self._known.clear()

    def _deleted(self, dataset: lance.LanceDataset, fragment: lance.LanceFragment) -> BitMap:
        path, deleted = self._known.get(fragment.fragment_id, ("", None))
        if deleted is not None and path == fragment.deletion_file():
            return deleted
        return deleted_rows(self._location, dataset, fragment)

    def _write(self, files: Sequence[tuple[str, bytes]]) -> None:
        if self._client is None:
            self._client = object_client(self._location)
        client, location = self._client, self._location

        def put(file: tuple[str, bytes]) -> None:
            path, content = file
            create_same(client, location, path, content)

        try:
            if self._location.is_local or len(files) <= 1:
                for file in files:
                    put(file)
            else:
                with ThreadPoolExecutor(min(_AT_ONCE, len(files))) as threads:
                    list(threads.map(put, files))
        except (BaseError, OSError) as error:
            raise storage_error(error, self._location) from None
