"""Opening and creating Lance datasets: options, cache limits, and Lance's errors in our words."""

from __future__ import annotations

import lance
import pyarrow as pa
from lance import LanceOperation
from lance.fragment import write_fragments

from state.errors import (
    AccessDeniedError,
    BucketNotFoundError,
    CommitRefusedError,
    NotFoundError,
    StorageError,
    StorageUnavailableError,
    StoreNotFoundError,
)
from state.location import SECRET_OPTIONS, Location

_CACHE_BYTES = 64 << 20
_DENIED = (
    "AccessDenied",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "Forbidden",
    "Unauthorized",
    "ermission denied",
)
_NO_BUCKET = ("NoSuchBucket", "bucket does not exist")


def open_dataset(location: Location, version: int | str | None = None) -> lance.LanceDataset:
    """The dataset at a location, at a version or a tag, or at its latest version.

    Raises:
        NotFoundError: there is no such dataset or version.
        StorageError: the store refuses or does not answer.
    """
    try:
        return lance.dataset(
            location.lance_uri,
            version=version,
            storage_options=lance_options(location),
            metadata_cache_size_bytes=_CACHE_BYTES,
            index_cache_size_bytes=_CACHE_BYTES,
        )
    except (OSError, ValueError) as error:
        raise lance_error(error, location) from None


def create_dataset(location: Location, table: pa.Table, schema: pa.Schema | None = None) -> lance.LanceDataset:
    """A new dataset that holds a table; of several that create it at once, one wins.

    Raises:
        CommitRefusedError: there is one already, or another creator came first.
        StorageError: the store refuses or does not answer.
    """
    schema = schema or table.schema
    try:
        fragments = write_fragments(
            table, location.lance_uri, schema, mode="create", storage_options=lance_options(location)
        )
        return lance.LanceDataset.commit(
            location.lance_uri,
            LanceOperation.Overwrite(schema, fragments),
            storage_options=lance_options(location),
            max_retries=0,
        )
    except (OSError, ValueError, RuntimeError) as error:
        try:
            open_dataset(location)
        except NotFoundError:
            raise lance_error(error, location) from None
        raise CommitRefusedError(f"{location} exists already: it is never created a second time") from None


def lance_options(location: Location) -> dict[str, str] | None:
    """The options that Lance needs to reach a location."""
    options = dict(location.storage_options)
    if "endpoint" in options:
        options.setdefault("region", "us-east-1")
        if options["endpoint"].startswith("http://"):
            options.setdefault("allow_http", "true")
    return options or None


def lance_error(error: Exception, location: Location) -> StorageError | NotFoundError:
    """One of our errors for one of Lance's, in one line and without secrets."""
    text = str(error)
    if any(mark in text for mark in _NO_BUCKET):
        return BucketNotFoundError(f"the bucket of {location} does not exist: create it or correct the URL")
    if "was not found" in text or "Not found" in text:
        return StoreNotFoundError(f"there is no dataset at {location}, or not in that version")
    if any(mark in text for mark in _DENIED):
        return AccessDeniedError(f"access to {location} is refused: correct the credentials or the permissions")
    for name in SECRET_OPTIONS & location.storage_options.keys():
        text = text.replace(location.storage_options[name], "***")
    first_line = text.partition("\n")[0][:300]
    return StorageUnavailableError(f"{location} cannot be read or written now ({first_line}): try again later")
