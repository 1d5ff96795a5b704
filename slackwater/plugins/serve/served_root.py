"""Root that is served: its latest epoch, which is followed, and the epochs that sessions ask for."""

from __future__ import annotations

import threading

from slackwater.plugins.serve.catalog_database import CatalogDatabase
from slackwater.plugins.serve.engine import Engines
from slackwater.plugins.serve.served_epoch import ServedEpoch
from slackwater.reading.store import Store
from state.allocation import return_memory
from state.tables.expectations import PUBLISHED

LATEST = "latest"


class ServedRoot:
    """The epochs of a root, in one worker.

    Sessions see the last epoch that the gate let pass, which is the latest one while the gate is open.

    Args:
        store: the store of the root.

    Raises:
        EpochNotFoundError: no epoch was committed yet, or the gate has let none pass.
        StorageError: the root cannot be read.
    """

    def __init__(self, store: Store, engines: Engines) -> None:
        self._store, self.engines = store, engines
        self._lock = threading.Lock()
        self._refreshing, self._making = threading.Lock(), threading.Lock()
        self._looked = store.latest_epoch()
        self._published = ServedEpoch(store.published_snapshot())
        self._latest: ServedEpoch | None = None
        self._catalog: tuple[object, CatalogDatabase] | None = None

    def refresh(self) -> None:
        """Looks for a later epoch, and serves it from now on, if the gate lets it pass.

        Raises:
            StorageError: the root cannot be read; the present epoch stays.
        """
        with self._refreshing:
            looked = self._store.latest_epoch()
            if looked == self._looked:
                return
            published = self._store.published_epoch()
            with self._lock:
                self._looked, self._latest = looked, None
            if published and published != self._published.epoch:
                fresh = ServedEpoch(self._store.snapshot(published), self._published)
                with self._lock:
                    self._published = fresh
        return_memory()

    def epoch(self, epoch: str = PUBLISHED) -> ServedEpoch:
        """An epoch.

        Args:
            epoch: `published`, `latest`, a number, another tag, or an ISO time.

        Raises:
            EpochNotFoundError, UsageError: as `Store.snapshot`.
        """
        with self._lock:
            if epoch == PUBLISHED or (epoch == LATEST and self._looked == self._published.epoch):
                return self._published
            if epoch == LATEST and self._latest is not None:
                return self._latest
            published, looked = self._published, self._looked
        snapshot = self._store.snapshot(looked if epoch == LATEST else epoch)
        with self._lock:
            if snapshot.epoch == self._published.epoch:
                return self._published
            if epoch != LATEST:
                return ServedEpoch(snapshot, published)
            if self._latest is None and snapshot.epoch == self._looked:
                self._latest = ServedEpoch(snapshot, published)
            latest = self._latest
        return latest if latest is not None else ServedEpoch(snapshot, published)

    def catalog(self, epoch: ServedEpoch) -> CatalogDatabase:
        """The catalog of the schemas of an epoch for tools; made again when a schema has changed."""
        schemas = epoch.schemas()
        signature = tuple((name, schema.to_string()) for name, schema in schemas.items())
        with self._making:
            if self._catalog is None or self._catalog[0] != signature:
                self._catalog = signature, CatalogDatabase(schemas)
            return self._catalog[1]
