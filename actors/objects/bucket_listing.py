"""Listing of a bucket, page by page: by obstore, and by boto3 for names that obstore does not take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.compute as pc

from actors.files import microseconds_of
from actors.objects.bucket_client import ask_bucket, bucket_client, bucket_of
from actors.objects.listing_page import LISTED, PAGE_NAMES, ListingPage
from actors.objects.store_errors import AnswerBrokenOffError, UnreadableNameError, ask_store
from state.location import Location
from state.objects.etag import normal_etag, normal_etags


class RawListing:
    """Listings by boto3, which connects at the first request.

    obstore refuses a whole page for one key with a control character, or with `.`, `..` or nothing between slashes, and
    has no listing of one name.

    Args:
        location: a location in S3.
    """

    def __init__(self, location: Location) -> None:
        self._location = location

    def page(self, after: str | None) -> tuple[pa.Table, str, bool]:
        """The next page, by one request.

        Args:
            after: the page begins with the first name behind this one, relative to the location; None for the first.

        Returns:
            The objects, see `LISTED`, without empty ones that stand for directories; the last name; and whether it is
            the last page.

        Raises:
            BucketNotFoundError, AccessDeniedError, StorageUnavailableError: see `ObjectStore.check`.
        """
        below = self._location.below_host
        start = {} if after is None else {"StartAfter": below + after}
        answer = self._ask(Prefix=below, **start)
        objects = answer.get("Contents", [])
        last = objects[-1]["Key"][len(below) :] if objects else ""
        files = [each for each in objects if each["Size"] or not each["Key"].endswith("/")]
        return self._table(files), last, not answer["IsTruncated"]

    def named(self, path: str) -> pa.Table:
        """The object of one name, see `LISTED`, by one request; no row if it does not exist.

        Raises:
            BucketNotFoundError, AccessDeniedError, StorageUnavailableError: as `page`.
        """
        key = self._location.below_host + path
        # Of all names that begin with it, its own is the first.
        objects = self._ask(Prefix=key, MaxKeys=1).get("Contents", [])
        return self._table([each for each in objects if each["Key"] == key])

    def _ask(self, **arguments: Any) -> Any:
        # boto3 asks for percent-encoded names, so that every name survives the XML of the answer.
        ask = partial(self._client.list_objects_v2, Bucket=bucket_of(self._location), **arguments)
        return ask_bucket(ask, self._location)

    def _table(self, objects: list[Any]) -> pa.Table:
        rows = [_row(each, len(self._location.below_host)) for each in objects]
        columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * len(LISTED)
        return pa.table(columns, schema=LISTED)

    @cached_property
    def _client(self) -> Any:
        return bucket_client(self._location)


def _row(listed: dict[str, Any], below: int) -> tuple[str, str, int, int]:
    modified: datetime = listed["LastModified"]
    return listed["Key"][below:].rstrip("/"), normal_etag(listed.get("ETag")), listed["Size"], microseconds_of(modified)


def bucket_pages(client: Any, location: Location, after: str | None, max_attempts: int) -> Iterator[ListingPage]:
    """Lists all objects, a page at a time; a page is asked for when the one before has been taken.

    Args:
        client: the client of obstore for the location.
        location: the location, for messages.
        after: the listing begins behind this name; None for all names.
        max_attempts: answers that may break off before the store counts as unavailable.

    Raises:
        BucketNotFoundError, AccessDeniedError, StorageUnavailableError, SettingsError: see `ObjectStore.check`.
    """
    before: ListingPage | None = None
    for page, is_full in _pages(client, location, after, max_attempts):
        if before is not None:
            yield before
        before = page
        if is_full:
            # Only the next request tells whether another page follows.
            yield before
            before = None
    if before is not None:
        yield replace(before, is_last=True)


def find_by_directory(client: Any, location: Location, path: str) -> ListingPage | None:
    """A page of the directory of an object that shows it; None if it does not exist.

    Args:
        client: the client of obstore for the location.
        location: the location, for messages.
        path: the path of the object.

    Raises:
        BucketNotFoundError, AccessDeniedError, StorageUnavailableError, SettingsError: see `ObjectStore.check`.
    """
    above = path.rpartition("/")[0] or None
    stream = obstore.list(client, above, chunk_size=PAGE_NAMES, return_arrow=True)
    while (following := ask_store(partial(next, stream, None), location)) is not None:
        table = _listed(pa.record_batch(following))
        if pc.any(pc.equal(table["path"], path)).as_py():
            return ListingPage(table, 1)
    return None


def _pages(client: Any, location: Location, after: str | None, max_attempts: int) -> Iterator[tuple[ListingPage, bool]]:
    """Each page with objects, or one empty page, and whether it is full, so that another may follow."""

    def stream_after(after: str | None) -> Iterator[Any]:
        return obstore.list(client, offset=after, chunk_size=PAGE_NAMES, return_arrow=True)

    stream, raw = stream_after(after), RawListing(location)
    lost, broken_off, is_empty = 0, 0, True
    while True:
        try:
            following = ask_store(partial(next, stream, None), location)
        except AnswerBrokenOffError:
            # obstore repeats a failed request, but not a page whose text ended early.
            broken_off += 1
            if broken_off == max_attempts:
                raise
            lost += 1
        except UnreadableNameError:
            if location.scheme != "s3":
                raise
            table, last, is_end = raw.page(after)
            yield ListingPage(table, lost + 2), not is_end
            if is_end:
                return
            after, lost, is_empty = last, 0, False
        else:
            if following is None:
                if lost or is_empty:
                    yield ListingPage(LISTED.empty_table(), lost + 1), False
                return
            batch = pa.record_batch(following)
            if batch.num_rows:
                page = ListingPage(_listed(batch), lost + 1)
                yield page, batch.num_rows == PAGE_NAMES
                after, lost, is_empty = batch["path"][-1].as_py(), 0, False
            continue
        stream = stream_after(after)


def _listed(batch: pa.RecordBatch) -> pa.Table:
    """A page of obstore in the columns of `LISTED`."""
    modified_us = batch["last_modified"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    etags = normal_etags(batch["e_tag"].cast(pa.string()))
    columns = [batch["path"].cast(pa.string()), etags, batch["size"].cast(pa.int64()), modified_us]
    table = pa.table(columns, schema=LISTED)
    empty = np.flatnonzero(np.asarray(pc.equal(table["size"], 0)))
    if not len(empty):
        return table
    names = table["path"].to_pylist()
    directories = [row for row in empty.tolist() if _is_directory(names, row)]
    return table.take(np.delete(np.arange(len(names)), directories)) if directories else table


def _is_directory(paths: list[str], row: int) -> bool:
    """Whether an empty object stands for a directory; obstore removes the final `/` of its name."""
    path = paths[row]
    return not path or (row + 1 < len(paths) and paths[row + 1].startswith(f"{path}/"))
