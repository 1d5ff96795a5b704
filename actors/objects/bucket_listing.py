"""The objects of a bucket, a page at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.compute as pc

from actors.objects.listing_page import LISTED, PAGE_NAMES, ListingPage
from actors.objects.raw_listing import RawListing
from actors.objects.store_errors import AnswerBrokenOffError, UnreadableNameError, ask_store
from state.location import Location
from state.objects.object_client import object_client


def bucket_pages(client: Any, location: Location, after: str | None, max_attempts: int) -> Iterator[ListingPage]:
    """Lists all objects, a page at a time; a page is asked for when the one before has been taken.

    Args:
        client: obstore's, of the location.
        location: named in messages.
        after: only names behind this one.
        max_attempts: pages whose answer broke off before the store counts as unavailable.

    Raises:
        BucketNotFoundError, AccessDeniedError, StorageUnavailableError, SettingsError: see `ObjectStore.check`.
    """
    held: ListingPage | None = None
    for page, may_go_on in _pages(client, location, after, max_attempts):
        if held is not None:
            yield held
        held = page
        if may_go_on:
            # Whether it does takes a request to learn.
            yield held
            held = None
    if held is not None:
        yield replace(held, is_last=True)


def _pages(client: Any, location: Location, after: str | None, max_attempts: int) -> Iterator[tuple[ListingPage, bool]]:
    """Each page that has an object, or one without any, and whether it is a full one."""
    if location.is_web:
        # Over WebDAV obstore tells paths as they are below the host.
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
            # obstore tries a request again, but not a page whose text ended early.
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
    """A page of obstore's as `LISTED`, with paths below `above`."""
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
    """Whether an empty object only marks a directory.  obstore has taken the final `/` off its name."""
    path = paths[row]
    return not path or (row + 1 < len(paths) and paths[row + 1].startswith(f"{path}/"))
