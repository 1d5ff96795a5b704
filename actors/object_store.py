"""One place in an object store, to list and to read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import obstore
import pyarrow as pa
from obstore.store import LocalStore

from actors.messages import FileVersion
from actors.object_file import ObjectFile
from actors.settings import MIB
from actors.store_errors import AnswerBrokenOffError, ask_store, bucket_not_found
from state.errors import SettingsError, StorageUnavailableError
from state.location import Location
from state.object_client import object_client

_PAGE = 1_000
_RETRY_WITHIN_S = 30.0
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


@dataclass(frozen=True)
class ListingPage:
    """A page of a listing, one element per object in each list.

    Args:
        paths: relative to the location.
        etags: as the store writes them, mostly with quotes; empty where the store has none.
        sizes: bytes.
        last_modified: UTC.
        requests: LIST requests that the page cost.
    """

    paths: list[str]
    etags: list[str]
    sizes: list[int]
    last_modified: list[datetime]
    requests: int

    def objects(self) -> Iterator[tuple[str, str, int, datetime]]:
        """Path, etag, size and time of each object."""
        return zip(self.paths, self.etags, self.sizes, self.last_modified, strict=True)


class ObjectStore:
    """Lists and opens the objects below a location.  Safe to use from many threads; connects at the first use.

    Args:
        location: where.
        whole_object_bytes: an object up to this size is read by one GET.
        block_bytes: a larger one by ranges of this size.
        max_attempts: tries of one request, within 30 s, before the store counts as unavailable.
    """

    def __init__(
        self,
        location: Location,
        *,
        whole_object_bytes: int = 8 * MIB,
        block_bytes: int = 8 * MIB,
        max_attempts: int = 5,
    ) -> None:
        self.location = location
        self._whole_object_bytes, self._block_bytes = whole_object_bytes, block_bytes
        self._max_attempts = max_attempts
        self._lock = threading.Lock()
        self._opened: Any = None

    def __repr__(self) -> str:
        return f"ObjectStore({str(self.location)!r})"

    def check(self) -> None:
        """Lists at most one page, to learn whether the store can be used at all.

        Raises:
            BucketNotFoundError: no such bucket or directory.
            AccessDeniedError: the credentials are not accepted.
            StorageUnavailableError: the store does not answer.
            SettingsError: a storage option is wrong.
        """
        next(self.list_pages())

    def list_pages(self, prefix: str = "") -> Iterator[ListingPage]:
        """Lists all objects, a page at a time; a page is asked for when the one before has been taken.

        An empty listing is one empty page.  Empty objects that stand for directories are left out.

        Args:
            prefix: a directory relative to the location.

        Raises:
            BucketNotFoundError, AccessDeniedError, StorageUnavailableError, SettingsError: as `check`.
        """
        store = self._store()
        if self.location.is_local and not self.location.path.is_dir():
            raise bucket_not_found(self.location)
        stream = _listing(store, prefix, after=None)
        last_path: str | None = None
        listed = requests = broken_off = 0
        while True:
            try:
                batch = ask_store(partial(next, stream, None), self.location)
            except AnswerBrokenOffError:
                # obstore tries a request again, but not a page whose text ended early.
                broken_off += 1
                if broken_off == self._max_attempts:
                    raise
                stream = _listing(store, prefix, after=last_path)
                continue
            if batch is None:
                break
            table = pa.record_batch(batch)
            if self.location.is_local:
                # A bucket lists in the order of names; a directory in none, and the first file may show the schema.
                table = table.sort_by("path")
            last_path = table["path"][-1].as_py() if table.num_rows else last_path
            listed += table.num_rows
            total = max(-(-listed // _PAGE) + broken_off, requests)
            yield _page(table, total - requests)
            requests = total
        if not requests:
            yield ListingPage([], [], [], [], 1 + broken_off)

    def open(self, file: FileVersion) -> ObjectFile:
        """The content of one version of one object; nothing is requested yet."""
        return ObjectFile(
            self._store(),
            self.location,
            path=file.path,
            etag=file.etag,
            size=file.size,
            whole_object_bytes=self._whole_object_bytes,
            block_bytes=self._block_bytes,
        )

    def _store(self) -> Any:
        with self._lock:
            if self._opened is None:
                if self.location.is_local and not self.location.path.is_dir():
                    raise bucket_not_found(self.location)
                try:
                    self._opened = ask_store(self._connect, self.location)
                except StorageUnavailableError:
                    # Nothing has been asked of the network yet.
                    raise SettingsError(
                        f"{self.location}: a storage option has an impossible value; correct it "
                        f"(given: {', '.join(sorted(self.location.storage_options)) or 'none'})"
                    ) from None
            return self._opened

    def _connect(self) -> Any:
        if self.location.is_local:
            return LocalStore(self.location.path)
        return object_client(self.location, max_attempts=self._max_attempts, retry_within_s=_RETRY_WITHIN_S)


def _listing(store: Any, prefix: str, after: str | None) -> Iterator[Any]:
    return obstore.list(store, prefix or None, offset=after, chunk_size=_PAGE, return_arrow=True)


def _page(batch: pa.RecordBatch, requests: int) -> ListingPage:
    paths = batch.column("path").to_pylist()
    sizes = batch.column("size").to_pylist()
    etags = [etag or "" for etag in batch.column("e_tag").to_pylist()]
    microseconds = batch.column("last_modified").cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    times = [_EPOCH + timedelta(microseconds=value) for value in microseconds]
    if 0 in sizes:
        kept = [row for row, size in enumerate(sizes) if size or not _is_directory(paths, row)]
        paths, etags = [paths[row] for row in kept], [etags[row] for row in kept]
        sizes, times = [sizes[row] for row in kept], [times[row] for row in kept]
    return ListingPage(paths, etags, sizes, times, requests)


def _is_directory(paths: list[str], row: int) -> bool:
    """Whether an empty object only marks a directory.  obstore has taken the final `/` off its name."""
    path = paths[row]
    return not path or (row + 1 < len(paths) and paths[row + 1].startswith(f"{path}/"))
