"""Location in an object store: lists its objects, finds one, and opens one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import obstore

from actors.file_errors import ObjectVanished, UnreadableFile
from actors.files import FileVersion
from actors.objects.bucket_listing import RawListing, bucket_pages, find_by_directory
from actors.objects.enclosing_table import enclosing_table
from actors.objects.listing_page import PAGE_NAMES, ListingPage
from actors.objects.local_file import read_local
from actors.objects.local_listing import find_file, list_directory
from actors.objects.object_file import ObjectFile
from actors.objects.range_cache import RangeCache
from actors.objects.ranges import Bytes, Range
from actors.objects.store_errors import ask_store, bucket_not_found
from actors.settings import RequestSettings
from state.errors import AccessDeniedError, SettingsError, StorageUnavailableError
from state.location import Location
from state.objects.etag import is_strong, normal_etag
from state.objects.object_client import object_client
from state.tables.fingerprint import version_fingerprint

if TYPE_CHECKING:
    from actors.objects.web_client import WebClient

_RETRY_WITHIN_S = 30.0
RETRY_FOR_A_USER_S = 10.0
"""As `retry_within_s`, for a command whose user waits for the answer."""


class ObjectStore:
    """Lists and opens the objects below a location.  Safe to use from many threads; connects at the first use.

    Args:
        concurrency: number of ranges that are asked for side by side.
        max_attempts: attempts of one request before the store counts as unavailable.
        retry_within_s: no attempt begins later than this after the first, in seconds.  An attempt without an answer
            takes 10 s.
        cache: ranges that were read before; None without a cache.
    """

    def __init__(
        self,
        location: Location,
        *,
        requests: RequestSettings = RequestSettings(),
        concurrency: int = 8,
        max_attempts: int = 5,
        retry_within_s: float = _RETRY_WITHIN_S,
        cache: RangeCache | None = None,
    ) -> None:
        self.location = location
        self._requests, self._cache = requests, cache
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="get")
        self._max_attempts, self._concurrency = max_attempts, concurrency
        self._retry_within_s = retry_within_s
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
        if self.location.is_local:
            self._require_directory()
            pages = list_directory(self.location.path, PAGE_NAMES)
            while (page := ask_store(partial(next, pages, None), self.location)) is not None:
                yield page
            return
        if self.location.is_web:
            from actors.objects.web_listing import web_pages

            yield from web_pages(self._web, self._max_attempts)
            return
        yield from bucket_pages(self._store(), self.location, after, self._max_attempts)

    def enclosing_table(self) -> str | None:
        """A description of the root or table that contains the location; None without one.  See `enclosing_table`."""
        return enclosing_table(self.location, self._threads.map)

    @property
    def lists_from_names(self) -> bool:
        """Whether the store lists in the order of names, and can begin behind any name."""
        return self.location.scheme == "s3"

    def find(self, source: str, path: str, *, exact_time: bool = False) -> FileVersion | None:
        """An object in the version in which a listing would show it now; None if it does not exist.

        In S3 it is one HEAD, whose time is rounded to seconds; without a strong etag, which names the version without
        its time, or if the HEAD is refused, it is a listing of one name.

        Args:
            source: the name of its source.
            path: its path, relative to the location.
            exact_time: whether its time must be that of listings, too; then it is a listing of one name in any case.

        Raises:
            UnreadableFile: the path is not UTF-8, so that no listing has it.
            AccessDeniedError, StorageUnavailableError: as `check`.
        """
        if not path.isascii() and not _is_text(path):
            raise UnreadableFile("its name is not UTF-8: rename it")
        if self.location.is_local:
            page = ask_store(partial(find_file, self.location.path, path), self.location, path)
            return None if page is None else _version_in(page, source, path)
        if self.location.is_web:
            # A listing has etags in another form than an answer about one object.
            found = (_version_in(page, source, path) for page in self.list_pages())
            return next((version for version in found if version is not None), None)
        if self.location.scheme != "s3":
            page = find_by_directory(self._store(), self.location, path)
            return None if page is None else _version_in(page, source, path)
        if not exact_time:
            try:
                meta = ask_store(partial(obstore.head, self._store(), path), self.location, path)
            except ObjectVanished:
                return None
            except (AccessDeniedError, UnreadableFile):
                # For this object alone, and then a listing shows it; or for all of them, and then that raises.
                # Obstore takes no name with control characters: the listing shows it, and reading names the reason.
                meta = None
            if meta is not None and is_strong(meta["e_tag"]):
                return _version(source, path, normal_etag(meta["e_tag"]), meta["size"], meta["last_modified"])
        return _version_in(ListingPage(self._raw.named(path), 1), source, path)

    def open(self, file: FileVersion) -> ObjectFile:
        """The content of one version of one object; this makes no request yet."""
        return ObjectFile(
            self._getter(file),
            url=f"{self.location}/{file.path}",
            path=file.path,
            size=file.size,
            etag=file.etag,
            settings=self._requests,
            threads=self._threads,
            cache=self._cache,
        )

    def _getter(self, file: FileVersion) -> Callable[[Range], Bytes]:
        """The way to get a range of a version."""
        if self.location.is_web:
            return partial(self._web.get, file)
        if self.location.is_local:
            self._require_directory()
            return lambda wanted: ask_store(
                partial(read_local, self.location.path, file.path, file.etag, wanted), self.location, file.path
            )
        store, given = self._store(), {"if_match": file.etag} if file.etag else {}

        def get(wanted: Range) -> Bytes:
            options: Any = given if wanted == (0, file.size) else {**given, "range": wanted}
            request = partial(obstore.get, store, file.path, options=options)  # noqa: TID251 - of a bucket
            answer = ask_store(request, self.location, file.path)
            return memoryview(ask_store(answer.bytes, self.location, file.path))

        return get

    @cached_property
    def _web(self) -> WebClient:
        # Its library takes 40 ms to load, and few sources need it.
        from actors.objects.web_client import WebClient

        return WebClient(self.location, max_attempts=self._max_attempts, connections=self._concurrency)

    @cached_property
    def _raw(self) -> RawListing:
        return RawListing(self.location)

    def _require_directory(self) -> None:
        if not self.location.path.is_dir():
            raise bucket_not_found(self.location)

    def _store(self) -> Any:
        with self._lock:
            if self._opened is None:
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
        return object_client(self.location, max_attempts=self._max_attempts, retry_within_s=self._retry_within_s)


def _version_in(page: ListingPage, source: str, path: str) -> FileVersion | None:
    for name, etag, size, modified in page.objects():
        if name == path:
            return _version(source, path, etag, size, modified)
    return None


def _version(source: str, path: str, etag: str, size: int, modified: datetime) -> FileVersion:
    return FileVersion(source, path, version_fingerprint(etag, size, modified), etag, size, modified)


def _is_text(path: str) -> bool:
    """False for a name of a local file that Python decoded with surrogates."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
