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

from actors.objects.listing_page import LISTED, PAGE_NAMES, ListingPage, microseconds_of
from actors.objects.store_errors import AnswerBrokenOffError, UnreadableNameError, ask_store
from state.errors import StorageUnavailableError
from state.location import Location
from state.objects.object_client import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, endpoint_of, object_client

_ATTEMPTS = 5


class RawListing:
    """Pages of one listing by boto3, which connects at the first page.

    obstore refuses a whole page for one key with a control character, or with `.`, `..` or nothing between slashes.

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
            StorageUnavailableError: the store did not answer, or refused the request.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        bucket, below = self._location.host.url.removeprefix("s3://"), self._location.below_host
        start = {} if after is None else {"StartAfter": below + after}
        try:
            # boto3 asks for percent-encoded names, so that every name survives the XML of the answer.
            answer = self._client.list_objects_v2(Bucket=bucket, Prefix=below, **start)
        except (BotoCoreError, ClientError) as error:
            kind = error.response["Error"].get("Code", "") if isinstance(error, ClientError) else type(error).__name__
            raise StorageUnavailableError(f"{self._location}: the listing failed ({kind}); try again later") from None
        objects = answer.get("Contents", [])
        rows = [_row(each, len(below)) for each in objects if each["Size"] or not each["Key"].endswith("/")]
        columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * len(LISTED)
        last = objects[-1]["Key"][len(below) :] if objects else ""
        return pa.table(columns, schema=LISTED), last, not answer["IsTruncated"]

    @cached_property
    def _client(self) -> Any:
        return _connected(self._location)


def _row(listed: dict[str, Any], below: int) -> tuple[str, str, int, int]:
    modified: datetime = listed["LastModified"]
    return listed["Key"][below:].rstrip("/"), listed.get("ETag", ""), listed["Size"], microseconds_of(modified)


def _connected(location: Location) -> Any:
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    options = {name.removeprefix("aws_"): value for name, value in location.storage_options.items()}
    config: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "read_timeout": READ_TIMEOUT_S,
        "retries": {"total_max_attempts": _ATTEMPTS, "mode": "standard"},
    }
    if options.get("skip_signature") == "true":
        config["signature_version"] = UNSIGNED
    if options.get("virtual_hosted_style_request") != "true":
        config["s3"] = {"addressing_style": "path"}
    return boto3.client(
        "s3",
        endpoint_url=endpoint_of(location) or None,
        region_name=options.get("region"),
        aws_access_key_id=options.get("access_key_id"),
        aws_secret_access_key=options.get("secret_access_key"),
        aws_session_token=options.get("session_token") or options.get("token"),
        config=Config(**config),
    )


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


def _pages(client: Any, location: Location, after: str | None, max_attempts: int) -> Iterator[tuple[ListingPage, bool]]:
    """Each page with objects, or one empty page, and whether it is full, so that another may follow."""
    if location.is_web:
        # Over WebDAV obstore lists paths relative to the host.
        client, above = object_client(location.host), location.below_host
    else:
        above = ""

    def stream_after(after: str | None) -> Iterator[Any]:
        offset = None if after is None else above + after
        return obstore.list(client, above or None, offset=offset, chunk_size=PAGE_NAMES, return_arrow=True)

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
                page = ListingPage(_listed(batch, above), lost + 1)
                yield page, batch.num_rows == PAGE_NAMES
                after, lost, is_empty = batch["path"][-1].as_py().removeprefix(above), 0, False
            continue
        stream = stream_after(after)


def _listed(batch: pa.RecordBatch, above: str) -> pa.Table:
    """A page of obstore in the columns of `LISTED`, with paths relative to `above`."""
    modified_us = batch["last_modified"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    etags = pc.fill_null(batch["e_tag"].cast(pa.string()), "")
    paths = batch["path"].cast(pa.string())
    if above:
        paths = pc.utf8_slice_codeunits(paths, len(above))
    columns = [paths, etags, batch["size"].cast(pa.int64()), modified_us]
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
