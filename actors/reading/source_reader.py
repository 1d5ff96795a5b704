"""Reader of the files of one source: its store, its format and its settings."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from actors.files import FileVersion
from actors.formats.registry import reader_for
from actors.objects.object_store import ObjectStore
from actors.objects.range_cache import RangeCache
from actors.reading.open_file import OpenFile
from actors.settings import FetchSettings
from actors.sources.source import SourceDefinition
from state.clock import Clock


class SourceReader:
    """Opens the files of a source.

    Args:
        schema: its schema; None until it is decided.
        settings: the sizes of requests and pieces.
        cache: ranges that were read before; a local source does not use it.
        clock: the wall time, which event times must not be far ahead of; None to read files that were read before.
    """

    def __init__(
        self,
        source: SourceDefinition,
        schema: pa.Schema | None,
        settings: FetchSettings,
        cache: RangeCache | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._now = None if clock is None else clock.now
        self.schema = schema
        self._source = source
        self.columns: frozenset[str] | None = None
        self._store = ObjectStore(
            source.location,
            requests=settings.requests,
            concurrency=settings.concurrency,
            max_attempts=settings.max_attempts,
            cache=None if source.location.is_local else cache,
        )
        self._reader = reader_for(source.format, settings.limits, source.timestamps, source.names)
        self._piece_bytes, self._limits = settings.piece_bytes, settings.limits

    def check(self) -> None:
        """Checks the access to the source.  Errors as `ObjectStore.check`."""
        self._store.check()

    def open(self, file: FileVersion, bad: Collection[int] = ()) -> OpenFile:
        """The file at its start; no request is made yet.

        Args:
            bad: the positions of its bad records, if it was read before.
        """
        content = self._store.open(file)
        return OpenFile(content, file, self._source, self._reader, self._piece_bytes, self._limits, self._now, bad)
