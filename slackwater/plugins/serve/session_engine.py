"""Engine of a session with the catalogs of the epochs that its statements read."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from slackwater.confinement.query_parser import ParsedQuery
from slackwater.plugins.serve.engine import Engine, Engines, Interruption, Rows
from slackwater.plugins.serve.served_epoch import ServedEpoch
from slackwater.reading.relation import Relation


@dataclass
class _Catalog:
    """An epoch in the engine.

    Args:
        name: the name of its catalog.
        relations: the relations that statements have named.
        open_rows: the number of results that are open.
    """

    epoch: ServedEpoch
    name: str
    relations: dict[str, Relation] = field(default_factory=dict)
    open_rows: int = 0


class SessionEngine:
    """The DuckDB of one session, taken at its first query that needs one.

    Args:
        engines: the engines of the worker.
    """

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._engine: Engine | None = None
        self._catalogs: list[_Catalog] = []
        self._numbers = itertools.count(1)

    def rows(self, epoch: ServedEpoch, query: ParsedQuery, explain: str, interruption: Interruption) -> EpochRows:
        """The rows of a query at an epoch, or its plan.

        Raises:
            SqlError: as `Rows`.
            SlackwaterError: a relation cannot be read.
        """
        if self._engine is None:
            self._engine = self._engines.take()
        catalog = self._catalog(self._engine, epoch)
        cursor = self._engine.cursor(catalog.name)
        try:
            for name, relation in epoch.relations(query, but=catalog.relations).items():
                cursor.from_arrow(relation).create_view(name)
                catalog.relations[name] = relation
            text = f"{explain} {query.text}" if explain else query.text
            return EpochRows(catalog, cursor, Rows(cursor, text, catalog.relations, interruption))
        except BaseException:
            cursor.close()
            raise

    def _catalog(self, engine: Engine, epoch: ServedEpoch) -> _Catalog:
        for catalog in self._catalogs:
            if catalog.epoch is epoch:
                return catalog
        for catalog in [each for each in self._catalogs if not each.open_rows]:
            engine.detach(catalog.name)
            self._catalogs.remove(catalog)
        catalog = _Catalog(epoch, f"epoch_{epoch.epoch}_{next(self._numbers)}")
        engine.attach(catalog.name, epoch.snapshot.why)
        self._catalogs.append(catalog)
        return catalog

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()


class EpochRows:
    """Rows of a query at one epoch, whose catalog stays until they are closed."""

    def __init__(self, catalog: _Catalog, cursor: Any, rows: Rows) -> None:
        self._catalog, self._cursor, self._rows = catalog, cursor, rows
        self.schema = rows.schema
        self.next_batch = rows.next_batch
        self._is_open = True
        catalog.open_rows += 1

    def close(self) -> None:
        """Drops the unread rows; a second call does nothing."""
        if self._is_open:
            self._is_open = False
            self._rows.close()
            self._cursor.close()
            self._catalog.open_rows -= 1
