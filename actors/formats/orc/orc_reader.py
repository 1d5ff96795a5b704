"""Reader of ORC files."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.orc as arrow_orc

from actors.file_errors import UnreadableFile
from actors.formats.asked_arrow import ask_arrow
from actors.formats.limits import CpuTime, Expansion, row_bytes
from actors.formats.orc.stripe import Stripe
from actors.formats.orc.tail import OrcTail, StripeInfo
from actors.formats.template import DecodedTable, OpenedFile, ReadRequest, TableReader
from actors.formats.windows import ChunkWindows
from actors.objects.object_file import Fetched, ObjectFile
from actors.objects.ranges import Bytes, seekable
from actors.settings import ReadLimits


class OrcReader(TableReader[OrcTail]):
    """Reads ORC files; see `FileReader`.

    The tail of a large file is one request.  Then the stripes are fetched, or of a larger stripe its footer, and the
    streams of the wanted columns.
    """

    declared, magics = "ORC", (b"ORC",)

    def _open(self, file: ObjectFile) -> OpenedFile[OrcTail]:
        tail = OrcTail(file, self._limits)
        return OpenedFile(tail, _schema(tail))

    def _tables(
        self, opened: OpenedFile[OrcTail], request: ReadRequest, cpu: CpuTime, expansion: Expansion
    ) -> Iterator[DecodedTable]:
        columns = _read_columns(opened.schema, request.wanted)
        reading = _Reading(request.file, opened.head, columns, self._limits)
        for table in reading.tables(request.offset.row, request.piece_bytes):
            cpu.require()
            yield table


def _read_columns(found: pa.Schema, wanted: pa.Schema) -> list[str]:
    """The columns that are read; the cheapest one if only the number of rows is wanted."""
    names = [name for name in found.names if name in wanted.names]
    return names or [min(found, key=lambda field: row_bytes([field])).name]


class _Reading:
    """One reading of columns of a file.

    Args:
        columns: the names of the columns.
        limits: the limits of the reader.
    """

    def __init__(self, file: ObjectFile, tail: OrcTail, columns: list[str], limits: ReadLimits) -> None:
        self._file, self._tail, self._columns, self._limits = file, tail, columns, limits
        root = tail.types[0]
        self._is_wide = file.is_whole or all(name in columns for name in root.names)

    def tables(self, offset_rows: int, piece_bytes: int) -> Iterator[DecodedTable]:
        """Yields the tables from an offset."""
        ends = list(itertools.accumulate(each.num_rows for each in self._tail.stripes))
        stripes = [
            (info, end - info.num_rows)
            for info, end in zip(self._tail.stripes, ends, strict=True)
            if end > offset_rows and info.num_rows
        ]
        content = self._fetch(stripes[0][0]) if stripes else None
        for (info, first_row), following in itertools.zip_longest(stripes, stripes[1:]):
            assert content is not None
            ahead = self._fetch(following[0]) if following else None
            start = first_row
            for table in self._decoded(info, content, piece_bytes):
                skipped = min(max(offset_rows - start, 0), table.num_rows)
                if skipped < table.num_rows:
                    yield DecodedTable(table.slice(skipped), start + skipped)
                start += table.num_rows
            if start - first_row != info.num_rows:
                raise UnreadableFile(f"{_place(info)}: it claims {info.num_rows} rows and has {start - first_row}")
            content = ahead

    def _fetch(self, info: StripeInfo) -> Fetched:
        """The whole stripe, or the footer of one of which parts are fetched later."""
        return self._file.fetch([info.range if self._is_fetched_whole(info) else info.footer])

    def _is_fetched_whole(self, info: StripeInfo) -> bool:
        nbytes, settings = info.end - info.start, self._file.settings
        most_bytes = settings.max_held_bytes if self._is_wide else settings.max_gap_bytes
        return self._file.is_whole or nbytes <= most_bytes

    def _decoded(self, info: StripeInfo, content: Fetched, piece_bytes: int) -> Iterator[pa.Table]:
        start, end = info.footer
        stripe = Stripe(self._tail, info, content.read_at(start, end - start), self._limits)
        columns = stripe.columns(self._columns)
        read_at = content.read_at if self._is_fetched_whole(info) else self._parts(stripe, columns)
        stream = _spliced(self._tail.start, read_at, self._tail.of(info))
        rows = stripe.most_rows(columns, stream, piece_bytes)
        if rows >= info.num_rows:
            batch = ask_arrow(lambda: arrow_orc.ORCFile(stream).read_stripe(0, columns=self._columns), _place(info))
            yield pa.Table.from_batches([batch])
            return
        batches = ask_arrow(lambda: self._batches(stream, rows), _place(info))
        while (batch := ask_arrow(lambda: next(batches, None), _place(info))) is not None:
            yield pa.Table.from_batches([batch])

    def _parts(self, stripe: Stripe, columns: Sequence[int]) -> Callable[[int, int], Bytes]:
        """The streams of columns, fetched, or by windows if they are too large to be held."""
        ranges, held_bytes = stripe.ranges(columns), self._file.settings.max_held_bytes
        if sum(end - start for start, end in ranges) <= held_bytes:
            return self._file.fetch(ranges).read_at
        return ChunkWindows(self._file, ranges, held_bytes, lambda *_: None).read_at

    def _batches(self, stream: pa.NativeFile, rows: int) -> Iterator[pa.RecordBatch]:
        fragment = ds.OrcFileFormat().make_fragment(stream)
        return iter(fragment.to_batches(columns=self._columns, batch_size=rows, batch_readahead=1, use_threads=False))


def _schema(tail: OrcTail) -> pa.Schema:
    """The columns of a file, as Arrow has them."""
    stream = _spliced(tail.start, lambda _, nbytes: bytes(nbytes), tail.of(None))
    return ask_arrow(lambda: arrow_orc.ORCFile(stream).schema, "not an ORC file")


def _spliced(start: int, read_at: Callable[[int, int], Bytes], tail: bytes) -> pa.NativeFile:
    """A file with another tail from a position on."""

    def read(at: int, nbytes: int) -> Bytes:
        if at >= start:
            return tail[at - start :][:nbytes]
        behind = at + nbytes - start
        return read_at(at, nbytes) if behind <= 0 else bytes(read_at(at, nbytes - behind)) + tail[:behind]

    return seekable(start + len(tail), read)


def _place(info: StripeInfo) -> str:
    return f"damaged ORC file, in the stripe at byte {info.start}"
