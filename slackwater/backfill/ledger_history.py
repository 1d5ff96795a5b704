"""The history of a backfill, read from the files again: the ledger has the ingested files and their records."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import pyarrow as pa

from actors.file_errors import REFUSALS, ObjectChanged, ObjectVanished, UnreadableFile
from actors.reading.open_file import OpenFile
from actors.reading.source_reader import SourceReader
from actors.rows import Offset, Rows
from actors.schemas.metadata_columns import EPOCH, with_epoch
from actors.settings import FetchSettings
from slackwater.backfill.position import HistoryPosition
from slackwater.reading.recorded_source import IngestedFile, RecordedSource
from spark_bridge.ingest.history import HistoryPiece
from spark_bridge.plans.columns import columns_to_read
from state.errors import NotFoundError
from state.tables.fingerprint import path_fingerprint
from state.tables.stored_rows import FILE_FIELD

_FILES_AHEAD = 3
_SLICE_BYTES = 128 << 10
# The rows of a piece are in this process.
_MOST_BYTES = 64 << 20
_LOST = (ObjectVanished, ObjectChanged, UnreadableFile)


class _Opened(NamedTuple):
    """A file whose first piece is read in a thread."""

    source: RecordedSource
    file: IngestedFile
    content: OpenFile
    columns: tuple[str, ...]
    first: Future[tuple[Rows, bool]]


class LedgerHistory:
    """The ingested rows of files: from each file the records that the ledger counts, without the bad ones.

    Args:
        sources: the sources with their files at one epoch, in the order of the history.
        columns: source → its used columns.
        settings: sizes of reads.
        progress: the position to continue from; None for the start.
    """

    is_stored = False

    def __init__(
        self,
        sources: Sequence[RecordedSource],
        columns: Mapping[str, frozenset[str]],
        settings: FetchSettings,
        progress: str | None,
    ) -> None:
        self._files = [(source, file) for source in sources for file in source.files]
        self._used = columns
        self._columns = {each.name: columns_to_read(each.schema, [columns[each.name]]) for each in sources}
        self._readers = {each.name: SourceReader(each.definition, each.schema, settings) for each in sources}
        self._at = HistoryPosition((file.rows for _, file in self._files), progress)
        self._threads = ThreadPoolExecutor(_FILES_AHEAD, thread_name_prefix="history")
        self._missing: list[str] = []
        self._pieces = self._read()

    @property
    def fraction(self) -> float:
        """The share of the rows already taken, from 0 to 1."""
        return self._at.fraction

    @property
    def missing(self) -> tuple[str, ...]:
        """URLs of the files that are deleted, have changed, or cannot be read."""
        return tuple(self._missing)

    def take(self, nbytes: int) -> HistoryPiece | None:
        """See `History.take`.  It skips a lost file and adds it to `missing`."""
        tables: dict[str, list[pa.Table]] = {}
        taken = 0
        while taken < min(nbytes, _MOST_BYTES) and (piece := next(self._pieces, None)) is not None:
            source, table = piece
            if table.num_rows:
                tables.setdefault(source, []).append(table)
                taken += table.nbytes
        rows = {source: pa.concat_tables(each) for source, each in tables.items()}
        return HistoryPiece(rows, taken, self._at.to_json()) if rows else None

    def close(self) -> None:
        """Stops reading."""
        self._pieces.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _read(self) -> Generator[tuple[str, pa.Table]]:
        """Yields source and rows; the position is then after these rows."""
        ahead: deque[_Opened] = deque()
        begun = self._at.part
        while not self._at.is_at_end:
            while begun < len(self._files) and len(ahead) < _FILES_AHEAD:
                source, file = self._files[begun]
                ahead.append(self._open(source, file, self._at.row if begun == self._at.part else 0))
                begun += 1
            opened = ahead.popleft()
            try:
                yield from self._pieces_of(opened)
            except REFUSALS as error:
                raise NotFoundError(f"{error}; then retry the view") from error
            except _LOST:
                self._missing.append(f"{opened.source.definition.location.url}/{opened.file.file.path}")
            self._at.go_to_next_part()

    def _open(self, source: RecordedSource, file: IngestedFile, row: int) -> _Opened:
        content, columns = self._readers[source.name].open(file.file, file.bad), self._columns[source.name]
        begin = Offset(max(row, file.first))
        first = self._threads.submit(content.next_piece, source.schema, begin, columns)
        return _Opened(source, file, content, columns, first)

    def _pieces_of(self, opened: _Opened) -> Iterator[tuple[str, pa.Table]]:
        rows, last = opened.first.result()
        while True:
            # Small slices, so that a piece can be small.
            step = max(1, _SLICE_BYTES * rows.num_rows // max(1, rows.table.nbytes))
            for start in range(rows.first_row, min(rows.end_row, opened.file.rows), step):
                known = rows.between(start, min(start + step, opened.file.rows))
                self._at.go_to(known.end_row)
                yield opened.source.name, self._with_hidden(opened, self._with_epoch(opened, known.table))
            if self._at.row >= opened.file.rows:
                return
            if last:
                raise UnreadableFile(f"the file has {rows.end_row:,} records, but {opened.file.rows:,} were ingested")
            rows, last = opened.content.next_piece(opened.source.schema, Offset(self._at.row), opened.columns)

    def _with_hidden(self, opened: _Opened, table: pa.Table) -> pa.Table:
        source = opened.source.name
        if FILE_FIELD.name not in self._used[source]:
            return table
        file = pa.scalar(path_fingerprint(source, opened.file.file.path), FILE_FIELD.type)
        return table.append_column(FILE_FIELD, pa.repeat(file, table.num_rows))

    @staticmethod
    def _with_epoch(opened: _Opened, table: pa.Table) -> pa.Table:
        if EPOCH not in table.column_names:
            return table
        if opened.file.epoch is None:
            raise UnreadableFile(
                "its rows were ingested in several epochs, and only stored rows have the epoch of each row"
            )
        return with_epoch(table, opened.file.epoch)
