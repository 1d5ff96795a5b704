"""The check of sources when a run starts, before Ray and Spark."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import structlog

from actors.file_errors import REFUSALS
from actors.notifications.message_queue import MessageQueue
from actors.objects.object_store import ObjectStore
from actors.sources.discovery import Notifications
from actors.sources.source import SourceDefinition
from state.capabilities.store_record import root_identity
from state.errors import StoreNotFoundError
from state.location import Location
from state.store.root import Root
from state.tables.catalog import Catalog

_AT_ONCE = 8
_log = structlog.get_logger(actor="run")


def committed_sources(root: Root) -> frozenset[str]:
    """The sources of a root's last epoch; none for a root without epochs."""
    try:
        store = root.open(read_only=True)
    except StoreNotFoundError:
        return frozenset()
    return frozenset(Catalog.of(store.scan("catalog")).sources)


def check_stores(sources: Sequence[SourceDefinition], committed: Collection[str]) -> None:
    """Requests the first page of each source.

    Args:
        committed: the sources that earlier runs have read.  If one of them is refused now, the run starts without it:
            the source pauses until it can be listed.

    Raises:
        AccessDeniedError, BucketNotFoundError: a source that no run has read is refused: a typing error is likely.
        StorageUnavailableError, SettingsError: as `ObjectStore.check`.
    """
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="check") as threads:
        list(threads.map(partial(_check_store, committed), (each for each in sources if each.table != "frame")))


def claim_queues(sources: Sequence[SourceDefinition], root: Location, committed: Collection[str]) -> None:
    """Claims the queues of the sources that have one.  Arguments and errors as `check_stores`, and `OwnedError`."""
    for source in sources:
        if isinstance(source.discovery, Notifications):
            try:
                MessageQueue(source.discovery, source.location).claim(root.url, root_identity(root))
            except REFUSALS as error:
                _start_without(source, error, committed)


def _check_store(committed: Collection[str], source: SourceDefinition) -> None:
    try:
        ObjectStore(source.location).check()
    except REFUSALS as error:
        _start_without(source, error, committed)


def _start_without(source: SourceDefinition, error: Exception, committed: Collection[str]) -> None:
    if source.name not in committed:
        raise error
    _log.warning("a source is refused, and the run starts without it", source=source.name, error=str(error))
