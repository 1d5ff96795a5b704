"""One epoch with its relations, which are opened when a query names them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.confinement.query_parser import ParsedQuery
from slackwater.reading.named_views import named
from slackwater.reading.relation import Relation
from slackwater.reading.snapshot import Snapshot
from slackwater.reading.tables.epoch_table import EPOCH_SCHEMA
from slackwater.reading.tables.file_table import FILE_SCHEMA
from slackwater.reading.tables.handled_table import HANDLED_SCHEMA
from slackwater.reading.tables.quarantine_table import QUARANTINE_SCHEMA
from slackwater.reading.tables.source_table import SOURCE_SCHEMA
from slackwater.reading.view import View
from slackwater.reading.view_relation import ViewRelation
from state.errors import SlackwaterError

TABLES: Mapping[str, pa.Schema] = {
    "files": FILE_SCHEMA,
    "epochs": EPOCH_SCHEMA,
    "quarantine": QUARANTINE_SCHEMA,
    "sources": SOURCE_SCHEMA,
    "handled_files": HANDLED_SCHEMA,
}
"""The tables in addition to the views; a view of the same name takes precedence."""


class _TableRelation(Relation):
    """A table of a root, read when it is scanned."""

    def __init__(self, schema: pa.Schema, read: Callable[[], pa.Table]) -> None:
        super().__init__(schema)
        self._read_table = read

    def batches(self, columns: Sequence[str], filter: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        table = self._read_table().cast(self.schema)
        table = table if filter is None else table.filter(filter)
        return iter(table.select(list(columns)).to_batches())


class ServedEpoch:
    """An epoch that sessions of a worker read.

    Args:
        before: the epoch served before; its open views are taken over where their versions are the same.
    """

    def __init__(self, snapshot: Snapshot, before: ServedEpoch | None = None) -> None:
        self.snapshot = snapshot
        self._lock = threading.RLock()
        self._views: dict[str, View] = {}
        self._known = {} if before is None else before.open_views()

    @property
    def epoch(self) -> int:
        return self.snapshot.epoch

    def open_views(self) -> dict[str, View]:
        """The opened views."""
        with self._lock:
            return dict(self._views)

    def schemas(self) -> dict[str, pa.Schema]:
        """Every relation with its columns; a view that cannot be read is left out."""
        found = dict(TABLES)
        for name in self.snapshot.views:
            found = {each: schema for each, schema in found.items() if each != name.casefold()}
            try:
                found[name] = self.view(name).schema
            except SlackwaterError:
                continue
        return found

    def view(self, name: str) -> View:
        """A view, opened once.

        Raises:
            ViewNotFoundError, EpochExpiredError, StorageError: as `Snapshot.view`.
        """
        with self._lock:
            if name not in self._views:
                known = self._known.pop(name, None)
                is_same = known is not None and known.reader.version == self.snapshot.reader(name).version
                self._views[name] = known if known is not None and is_same else self.snapshot.view(name)
            return self._views[name]

    def relations(self, query: ParsedQuery, but: Container[str]) -> dict[str, Relation]:
        """New relations for the names in a query, without some.

        Raises:
            UsageError: two views differ only in case.
            SlackwaterError: a relation cannot be read.
        """
        views = named(query, self.snapshot.views)
        found: dict[str, Relation] = {name: ViewRelation(self.view(name).reader) for name in views if name not in but}
        hidden = {name.casefold() for name in self.snapshot.views}
        for name in named(query, TABLES):
            if name not in hidden and name not in but:
                found[name] = self._table(name)
        return found

    def _table(self, name: str) -> Relation:
        if name == "files":
            return self.snapshot.file_relation()
        reads = {
            "epochs": self.snapshot.epochs,
            "quarantine": self.snapshot.quarantine,
            "sources": self.snapshot.sources,
            "handled_files": self.snapshot.handled_files,
        }
        return _TableRelation(TABLES[name], reads[name])
