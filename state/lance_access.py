"""Opening and creating Lance datasets: options and cache limits."""

from __future__ import annotations

import lance
import pyarrow as pa
from lance import LanceOperation
from lance.fragment import write_fragments

from state.errors import CommitRefusedError, NotFoundError
from state.location import Location
from state.storage_error import storage_error

_CACHE_BYTES = 64 << 20


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
        raise storage_error(error, location) from None


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
            raise storage_error(error, location) from None
        raise CommitRefusedError(f"{location} exists already: it is never created a second time") from None


def lance_options(location: Location) -> dict[str, str] | None:
    """The options that Lance needs to reach a location."""
    options = dict(location.storage_options)
    if "endpoint" in options:
        options.setdefault("region", "us-east-1")
        if options["endpoint"].startswith("http://"):
            options.setdefault("allow_http", "true")
    return options or None
