"""Roots whose epochs are committed by hand, with views that the real materializer makes of real files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType, TracebackType
from typing import Any

import lance
import obstore
import pyarrow as pa
from pyspark.sql import SparkSession

import slackwater as sw
from actors.fetching.file_progress import FileProgress
from actors.files import FileVersion
from actors.formats.registry import Format, reader_for
from actors.objects.object_store import ObjectStore
from actors.reading.file_columns import FileColumns
from actors.rows import BadRecord, Offset, Rows
from actors.schemas.conform import Timestamps
from actors.schemas.metadata_columns import metadata_fields
from actors.sources.event_time import EventTime
from actors.sources.source import SourceDefinition
from slackwater.verification.verification import Verification
from spark_bridge.ingest.late_rows import late_delta
from spark_bridge.materializer import Materializer
from spark_bridge.plans.view_definition import ViewDefinition
from state.clock import ManualClock
from state.epoch import next_epoch
from state.lance.lance_access import lance_options
from state.lance.lance_store import LanceStateStore
from state.location import Location
from state.objects.object_client import object_client
from state.tables.catalog import CatalogPipeline, put_pipeline, put_source, put_view
from state.tables.delta import Delta, DeltaBuilder
from state.tables.fingerprint import version_fingerprint
from state.tables.keys import encode_key
from state.tables.records import CatalogSource, CatalogView, EpochCounts, EpochSeconds, ViewVersion
from state.upkeep.quarantine import clear_quarantine
from tests.spark_bridge.followed_view import blocks

_PIECE_BYTES = 64  # so small that every piece ends where a test may want it to


class CommittedRoot:
    """One source `t`, or a second one `u`, and some views; each call of `ingest` is one epoch."""

    def __init__(self, spark: SparkSession, root: Location, raw: Location) -> None:
        self.spark, self.root, self.raw = spark, root, raw
        self._clock = ManualClock(datetime(2026, 1, 31, 12, tzinfo=UTC))
        self._store = LanceStateStore.create(root, self._clock)
        self._store.take_over()
        self._materializer = Materializer(spark, root, self._clock)
        self._delta, self._late = DeltaBuilder(), Delta()
        self._sources: dict[str, SourceDefinition] = {}
        self._views: dict[str, ViewVersion] = {}
        self._catalog: dict[str, CatalogView] = {}
        self._read: dict[tuple[str, str], int] = {}
        self.epochs: list[int] = []

    def __enter__(self) -> CommittedRoot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._materializer.close()

    def declare(
        self, format: Format, schema: pa.Schema, *views: ViewDefinition, timestamps: Timestamps = "exact"
    ) -> None:
        """What the pipeline is."""
        source = SourceDefinition(name="t", location=self.raw, format=format, schema=schema, timestamps=timestamps)
        self._declare([source], views)

    def declare_timed(self, format: Format, schema: pa.Schema, event_time: str, *views: ViewDefinition) -> None:
        """Two sources with an event time, whose rows have their places."""
        time, places = EventTime(event_time), ("path", "row")
        complete = pa.schema([*schema, *metadata_fields(places)])
        self._materializer.close()
        self._materializer = Materializer(
            self.spark, self.root, self._clock, event_times=dict.fromkeys("tu", event_time)
        )
        locations = {"t": self.raw, "u": self.raw.child("of_u")}
        self._declare(
            [
                SourceDefinition(
                    name=name, location=place, format=format, schema=complete, metadata=places, event_time=time
                )
                for name, place in locations.items()
            ],
            views,
        )

    def _declare(self, sources: Sequence[SourceDefinition], views: Sequence[ViewDefinition]) -> None:
        self._sources = {source.name: source for source in sources}
        self._source = sources[0]
        put_pipeline(self._delta, CatalogPipeline("p", ansi=False))
        for source in sources:
            assert source.schema is not None
            schema = source.schema.serialize().to_pybytes()
            put_source(self._delta, CatalogSource(source.name, source.to_json(), schema))
        self._materializer.declare(views, {source.name: source.schema for source in sources}, {})

    def put(self, path: str, body: bytes) -> None:
        """Writes a file of the source `t`; those below `of_u` are of `u`."""
        obstore.put(object_client(self.raw), path, body)

    def remove(self, path: str) -> None:
        obstore.delete(object_client(self.raw), path)

    def ingest(
        self,
        rows: Mapping[str, int],
        status: str = "done",
        *,
        source: str = "t",
        watermarks: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """One epoch that reads so many records of each file, as far as they were not read before.

        Args:
            rows: file → the number of its records.
            status: of the files.
            source: of the files.
            watermarks: source → its watermark from this epoch on, in microseconds since 1970.
        """
        self._source = self._sources[source]
        tables = [self._source.schema.empty_table()] if self._source.schema else []
        for path, count in rows.items():
            bad, read = [], self._read.get((source, path), 0)
            for piece in self._pieces(path, count):
                new = piece.between(read, count)
                tables.append(new.table)
                bad += [record.row for record in piece.bad]
                self._keep(path, new.bad)
            self._read[source, path] = count
            self._finish(path, count, status, rows_bad=len(bad))
        self._bring_up_to_date(pa.concat_tables(tables), watermarks)

    def freeze(self, view: str) -> None:
        """The view is not declared any more; the next epochs have nothing for it."""
        self._catalog[view] = replace(self._catalog[view], stopped_epoch=self.epochs[-1])
        put_view(self._delta, self._catalog[view])

    def fail(self, view: str, error: str, *, stopped_epoch: int | None = None) -> None:
        """The view fails; the next epochs have nothing for it.

        Args:
            view: its name.
            error: the reason.
            stopped_epoch: the last epoch whose rows it has; None for the last epoch of the root.
        """
        at = self.epochs[-1] if stopped_epoch is None else stopped_epoch
        self._catalog[view] = replace(self._catalog[view], stopped_epoch=at, error=error)
        put_view(self._delta, self._catalog[view])

    def redefine(self, view: str, text: str) -> None:
        """An epoch at which the catalog has another text of a view, as a hostile writer of the root puts it there."""
        self._catalog[view] = replace(self._catalog[view], definition=text)
        put_view(self._delta, self._catalog[view])
        self._commit()

    def claim(self, path: str, rows: int, rows_bad: int = 0) -> None:
        """An epoch that says that other rows of a file were read than were."""
        self._finish(path, rows, "done", rows_bad=rows_bad)
        self._commit()

    def claim_bad(self, path: str, row: int) -> None:
        """An epoch that quarantines a row which was read."""
        self._keep(path, [BadRecord(row, b"", "it was claimed")])
        self._commit()

    def forget_bad(self, path: str, row: int) -> None:
        """An epoch that loses a bad record."""
        file = FileProgress(self._version(path), 0)
        self._delta.delete("quarantine", file.quarantine_key(BadRecord(row, b"", "")), 1)
        self._commit()

    def clear_quarantine(self) -> int:
        """What bad records were is forgotten."""
        return clear_quarantine(self._store, None, self.epochs[-1])

    def overwrite(self, view: str, rows: pa.Table) -> None:
        """An epoch at which a view has other rows; what is stored beside them is nobody's business here."""
        location = self.root.child(self._views[view].path)
        dataset = lance.write_dataset(
            rows, location.lance_uri, mode="overwrite", storage_options=lance_options(location)
        )
        self._views[view] = replace(self._views[view], version=dataset.version)
        self._commit()

    def stored(self, view: str) -> pa.Table:
        return self.store().snapshot().view(view).to_arrow()

    def store(self) -> sw.Store:
        return sw.open(self.root.url, storage_options=dict(self.root.storage_options) or None)

    def verify(self, **arguments: Any) -> Verification:
        return sw.verify(self.store(), **{"spark": self.spark, "follow_sources": True, **arguments})

    def _pieces(self, path: str, count: int) -> Iterator[Rows]:
        """Yields the first records of a file."""
        file = self._version(path)
        content = ObjectStore(self._source.location).open(file)
        assert self._source.schema is not None
        columns = FileColumns(self._source, self._source.schema, file)
        reader = reader_for(self._source.format, timestamps=self._source.timestamps)
        for piece in reader.read(content, columns.content, Offset(), _PIECE_BYTES):
            yield columns.complete(piece).between(0, count)
            if piece.end_row >= count:
                break

    def _keep(self, path: str, records: Iterable[BadRecord]) -> None:
        file = FileProgress(self._version(path), 0)
        for bad in records:
            self._delta.put("quarantine", file.quarantine_key(bad), 1, **file.quarantine_row(bad))

    def _version(self, path: str) -> FileVersion:
        for page in ObjectStore(self._source.location).list_pages():
            for found, etag, size, modified in page.objects():
                if found == path:
                    return FileVersion(
                        self._source.name, path, version_fingerprint(etag, size, modified), etag, size, modified
                    )
        raise AssertionError(f"{path} is not there")

    def _finish(self, path: str, rows: int, status: str, rows_bad: int = 0) -> None:
        file = self._version(path)
        epoch = next_epoch(self._clock, self.epochs[-1] if self.epochs else 0)
        self._delta.put(
            "ledger",
            encode_key(file.source, path, file.version),
            1,
            **vars(file),
            status=status,
            rows_read=rows,
            rows_bad=rows_bad,
            listed_epoch=epoch,
            done_epoch=epoch,
        )

    def _bring_up_to_date(self, rows: pa.Table, watermarks: Mapping[str, int]) -> None:
        epoch = next_epoch(self._clock, self.epochs[-1] if self.epochs else 0)
        stopped = {name for name, view in self._catalog.items() if view.stopped_epoch is not None}
        new = {self._source.name: blocks(rows)} if rows.num_rows else {}
        written = self._materializer.run_epoch(epoch, new, (), watermarks)
        urls = {source.name: source.location.url for source in self._sources.values()}
        self._late = late_delta(written.late, urls, epoch)
        for view in written.created:
            self._catalog[view.name] = view
            put_view(self._delta, view)
        self._views.update({name: view for name, view in written.views.items() if name not in stopped})
        self._commit()

    def _commit(self) -> None:
        epoch = next_epoch(self._clock, self.epochs[-1] if self.epochs else 0)
        self._store.commit(
            epoch=epoch,
            delta=Delta.merge([self._delta.build(), self._late]),
            views=self._views,
            counts=EpochCounts(),
            seconds=EpochSeconds(),
        )
        self._late = Delta()
        self.epochs.append(epoch)
        self._clock.advance(1)
