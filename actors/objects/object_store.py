"""Location in an object store: lists its objects, finds one, and opens one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import obstore
from obstore.store import LocalStore

from actors.file_errors import ObjectVanished
from actors.files import FileVersion
from actors.objects.bucket_listing import bucket_pages
from actors.objects.listing_page import PAGE_NAMES, ListingPage
from actors.objects.local_listing import find_file, list_directory
from actors.objects.object_file import ObjectFile
from actors.objects.range_cache import RangeCache
from actors.objects.store_errors import ask_store, bucket_not_found
from actors.settings import RequestSettings
from state.errors import SettingsError, StorageUnavailableError
from state.location import Location
from state.objects.object_client import object_client
from state.tables.fingerprint import version_fingerprint

_RETRY_WITHIN_S = 30.0


class ObjectStore:
    """Lists and opens the objects below a location.  Safe to use from many threads; connects at the first use.

    Args:
        location: the location.
        requests: the sizes of requests.
        concurrency: number of ranges that are asked for side by side.
        max_attempts: attempts of one request, within 30 s, before the store counts as unavailable.
        cache: ranges that were read before; None without a cache.
    """

    def __init__(
        self,
        location: Location,
        *,
        requests: RequestSettings = RequestSettings(),
        concurrency: int = 8,
        max_attempts: int = 5,
        cache: RangeCache | None = None,
    ) -> None:
        self.location = location
        self._requests, self._cache = requests, cache
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="get")
        self._max_attempts = max_attempts
        self._lock = threading.Lock()
        self._opened: Any = None

    def __repr__(self) -> str:
        return f"ObjectStore({str(self.location)!r})"

    def check(self) -> None:
        """Lists at most one page, to check that the store can be used.

        Raises:
            BucketNotFoundError: the bucket or directory does not exist.
            AccessDeniedError: the credentials are not accepted.
            StorageUnavailableError: the store does not answer.
            SettingsError: a storage option is wrong.
        """
        next(self.list_pages())

    def list_pages(self, *, after: str | None = None) -> Iterator[ListingPage]:
        """Lists all objects, a page at a time; a page is asked for when the one before has been taken.

        An empty listing is one empty page.  Empty objects that stand for directories are left out.

        Args:
            after: the listing begins behind this name, if `lists_from_names`; None for all names.

        Raises:
            BucketNotFoundError, AccessDeniedError, StorageUnavailableError, SettingsError: as `check`.
        """
        store = self._store()
        if self.location.is_local:
            if not self.location.path.is_dir():
                raise bucket_not_found(self.location)
            pages = list_directory(self.location.path, PAGE_NAMES)
            while (page := ask_store(partial(next, pages, None), self.location)) is not None:
                yield page
            return
        yield from bucket_pages(store, self.location, after, self._max_attempts)

    @property
    def lists_from_names(self) -> bool:
        """Whether the store lists in the order of names, and can begin behind any name."""
        return self.location.scheme == "s3"

    def find(self, source: str, path: str) -> FileVersion | None:
        """An object as a listing would show it now; None if it does not exist.

        Args:
            source: the name of its source.
            path: its path, relative to the location.

        Raises:
            AccessDeniedError, StorageUnavailableError: as `check`.
        """
        if self.location.is_local:
            page = ask_store(partial(find_file, self.location.path, path), self.location, path)
            return None if page is None else _version_in(page, source, path)
        if self.location.is_web:
            # A listing has etags in another form than an answer about one object.
            found = (_version_in(page, source, path) for page in self.list_pages())
            return next((version for version in found if version is not None), None)
        try:
            meta = ask_store(partial(obstore.head, self._store(), path), self.location, path)
        except ObjectVanished:
            return None
        etag, size, modified = meta["e_tag"] or "", meta["size"], meta["last_modified"]
        return FileVersion(source, path, version_fingerprint(etag, size, modified), etag, size, modified)

    def open(self, file: FileVersion) -> ObjectFile:
        """The content of one version of one object; this makes no request yet."""
        return ObjectFile(
            self._store(),
            self.location,
            path=file.path,
            etag=file.etag,
            size=file.size,
            unmodified_since=file.last_modified if self.location.is_web else None,
            settings=self._requests,
            threads=self._threads,
            cache=self._cache,
        )

    def _store(self) -> Any:
        with self._lock:
            if self._opened is None:
                if self.location.is_local and not self.location.path.is_dir():
                    raise bucket_not_found(self.location)
                try:
                    self._opened = ask_store(self._connect, self.location)
                except StorageUnavailableError:
                    # No request was made yet.
                    raise SettingsError(
                        f"{self.location}: a storage option has an impossible value; correct it "
                        f"(given: {', '.join(sorted(self.location.storage_options)) or 'none'})"
                    ) from None
            return self._opened

    def _connect(self) -> Any:
        if self.location.is_local:
            return LocalStore(self.location.path)
        return object_client(self.location, max_attempts=self._max_attempts, retry_within_s=_RETRY_WITHIN_S)


def _version_in(page: ListingPage, source: str, path: str) -> FileVersion | None:
    for name, etag, size, modified in page.objects():
        if name == path:
            return FileVersion(source, path, version_fingerprint(etag, size, modified), etag, size, modified)
    return None
