"""Access to Lance datasets: open, create, storage options, limits of caches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import lance
import pyarrow as pa
from lance import FragmentMetadata, LanceOperation
from lance.fragment import write_fragments

from state.errors import CommitRefusedError, NotFoundError, SlackwaterError
from state.lance.dataset_files import DatasetFiles
from state.location import Location
from state.objects.object_client import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, endpoint_of
from state.objects.storage_error import storage_error
from state.tables.lance_layout import for_lance

_CACHE_BYTES = 64 << 20
# Lance retries a request for this time, by default for 3 minutes.  It retries a listing 6 times on top of that.
_RETRY_WITHIN_S = 15


def stored_bytes(dataset: lance.LanceDataset) -> int:
    """Size of all rows as stored, in bytes, without indices."""
    return sum(file.file_size_bytes or 0 for each in dataset.get_fragments() for file in each.metadata.files)


def open_dataset(
    location: Location,
    version: int | str | None = None,
    *,
    index_cache_bytes: int = _CACHE_BYTES,
    metadata_cache_bytes: int = _CACHE_BYTES,
) -> lance.LanceDataset:
    """The dataset at a location, at a version or a tag, or at its latest version.

    Args:
        location: the location of the dataset.
        version: a number or a tag; None for the latest version.
        index_cache_bytes: the limit of its index cache, in bytes.
        metadata_cache_bytes: the limit of its cache of manifests and of footers of files, in bytes.

    Raises:
        NotFoundError: the dataset or the version does not exist.
        StorageError: the store refuses or does not answer.
    """
    try:
        return lance.dataset(
            location.lance_uri,
            version=version,
            storage_options=lance_options(location),
            metadata_cache_size_bytes=metadata_cache_bytes,
            index_cache_size_bytes=index_cache_bytes,
        )
    except (OSError, ValueError) as error:
        raise storage_error(error, location) from None


def create_dataset(
    location: Location, table: pa.Table, schema: pa.Schema | None = None, fragment_rows: int = 1 << 20
) -> lance.LanceDataset:
    """A new dataset that holds a table; of several simultaneous creators one wins.

    Args:
        location: the location of the dataset.
        table: its first rows.
        schema: its columns; None for the columns of `table`.
        fragment_rows: the largest number of rows in a fragment.

    Raises:
        CommitRefusedError: the dataset exists already, or another creator came first.
        StorageError: the store refuses or does not answer.
    """
    schema = schema or table.schema
    try:
        fragments = write_fragments(
            table,
            location.lance_uri,
            schema,
            mode="create",
            max_rows_per_file=fragment_rows,
            storage_options=lance_options(location),
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise _creation_error(location, error) from None
    return create_of_fragments(location, schema, fragments)


def create_of_fragments(
    location: Location, schema: pa.Schema, fragments: Sequence[FragmentMetadata]
) -> lance.LanceDataset:
    """A new dataset that holds the fragments staged for it.

    Raises:
        CommitRefusedError: the dataset exists already, or another creator came first.
        StorageError: the store refuses or does not answer.
    """
    files = DatasetFiles(location)
    files.sync_fragments(fragments)
    try:
        created = lance.LanceDataset.commit(
            location.lance_uri,
            LanceOperation.Overwrite(schema, list(fragments)),
            storage_options=lance_options(location),
            max_retries=0,
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise _creation_error(location, error) from None
    files.sync_creation(created.version)
    # Opened again: the handle that a creation returns has caches of gigabytes.
    return open_dataset(location, created.version)


def copy_dataset(source: Location, version: int, target: Location, fragment_rows: int = 1 << 20) -> tuple[int, int]:
    """Copies the rows of one version into a new dataset, without indices.

    Args:
        source: the location of the other dataset.
        target: the location of the new one.
        fragment_rows: the largest number of rows in a fragment.

    Returns:
        The version, and the size of the rows in bytes.

    Raises:
        CommitRefusedError: the dataset exists already.
        NotFoundError: the version does not exist.
        StorageError: the store refuses or does not answer.
    """
    dataset = open_dataset(source, version)
    try:
        fragments = write_fragments(
            pa.RecordBatchReader.from_batches(dataset.schema, _pieces(dataset, fragment_rows)),
            target.lance_uri,
            dataset.schema,
            mode="create",
            max_rows_per_file=fragment_rows,
            storage_options=lance_options(target),
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise _creation_error(target, error) from None
    copy = create_of_fragments(target, dataset.schema, fragments)
    return int(copy.version), stored_bytes(copy)


def _pieces(dataset: lance.LanceDataset, fragment_rows: int) -> Iterator[pa.RecordBatch]:
    """All rows in their order, in batches that end where a fragment ends: Lance does not slice every column."""
    room = fragment_rows
    for batch in dataset.scanner(scan_in_order=True).to_batches():
        for start in (0, *range(room, batch.num_rows, fragment_rows)):
            length = min(room, batch.num_rows - start)
            yield from for_lance(pa.Table.from_batches([batch.slice(start, length)])).to_batches()
            room = room - length or fragment_rows


def lance_options(location: Location) -> dict[str, str] | None:
    """The storage options for Lance, with time-outs, so that no request waits for ever for a frozen store.

    Lance 14 knows `connect_timeout`, `read_timeout` and `timeout` (texts with a unit), `client_max_retries` and
    `client_retry_timeout` (numbers; seconds); it silently ignores others, such as `request_timeout`.

    Raises:
        SettingsError: see `endpoint_of`.
    """
    options = dict(location.storage_options)
    if "endpoint" in options:
        options.setdefault("region", "us-east-1")
    if location.scheme == "s3" and endpoint_of(location).startswith("http://"):
        options.setdefault("allow_http", "true")
    if not location.is_local:
        options.setdefault("connect_timeout", f"{CONNECT_TIMEOUT_S}s")
        options.setdefault("read_timeout", f"{READ_TIMEOUT_S}s")
        options.setdefault("client_retry_timeout", str(_RETRY_WITHIN_S))
    return options or None


def _creation_error(location: Location, error: Exception) -> SlackwaterError:
    """The cause of a failed creation: an existing dataset, or the store."""
    try:
        open_dataset(location)
    except NotFoundError:
        return storage_error(error, location)
    return CommitRefusedError(f"{location} exists already: it is never created a second time")
