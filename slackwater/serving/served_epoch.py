"""One epoch as a catalog of the engine: its relations are opened when a question names them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.reading.relation import Relation
from slackwater.reading.snapshot import Snapshot
from slackwater.reading.snapshot_sql import named
from slackwater.reading.tables.epoch_table import EPOCH_SCHEMA
from slackwater.reading.tables.file_table import FILE_SCHEMA
from slackwater.reading.tables.handled_table import HANDLED_SCHEMA
from slackwater.reading.tables.quarantine_table import QUARANTINE_SCHEMA
from slackwater.reading.tables.source_table import SOURCE_SCHEMA
from slackwater.reading.view import View
from slackwater.reading.view_relation import ViewRelation
from slackwater.serving.engine import Engine, Interruption, Rows
from state.errors import SlackwaterError

TABLES: Mapping[str, pa.Schema] = {
    "files": FILE_SCHEMA,
    "epochs": EPOCH_SCHEMA,
    "quarantine": QUARANTINE_SCHEMA,
    "sources": SOURCE_SCHEMA,
    "handled_files": HANDLED_SCHEMA,
}
"""The tables beside the views; a view with such a name comes before it."""


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
    """An epoch that sessions read.  It begins with one holder, and ends when the last one releases it.

    Args:
        engine: DuckDB.
        snapshot: the epoch.
        before: the epoch served before; its open views are taken over where their versions are the same.
    """

    def __init__(self, engine: Engine, snapshot: Snapshot, before: ServedEpoch | None = None) -> None:
        self._engine, self.snapshot = engine, snapshot
        self._catalog = f"epoch_{snapshot.epoch}_{id(self):x}"
        self._lock = threading.RLock()
        self._holders = 1
        self._idle: list[Any] = []
        self._views: dict[str, View] = {}
        self._known = {} if before is None else before.open_views()
        self._relations: dict[str, Relation] = {}
        engine.attach(self._catalog, snapshot.why)

    @property
    def epoch(self) -> int:
        return self.snapshot.epoch

    def hold(self) -> ServedEpoch:
        """This epoch with one more holder."""
        with self._lock:
            self._holders += 1
        return self

    def release(self) -> None:
        """One holder less."""
        with self._lock:
            self._holders -= 1
            if self._holders:
                return
            for cursor in self._idle:
                cursor.close()
            self._idle.clear()
        self._engine.detach(self._catalog)

    def open_views(self) -> dict[str, View]:
        """The views that were opened so far."""
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

    def ask(self, text: str, interruption: Interruption) -> EpochRows:
        """The rows of a question.

        Raises:
            SqlError: as `Rows`.
            SlackwaterError: a relation cannot be read.
        """
        self._open(text)
        with self._lock:
            cursor = self._idle.pop() if self._idle else None
        cursor = cursor or self._engine.cursor(self._catalog)
        try:
            return EpochRows(self, cursor, Rows(cursor, text, self._relations, interruption))
        except BaseException:
            cursor.close()
            raise

    def take_back(self, cursor: Any) -> None:
        """A connection that is free again."""
        with self._lock:
            if self._holders > 1:
                self._idle.append(cursor)
                return
        cursor.close()

    def _open(self, text: str) -> None:
        """Makes the relations that a text names, if they are not there yet."""
        missing = [name for name in (*self.snapshot.views, *TABLES) if name not in self._relations]
        if not missing:
            return
        with self._lock:
            for name in named(text, {name: name for name in self.snapshot.views}):
                if name not in self._relations:
                    self._show(name, ViewRelation(self.view(name).reader))
            hidden = {name.casefold() for name in self.snapshot.views}
            for name in named(text, {name: name for name in TABLES if name not in hidden}):
                if name not in self._relations:
                    self._show(name, self._table(name))

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

    def _show(self, name: str, relation: Relation) -> None:
        cursor = self._engine.cursor(self._catalog)
        cursor.from_arrow(relation).create_view(name)
        cursor.close()
        self._relations[name] = relation


class EpochRows:
    """Rows of a question at one epoch; they hold the epoch until they are closed."""

    def __init__(self, epoch: ServedEpoch, cursor: Any, rows: Rows) -> None:
        self._epoch, self._cursor, self._rows = epoch.hold(), cursor, rows
        self.schema = rows.schema
        self.next_batch = rows.next_batch
        self._is_open = True

    def close(self) -> None:
        """Drops what was not read; a second call does nothing."""
        if self._is_open:
            self._is_open = False
            self._rows.close()
            self._epoch.take_back(self._cursor)
            self._epoch.release()
