"""Which rows of a fragment were taken out, as the file says that Lance writes for it.

Lance shows them only by reading the addresses of all other rows, which costs what the fragment is large.  The format is
Lance's (https://lance.org/format/table/): up to some thousand rows an Arrow file with one column, above that a Roaring
bitmap (https://github.com/RoaringBitmap/RoaringFormatSpec), in which each 65,536 numbers have a container: a sorted
array, a bitmap, or runs.
"""

from __future__ import annotations

import io

import lance
import numpy as np
import numpy.typing as npt
import obstore
import pyarrow as pa
from obstore.exceptions import BaseError
from obstore.store import LocalStore

from state.errors import ProtocolError
from state.location import Location
from state.objects.object_client import object_client
from state.objects.storage_error import storage_error

Offsets = npt.NDArray[np.uint32]

_COOKIE_WITHOUT_RUNS = 12346
_COOKIE_WITH_RUNS = 12347
_OFFSETS_FROM_CONTAINERS = 4
_LARGEST_ARRAY = 4096
_BITMAP_BYTES = 8192


def deleted_offsets(dataset: Location, fragment: lance.LanceFragment) -> Offsets:
    """The places of the rows that were taken out of a fragment, counted from 0, in their order.

    Args:
        dataset: where the fragment's dataset is.
        fragment: at one version.

    Raises:
        StorageError, NotFoundError: the file cannot be read, or is gone with its version.
        ProtocolError: it is of a form that is not known.
    """
    path = fragment.deletion_file()
    if path is None:
        return np.empty(0, np.uint32)
    try:
        # A reader makes no directory, as the client of a writer does.
        client = LocalStore(dataset.path) if dataset.is_local else object_client(dataset)
        content = bytes(obstore.get(client, path).bytes())
    except (BaseError, OSError) as error:
        raise storage_error(error, dataset) from None
    if path.endswith(".arrow"):
        with pa.ipc.open_file(pa.py_buffer(content)) as file:
            return np.sort(file.read_all().column(0).to_numpy().astype(np.uint32))
    return read_roaring(content)


def read_roaring(content: bytes) -> Offsets:
    """The numbers of a Roaring bitmap in its portable form, in their order.

    Raises:
        ProtocolError: it is none.
    """
    file = io.BytesIO(content)
    cookie = _integers(file, "<u4", 1)[0]
    if cookie & 0xFFFF == _COOKIE_WITH_RUNS:
        count = int(cookie >> 16) + 1
        flags = np.frombuffer(file.read((count + 7) // 8), np.uint8)
        has_runs = np.unpackbits(flags, bitorder="little")[:count].astype(bool)
    elif cookie == _COOKIE_WITHOUT_RUNS:
        count = int(_integers(file, "<u4", 1)[0])
        has_runs = np.zeros(count, bool)
    else:
        raise ProtocolError(f"a file of deleted rows begins with {cookie}, which is no Roaring bitmap: report this")
    heads = _integers(file, "<u2", 2 * count).reshape(count, 2)
    if not has_runs.any() or count >= _OFFSETS_FROM_CONTAINERS:
        file.seek(4 * count, io.SEEK_CUR)  # where each container begins: they are read one after the other
    containers = [np.empty(0, np.uint32)]
    for (high, last), runs in zip(heads.tolist(), has_runs.tolist(), strict=True):
        low = _run_container(file) if runs else _container(file, last + 1)
        containers.append(low.astype(np.uint32) + np.uint32(high << 16))
    return np.concatenate(containers)


def write_roaring(numbers: Offsets) -> bytes:
    """The Roaring bitmap of these numbers, which are in their order and each there once, in its portable form."""
    high = (numbers >> np.uint32(16)).astype(np.uint16)
    keys, starts, counts = np.unique(high, return_index=True, return_counts=True)
    heads = np.stack([keys.astype("<u2"), (counts - 1).astype("<u2")], axis=1).tobytes()
    containers = [
        _container_bytes((numbers[start : start + count] & np.uint32(0xFFFF)).astype("<u2"))
        for start, count in zip(starts.tolist(), counts.tolist(), strict=True)
    ]
    begin = 8 + len(heads) + 4 * len(containers)
    offsets = begin + np.cumsum([0, *[len(each) for each in containers[:-1]]])
    header = np.array([_COOKIE_WITHOUT_RUNS, len(containers)], "<u4").tobytes()
    return b"".join([header, heads, offsets[: len(containers)].astype("<u4").tobytes(), *containers])


def _container_bytes(low: npt.NDArray[np.uint16]) -> bytes:
    if len(low) <= _LARGEST_ARRAY:
        return low.tobytes()
    bits = np.zeros(8 * _BITMAP_BYTES, bool)
    bits[low] = True
    return np.packbits(bits, bitorder="little").tobytes()


def _container(file: io.BytesIO, cardinality: int) -> npt.NDArray[np.int64]:
    if cardinality <= _LARGEST_ARRAY:
        return _integers(file, "<u2", cardinality)
    return np.flatnonzero(np.unpackbits(np.frombuffer(file.read(_BITMAP_BYTES), np.uint8), bitorder="little"))


def _run_container(file: io.BytesIO) -> npt.NDArray[np.int64]:
    runs = _integers(file, "<u2", 2 * int(_integers(file, "<u2", 1)[0])).reshape(-1, 2)
    return np.concatenate([np.arange(first, first + more + 1) for first, more in runs.tolist()])


def _integers(file: io.BytesIO, kind: str, count: int) -> npt.NDArray[np.int64]:
    size = np.dtype(kind).itemsize * count
    content = file.read(size)
    if len(content) != size:
        raise ProtocolError("a file of deleted rows ends before its end: report this")
    return np.frombuffer(content, kind).astype(np.int64)
