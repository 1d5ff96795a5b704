"""A format whose reader has bugs: it fails in ways that no reader documents."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from slackwater.formats import FileReader, ObjectFile, Offset, ReadLimits, Rows

_SCHEMA = pa.schema([("number", pa.int64())])


@dataclass(frozen=True, kw_only=True)
class FailingFormat:
    """One number a line; a line `IndexError` raises this error, and a first line `schema ...` does so in inference."""

    name: str = field(default="failing", init=False)

    def reader(self, limits: ReadLimits) -> FileReader:
        return _Reader()


class _Reader:
    def infer_schema(self, file: ObjectFile) -> pa.Schema:
        first = _lines(file)[0]
        if first.startswith("schema "):
            raise _error(first.removeprefix("schema "))
        return _SCHEMA

    def read(
        self,
        file: ObjectFile,
        schema: pa.Schema,
        offset: Offset = Offset(),
        piece_bytes: int = 1 << 20,
        columns: Collection[str] | None = None,
        every_column: bool = False,
    ) -> Iterator[Rows]:
        for row, line in enumerate(_lines(file)):
            if row >= offset.row:
                if not line.isdigit():
                    raise _error(line)
                yield Rows(pa.table({"number": [int(line)]}, _SCHEMA), row)


def _lines(file: ObjectFile) -> list[str]:
    return bytes(file.stream().read()).decode().splitlines()


def _error(name: str) -> BaseException:
    kinds: dict[str, type[BaseException]] = {
        kind.__name__: kind
        for kind in (IndexError, TypeError, ValueError, OSError, RecursionError, AssertionError, MemoryError)
    }
    return kinds[name]("a bug")
