"""Root that is served: its latest epoch, which is followed, and the epochs that sessions ask for."""

from __future__ import annotations

import threading

from slackwater.reading.store import Store
from slackwater.serving.catalog_database import CatalogDatabase
from slackwater.serving.engine import Engine
from slackwater.serving.served_epoch import ServedEpoch

LATEST = "latest"


class ServedRoot:
    """The epochs of a root.

    Args:
        store: the store of the root.
        engine: DuckDB.

    Raises:
        EpochNotFoundError: no epoch was committed yet.
        StorageError: the root cannot be read.
    """

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store, self._engine = store, engine
        self._lock = threading.Lock()
        self._refreshing = threading.Lock()
        self._latest = ServedEpoch(engine, store.snapshot())
        self._catalog: tuple[object, CatalogDatabase] | None = None

    @property
    def url(self) -> str:
        return self._store.root

    def refresh(self) -> None:
        """Looks for a later epoch, and serves it from now on.

        Raises:
            StorageError: the root cannot be read; the present epoch stays.
        """
        with self._refreshing:
            if self._store.latest_epoch() == self._latest.epoch:
                return
            fresh = ServedEpoch(self._engine, self._store.snapshot(), self._latest)
            with self._lock:
                old, self._latest = self._latest, fresh
            old.release()

    def hold(self, epoch: str = LATEST) -> ServedEpoch:
        """An epoch; the caller releases it.

        Args:
            epoch: `latest`, a number, a tag, or an ISO time.

        Raises:
            EpochNotFoundError, UsageError: as `Store.snapshot`.
        """
        with self._lock:
            if epoch == LATEST:
                return self._latest.hold()
            latest = self._latest
        snapshot = self._store.snapshot(epoch)
        with self._lock:
            if snapshot.epoch == self._latest.epoch:
                return self._latest.hold()
        return ServedEpoch(self._engine, snapshot, latest)

    def catalog(self, epoch: ServedEpoch) -> CatalogDatabase:
        """The face of the schemas of an epoch for tools; made anew when a schema has changed."""
        schemas = epoch.schemas()
        signature = tuple((name, schema.to_string()) for name, schema in schemas.items())
        with self._lock:
            if self._catalog is None or self._catalog[0] != signature:
                self._catalog = signature, CatalogDatabase(schemas)
            return self._catalog[1]

    def close(self) -> None:
        """Ends DuckDB."""
        self._latest.release()
        if self._catalog is not None:
            self._catalog[1].close()
        self._engine.close()
