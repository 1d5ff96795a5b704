"""A format of one's own: lines of fixed width."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from slackwater.formats import BadRecord, FileReader, ObjectFile, Offset, ReadLimits, Rows, conform


@dataclass(frozen=True, kw_only=True)
class FixedWidth:
    """Lines of two fields, the first of which has `width` characters and is a number."""

    name: str = field(default="fixed", init=False)
    width: int = 4

    def reader(self, limits: ReadLimits) -> FileReader:
        return _Reader(self.width)


class _Reader:
    def __init__(self, width: int) -> None:
        self._width = width

    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        return pa.schema([("number", pa.int64()), ("text", pa.string())])

    def read(
        self,
        file: ObjectFile,
        schema: pa.Schema,
        offset: Offset = Offset(),
        piece_bytes: int = 1 << 20,
        columns: Collection[str] | None = None,
        every_column: bool = False,
    ) -> Iterator[Rows]:
        good, bad = [], []
        for row, line in enumerate(file.stream().read().decode().splitlines()):
            if row >= offset.row:
                try:
                    good.append({"number": int(line[: self._width]), "text": line[self._width :]})
                except ValueError:
                    bad.append(BadRecord(row, line.encode(), "no number"))
        wanted = pa.schema([each for each in schema if columns is None or each.name in columns])
        if good or bad:
            yield Rows(conform(pa.Table.from_pylist(good, self.infer_schema(file)), wanted), offset.row, tuple(bad))
