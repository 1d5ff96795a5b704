"""How one source's files are opened and read."""

from __future__ import annotations

import pyarrow as pa

from actors.messages import FileVersion
from actors.object_store import ObjectStore
from actors.open_file import OpenFile
from actors.readers import reader_for
from actors.settings import FetchSettings
from actors.source import SourceDefinition


class SourceReader:
    """Opens the files of a source.

    Args:
        source: where they are and in which format.
        schema: None until it is decided.
        settings: sizes of requests and pieces.
    """

    def __init__(self, source: SourceDefinition, schema: pa.Schema | None, settings: FetchSettings) -> None:
        self.schema = schema
        self._store = ObjectStore(
            source.location,
            whole_object_bytes=settings.whole_object_bytes,
            block_bytes=settings.piece_bytes,
            max_attempts=settings.max_attempts,
        )
        self._reader = reader_for(source.format, settings.limits)
        self._piece_bytes = settings.piece_bytes

    def check(self) -> None:
        """Whether the source can be used at all.  Errors as `ObjectStore.check`."""
        self._store.check()

    def open(self, file: FileVersion) -> OpenFile:
        """A file, at its start; nothing is requested yet."""
        return OpenFile(self._store.open(file), self._reader, self._piece_bytes)
