"""Deletion files of Lance: the numbers of the rows that are deleted from a fragment.

Lance itself shows them only by a scan of the addresses of all other rows, at a cost that grows with the fragment.  The
format is Lance's (https://lance.org/format/table/): an Arrow file with one column for up to some thousand rows, and a
Roaring bitmap in its portable form (https://github.com/RoaringBitmap/RoaringFormatSpec) for more.
"""

from __future__ import annotations

from array import array
from typing import Any

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from obstore.exceptions import BaseError
from obstore.store import LocalStore
from pyroaring import BitMap

from state.errors import ProtocolError
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error
from state.objects.stored_object import read_object

Offsets = npt.NDArray[np.uint32]
"""Row numbers in one fragment, counted from 0, ascending."""


def deleted_offsets(location: Location, dataset: lance.LanceDataset, fragment: lance.LanceFragment) -> Offsets:
    """The numbers of the rows that are deleted from a fragment, see `deleted_rows`."""
    numbers = deleted_rows(location, dataset, fragment).to_array()
    return np.frombuffer(numbers, np.uint32) if numbers else np.empty(0, np.uint32)


def deleted_rows(location: Location, dataset: lance.LanceDataset, fragment: lance.LanceFragment) -> BitMap:
    """The numbers of the rows that are deleted from a fragment.

    Args:
        location: the location of the dataset.
        dataset: the dataset at one version.

    Raises:
        StorageError, NotFoundError: the file cannot be read, or was deleted with its version.
        ProtocolError: the content is not a valid Roaring bitmap.
    """
    path = fragment.deletion_file()
    if path is None:
        return BitMap()
    base = fragment.metadata.deletion_file.base_id
    if base is not None:  # the dataset of a branch, which refers to the file of another dataset
        location = location.of_lance_uri(dataset.base_paths()[base].path)
    try:
        # `object_client` would create the directory of a local dataset: a reader must not.
        client = LocalStore(location.path) if location.is_local else object_client(location)
        content = read_object(client, location, path).content
    except (BaseError, OSError) as error:
        raise storage_error(error, location) from None
    if path.endswith(".arrow"):
        with pa.ipc.open_file(pa.py_buffer(content)) as file:
            return bitmap_of(file.read_all().column(0).to_numpy())
    return read_roaring(content)


def read_roaring(content: bytes) -> BitMap:
    """A Roaring bitmap from its portable form, which `BitMap.serialize` writes.

    Raises:
        ProtocolError: the content is not a valid Roaring bitmap.
    """
    try:
        return BitMap.deserialize(content)
    except (IndexError, ValueError) as error:
        raise ProtocolError(f"a file of deleted rows is not a valid Roaring bitmap ({error}): report this") from None


def bitmap_of(numbers: npt.NDArray[Any]) -> BitMap:
    """The bitmap of row numbers in any order."""
    return BitMap(array("I", numbers.astype(np.uint32).tobytes()))
